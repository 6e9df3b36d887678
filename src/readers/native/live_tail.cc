// SPDX-License-Identifier: Apache-2.0
#include "readers/native/live_tail.h"

#include <algorithm>
#include <cstring>

#include "model/element_size.h"

namespace lockstep::readers::native {
namespace {

using format::Def;
using format::Kind;
using format::Purpose;

constexpr size_t kMostOpen = 1024, kMostRecent = 64;
constexpr uint32_t kMostComms = 1 << 20;

// What capture dropped for want of room; the other losses concern single fields, or are the way of ring retention.
constexpr size_t kDropped[] = {0, 1, 2, 4};  // no_chunk, disk_full, size_cap, no_log of losses.def

uint64_t chunk_offset(uint32_t index) { return format::kHeaderBytes + uint64_t{index} * format::kChunkBytes; }

template <class T>
T copy_of(const ChunkBuffer& buffer, uint32_t unit, size_t most) {
  T value{};
  size_t at = size_t{unit} * format::kUnitBytes;
  std::memcpy(&value, buffer.bytes.data() + at, std::min({sizeof value, most, buffer.bytes.size() - at}));
  return value;
}

uint64_t dropped_of(const uint64_t (&losses)[format::kLossKinds]) {
  uint64_t sum = 0;
  for (size_t kind : kDropped) sum += losses[kind];
  return sum;
}

}  // namespace

template <class T>
T LiveTail::Entry::as() const {
  return copy_of<T>(buffer, unit, sizeof(T));
}

Result<std::unique_ptr<LiveTail>> LiveTail::open(const std::string& path) {
  std::unique_ptr<LiveTail> tail(new LiveTail(path));
  LOCKSTEP_TRY(tail->refresh());
  tail->process_.ops = tail->process_.bytes = 0;
  return tail;
}

Result<void> LiveTail::refresh() {
  // Opened each time: thousands of files need no thousands of descriptors, and a network file system looks again.
  LOCKSTEP_ASSIGN(FileView view, FileView::open(path_));
  const InputFile& file = view.file();
  process_.header = view.header();
  find_chunks(file);
  start_logs();
  read_meta(file);
  process_.heartbeat_ns =
      process_.header.heartbeat_ticks == 0 ? 0 : clock_->to_ns(process_.header.heartbeat_ticks);
  double calls = 0, tasks = 0, call_bytes = 0, task_bytes = 0;
  for (auto& [number, log] : logs_) {
    read_definitions(file, log);
    read_records(file, log);
    calls += log.calls;
    tasks += log.tasks;
    call_bytes += log.call_bytes;
    task_bytes += log.task_bytes;
  }
  // A call and its task are one operation; some operations have only one of them.
  process_.ops += std::max(calls, tasks);
  process_.bytes += tasks >= calls ? task_bytes : call_bytes;
  close_ended(file);
  count_dropped(file);
  return {};
}

void LiveTail::find_chunks(const InputFile& file) {
  for (auto& [number, log] : logs_) {
    if (!log.records || !log.records->lost()) continue;
    log.records.reset();
    chunks_seen_ = 0;
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
    file.read_at(chunk_offset(index), std::as_writable_bytes(std::span(&header, 1)));
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
    auto& newest = first_look_[header.log];
    newest[header.chunk_no] = index;
    if (newest.size() > kMostChunks) newest.erase(newest.begin());
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
    logs_[number].records.emplace(from->second, header);
    process_.from_start = process_.from_start && from->first == 0;
  }
  first_look_.clear();
}

void LiveTail::read_meta(const InputFile& file) {
  size_t anchors = anchors_.size();
  if (anchors == 0) anchors_.push_back(process_.header.first_anchor);
  if (meta_) {
    meta_->read_new(file, UINT32_MAX, [&](const ChunkBuffer& buffer, uint32_t unit) -> uint32_t {
      auto head = copy_of<format::DefHead>(buffer, unit, sizeof(format::DefHead));
      size_t size = size_t{head.units} * format::kUnitBytes;
      switch (static_cast<Def>(head.kind)) {
        case Def::kComm:
          add_comm(copy_of<format::CommDef>(buffer, unit, size));
          break;
        case Def::kCommEnd:
          if (LiveComm* ended = comm(head.id)) ended->ended = true;
          break;
        case Def::kCommIdentity: {
          auto def = copy_of<format::CommIdentityDef>(buffer, unit, size);
          LiveComm* known = comm(head.id);
          if (known != nullptr && known->comm_id == 0) {
            known->comm_id = def.comm_id;
            if (known->name.empty()) known->name = field_text(def.name);
          }
          break;
        }
        case Def::kAnchor:
          anchors_.push_back(copy_of<format::AnchorDef>(buffer, unit, size).anchor);
          break;
        default:
          break;
      }
      return head.units;
    });
  }
  if (clock_ && anchors_.size() == anchors) return;
  const format::FileHeader* header = &process_.header;
  ReadLosses told_by_diagnose;
  clock_ =
      TickClock::make(*header, anchors_, make_boot_clock(std::span(&header, 1)), path_, told_by_diagnose);
}

void LiveTail::add_comm(const format::CommDef& def) {
  if (def.head.id >= kMostComms) return;
  if (process_.comms.size() <= def.head.id) process_.comms.resize(def.head.id + 1);
  LiveComm& comm = process_.comms[def.head.id];
  comm.comm_id = def.comm_id;
  comm.name = field_text(def.name);
  comm.rank = def.rank;
  comm.ranks = def.ranks;
  if (!process_.device.empty()) return;
  process_.device = field_text(def.pci);
  if (process_.device.empty() && def.device >= 0) process_.device = "cuda:" + std::to_string(def.device);
}

void LiveTail::read_definitions(const InputFile& file, Log& log) {
  if (!log.definitions) return;
  log.definitions->read_new(file, UINT32_MAX, [&](const ChunkBuffer& buffer, uint32_t unit) -> uint32_t {
    auto head = copy_of<format::DefHead>(buffer, unit, sizeof(format::DefHead));
    if (head.kind == static_cast<uint16_t>(Def::kShape)) {
      auto def = copy_of<format::ShapeDef>(buffer, unit, size_t{head.units} * format::kUnitBytes);
      log.shapes[head.id] = {field_text(def.func), model::element_size(field_text(def.datatype))};
    } else if (head.kind == static_cast<uint16_t>(Def::kLog)) {
      log.losses_offset = chunk_offset(log.definitions->index()) + size_t{unit} * format::kUnitBytes +
                          offsetof(format::LogDef, losses);
    }
    return head.units;
  });
}

void LiveTail::read_records(const InputFile& file, Log& log) {
  log.calls = log.tasks = log.call_bytes = log.task_bytes = 0;
  if (!log.records) return;
  ChunkFollower& records = *log.records;
  uint64_t read = records.chunks_read(), missed = records.chunks_missed();
  records.read_new(file, kMostChunks, [&](const ChunkBuffer& buffer, uint32_t unit) -> uint32_t {
    uint64_t position = uint64_t{records.chunk_no()} * format::kUnitsPerChunk + unit;
    Entry entry{buffer, unit, chunk_offset(records.index()) + uint64_t{unit} * format::kUnitBytes, 0};
    auto kind = static_cast<uint32_t>(entry.as<format::RecordHead>().kind);
    entry.handle = format::make_handle(kind, records.log(), position);
    return visit(entry, log);
  });
  missed = records.chunks_missed() - missed;
  if (missed == 0) return;
  read = std::max<uint64_t>(records.chunks_read() - read, 1);
  double scale = 1 + static_cast<double>(missed) / static_cast<double>(read);
  for (double* amount : {&log.calls, &log.tasks, &log.call_bytes, &log.task_bytes}) *amount *= scale;
}

LiveOp LiveTail::note_op(const Log& log, const format::RecordHead& head, uint32_t comm_number, uint16_t shape,
                         std::optional<uint64_t> number) {
  auto known = log.shapes.find(shape);
  LiveOp op{known == log.shapes.end() ? "?" : known->second.func, comm_number, number,
            clock_->to_ns(head.start)};
  if (!process_.last || op.started_ns >= process_.last->started_ns) process_.last = op;
  if (LiveComm* of = comm(comm_number); of != nullptr && number) {
    auto [function, is_new] = of->functions.try_emplace(op.func);
    if (is_new || *number >= function->second.newest) function->second = {*number, op.started_ns};
  }
  return op;
}

template <class Record>
void LiveTail::add_call(const Entry& entry, Log& log) {
  auto record = entry.as<Record>();
  LiveOp op = note_op(log, record.head, record.comm, record.shape, std::nullopt);
  auto shape = log.shapes.find(record.shape);
  log.calls += 1;
  log.call_bytes +=
      static_cast<double>(record.count) * (shape == log.shapes.end() ? 1 : shape->second.element_bytes);
  hold_open(entry, record.head, std::move(op));
}

template <class Record>
void LiveTail::add_task(const Entry& entry, const Record& record, std::optional<uint64_t> number, Log& log) {
  LiveOp op = note_op(log, record.head, record.comm, record.shape, number);
  auto shape = log.shapes.find(record.shape);
  uint64_t count = 0;
  if constexpr (requires { record.in_count; })
    count = record.in_count;
  else
    count = record.count;
  log.tasks += 1;
  log.task_bytes +=
      static_cast<double>(count) * (shape == log.shapes.end() ? 1 : shape->second.element_bytes);
  if (recent_.try_emplace(entry.handle, op).second) recent_order_.push_back(entry.handle);
  if (recent_order_.size() > kMostRecent) {
    recent_.erase(recent_order_.front());
    recent_order_.pop_front();
  }
}

// GPU or network work of an operation.
template <class Record>
void LiveTail::add_part(const Entry& entry, std::string_view what) {
  auto record = entry.as<Record>();
  if ((record.head.flags & format::kFlagStopped) != 0) return;
  auto parent = recent_.find(record.parent);
  LiveOp op =
      parent == recent_.end() ? LiveOp{std::string(what), format::kNoComm, std::nullopt, 0} : parent->second;
  op.started_ns = clock_->to_ns(record.head.start);
  hold_open(entry, record.head, std::move(op));
}

uint32_t LiveTail::visit(const Entry& entry, Log& log) {
  auto head = entry.as<format::RecordHead>();
  switch (head.kind) {
    case Kind::kGroupApi: {
      auto record = entry.as<format::GroupApiRecord>();
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
    case Kind::kApiOp: {
      auto record = entry.as<format::ApiOpRecord>();
      add_task(entry, record, record.peer < 0 ? std::optional(record.seq) : std::nullopt, log);
      hold_open(entry, head, recent_[entry.handle]);
      break;
    }
    case Kind::kKernelCh:
      add_part<format::KernelChRecord>(entry, "GPU work");
      break;
    case Kind::kProxyOp:
      add_part<format::ProxyOpRecord>(entry, "network work");
      break;
    case Kind::kState:
      if (head.link == format::kStateStop) stops_.push_back(entry.as<format::StateRecord>().target);
      break;
    case Kind::kLink:
      if ((head.flags & format::kFlagMoved) != 0) {
        auto record = entry.as<format::LinkRecord>();
        moved_[record.parent] = record.child;
      }
      break;
    default:
      break;
  }
  return format::record_bytes(static_cast<uint8_t>(head.kind)) / format::kUnitBytes;
}

void LiveTail::hold_open(const Entry& entry, const format::RecordHead& head, LiveOp op) {
  if ((head.flags & format::kFlagStopped) != 0 || open_.size() >= kMostOpen) return;
  open_.insert_or_assign(entry.handle, Open{entry.offset, head.start, std::move(op)});
}

void LiveTail::close_ended(const InputFile& file) {
  // A stop on another thread may be read before its event: it is kept for the next refresh.
  for (const auto* stops : {&stops_, &earlier_stops_}) {
    for (uint64_t handle : *stops) {
      auto moved = moved_.find(handle);
      open_.erase(moved == moved_.end() ? handle : moved->second);
    }
  }
  earlier_stops_ = std::move(stops_);
  stops_.clear();
  process_.oldest_open.reset();
  std::erase_if(open_, [&](const auto& entry) {
    const Open& open = entry.second;
    format::RecordHead head{};
    size_t got = file.read_at(open.offset, std::as_writable_bytes(std::span(&head, 1)));
    // Another start: ring retention uses the place again.
    if (got < sizeof head || head.start != open.start || (head.flags & format::kFlagStopped) != 0)
      return true;
    if (!process_.oldest_open || open.op.started_ns < process_.oldest_open->started_ns)
      process_.oldest_open = open.op;
    return false;
  });
  std::erase_if(moved_, [&](const auto& entry) { return !open_.contains(entry.second); });
  process_.open = open_.size();
}

void LiveTail::count_dropped(const InputFile& file) {
  process_.dropped = dropped_of(process_.header.losses);
  for (const auto& [number, log] : logs_) {
    uint64_t losses[format::kLossKinds] = {};
    if (log.losses_offset == 0) continue;
    file.read_at(log.losses_offset, std::as_writable_bytes(std::span(losses)));
    process_.dropped += dropped_of(losses);
  }
}

}  // namespace lockstep::readers::native
