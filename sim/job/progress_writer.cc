// SPDX-License-Identifier: Apache-2.0
#include "job/progress_writer.h"

#include <algorithm>
#include <cstring>

namespace lockstep::sim::job {
namespace {

using format::Kind;

constexpr uint64_t kStepBytes = 512 << 10;
constexpr int kMostSteps = 6;
constexpr uint16_t kStateInProgress = 19, kStateKernelStop = 22;
constexpr int64_t kNetIb = 0x10001, kNetSocket = 0x20001;
constexpr double kWirePart = 0.8;  // of the time between two steps, on the slowest link
constexpr int64_t kAppendNs = 40'000, kTakeUpNs = 2'500;
constexpr int64_t kStuckStepNs = 60'000;  // between the steps before a halt

uint64_t key(int number) { return static_cast<uint64_t>(number); }

}  // namespace

ProgressWriter::ProgressWriter(const Job& job, const Links& links, const RankTimeline& timeline, int rank,
                               int64_t end_ns)
    : job_(job),
      links_(links),
      timeline_(timeline),
      rank_(rank),
      end_(end_ns),
      clock_(job.clock_of(rank)),
      gpu_(job.gpus[static_cast<size_t>(rank)]) {}

void ProgressWriter::write(readers::native::FileBuilder& file, std::span<const Op> ops) {
  process_tag_ = file.header().process_tag;
  pid_ = file.header().pid;
  for (int d = 0; d < kDims; ++d) {
    const auto dim = static_cast<Dim>(d);
    if (job_.layout.group_of(rank_, dim) < 0) continue;
    const auto comm = static_cast<uint32_t>(job_.layout.comm_index(rank_, dim));
    Log& log = file.log(static_cast<uint32_t>(pid_) + 10 + comm, "NCCL Progress " + std::to_string(comm));
    collective_ = 0;
    int64_t free = 0;
    for (const Op& op : ops) {
      if (op.unit->dim != dim) continue;
      posted_ = free == kNever ? kNever : std::max(timeline_.called[op.row] + kAppendNs, free + kTakeUpNs);
      write_op(log, op, comm);
      free = timeline_.ended[op.row];
      collective_ += !op.unit->tasks.front().is_p2p();
    }
  }
}

uint32_t ProgressWriter::after(uint64_t from, int64_t until) const {
  if (until == kNever || until > end_) return 0;
  const uint64_t ticks = clock_.ticks(until);
  return static_cast<uint32_t>(std::clamp<uint64_t>(ticks > from ? ticks - from : 1, 1, format::kSaturated));
}

// A time that does not fit into its record.
void ProgressWriter::late(Log& log, uint64_t target, uint64_t from, int64_t until, uint16_t state,
                          uint64_t value) {
  if (after(from, until) != format::kSaturated) return;
  format::StateRecord record{};
  record.head.start = clock_.ticks(until);
  record.head.link = state;
  record.target = target;
  record.value = value;
  log.add(Kind::kState, record);
}

const HaltedOp* ProgressWriter::halted(const Op& op, uint64_t index) const {
  const auto& all = job_.fault.disturbance.halted;
  if (op.unit->tasks.front().is_p2p() || all.empty()) return nullptr;
  const auto found = all.find({job_.layout.group_of(rank_, op.unit->dim), index});
  return found == all.end() ? nullptr : &found->second;
}

void ProgressWriter::write_op(Log& log, const Op& op, uint32_t comm) {
  std::vector<Step> all;
  for (const Way& way : ways(op)) write_proxy_op(log, op, way, comm, &all);
  if (timeline_.entered[op.row] != kNever) write_kernels(log, op, comm);
  std::stable_sort(all.begin(), all.end(), [](const Step& a, const Step& b) { return a.start < b.start; });
  for (const Step& step : all) write_step(log, step);
}

void ProgressWriter::write_proxy_op(Log& log, const Op& op, const Way& way, uint32_t comm,
                                    std::vector<Step>* all) {
  if (timeline_.called[op.row] + kAppendNs > end_) return;
  const int me = job_.layout.rank_in(rank_, op.unit->dim);
  const int count = static_cast<int>(std::clamp<uint64_t>(way.bytes / kStepBytes, 1, kMostSteps));
  std::vector<Step> steps;
  if (posted_ != kNever) steps = this->steps(op, way, count, halted(op, collective_), me);
  const bool done = static_cast<int>(steps.size()) == count && steps.back().end != kNever;
  const int64_t last = done ? steps.back().end + 500 : kNever;
  const uint64_t start = clock_.ticks(timeline_.called[op.row] + kAppendNs - 2'000);
  format::ProxyOpRecord r{};
  r.head.start = start;
  r.head.stop_after = after(start, last);
  r.head.flags = static_cast<uint8_t>((way.sends ? format::kFlagSend : 0) |
                                      (r.head.stop_after != 0 ? format::kFlagStopped : 0));
  r.parent = way.parent;
  r.context = format::make_context(process_tag_, comm);
  r.pid = pid_;
  r.peer = way.peer;
  r.steps = count;
  r.chunk_size = kStepBytes / 4;
  r.rank = me;
  r.in_progress_after = after(start, posted_);
  const uint64_t handle = log.add(Kind::kProxyOp, r);
  late(log, handle, start, posted_, kStateInProgress, 0);
  late(log, handle, start, last, format::kStateStop, 0);
  for (Step& step : steps) {
    step.parent = handle;
    step.bytes = static_cast<uint32_t>(std::min<uint64_t>(way.bytes / static_cast<uint64_t>(count), 4 << 20));
    if (step.posted && step.start < end_) all->push_back(step);
  }
}

void ProgressWriter::write_kernels(Log& log, const Op& op, uint32_t comm) {
  const int64_t entered = timeline_.entered[op.row], ended = timeline_.ended[op.row];
  for (size_t i = 0; i < op.unit->tasks.size(); ++i) {
    const int channels = op.unit->tasks[i].is_p2p() ? 1 : kChannels;
    for (int channel = 0; channel < channels; ++channel) {
      const uint64_t draw = i * kChannels + static_cast<uint64_t>(channel);
      auto seen_after = [&](uint64_t what) {
        return static_cast<int64_t>(
            job_.random.between(1'500, 9'000, Draw::kSeen, key(rank_), op.row, draw * 2 + what));
      };
      const int64_t start_seen = entered + 150 * channel + seen_after(0);
      const int64_t stop_seen = ended == kNever ? kNever : std::max(ended, start_seen) + seen_after(1);
      if (start_seen > end_) continue;
      format::KernelChRecord r{};
      const uint64_t start = clock_.ticks(start_seen);
      const bool stopped = after(start, stop_seen) != 0;
      r.head.start = start;
      r.head.link = static_cast<uint16_t>(channel);
      r.head.stop_after = stopped ? after(start, stop_seen + 300) : 0;
      r.head.flags = stopped ? format::kFlagStopped : 0;
      r.parent = op.handles[i];
      r.comm = comm;
      r.gpu_start = gpu_.at(entered + 150 * channel);
      r.gpu_stop = stopped ? gpu_.at(ended) : 0;
      r.gpu_stop_seen_after = after(start, stop_seen);
      const uint64_t handle = log.add(Kind::kKernelCh, r);
      if (!stopped) continue;
      late(log, handle, start, stop_seen, kStateKernelStop, r.gpu_stop);
      late(log, handle, start, stop_seen + 300, format::kStateStop, 0);
    }
  }
}

std::vector<ProgressWriter::Way> ProgressWriter::ways(const Op& op) const {
  const Layout& layout = job_.layout;
  const int group_index = layout.group_of(rank_, op.unit->dim);
  const Group& group = layout.group(group_index);
  const int me = layout.rank_in(rank_, op.unit->dim);
  std::vector<Way> ways;
  auto slowness = [&](int peer, bool sends) {
    const int other = group.ranks[static_cast<size_t>(peer)];
    return sends ? links_.slowness(rank_, other) : links_.slowness(other, rank_);
  };
  auto add = [&](int peer, bool sends, uint64_t bytes, uint64_t parent, double worst) {
    ways.push_back({peer, sends, bytes, parent,
                    sends ? timeline_.next_launched[op.row] : timeline_.previous_entered[op.row],
                    slowness(peer, sends) / worst});
  };
  // The transfers of a group end together, with the slowest.
  double slowest = 1;
  for (const Task& task : op.unit->tasks) {
    if (task.is_p2p()) slowest = std::max(slowest, slowness(task.peer, task.func == Func::kSend));
  }
  for (size_t i = 0; i < op.unit->tasks.size(); ++i) {
    const Task& task = op.unit->tasks[i];
    if (task.is_p2p()) {
      if (layout.host_of(group.ranks[static_cast<size_t>(task.peer)]) == layout.host_of(rank_)) continue;
      add(task.peer, task.func == Func::kSend, task.bytes(), op.handles[i], slowest);
      continue;
    }
    for (const bool sends : {true, false}) {
      const int peer = layout.network_peer(group, me, sends);
      if (peer < 0) continue;
      // Each rail carries its part: so much is what the operation's time was made of.
      const uint64_t bytes = task.message_bytes(group.size()) / static_cast<uint64_t>(group.rails);
      add(peer, sends, bytes, op.handles[i], links_.ring_slowness(group_index));
    }
  }
  return ways;
}

std::vector<ProgressWriter::Step> ProgressWriter::steps(const Op& op, const Way& way, int count,
                                                        const HaltedOp* halted, int me) const {
  std::vector<Step> steps;
  const bool ended = timeline_.ended[op.row] != kNever;
  const int until = ended ? count : halted != nullptr ? count / 2 : 0;
  for (int i = 0; i < until; ++i) steps.push_back(done_step(op, way, i, count));
  if (ended) return steps;
  steps.push_back(halted != nullptr ? stuck_step(op, way, until, *halted, me) : first_step(op, way));
  // The next one waits for what comes round the ring.
  if (steps.back().end != kNever && until + 1 < count) steps.push_back(posted_step(way, until + 1));
  return steps;
}

// A slot is posted as soon as the operation is taken up, whatever the GPU does.
ProgressWriter::Step ProgressWriter::posted_step(const Way& way, int number) const {
  Step step;
  step.number = number;
  step.sends = way.sends;
  step.start = posted_ + 800 * number;
  step.wait1 = step.start + 300;
  return step;
}

// A step of an operation that got through.
ProgressWriter::Step ProgressWriter::done_step(const Op& op, const Way& way, int number, int count) const {
  const int64_t entered = timeline_.entered[op.row], met = timeline_.met[op.row];
  const bool ended = timeline_.ended[op.row] != kNever;
  const int64_t span = ended ? std::max<int64_t>(timeline_.ended[op.row] - met, 2'000)
                             : kStuckStepNs * static_cast<int64_t>(count);
  const int64_t from = ended ? met : std::max(entered, way.other_ready);
  const double every = static_cast<double>(span) / count;
  const double jitter =
      job_.random.between(0.9, 1.1, Draw::kNetwork, key(rank_), op.row, key(number) * 2 + way.sends);
  const auto wire = static_cast<int64_t>(every * kWirePart * way.slowness * jitter);
  Step step = posted_step(way, number);
  // Slots are few: a later step is posted when an earlier one is through.
  if (number > 3) step.start = std::max(step.start, from + static_cast<int64_t>(every * (number - 3)));
  step.wait1 = step.start + 300;
  // A rank's own data goes out, and its neighbour's comes in, without anybody else.
  const int64_t own = way.sends ? entered : std::max(way.other_ready, posted_);
  const int64_t data =
      number == 0 ? own + 3'000 : from + static_cast<int64_t>(every * (number + 0.05)) + 1'000;
  if (way.sends) {
    step.wait2 = std::max(step.wait1 + 200, data);
    step.wait3 = std::max(step.wait2, way.other_ready + kAppendNs) + 600;
    step.end = step.wait3 + wire;
  } else {
    step.wait2 = std::max(step.wait1 + 200, data + 1'600 + wire);
    step.wait3 = step.wait2 + 1'500;
    step.end = std::max(step.wait3, entered) + 2'500;
  }
  return step;
}

// The first step of an operation that did not come together: it needs the neighbour only.
ProgressWriter::Step ProgressWriter::first_step(const Op& op, const Way& way) const {
  constexpr int64_t kWireNs = 12'000;
  const int64_t entered = timeline_.entered[op.row];
  Step step = posted_step(way, 0);
  if (way.sends) {
    if (entered == kNever) return step;
    step.wait2 = std::max(step.wait1 + 200, entered + 3'000);
    if (way.other_ready == kNever) return step;
    step.wait3 = std::max(step.wait2, way.other_ready + kAppendNs) + 600;
    step.end = step.wait3 + kWireNs;
  } else if (way.other_ready != kNever) {
    step.wait2 = std::max(step.wait1 + 200, way.other_ready + kWireNs);
    step.wait3 = step.wait2 + 1'500;
    if (entered != kNever) step.end = std::max(step.wait3, entered) + 2'500;
  }
  return step;
}

ProgressWriter::Step ProgressWriter::stuck_step(const Op& op, const Way& way, int number,
                                                const HaltedOp& halted, int me) const {
  Step step = done_step(op, way, number, 2 * number + 1);
  const bool sender = way.sends && me == halted.from && way.peer == halted.to;
  const bool receiver = !way.sends && me == halted.to && way.peer == halted.from;
  step.end = kNever;
  if (halted.how == Halt::kGpuWait && !way.sends && me == halted.from) {
    step.end = step.wait3 + 2'500;  // it got its data, and its GPU passes nothing on
    return step;
  }
  if (receiver) {
    step.wait2 = step.wait3 = kNever;
    step.posted = halted.how != Halt::kPeerWait;
    return step;
  }
  if (!sender || halted.how == Halt::kGpuWait || halted.how == Halt::kKernel) {
    step.wait2 = step.wait3 = kNever;  // the GPU gave nothing, or nothing came
    return step;
  }
  if (halted.how == Halt::kPeerWait) {
    step.wait3 = kNever;
    step.peer_waits = 40'000;
  }
  if (halted.how == Halt::kRecvWait) step.end = step.wait3 + kStuckStepNs / 2;
  return step;
}

void ProgressWriter::write_step(Log& log, const Step& step) {
  const uint64_t start = clock_.ticks(step.start);
  format::ProxyStepRecord r{};
  r.head.start = start;
  r.head.stop_after = after(start, step.end);
  r.head.flags = static_cast<uint8_t>((step.sends ? format::kFlagSend : 0) |
                                      (r.head.stop_after != 0 ? format::kFlagStopped : 0));
  r.parent = step.parent;
  r.wait1_after = after(start, step.wait1);
  r.wait2_after = after(start, step.wait2);
  r.wait3_after = after(start, step.wait3);
  r.bytes = (step.sends ? step.wait3 : step.wait2) != kNever ? step.bytes : 0;
  r.step = step.number;
  r.peer_waits = step.wait2 != kNever && step.sends ? std::max<uint16_t>(step.peer_waits, 1) : 0;
  const uint64_t handle = log.add(Kind::kProxyStep, r);
  const uint16_t states[] = {static_cast<uint16_t>(step.sends ? 8 : 10),
                             static_cast<uint16_t>(step.sends ? 20 : 11),
                             static_cast<uint16_t>(step.sends ? 9 : 12)};
  late(log, handle, start, step.wait1, states[0], 0);
  late(log, handle, start, step.wait2, states[1], step.bytes);
  late(log, handle, start, step.wait3, states[2], step.bytes);
  late(log, handle, start, step.end, format::kStateStop, 0);
  if (job_.fault.disturbance.net_events && step.wait3 != kNever) write_net_event(log, handle, step);
}

void ProgressWriter::write_net_event(Log& log, uint64_t handle, const Step& step) {
  format::NetPluginRecord r{};
  r.head.start = clock_.ticks(step.wait3);
  r.head.stop_after = after(r.head.start, step.end);
  r.head.flags = r.head.stop_after != 0 ? format::kFlagStopped : 0;
  r.parent = handle;
  const bool socket = job_.fault.disturbance.socket_hosts.contains(job_.layout.host_of(rank_));
  r.id = socket ? kNetSocket : kNetIb;
  log.add(Kind::kNetPlugin, r);
}

}  // namespace lockstep::sim::job
