// SPDX-License-Identifier: Apache-2.0
#include "job/process_writer.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "job/host_calls.h"
#include "job/progress_writer.h"
#include "job/simulation.h"

namespace lockstep::sim::job {
namespace {

using format::Kind;

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kCommEveryNs = 40'000'000;  // from one communicator's creation to the next
constexpr uint64_t kBuffers = 0x7f4a'0000'0000;
constexpr uint32_t kApiVersion = 5;
constexpr int32_t kNcclVersion = 22809;
constexpr char kGpuModel[] = "NVIDIA H200";

template <size_t N>
void copy_text(char (&out)[N], const std::string& text) {
  std::memcpy(out, text.data(), std::min(text.size(), N - 1));
}

uint64_t key(int number) { return static_cast<uint64_t>(number); }

}  // namespace

ProcessWriter::ProcessWriter(const Job& job, const Links& links, const Timeline& timeline, int rank)
    : job_(job),
      links_(links),
      timeline_(timeline.ranks[static_cast<size_t>(rank)]),
      rank_(rank),
      clock_(job.clock_of(rank)),
      capture_began_(kSecondNs +
                     static_cast<int64_t>(job.random.below(50'000'000, Draw::kIdentity, 3, key(rank)))),
      end_(timeline_.left),
      closed_(timeline_.left != kNever) {
  const auto stop = job.fault.disturbance.stops.find(rank);
  if (stop != job.fault.disturbance.stops.end() && stop->second.manner != Stop::Manner::kFinished)
    closed_ = false;
  const auto& deaths = job.fault.disturbance.dies_after_ms;
  if (const auto death = deaths.find(rank); death != deaths.end())
    end_ = timeline.last + static_cast<int64_t>(death->second * 1e6);
  if (const auto start = job.fault.disturbance.starts_ms.find(rank);
      start != job.fault.disturbance.starts_ms.end())
    capture_began_ += static_cast<int64_t>(start->second * 1e6);
  if (timeline.killed != kNever && (end_ == kNever || end_ > timeline.killed)) {
    end_ = timeline.killed;
    closed_ = false;
  }
  if (end_ == kNever)
    end_ = timeline.last + static_cast<int64_t>(job.options.hang_seconds * static_cast<double>(kSecondNs));
}

uint32_t ProcessWriter::ticks_between(int64_t from, int64_t until) const {
  if (until == kNever) return 0;
  const uint64_t passed = ticks(until) - ticks(from);
  return static_cast<uint32_t>(std::clamp<uint64_t>(passed, 1, format::kSaturated - 1));
}

format::RecordHead ProcessWriter::head(int64_t from, int64_t until) const {
  return {ticks(from), ticks_between(from, until), Kind::kNone, format::kFlagStopped, 0};
}

Result<ProcessWriter::Written> ProcessWriter::write(const std::string& directory) {
  Written written;
  FileBuilder file;
  const auto& rings = job_.fault.disturbance.ring_chunks;
  const auto ring = rings.find(rank_);
  if (ring != rings.end()) file.ring(static_cast<uint32_t>(ring->second));
  fill_header(file, format::Source::kNccl);
  define_comms(file);
  define_anchors(file);
  const auto pid = static_cast<uint32_t>(file.header().pid);
  write_calls(file.log(pid, "python"));
  if (job_.deep()) {
    std::vector<ProgressWriter::Op> ops;
    for (const UnitRow& row : units_)
      ops.push_back({row.row, row.step, row.unit, &handles_[row.first_handle]});
    ProgressWriter(job_, links_, timeline_, rank_, end_).write(file, ops);
  }
  written.ops = handles_.size();
  LOCKSTEP_TRY(save(file, directory, "nccl", &written));
  if (!job_.options.marks) return written;
  FileBuilder marks;
  fill_header(marks, format::Source::kApi);
  define_anchors(marks);
  write_marks(marks.log(pid, "python"));
  LOCKSTEP_TRY(save(marks, directory, "api", &written));
  return written;
}

void ProcessWriter::fill_header(FileBuilder& file, format::Source source) const {
  format::FileHeader& h = file.header();
  const int host = job_.layout.host_of(rank_);
  const int64_t process_began = capture_began_ - 6 * kSecondNs;
  h.source = source;
  h.host_clock = format::HostClock::kTsc;
  h.tick_hz = clock_.tick_hz();
  h.mode = job_.options.mode;
  h.event_mask = 0;
  h.nccl_version = source == format::Source::kNccl ? kNcclVersion : 0;
  h.pid = 4000 + 37 * job_.layout.local_of(rank_) + 5000 * job_.attempt.number;
  h.pid_namespace = 4026531836;
  h.start_ticks = static_cast<uint64_t>(clock_.monotonic(process_began) / 10'000'000);
  h.start_realtime_ns = kEpochNs + clock_.wall().at(process_began);
  h.rank = rank_;
  h.local_rank = job_.layout.local_of(rank_);
  h.world = job_.layout.ranks();
  h.local_world = static_cast<int32_t>(job_.layout.ranks_of_host(host).size());
  h.node_rank = host;
  h.nodes = job_.layout.hosts();
  std::memcpy(h.boot_id, clock_.boot_id().data(), sizeof h.boot_id);
  h.first_anchor = clock_.anchor(capture_began_, key(rank_), 0, job_.random);
  std::memset(h.launcher, 0, sizeof h.launcher);
  std::memset(h.host, 0, sizeof h.host);
  copy_text(h.launcher, "torchrun");
  copy_text(h.job_id, "sim-" + std::to_string(job_.options.seed));
  copy_text(h.host, job_.host_name(host));
  const std::string argv = std::string("python") + '\0' + "train.py";
  h.argv_bytes = h.argv_total_bytes = static_cast<uint32_t>(argv.size());
  std::memcpy(h.argv, argv.data(), argv.size());
  h.process_tag =
      static_cast<uint32_t>(job_.random.bits(Draw::kIdentity, 4, key(rank_), key(job_.attempt.number))) |
      0x80000000u;
  h.state = static_cast<uint32_t>(closed_ ? format::FileState::kClosed : format::FileState::kOpen);
  // The keeper refreshes it once a second; closing does, too.
  const int64_t last_beat = closed_ ? end_ : capture_began_ + (end_ - capture_began_) / kSecondNs * kSecondNs;
  h.heartbeat_ticks = ticks(last_beat);
  file.sealed_at(ticks(end_));  // the keeper seals with each heartbeat, and nothing has moved since
  h.heartbeat_monotonic_ns = clock_.monotonic(last_beat);
  h.heartbeat_realtime_ns = kEpochNs + clock_.wall().at(last_beat);
}

void ProcessWriter::define_comms(FileBuilder& file) {
  format::NoteDef model{};
  copy_text(model.key, format::kNoteGpuModel);
  copy_text(model.value, kGpuModel);
  file.define(format::Def::kNote, 0, model, ticks(capture_began_ + 1'000'000));
  uint32_t index = 0;
  auto define = [&](const Group& group, int rank_in_group, int64_t when) {
    format::CommDef comm{};
    comm.comm_id = group.comm_id;
    comm.rank = rank_in_group;
    comm.ranks = group.size();
    comm.nodes = group.nodes;
    comm.api_version = kApiVersion;
    comm.tid = static_cast<uint32_t>(file.header().pid);
    comm.device = job_.layout.local_of(rank_);
    std::snprintf(comm.pci, sizeof comm.pci, "0000:%02x:00.0",
                  static_cast<unsigned>(0x1b + 16 * (comm.device & 7)));
    for (uint64_t half = 0; half < 2; ++half) {
      const uint64_t bits = job_.random.bits(Draw::kIdentity, 5, key(rank_), half);
      std::memcpy(comm.uuid + half * sizeof bits, &bits, sizeof bits);
    }
    copy_text(comm.name, group.name);
    file.define(format::Def::kComm, index++, comm, ticks(when));
  };
  // Nobody has a communicator before the last has come.
  int64_t when = std::max(capture_began_, kSecondNs + latest_start_ns(job_.fault.disturbance)) + 1'000'000;
  for (int d = 0; d < kDims; ++d, when += kCommEveryNs) {
    const auto dim = static_cast<Dim>(d);
    const int group = job_.layout.group_of(rank_, dim);
    if (group >= 0) define(job_.layout.group(group), job_.layout.rank_in(rank_, dim), when);
  }
  const uint32_t usual = index;
  const NewGroup& late = job_.fault.disturbance.new_group;
  const auto member = std::find(late.group.ranks.begin(), late.group.ranks.end(), rank_);
  const int64_t last_end =
      timeline_.ended.empty() ? when : *std::max_element(timeline_.ended.begin(), timeline_.ended.end());
  if (member != late.group.ranks.end() && !late.absent.contains(rank_) && last_end + 30'000'000 < end_)
    define(late.group, static_cast<int>(member - late.group.ranks.begin()), last_end + 30'000'000);
  for (uint32_t comm = 0; closed_ && comm < usual; ++comm)
    file.define(format::Def::kCommEnd, comm, format::CommEndDef{}, ticks(end_ - 500'000));
}

// As the keeper takes them: soon after the start, then every ten seconds, and one at the end of a file that
// is closed.
void ProcessWriter::define_anchors(FileBuilder& file) const {
  uint64_t number = 1;
  auto define = [&](int64_t when) {
    format::AnchorDef anchor{};
    anchor.anchor = clock_.anchor(when, key(rank_), number++, job_.random);
    file.define(format::Def::kAnchor, 0, anchor, anchor.anchor.ticks);
  };
  int64_t every = kSecondNs / 10;
  for (int64_t when = capture_began_ + every; when < end_; when += every) {
    define(when);
    every = std::min(every * 10, 10 * kSecondNs);
  }
  if (closed_) define(end_);
}

void ProcessWriter::write_calls(Log& log) {
  std::array<uint32_t, kDims> comm_of{};
  for (int d = 0; d < kDims; ++d) {
    const auto dim = static_cast<Dim>(d);
    if (job_.layout.group_of(rank_, dim) < 0) continue;
    comm_of[static_cast<size_t>(d)] = static_cast<uint32_t>(job_.layout.comm_index(rank_, dim));
    streams_[dim] = log.stream(kBuffers + 0x1000 * static_cast<uint64_t>(d));
  }
  size_t row = 0;
  for (size_t step = 0; step < timeline_.step_begin.size(); ++step) {
    const Program& program = job_.program(rank_, static_cast<int>(step));
    for (size_t u = 0; u < program.size() && row < timeline_.units(); ++u, ++row) {
      const HostCalls calls = HostCalls::of(rank_, row, program[u].tasks.size(), job_.random);
      if (timeline_.called[row] + calls.done > end_) return;
      units_.push_back({static_cast<uint32_t>(row), static_cast<int>(step), &program[u],
                        static_cast<uint32_t>(handles_.size())});
      write_unit(log, units_.back(), comm_of[static_cast<size_t>(program[u].dim)]);
    }
  }
}

void ProcessWriter::write_unit(Log& log, const UnitRow& at, uint32_t comm) {
  const Unit& unit = *at.unit;
  const HostCalls c = HostCalls::of(rank_, at.row, unit.tasks.size(), job_.random);
  const int64_t called = timeline_.called[at.row];
  const bool lite = job_.options.mode == format::Mode::kLite;
  const uint16_t stream = streams_[unit.dim];

  format::GroupApiRecord group{head(called, called + c.done), comm, 0, 0, 1};
  group.group_start_after = ticks_between(called, called + c.group_started);
  group.group_end_after = ticks_between(called, called + c.group_ending);
  const uint64_t group_handle = log.add(Kind::kGroupApi, group);
  std::vector<uint64_t> calls;
  const size_t api_calls = unit.alltoall ? 1 : unit.tasks.size();
  for (size_t i = 0; i < api_calls; ++i) {
    const Task& task = unit.tasks[i];
    const int64_t start = called + c.first_call + static_cast<int64_t>(i) * c.call_every;
    const format::RecordHead times = head(start, start + c.call_length);
    if (unit.alltoall) {
      const uint16_t name = alltoall_shape(log, task.type);
      calls.push_back(log.add_child(
          Kind::kCollApi, format::CollApiRecord{times, task.count, comm, name, stream}, group_handle));
    } else if (task.is_p2p()) {
      const uint16_t name = shape(log, task.func, task.type, true, false, 0);
      calls.push_back(log.add_child(
          Kind::kP2pApi, format::P2pApiRecord{times, task.count, comm, name, stream}, group_handle));
    } else {
      const uint16_t name = shape(log, task.func, task.type, true, false, task.root);
      calls.push_back(log.add_child(
          Kind::kCollApi, format::CollApiRecord{times, task.count, comm, name, stream}, group_handle));
    }
  }
  uint64_t plan = 0;
  if (!lite) {
    log.add_child(
        Kind::kKernelLaunch,
        format::KernelLaunchRecord{head(called + c.launch, called + c.launch_end), comm, stream, 0, 0},
        group_handle);
    plan = log.add(Kind::kGroup, format::GroupRecord{head(called + c.plan, called + c.plan_end), comm, 0, 0});
  }
  for (size_t i = 0; i < unit.tasks.size(); ++i) {
    const Task& task = unit.tasks[i];
    const int64_t start = called + c.first_task + static_cast<int64_t>(i) * c.task_every;
    const format::RecordHead times = head(start, start + c.task_length);
    const uint64_t call = calls[std::min(i, calls.size() - 1)];
    handles_.push_back(task.is_p2p() ? write_p2p(log, task, times, comm, call, plan)
                                     : write_coll(log, task, times, comm, call, plan, unit.dim));
  }
}

uint64_t ProcessWriter::write_coll(Log& log, const Task& task, const format::RecordHead& times, uint32_t comm,
                                   uint64_t call, uint64_t plan, Dim dim) {
  format::ShortCollRecord r{};
  r.head = times;
  // NCCL counts these two in bytes.
  const bool in_bytes = task.func == Func::kAllGather || task.func == Func::kBroadcast;
  r.count = in_bytes ? task.bytes() : task.count;
  r.send_buffer_high = r.recv_buffer_high = static_cast<uint16_t>(kBuffers >> 32);
  r.send_buffer_low = 0x100000;
  r.recv_buffer_low = 0x200000;
  r.seq = static_cast<uint32_t>(sequence_[{dim, task.func}]++);
  r.comm = static_cast<uint16_t>(comm);
  r.shape = shape(log, task.func, in_bytes ? DataType::kInt8 : task.type, false, task.bytes() <= kEagerBytes,
                  task.root);
  r.channels = kChannels;
  r.warps = 16;
  if (plan != 0) r.group_link = log.distance(plan, sizeof r);
  return log.add_child(Kind::kShortColl, r, call);
}

uint64_t ProcessWriter::write_p2p(Log& log, const Task& task, const format::RecordHead& times, uint32_t comm,
                                  uint64_t call, uint64_t plan) {
  format::P2pRecord r{};
  r.head = times;
  r.count = task.count;
  r.buffer = kBuffers + 0x300000;
  r.comm = comm;
  r.peer = task.peer;
  r.shape = shape(log, task.func, task.type, true, false, 0);
  r.channels = 1;
  if (plan != 0) r.group_link = log.distance(plan, sizeof r);
  return log.add_child(Kind::kP2p, r, call);
}

void ProcessWriter::write_marks(Log& log) const {
  const uint16_t name = log.shape("step");
  for (size_t step = 0; step < timeline_.step_began.size(); ++step) {
    format::MarkRecord mark{};
    if (timeline_.step_began[step] > end_) break;
    mark.head.start = ticks(timeline_.step_began[step]);
    mark.value = step;
    mark.shape = name;
    mark.is_step = 1;
    log.add(Kind::kMark, mark);
  }
}

uint16_t ProcessWriter::alltoall_shape(Log& log, DataType type) {
  if (alltoall_ == 0) alltoall_ = log.shape("AlltoAll", name_of(type));
  return alltoall_;
}

uint16_t ProcessWriter::shape(Log& log, Func func, DataType type, bool call, bool small, int root) {
  auto [at, is_new] = shapes_.try_emplace({func, type, call, small, root}, 0);
  if (is_new) {
    at->second = call ? log.shape(name_of(func), name_of(type), "", "", root)
                      : log.shape(name_of(func), name_of(type), "RING", small ? "LL" : "SIMPLE", root);
  }
  return at->second;
}

Result<void> ProcessWriter::save(const FileBuilder& file, const std::string& directory, const char* source,
                                 Written* out) const {
  const std::string path = directory + "/" + job_.host_name(job_.layout.host_of(rank_)) + "." +
                           std::to_string(file.header().pid) + "." +
                           std::to_string(file.header().start_ticks) + "." + source + ".lks";
  if (!file.write(path)) return Error{ErrorCode::kIo, "cannot be written", path};
  ++out->files;
  out->bytes += file.size_bytes();
  return {};
}

}  // namespace lockstep::sim::job
