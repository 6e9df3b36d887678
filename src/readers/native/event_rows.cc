// SPDX-License-Identifier: Apache-2.0
// The per-record path: one function per record kind, its fields as a row. All in one place, and inline, as it
// runs for every record of a run.
#include <cstring>

#include "model/event_kind.h"
#include "readers/native/event_builder.h"

namespace lockstep::readers::native {
namespace {

using format::Kind;
using format::RecordHead;

// The model's `kind` columns hold the numbers on disk.
#define EVENT(number, name) static_assert(static_cast<int>(Kind::k##name) == number);
#include "model/event_kind.def"
#undef EVENT
static_assert(model::kFlagGraphCaptured == format::kFlagGraphCaptured &&
              model::kFlagForeign == format::kFlagForeign && model::kFlagComplete == format::kFlagComplete &&
              model::kFlagIntraSync == format::kFlagIntraSync &&
              model::kFlagSymmetric == format::kFlagSymmetric &&
              model::kFlagGpuTimes == format::kFlagGpuTimes &&
              model::kFlagSeqKnown == format::kFlagSeqKnown && model::kFlagP2p == format::kFlagP2p &&
              model::kFlagAsyncKnown == format::kFlagAsyncKnown && model::kFlagAsync == format::kFlagAsync);

uint8_t flags_of(const RecordHead& head) { return static_cast<uint8_t>(head.flags & ~format::kFlagStopped); }

static_assert(static_cast<int>(model::RangeKind::kNested) == static_cast<int>(format::RangeKind::kNested) &&
              static_cast<int>(model::RangeKind::kFree) == static_cast<int>(format::RangeKind::kFree));

// The payloads of NCCL's own network transports.
constexpr int64_t kNetIb = 0x10001, kNetSocket = 0x20001;

template <class T>
T field(const uint8_t (&payload)[40], size_t offset) {
  T value;
  std::memcpy(&value, payload + offset, sizeof value);
  return value;
}

}  // namespace

template <class Record>
inline uint32_t EventBuilder::add_call(const Record& record, const CallFields& fields) {
  const RecordHead& head = record.head;
  uint32_t row = trace_.calls.append({.process = process_,
                                      .thread = thread_,
                                      .comm = comm_row(record.comm),
                                      .kind = static_cast<uint8_t>(head.kind),
                                      .flags = flags_of(head),
                                      .parent = model::kNoRow,
                                      .shape = fields.shape,
                                      .stream = fields.stream,
                                      .count = fields.count,
                                      .depth = fields.depth,
                                      .start_ns = start_ns(head),
                                      .end_ns = stop_ns(head),
                                      .group_start_ns = fields.group_start_ns,
                                      .group_end_ns = fields.group_end_ns,
                                      .user_tag = 0});
  link_near(place(Target::kCall, row), head);
  return row;
}

// Calls differ in a few columns alone; the others keep the defaults of CallFields.
inline void EventBuilder::add(const format::GroupApiRecord& r) {
  add_call(r, {.depth = static_cast<int32_t>(r.depth),
               .group_start_ns = after_ns(r.head, r.group_start_after),
               .group_end_ns = after_ns(r.head, r.group_end_after)});
}
inline void EventBuilder::add(const format::CollApiRecord& r) {
  add_call(r, {.shape = shape_row(r.shape), .stream = definitions_->stream(r.stream), .count = r.count});
}
inline void EventBuilder::add(const format::P2pApiRecord& r) {
  add_call(r, {.shape = shape_row(r.shape), .stream = definitions_->stream(r.stream), .count = r.count});
}
inline void EventBuilder::add(const format::KernelLaunchRecord& r) {
  add_call(r, {.stream = definitions_->stream(r.stream)});
}
inline void EventBuilder::add(const format::GroupRecord& r) { add_call(r, {}); }
inline void EventBuilder::add(const format::CeSyncRecord& r) {
  add_call(r, {.count = static_cast<uint64_t>(std::max(r.ranks, 0))});
}
// Parts of a copy engine's collective have no elements: `count` holds ranks (CeSync) or bytes (CeBatch),
// `depth` the number of copies.
inline void EventBuilder::add(const format::CeBatchRecord& r) {
  add_call(r, {.count = r.bytes, .depth = r.ops});
}

template <class Record>
inline model::Task EventBuilder::task_of(const Record& record) {
  model::Task task{};
  task.process = process_;
  task.thread = thread_;
  task.comm = comm_row(record.comm);
  task.kind = static_cast<uint8_t>(record.head.kind);
  task.flags = flags_of(record.head);
  task.call = task.plan = model::kNoRow;
  task.shape = shape_row(record.shape);
  task.peer = -1;
  task.start_ns = start_ns(record.head);
  task.end_ns = stop_ns(record.head);
  return task;
}

inline void EventBuilder::add_task(const RecordHead& head, const model::Task& task, uint32_t group_link) {
  RowRef row = place(Target::kTask, trace_.tasks.append(task));
  // As the record's own place: a handle is nowhere stored with its event.
  if (keeps_handles_)
    trace_.tasks.handle[row.row] = format::make_handle(static_cast<uint32_t>(head.kind), log_, position_);
  link_near(row, head);
  // Up to v4 `link` is the plan, from v5 on the call, and the plan has a field of its own.
  if (group_link != 0) link_back(row, group_link);
}

inline void EventBuilder::add(const format::CollRecord& r) {
  model::Task task = task_of(r);
  task.seq = r.seq;
  task.count = r.count;
  task.send_buffer = r.send_buffer;
  task.recv_buffer = r.recv_buffer;
  task.channels = r.channels;
  task.warps = r.warps;
  add_task(r.head, task, r.group_link);
}
inline void EventBuilder::add(const format::P2pRecord& r) {
  model::Task task = task_of(r);
  task.count = r.count;
  // NCCL reports one buffer; which it is follows from the function.
  bool receive = trace_.strings[trace_.shapes.func[task.shape]] == "Recv";
  (receive ? task.recv_buffer : task.send_buffer) = r.buffer;
  task.peer = r.peer;
  task.channels = r.channels;
  add_task(r.head, task, r.group_link);
}
inline void EventBuilder::add(const format::CeCollRecord& r) {
  model::Task task = task_of(r);
  task.seq = r.seq;
  task.count = r.count;
  task.send_buffer = r.send_buffer;
  task.recv_buffer = r.recv_buffer;
  task.stream = definitions_->stream(r.stream);
  add_task(r.head, task, 0);
}
inline void EventBuilder::add(const format::ApiOpRecord& r) {
  model::Task task = task_of(r);
  task.seq = r.seq;
  task.count = r.in_count;
  task.out_count = r.out_count;
  task.stream = r.stream;
  task.peer = r.peer;
  // Before, it shows in the peer alone.
  if (view_.header().minor < format::kMinorOfDeclaredFlags && r.peer >= 0) task.flags |= format::kFlagP2p;
  if (r.head.flags & format::kFlagGpuTimes) {
    task.gpu_start_ns = gpu_ns(r.gpu_clock, r.gpu_start);
    task.gpu_end_ns = gpu_ns(r.gpu_clock, r.gpu_end);
    // Times on a clock that nothing ties to the host are no times for anybody.
    if (task.gpu_start_ns == 0) task.flags = static_cast<uint8_t>(task.flags & ~format::kFlagGpuTimes);
  }
  add_task(r.head, task, 0);
}

// A context holds the tag of the process that made it beside its number of the communicator: another one's
// number says nothing here.
inline void EventBuilder::add(const format::ProxyOpRecord& r) {
  // Capture sets the flag wherever the pid is another's. The pid is looked at again, as a damaged record must
  // not point into the tables of this process.
  bool foreign = (r.head.flags & format::kFlagForeign) != 0 || r.pid != view_.header().pid;
  bool own_context = static_cast<uint32_t>(r.context >> 32) == view_.header().process_tag;
  uint32_t row = trace_.proxy_ops.append(
      {.process = process_,
       .thread = thread_,
       .comm = foreign || !own_context ? model::kNoRow : comm_row(static_cast<uint32_t>(r.context) - 1),
       .task = model::kNoRow,
       .parent = r.parent,
       .originator_pid = r.pid,
       .rank = r.rank,
       .peer = r.peer,
       .channel = r.channel,
       .is_send = (r.head.flags & format::kFlagSend) != 0,
       .steps = r.steps,
       .chunk_size = r.chunk_size,
       .start_ns = start_ns(r.head),
       .progress_ns = after_ns(r.head, r.in_progress_after),
       .end_ns = stop_ns(r.head),
       .context = r.context});
  const RowRef op = place(Target::kProxyOp, row);
  // Those of another process (PXN) are joined where all processes are: by its boot, pid, context and handle.
  if (!foreign) link_handle(op, r.parent);
}
// A step has no communicator of its own: its operation has it.
inline void EventBuilder::add(const format::ProxyStepRecord& r) {
  uint32_t row = trace_.proxy_steps.append({.proxy_op = model::kNoRow,
                                            .process = process_,
                                            .step = r.step,
                                            .bytes = r.bytes,
                                            .is_send = (r.head.flags & format::kFlagSend) != 0,
                                            .peer_waits = r.peer_waits,
                                            .restarts = r.restarts,
                                            .start_ns = start_ns(r.head),
                                            .wait1_ns = after_ns(r.head, r.wait1_after),
                                            .wait2_ns = after_ns(r.head, r.wait2_after),
                                            .wait3_ns = after_ns(r.head, r.wait3_after),
                                            .end_ns = stop_ns(r.head)});
  link_handle(place(Target::kProxyStep, row), r.parent);
}
inline void EventBuilder::add(const format::ProxyCtrlRecord& r) {
  uint32_t row = trace_.proxy_ctrls.append({.process = process_,
                                            .thread = thread_,
                                            .comm = comm_row(r.comm),
                                            .first_state = r.first_state,
                                            .second_state = r.second_state,
                                            .appended = r.appended,
                                            .start_ns = start_ns(r.head),
                                            .first_ns = after_ns(r.head, r.first_after),
                                            .second_ns = after_ns(r.head, r.second_after),
                                            .end_ns = stop_ns(r.head)});
  place(Target::kProxyCtrl, row);
}
// GPU times stay raw here: only job/assemble sees all calls of a stream, which bound the GPU's clock.
inline void EventBuilder::add(const format::KernelChRecord& r) {
  int64_t seen = after_ns(r.head, r.gpu_stop_seen_after);
  uint32_t row = trace_.channels.append({.process = process_,
                                         .thread = thread_,
                                         .comm = comm_row(r.comm),
                                         .task = model::kNoRow,
                                         .kind = static_cast<uint8_t>(Kind::kKernelCh),
                                         .channel = r.head.link,
                                         .phase = 0,
                                         .gpu_start = r.gpu_start,
                                         .gpu_stop = r.gpu_stop,
                                         .start_seen_ns = start_ns(r.head),
                                         // Interfaces before the state existed report the stop alone.
                                         .stop_seen_ns = seen != 0 ? seen : stop_ns(r.head)});
  link_handle(place(Target::kChannel, row), r.parent);
}
// A row of `channels` too, distinguished from a channel's by its kind.
inline void EventBuilder::add(const format::KernelPhaseRecord& r) {
  uint32_t row = trace_.channels.append({.process = process_,
                                         .thread = thread_,
                                         .comm = comm_row(r.comm),
                                         .task = model::kNoRow,
                                         .kind = static_cast<uint8_t>(Kind::kKernelPhase),
                                         .channel = r.head.link,
                                         .phase = r.phase,
                                         .gpu_start = r.gpu_start,
                                         .gpu_stop = r.gpu_stop,
                                         .start_seen_ns = start_ns(r.head),
                                         .stop_seen_ns = stop_ns(r.head)});
  link_handle(place(Target::kChannel, row), r.parent);
}
// The offsets are those of NCCL's descriptors: a type in byte 0, and from byte 8 on a queue pair's or a
// socket's fields. Payloads of other plugins are not looked into.
inline void EventBuilder::add(const format::NetPluginRecord& r) {
  bool ib = r.id == kNetIb, socket = r.id == kNetSocket;
  uint32_t row = trace_.net_events.append({.process = process_,
                                           .thread = thread_,
                                           .proxy_step = model::kNoRow,
                                           .id = r.id,
                                           .device = ib ? field<int32_t>(r.payload, 8) : -1,
                                           .qp = ib       ? field<int32_t>(r.payload, 28)
                                                 : socket ? field<int32_t>(r.payload, 8)
                                                          : -1,
                                           .opcode = ib       ? field<int32_t>(r.payload, 24)
                                                     : socket ? field<int32_t>(r.payload, 12)
                                                              : -1,
                                           .bytes = ib       ? field<uint64_t>(r.payload, 32)
                                                    : socket ? field<uint64_t>(r.payload, 16)
                                                             : 0,
                                           .updates = r.updates,
                                           .start_ns = start_ns(r.head),
                                           .end_ns = stop_ns(r.head)});
  link_handle(place(Target::kNetEvent, row), r.parent);
}
// `gpu` is the ordinal in the process until all files are read.
inline void EventBuilder::add(const format::KernelRecord& r) {
  const LogDefinitions::KernelName name = definitions_->kernel_name(r.name);
  if (!name.defined) lose_kernel_name();
  const int64_t start = start_ns(r.head);
  uint32_t row = trace_.kernels.append(
      {.process = process_,
       .op = model::kNoRow,
       .name = name.name,
       .kind = static_cast<uint8_t>(name.communicates ? model::KernelKind::kCommunication
                                                      : model::KernelKind::kCompute),
       .gpu = r.device,
       .stream = r.stream,
       .graph = r.graph,
       .graph_node = r.graph_node,
       .start_ns = start,
       .end_ns = gpu_stop_ns(r.head, start),
       .launch = model::kNoRow,
       .correlation = r.correlation,
       .blocks = r.blocks,
       .bytes = 0});
  place(Target::kKernel, row);
}
// Copies share the table of kernels, as both occupy the GPU. They are told apart by their kind.
inline void EventBuilder::add(const format::CopyRecord& r) {
  const int64_t start = start_ns(r.head);
  uint32_t row = trace_.kernels.append({.process = process_,
                                        .op = model::kNoRow,
                                        .name = copy_name(r),
                                        .kind = static_cast<uint8_t>(model::KernelKind::kCopy),
                                        .gpu = r.device,
                                        .stream = r.stream,
                                        .graph = 0,
                                        .graph_node = r.graph_node,
                                        .start_ns = start,
                                        .end_ns = gpu_stop_ns(r.head, start),
                                        .launch = model::kNoRow,
                                        .correlation = r.correlation,
                                        .blocks = 0,
                                        .bytes = r.bytes});
  place(Target::kKernel, row);
}
// CUPTI delivers these on a thread of its choice, so the log's owner need not be the caller. Who called is
// worked out once all files of the process are read.
inline void EventBuilder::add(const format::LaunchCallRecord& r) {
  uint32_t row = trace_.launches.append({.process = process_,
                                         .thread = model::kNoRow,
                                         .kind = static_cast<uint8_t>(r.call),
                                         .correlation = r.correlation,
                                         .caller = r.thread,
                                         .start_ns = start_ns(r.head),
                                         .end_ns = stop_ns(r.head),
                                         .device_comm = 0});
  if (r.head.flags & format::kFlagSystemThread) threads_.called_by_tid(row);
  place(Target::kLaunch, row);
}
// A range is the program's own, and no sign that its communication goes on: it does not widen the times of
// the process.
inline void EventBuilder::add(const format::RangeRecord& r) {
  // An enumerator of any value may stand in the file, and a table holds known ones.
  const auto kind = r.range <= format::RangeKind::kFree ? r.range : format::RangeKind::kNone;
  const bool has_end = r.head.stop_after != 0 || (r.head.flags & format::kFlagStopped) != 0;
  saturated_ += r.head.stop_after == format::kSaturated;
  uint32_t row =
      trace_.ranges.append({.process = process_,
                            .thread = thread_,
                            .name = range_name(r.name),
                            .domain = range_name(r.domain),
                            .kind = static_cast<uint8_t>(kind),
                            .start_ns = clock_.to_ns(r.head.start),
                            .end_ns = has_end ? clock_.to_ns(r.head.start + r.head.stop_after) : 0});
  place(Target::kRange, row);
}
// Of AMD: rows once their times are known, or known to be missing.
inline void EventBuilder::add(const format::DispatchRecord& r) {
  place(Target::kGpuWork,
        gpu_work_.add(r, thread_, static_cast<uint32_t>(trace_.threads.tid[thread_]), start_ns(r.head)));
}
inline void EventBuilder::add(const format::QueuedCopyRecord& r) {
  place(Target::kGpuWork, gpu_work_.add(r, start_ns(r.head)));
}
// A step without a name is called "step", as the steps of PyTorch's traces are.
inline void EventBuilder::add(const format::MarkRecord& r) {
  model::StringId name = definitions_->name(r.shape);
  if (name == 0 && r.is_step != 0) name = trace_.strings.intern("step");
  trace_.marks.append({.process = process_,
                       .thread = thread_,
                       .name = name,
                       .value = static_cast<int64_t>(r.value),
                       .is_step = r.is_step != 0,
                       .time_ns = start_ns(r.head)});
}

// The sizes of all tables, in the order of Target: rows are stored as their distance from these. A log
// changes hands seldom, so the owner is looked up again only at the position where the next one begins.
void EventBuilder::add_chunk(const RecordChunk& chunk, const ChunkBuffer& buffer) {
  auto size = [](const auto& table) { return static_cast<uint32_t>(table.size()); };
  log_index_->begin_chunk(
      chunk.chunk.chunk_no,
      {0, size(trace_.calls), size(trace_.tasks), size(trace_.channels), size(trace_.proxy_ops),
       size(trace_.proxy_steps), size(trace_.proxy_ctrls), size(trace_.net_events), size(trace_.kernels),
       size(trace_.launches), size(trace_.ranges), size(gpu_work_)});
  uint64_t base = uint64_t{chunk.chunk.chunk_no} * format::kUnitsPerChunk;
  const auto& owners = definitions_->owners();
  // The last owner at or before the chunk's first record, and the position at which the next one takes over.
  auto next_owner = owners.begin();
  uint64_t next_position = 0;
  for (const UnitRange& range : chunk.ranges) {
    RecordCursor cursor(buffer, range);
    while (cursor.next()) {
      uint64_t position = base + cursor.unit();
      if (position >= next_position) [[unlikely]] {
        while (next_owner != owners.end() && next_owner->from_position <= position) ++next_owner;
        thread_ = next_owner == owners.begin()
                      ? threads_.row(chunk.chunk.tid, 0, 0)
                      : threads_.row(next_owner[-1].tid, next_owner[-1].name, next_owner[-1].pthread);
        next_position = next_owner == owners.end() ? UINT64_MAX : next_owner->from_position;
      }
      add_record(cursor, position);
    }
  }
}

inline void EventBuilder::add_record(const RecordCursor& cursor, uint64_t position) {
  position_ = position;
  unit_ = cursor.unit();
  // The cursor stops at kinds that it does not know, so every kind that comes here has a case.
  switch (cursor.head().kind) {
#define RECORD(number, name, type, event) \
  case Kind::k##name:                     \
    return add(cursor.as<format::type>());
#include "format/record_kinds.def"
#undef RECORD
    case Kind::kNone:
      return;
  }
}

}  // namespace lockstep::readers::native
