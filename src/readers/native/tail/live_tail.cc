// SPDX-License-Identifier: Apache-2.0
#include "readers/native/tail/live_tail.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "format/losses.h"
#include "model/names/element_size.h"
#include "model/names/kernel_name.h"
#include "readers/common/demangle.h"

namespace lockstep::readers::native {
namespace {

using format::Def;
using format::Kind;
using format::Purpose;

// Bounds on what a file can make a monitor keep or read in one refresh; a hostile file may hold anything.
constexpr size_t kMostOpen = 1024, kMostRecent = 64;
constexpr uint64_t kCommsOfChunk = format::kChunkBytes / sizeof(format::CommDef);  // numbered from 0
constexpr size_t kMostKernelNames = 4096, kMostThreadsOfLog = 1024;
constexpr uint32_t kChunksALook = 256;  // 8 MiB
constexpr uint32_t kMostSecondLooks = 64;

std::string_view work_text(model::KernelWork work) {
  switch (work) {
    case model::KernelWork::kAllReduce:
      return "AllReduce";
    case model::KernelWork::kBroadcast:
      return "Broadcast";
    case model::KernelWork::kReduce:
      return "Reduce";
    case model::KernelWork::kAllGather:
      return "AllGather";
    case model::KernelWork::kReduceScatter:
      return "ReduceScatter";
    case model::KernelWork::kSendRecv:
      return "SendRecv";
    case model::KernelWork::kAny:
      return "any";
    case model::KernelWork::kNone:
      break;
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<LiveTail>> LiveTail::open(const std::string& path, Depth depth,
                                                 std::shared_ptr<LaunchJoin> join) {
  std::unique_ptr<LiveTail> tail(new LiveTail(path, depth, std::move(join)));
  LOCKSTEP_TRY(tail->refresh());
  tail->process_.ops = tail->process_.bytes = 0;
  return tail;
}

Result<void> LiveTail::refresh() {
  process_.arrivals.clear();
  last_counted_ = 0;  // what was counted in a look before does not fall again
  // A closed file stays as it is, but kernels of another file may still wait for its operations.
  if (finished_) {
    take_joined();
    return {};
  }
  // Opened each time: thousands of files would need as many descriptors, and a network file system looks
  // again.
  LOCKSTEP_ASSIGN(FileView view, FileView::open(path_));
  const ProcessBytes& file = view.file();
  file_ = &file;
  second_looks_ = kMostSecondLooks;
  process_.header = view.header();
  find_chunks(file);
  start_logs();
  read_meta(file);
  process_.heartbeat_ns =
      process_.header.heartbeat_ticks == 0 ? 0 : clock_->to_ns(process_.header.heartbeat_ticks);
  for (auto& [number, log] : logs_) {
    log.counted = {};
    read_definitions(file, log);
    if (!tally_) read_newest(file, log);
  }
  if (tally_) read_all(file);
  format::Counted<double> counted;
  for (const auto& [number, log] : logs_) counted.add(log.counted);
  process_.ops += counted.operations();
  process_.bytes += counted.bytes();
  close_ended(file);
  count_dropped(file);
  take_joined();
  finished_ = process_.header.state == static_cast<uint32_t>(format::FileState::kClosed) && !behind_;
  file_ = nullptr;
  return {};
}

void LiveTail::find_chunks(const ProcessBytes& file) {
  for (auto& [number, log] : logs_) {
    if (log.records && log.records->lost()) {
      log.next_chunk = log.records->chunk_no() + 1;
      log.is_lost = true;
      log.records.reset();
    }
    if (log.is_lost) chunks_seen_ = 0;
  }
  if (chunks_seen_ == 0) unpublished_.clear();
  uint64_t in_file =
      file.size() <= format::kHeaderBytes
          ? 0
          : (file.size() - format::kHeaderBytes + format::kChunkBytes - 1) / format::kChunkBytes;
  auto end = static_cast<uint32_t>(std::min<uint64_t>(in_file, UINT32_MAX));
  std::vector<uint32_t> candidates = take_candidates();
  for (uint32_t index = chunks_seen_; index < end; ++index) candidates.push_back(index);
  chunks_seen_ = std::max(chunks_seen_, end);
  for (uint32_t index : candidates) {
    format::ChunkHeader header{};
    file.read_at(format::chunk_offset(index), std::as_writable_bytes(std::span(&header, 1)));
    if (header.magic == format::kChunkMagic)
      add_chunk(index, header);
    else
      unpublished_.push_back(index);
  }
}

// Chunks are put to use from the front on, so the first ones are looked at each time; of the others, some.
std::vector<uint32_t> LiveTail::take_candidates() {
  constexpr size_t kFirst = 64, kOthers = 64;
  std::sort(unpublished_.begin(), unpublished_.end());
  std::vector<uint32_t> candidates, rest;
  for (size_t i = 0; i < unpublished_.size(); ++i) {
    bool turn = i < kFirst || (i - kFirst) / kOthers == next_turn_;
    (turn ? candidates : rest).push_back(unpublished_[i]);
  }
  next_turn_ = (next_turn_ + 1) * kOthers + kFirst < unpublished_.size() ? next_turn_ + 1 : 0;
  unpublished_ = std::move(rest);
  return candidates;
}

void LiveTail::add_chunk(uint32_t index, const format::ChunkHeader& header) {
  if (header.log > format::kMaxLogs) return;
  if (header.purpose == Purpose::kMeta) {
    if (header.chunk_no == 0 && !meta_) meta_.emplace(index, header);
  } else if (header.purpose == Purpose::kDefs) {
    auto& definitions = logs_[header.log].definitions;
    if (header.chunk_no == 0 && !definitions) definitions.emplace(index, header);
  } else if (header.purpose == Purpose::kRecords) {
    auto log = logs_.find(header.log);
    if (log != logs_.end() && log->second.records) return;  // its list leads there
    if (tally_ && log != logs_.end() && header.chunk_no < log->second.next_chunk) return;  // was read
    auto& kept = first_look_[header.log];
    kept[header.chunk_no] = index;
    if (tally_) {
      if (kept.size() > 1) kept.erase(std::prev(kept.end()));
    } else if (kept.size() > kMostChunks) {
      kept.erase(kept.begin());
    }
  }
}

void LiveTail::start_logs() {
  for (const auto& [number, chunks] : first_look_) {
    // The newest ones without a gap.
    auto from = std::prev(chunks.end());
    while (from != chunks.begin() && std::prev(from)->first + 1 == from->first) --from;
    format::ChunkHeader header{};
    header.log = number;
    header.purpose = Purpose::kRecords;
    header.chunk_no = from->first;
    Log& log = logs_[number];
    log.records.emplace(from->second, header);
    if (log.is_lost) process_.passed_over += std::max(from->first, log.next_chunk) - log.next_chunk;
    process_.from_start = process_.from_start && (log.is_lost || from->first == 0);
    log.is_lost = false;
  }
  first_look_.clear();
}

void LiveTail::read_meta(const ProcessBytes& file) {
  size_t anchors = anchors_.size();
  if (anchors == 0) anchors_.push_back(process_.header.first_anchor);
  if (meta_) {
    meta_->read_new<format::DefHead>(file, UINT32_MAX, [&](const format::Walk<format::DefHead>& entry) {
      switch (static_cast<Def>(entry.head().kind)) {
        case Def::kComm:
          add_comm(entry.as<format::CommDef>());
          break;
        case Def::kCommEnd:
          if (LiveComm* ended = known_comm(entry.head().id)) ended->ended = true;
          break;
        case Def::kCommIdentity: {
          auto def = entry.as<format::CommIdentityDef>();
          LiveComm* known = known_comm(def.head.id);
          if (known != nullptr && known->comm_id == 0) {
            known->comm_id = def.comm_id;
            if (known->name.empty()) known->name = field_text(def.name);
          }
          break;
        }
        case Def::kAnchor:
          anchors_.push_back(entry.as<format::AnchorDef>().anchor);
          break;
        default:
          break;
      }
    });
  }
  if (clock_ && anchors_.size() == anchors) return;
  const format::FileHeader* header = &process_.header;
  ReadLosses ignored;
  clock_ = TickClock::make(*header, anchors_, make_boot_clock(std::span(&header, 1)), path_, ignored);
}

void LiveTail::add_comm(const format::CommDef& def) {
  if (def.head.id >= meta_->chunks_read() * kCommsOfChunk) return;
  if (process_.comms.size() <= def.head.id) process_.comms.resize(def.head.id + 1);
  LiveComm& comm = process_.comms[def.head.id];
  comm.comm_id = def.comm_id;
  comm.name = field_text(def.name);
  comm.rank = def.rank;
  comm.ranks = def.ranks;
  if (process_.device >= 0 || !process_.pci.empty()) return;
  process_.device = def.device;
  process_.pci = field_text(def.pci);
}

void LiveTail::read_definitions(const ProcessBytes& file, Log& log) {
  if (!log.definitions) return;
  log.definitions->read_new<format::DefHead>(
      file, UINT32_MAX, [&](const format::Walk<format::DefHead>& entry) { add_definition(entry, log); });
}

void LiveTail::add_definition(const format::Walk<format::DefHead>& entry, Log& log) {
  switch (static_cast<Def>(entry.head().kind)) {
    case Def::kShape: {
      auto def = entry.as<format::ShapeDef>();
      log.shapes[def.head.id] = {field_text(def.func), model::element_size(field_text(def.datatype))};
      break;
    }
    case Def::kLog:
      log.losses_offset =
          format::entry_offset(log.definitions->index(), entry.unit()) + offsetof(format::LogDef, losses);
      break;
    case Def::kThread:
      if (join_ && log.threads.size() < kMostThreadsOfLog)
        log.threads.push_back(entry.as<format::ThreadDef>());
      break;
    case Def::kKernelName:
      if (tally_) add_kernel_name(entry, log);
      break;
    default:
      break;
  }
}

void LiveTail::add_kernel_name(const format::Walk<format::DefHead>& entry, Log& log) {
  constexpr size_t kHead = offsetof(format::NameDef, name);
  const size_t size = size_t{entry.units()} * format::kUnitBytes;
  if (size <= kHead || log.kernels.size() >= kMostKernelNames) return;
  std::string_view symbol(reinterpret_cast<const char*>(entry.at()) + kHead,
                          std::min<size_t>(size - kHead, format::kMaxKernelNameBytes));
  symbol = symbol.substr(0, symbol.find('\0'));
  log.kernels.emplace(entry.head().id, work_text(model::work_of_kernel(common::demangled(symbol))));
}

// A definition is published before the record that names it, but may have been read after.
const LiveTail::Shape* LiveTail::shape(Log& log, uint16_t number) {
  auto known = log.shapes.find(number);
  if (known == log.shapes.end() && look_again()) {
    read_definitions(*file_, log);
    known = log.shapes.find(number);
  }
  return known == log.shapes.end() ? nullptr : &known->second;
}

LiveComm* LiveTail::known_comm(uint32_t number) {
  return number < process_.comms.size() ? &process_.comms[number] : nullptr;
}

LiveComm* LiveTail::comm(uint32_t number) {
  if (number >= process_.comms.size() && look_again()) read_meta(*file_);
  return known_comm(number);
}

void LiveTail::visit_at(const format::Walk<format::RecordHead>& record, Log& log) {
  const ChunkFollower& records = *log.records;
  const uint64_t position = format::entry_position(records.chunk_no(), record.unit());
  const auto kind = static_cast<uint32_t>(record.head().kind);
  log.newest_start = std::max(log.newest_start, record.head().start);
  visit({record, format::entry_offset(records.index(), record.unit()),
         format::make_handle(kind, records.log(), position)},
        log);
}

void LiveTail::read_newest(const ProcessBytes& file, Log& log) {
  if (!log.records) return;
  ChunkFollower& records = *log.records;
  uint64_t read = records.chunks_read(), missed = records.chunks_missed();
  records.read_new<format::RecordHead>(
      file, kMostChunks, [&](const format::Walk<format::RecordHead>& record) { visit_at(record, log); });
  missed = records.chunks_missed() - missed;
  if (missed == 0) return;
  read = std::max<uint64_t>(records.chunks_read() - read, 1);
  // What was passed over is taken to be like what was read.
  double scale = 1 + static_cast<double>(missed) / static_cast<double>(read);
  auto& counted = log.counted;
  for (double* amount : {&counted.calls, &counted.tasks, &counted.call_bytes, &counted.task_bytes})
    *amount *= scale;
}

// The log that is furthest back in time comes next, so that GPU work is read soon after its operation.
void LiveTail::read_all(const ProcessBytes& file) {
  std::vector<Log*> waiting;
  for (auto& [number, log] : logs_) {
    if (log.records) waiting.push_back(&log);
  }
  uint64_t left = uint64_t{kChunksALook};
  while (!waiting.empty() && left > 0) {
    auto next = std::min_element(waiting.begin(), waiting.end(), [](const Log* a, const Log* b) {
      return a->newest_start < b->newest_start;
    });
    Log& log = **next;
    const uint64_t missed = log.records->chunks_missed();
    bool more = log.records->read_next<format::RecordHead>(
        file, 1, [&](const format::Walk<format::RecordHead>& record) { visit_at(record, log); });
    process_.passed_over += log.records->chunks_missed() - missed;
    if (!more) waiting.erase(next);
    --left;
  }
  behind_ = !waiting.empty();
}

LiveOp LiveTail::note_op(Log& log, const format::RecordHead& head, uint32_t comm_number, uint16_t shape,
                         std::optional<uint64_t> number) {
  const Shape* known = this->shape(log, shape);
  LiveOp op{known == nullptr ? "?" : known->func, comm_number, number, clock_->to_ns(head.start)};
  if (!process_.last || op.started_ns >= process_.last->started_ns) process_.last = op;
  if (LiveComm* of = comm(comm_number); of != nullptr && number) {
    auto [function, is_new] = of->functions.try_emplace(op.func);
    if (is_new || *number >= function->second.newest) function->second = {*number, op.started_ns};
    if (tally_) {
      process_.arrivals.push_back({comm_number, op.func, *number, op.started_ns});
      if (process_.arrivals.size() > kMostArrivals) process_.arrivals.pop_front();
    }
  }
  return op;
}

LiveTally::Operation LiveTail::counted(const LiveOp& op, double bytes, bool declared) {
  const LiveComm* of = comm(op.comm);
  return {op.comm, op.func, of == nullptr ? -1 : of->ranks, bytes, declared};
}

template <class Record>
void LiveTail::add_call(const Entry& entry, Log& log) {
  auto record = entry.as<Record>();
  LiveOp op = note_op(log, record.head, record.comm, record.shape, std::nullopt);
  const Shape* known = shape(log, record.shape);
  const double bytes = static_cast<double>(record.count) * (known == nullptr ? 1 : known->element_bytes);
  log.counted.add_call(bytes);
  if (tally_) {
    tally_->call(counted(op, bytes, false));
    last_counted_ = entry.handle;
    if (join_) note_call_of_group(entry, record.head, {counted(op, bytes, false), op.func}, log);
    if ((record.head.flags & format::kFlagStopped) != 0)
      count_ended(*file_, {entry.offset, record.head.start, op, record.head.kind}, 0);
  }
  hold_open(entry, record.head, std::move(op));
}

template <class Record>
void LiveTail::add_task(const Entry& entry, const Record& record, std::optional<uint64_t> number, Log& log) {
  LiveOp op = note_op(log, record.head, record.comm, record.shape, number);
  const Shape* known = shape(log, record.shape);
  uint64_t count = 0;
  uint32_t channels = 0;
  constexpr bool kDeclared = requires { record.in_count; };
  if constexpr (kDeclared)
    count = record.in_count;
  else
    count = record.count;
  if constexpr (requires { record.channels; }) channels = record.channels;
  const double bytes = static_cast<double>(count) * (known == nullptr ? 1 : known->element_bytes);
  log.counted.add_task(bytes);
  if (tally_) {
    tally_->task(counted(op, bytes, kDeclared), entry.handle, channels);
    last_counted_ = entry.handle;
  }
  if (recent_.try_emplace(entry.handle, op).second) recent_order_.push_back(entry.handle);
  if (recent_order_.size() > kMostRecent) {
    recent_.erase(recent_order_.front());
    recent_order_.pop_front();
  }
}

void LiveTail::add_api_op(const Entry& entry, Log& log) {
  auto record = entry.as<format::ApiOpRecord>();
  const bool is_old = process_.header.minor < format::kMinorOfDeclaredFlags,
             is_p2p = is_old ? record.peer >= 0 : (record.head.flags & format::kFlagP2p) != 0;
  // A program's 0 is the largest number there is: no later one would be newer.
  const bool is_numbered = !is_p2p && record.seq != UINT64_MAX;
  add_task(entry, record, is_numbered ? std::optional(record.seq) : std::nullopt, log);
  const LiveOp& op = recent_[entry.handle];
  if (tally_ && (record.head.flags & format::kFlagStopped) != 0)
    count_ended(*file_, {entry.offset, record.head.start, op, record.head.kind}, 0);
  hold_open(entry, record.head, op);
}

void LiveTail::add_kernel(const Entry& entry, Log& log) {
  auto record = entry.as<format::KernelRecord>();
  auto work = log.kernels.find(record.name);
  if (work == log.kernels.end() && look_again()) {
    read_definitions(*file_, log);
    work = log.kernels.find(record.name);
  }
  if (work == log.kernels.end() || work->second.empty() || record.head.stop_after == format::kSaturated)
    return;
  const int64_t ns =
      clock_->to_ns(record.head.start + record.head.stop_after) - clock_->to_ns(record.head.start);
  if (join_ && record.graph == 0)
    join_->add_kernel(record.correlation, {work->second, ns});
  else
    tally_->kernel(work->second, ns);
}

void LiveTail::note_call_of_group(const Entry& entry, const format::RecordHead& head,
                                  const LaunchJoin::Op& op, Log& log) {
  if (head.link == 0 || format::handle_position(entry.handle) - head.link != log.group.position) return;
  ++log.group.calls;
  log.group.op = op;
}

void LiveTail::add_launch(const Entry& entry, Log& log) {
  if (!join_ || !join_->expected()) return;
  auto head = entry.as<format::RecordHead>();
  const uint64_t position = format::handle_position(entry.handle);
  // Nothing shows later when one ended that is read while it is open: it would take the calls of others.
  if (head.link == 0 || position - head.link != log.group.position || log.group.calls != 1 ||
      ++log.group.launches > 1 || (head.flags & format::kFlagStopped) == 0 ||
      head.stop_after == format::kSaturated)
    return;
  if (log.threads.empty() && look_again()) read_definitions(*file_, log);
  const format::ThreadDef* owner = nullptr;
  for (const format::ThreadDef& thread : log.threads) {
    if (thread.from_position <= position) owner = &thread;
  }
  if (owner == nullptr) return;
  const uint64_t end = head.start + head.stop_after;
  join_->add_launch({static_cast<uint32_t>(owner->pthread), false}, head.start, end, log.group.op);
  join_->add_launch({owner->head.id, true}, head.start, end, log.group.op);
}

// Kernels to the operations of this file, or what stays without one.
void LiveTail::take_joined() {
  if (!join_ || !tally_) return;
  if (process_.header.source == format::Source::kCuda) {
    for (const LaunchJoin::Kernel& kernel : join_->take_unjoined()) tally_->kernel(kernel.func, kernel.ns);
  } else if (process_.header.source == format::Source::kNccl) {
    for (LaunchJoin::Timed& timed : join_->take_timed()) {
      timed.op.op.func = timed.op.func;
      tally_->gpu_time(timed.op.op, timed.ns, LiveSource::kKernel);
    }
  }
}

// Of the calls and GPU work that have ended, what the tally counts.
void LiveTail::count_ended(const ProcessBytes& file, const Open& open, uint64_t stopped) {
  if (!tally_) return;
  auto read = [&](auto record) { return file.record_at<decltype(record)>(open.offset); };
  switch (open.kind) {
    case Kind::kCollApi:
    case Kind::kP2pApi: {
      auto head = read(format::RecordHead{});
      if (stopped == 0 && head.stop_after != format::kSaturated) stopped = head.start + head.stop_after;
      if (stopped > open.start)
        tally_->call_ended(open.op.comm, open.op.func, clock_->to_ns(stopped) - open.op.started_ns);
      break;
    }
    case Kind::kApiOp: {
      auto record = read(format::ApiOpRecord{});
      auto clock = static_cast<format::ApiClock>(record.gpu_clock);
      if ((record.head.flags & format::kFlagGpuTimes) == 0 || clock == format::ApiClock::kGpuTicks ||
          record.gpu_end < record.gpu_start)
        break;
      const double bytes = static_cast<double>(record.in_count) * record.element_bytes;
      tally_->gpu_time(counted(open.op, bytes, true), static_cast<int64_t>(record.gpu_end - record.gpu_start),
                       LiveSource::kApi);
      break;
    }
    case Kind::kKernelCh:
      count_channel(read(format::KernelChRecord{}));
      break;
    default:
      break;
  }
}

// GPU or network work of an operation.
template <class Record>
void LiveTail::add_part(const Entry& entry, std::string_view what) {
  auto record = entry.as<Record>();
  const bool is_over = (record.head.flags & format::kFlagStopped) != 0;
  if constexpr (std::is_same_v<Record, format::KernelChRecord>) {
    if (is_over && tally_) count_channel(record);
  }
  if (is_over) return;
  auto parent = recent_.find(record.parent);
  LiveOp op =
      parent == recent_.end() ? LiveOp{std::string(what), format::kNoComm, std::nullopt, 0} : parent->second;
  op.started_ns = clock_->to_ns(record.head.start);
  hold_open(entry, record.head, std::move(op));
}

void LiveTail::visit(const Entry& entry, Log& log) {
  auto head = entry.as<format::RecordHead>();
  switch (head.kind) {
    case Kind::kGroupApi: {
      auto record = entry.as<format::GroupApiRecord>();
      if (join_) log.group = {format::handle_position(entry.handle), 0, 0, {}};
      hold_open(entry, head, {"group", record.comm, std::nullopt, clock_->to_ns(head.start)});
      break;
    }
    case Kind::kCollApi:
      add_call<format::CollApiRecord>(entry, log);
      break;
    case Kind::kP2pApi:
      add_call<format::P2pApiRecord>(entry, log);
      break;
    case Kind::kColl: {
      auto record = entry.as<format::CollRecord>();
      add_task(entry, record, record.seq, log);
      break;
    }
    case Kind::kShortColl: {
      auto record = format::expand(entry.as<format::ShortCollRecord>());
      add_task(entry, record, record.seq, log);
      break;
    }
    case Kind::kP2p:
      add_task(entry, entry.as<format::P2pRecord>(), std::nullopt, log);
      break;
    case Kind::kCeColl: {
      auto record = entry.as<format::CeCollRecord>();
      add_task(entry, record, record.seq, log);
      break;
    }
    case Kind::kApiOp:
      add_api_op(entry, log);
      break;
    case Kind::kKernelLaunch:
      add_launch(entry, log);
      break;
    case Kind::kLaunchCall:
      if (join_) {
        auto record = entry.as<format::LaunchCallRecord>();
        const LaunchJoin::Thread thread{record.thread, (head.flags & format::kFlagSystemThread) != 0};
        if (record.call == format::LaunchCall::kKernel)
          join_->add_call(thread, head.start, record.correlation);
      }
      break;
    case Kind::kKernel:
      if (tally_) add_kernel(entry, log);
      break;
    case Kind::kKernelCh:
      add_part<format::KernelChRecord>(entry, "GPU work");
      break;
    case Kind::kProxyOp:
      add_part<format::ProxyOpRecord>(entry, "network work");
      break;
    case Kind::kState:
      if (head.link == format::kStateStop)
        stops_.push_back({entry.as<format::StateRecord>().target, head.start});
      break;
    case Kind::kLink:
      if ((head.flags & format::kFlagMoved) != 0) {
        auto record = entry.as<format::LinkRecord>();
        moved_[record.parent] = record.child;
        if (tally_) tally_->moved(record.child, record.parent, record.child == last_counted_);
      }
      break;
    default:
      break;
  }
}

void LiveTail::hold_open(const Entry& entry, const format::RecordHead& head, LiveOp op) {
  if ((head.flags & format::kFlagStopped) != 0 || open_.size() >= kMostOpen) return;
  open_.insert_or_assign(entry.handle, Open{entry.offset, head.start, std::move(op), head.kind});
}

void LiveTail::close_ended(const ProcessBytes& file) {
  // A stop on another thread may be read before its event: it is kept for the next refresh.
  for (const auto* stops : {&stops_, &earlier_stops_}) {
    for (const Stop& stop : *stops) {
      auto moved = moved_.find(stop.handle);
      auto open = open_.find(moved == moved_.end() ? stop.handle : moved->second);
      if (open == open_.end()) continue;
      count_ended(file, open->second, stop.ticks);
      open_.erase(open);
    }
  }
  earlier_stops_ = std::move(stops_);
  stops_.clear();
  process_.oldest_open.reset();
  for (LiveComm& comm : process_.comms) comm.oldest_open_ns = 0;
  std::erase_if(open_, [&](const auto& entry) {
    const Open& open = entry.second;
    format::RecordHead head{};
    size_t got = file.read_at(open.offset, std::as_writable_bytes(std::span(&head, 1)));
    // Another start: ring retention uses the place again.
    if (got < sizeof head || head.start != open.start) return true;
    if ((head.flags & format::kFlagStopped) != 0) {
      count_ended(file, open, 0);
      return true;
    }
    if (LiveComm* of = comm(open.op.comm);
        of != nullptr && (of->oldest_open_ns == 0 || open.op.started_ns < of->oldest_open_ns))
      of->oldest_open_ns = open.op.started_ns;
    if (!process_.oldest_open || open.op.started_ns < process_.oldest_open->started_ns)
      process_.oldest_open = open.op;
    return false;
  });
  std::erase_if(moved_, [&](const auto& entry) { return !open_.contains(entry.second); });
  process_.open = open_.size();
}

void LiveTail::count_dropped(const ProcessBytes& file) {
  process_.losses.fill(0);
  auto add = [&](const uint64_t(&losses)[format::kLossKinds]) {
    for (size_t kind = 0; kind < format::kLossKinds; ++kind) process_.losses[kind] += losses[kind];
  };
  add(process_.header.losses);
  std::copy(std::begin(process_.header.more_losses), std::end(process_.header.more_losses),
            process_.losses.begin() + format::kLossKinds);
  for (const auto& [number, log] : logs_) {
    uint64_t losses[format::kLossKinds] = {};
    if (log.losses_offset == 0) continue;
    file.read_at(log.losses_offset, std::as_writable_bytes(std::span(losses)));
    add(losses);
  }
  process_.dropped = 0;
  for (const format::Loss kind : format::kDropped) process_.dropped += process_.losses[kind];
}

}  // namespace lockstep::readers::native
