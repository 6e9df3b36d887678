// SPDX-License-Identifier: Apache-2.0
// One list of columns for every flat format (CSV, JSON lines, Arrow), so that they cannot differ in names,
// order or what counts as unknown. A value that the model does not know (0, -1, the largest number) becomes
// an empty cell, never a number that somebody would add up.
#include "exporters/common/run_tables.h"

#include "base/hex.h"
#include "model/event_kind.h"
#include "model/torch/torch_groups.h"

namespace lockstep::exporters::common {
namespace {

using Context = const TableContext&;
using Cell = TableWriter&;

// 0, -1 or the largest number, where they mean that a value is not known.
void unless(Cell cell, int64_t value, int64_t unknown) {
  value == unknown ? cell.none() : cell.number(value);
}
void unless_unsigned(Cell cell, uint64_t value, uint64_t unknown) {
  value == unknown ? cell.none() : cell.unsigned_number(value);
}

bool has_comm(Context c, uint32_t op) { return c.trace.ops.comm[op] < c.trace.comms.size(); }
bool has_same_index(Context c, uint32_t op) {
  return !has_comm(c, op) || c.trace.ops.peer[op] >= 0 ||
         c.numbers.comm_same_index[c.trace.ops.comm[op]] != 0;
}
bool has_shape(Context c, uint32_t op) { return c.trace.ops.shape[op] < c.trace.shapes.size(); }

template <auto Column>
void process_text(Context c, uint32_t row, Cell cell) {
  cell.text(c.trace.strings[(c.trace.processes.*Column)[row]]);
}
template <auto Column>
void process_number(Context c, uint32_t row, Cell cell) {
  cell.number(static_cast<int64_t>((c.trace.processes.*Column)[row]));
}
template <auto Column>
void comm_text(Context c, uint32_t row, Cell cell) {
  cell.text(c.trace.strings[(c.trace.comms.*Column)[row]]);
}
template <auto Column>
void comm_number(Context c, uint32_t row, Cell cell) {
  cell.number(static_cast<int64_t>((c.trace.comms.*Column)[row]));
}
template <auto Column>
void op_time(Context c, uint32_t row, Cell cell) {
  unless(cell, (c.trace.ops.*Column)[row], 0);
}
template <auto Column>
void op_number(Context c, uint32_t row, Cell cell) {
  cell.unsigned_number((c.trace.ops.*Column)[row]);
}
template <auto Column>
void op_shape_text(Context c, uint32_t row, Cell cell) {
  has_shape(c, row) ? cell.text(c.trace.strings[(c.trace.shapes.*Column)[c.trace.ops.shape[row]]])
                    : cell.none();
}
template <auto Column>
void op_comm_number(Context c, uint32_t row, Cell cell) {
  has_comm(c, row) ? cell.number((c.trace.comms.*Column)[c.trace.ops.comm[row]]) : cell.none();
}
template <auto Column>
void kernel_number(Context c, uint32_t row, Cell cell) {
  cell.number(static_cast<int64_t>((c.trace.kernels.*Column)[row]));
}
template <auto Column>
void kernel_known(Context c, uint32_t row, Cell cell) {
  unless_unsigned(cell, (c.trace.kernels.*Column)[row], 0);
}
template <auto Column>
void loss_text(Context c, uint32_t row, Cell cell) {
  cell.text(c.trace.strings[(c.trace.losses.*Column)[row]]);
}

void process_id(Context c, uint32_t, Cell cell) { cell.number(c.process); }
void rank(Context c, uint32_t, Cell cell) { cell.number(c.trace.processes.rank[0]); }
void tid(Context c, uint32_t thread, Cell cell) {
  thread < c.trace.threads.size() ? cell.number(c.trace.threads.tid[thread]) : cell.none();
}

bool of_whole_run(Context c, uint32_t loss) {
  return c.process < 0 || c.trace.losses.process[loss] == model::kNoRow;
}

using model::CommTable;
using model::KernelTable;
using model::LossTable;
using model::OpTable;
using model::ProcessTable;
using model::ShapeTable;

constexpr TableColumn kProcesses[] = {
    {"id", CellType::kNumber, "number of the process in the run", process_id},
    {"rank", CellType::kNumber, "global rank; -1 unknown", process_number<&ProcessTable::rank>},
    {"local_rank", CellType::kNumber, "rank on its host; -1 unknown",
     process_number<&ProcessTable::local_rank>},
    {"world", CellType::kNumber, "ranks of the job; -1 unknown", process_number<&ProcessTable::world>},
    {"host", CellType::kText, "name of its host", process_text<&ProcessTable::host>},
    {"node", CellType::kNumber, "number of its host in the run",
     [](Context c, uint32_t row, Cell cell) { cell.number(c.numbers.process_node[row]); }},
    {"pid", CellType::kNumber, "process id", process_number<&ProcessTable::pid>},
    {"device", CellType::kNumber, "device ordinal inside the process; -1 unknown",
     process_number<&ProcessTable::device>},
    {"gpu", CellType::kNumber, "run-wide device number; -1 unknown", process_number<&ProcessTable::gpu>},
    {"pci", CellType::kText, "PCI address of the device", process_text<&ProcessTable::pci>},
    {"uuid", CellType::kText, "UUID of the device", process_text<&ProcessTable::uuid>},
    {"gpu_model", CellType::kText, "model of the device", process_text<&ProcessTable::gpu_model>},
    {"boot_id", CellType::kText, "names the clock of the host: times with equal boot ids compare exactly",
     process_text<&ProcessTable::boot_id>},
    {"launcher", CellType::kText, "torchrun, slurm, openmpi, pmi or none",
     process_text<&ProcessTable::launcher>},
    {"job", CellType::kText, "job id", process_text<&ProcessTable::job>},
    {"argv", CellType::kText, "command line, blank-separated", process_text<&ProcessTable::argv>},
    {"nccl_version", CellType::kNumber, "as ncclGetVersion gives it; 0 unknown",
     process_number<&ProcessTable::nccl_version>},
    {"nccl_library", CellType::kText, "path of the NCCL or RCCL that it calls; empty unknown",
     process_text<&ProcessTable::nccl_library>},
    {"nccl_build_id", CellType::kText, "GNU build id of that library; empty unknown",
     process_text<&ProcessTable::nccl_build_id>},
    {"other_nccl", CellType::kText, "other libraries of that name that it has mapped; empty none known",
     process_text<&ProcessTable::other_nccl>},
    {"closed", CellType::kNumber, "1: every file of it was closed in order",
     process_number<&ProcessTable::closed>},
    {"start_ns", CellType::kNumber, "process start, ns since the Unix epoch; 0 unknown",
     process_number<&ProcessTable::start_ns>},
    {"first_ns", CellType::kNumber, "first record, ns since the Unix epoch; 0 none",
     process_number<&ProcessTable::first_ns>},
    {"last_ns", CellType::kNumber, "last record, ns since the Unix epoch; 0 none",
     process_number<&ProcessTable::last_ns>},
};

constexpr TableColumn kComms[] = {
    {"id", CellType::kNumber, "number of the member in the run",
     [](Context c, uint32_t row, Cell cell) { cell.number(c.first_comm + row); }},
    {"run_comm", CellType::kNumber, "number of the communicator in the run: equal on all its members",
     [](Context c, uint32_t row, Cell cell) { cell.number(c.numbers.comm_run[row]); }},
    {"process", CellType::kNumber, "id in processes", process_id},
    {"global_rank", CellType::kNumber, "rank of the process; -1 unknown", rank},
    {"name", CellType::kText, "name of the communicator, may be empty", comm_text<&CommTable::name>},
    {"hash", CellType::kText, "NCCL's id, 16 hex digits, equal on all members",
     [](Context c, uint32_t row, Cell cell) { cell.text(hex16(c.trace.comms.comm_id[row])); }},
    {"rank", CellType::kNumber, "rank in the communicator; -1 unknown", comm_number<&CommTable::rank>},
    {"ranks", CellType::kNumber, "members; -1 unknown", comm_number<&CommTable::ranks>},
    {"nodes", CellType::kNumber, "hosts as NCCL counts them; -1 unknown", comm_number<&CommTable::nodes>},
    {"gpu", CellType::kNumber, "run-wide device number; -1 unknown", comm_number<&CommTable::gpu>},
    {"collectives", CellType::kUnsigned, "collective operations of this member",
     [](Context c, uint32_t row, Cell cell) { cell.unsigned_number(c.numbers.comm_collectives[row]); }},
    {"p2ps", CellType::kUnsigned, "point-to-point operations of this member",
     [](Context c, uint32_t row, Cell cell) { cell.unsigned_number(c.numbers.comm_p2ps[row]); }},
    {"api_version", CellType::kNumber, "version of the profiler's interface; 0: declared through lockstep.h",
     comm_number<&CommTable::api_version>},
    {"init_ns", CellType::kNumber, "creation called, ns since the Unix epoch",
     comm_number<&CommTable::init_ns>},
    {"end_ns", CellType::kNumber, "destruction called; 0 never", comm_number<&CommTable::end_ns>},
    {"members", CellType::kText, "declared groups: global ranks, comma-separated",
     comm_text<&CommTable::members>},
    {"group_name", CellType::kText, "PyTorch's name of the group; empty unknown",
     comm_text<&CommTable::group_name>},
    {"group_description", CellType::kText, "PyTorch's description of it",
     comm_text<&CommTable::group_description>},
};

constexpr TableColumn kOps[] = {
    {"id", CellType::kNumber, "number of the operation in the run",
     [](Context c, uint32_t row, Cell cell) { cell.number(c.first_op + row); }},
    {"process", CellType::kNumber, "id in processes", process_id},
    {"rank", CellType::kNumber, "rank of the process; -1 unknown", rank},
    {"comm", CellType::kText, "name of its communicator",
     [](Context c, uint32_t row, Cell cell) {
       has_comm(c, row) ? cell.text(c.trace.strings[c.trace.comms.name[c.trace.ops.comm[row]]]) : cell.none();
     }},
    {"comm_hash", CellType::kText, "NCCL's id of its communicator",
     [](Context c, uint32_t row, Cell cell) {
       has_comm(c, row) ? cell.text(hex16(c.trace.comms.comm_id[c.trace.ops.comm[row]])) : cell.none();
     }},
    {"run_comm", CellType::kNumber, "run_comm in comms",
     [](Context c, uint32_t row, Cell cell) {
       has_comm(c, row) ? cell.number(c.numbers.comm_run[c.trace.ops.comm[row]]) : cell.none();
     }},
    {"comm_rank", CellType::kNumber, "rank of the process in the communicator",
     op_comm_number<&CommTable::rank>},
    {"ranks", CellType::kNumber, "members of the communicator", op_comm_number<&CommTable::ranks>},
    {"op_index", CellType::kUnsigned,
     "n-th operation of the process on the communicator; empty: a later replay of a graph, or not known, as "
     "older ones are missing",
     [](Context c, uint32_t row, Cell cell) {
       if (!has_same_index(c, row)) return cell.none();
       unless_unsigned(cell, c.trace.ops.index[row], model::kNoIndex);
     }},
    {"kind", CellType::kText, "Coll, P2p, CeColl, ApiOp, CollApi or P2pApi",
     [](Context c, uint32_t row, Cell cell) {
       const std::string_view name = model::event_name(c.trace.ops.kind[row]);
       name.empty() ? cell.none() : cell.text(name);
     }},
    {"func", CellType::kText, "AllReduce, Send, ...", op_shape_text<&ShapeTable::func>},
    {"datatype", CellType::kText, "NCCL's spelling", op_shape_text<&ShapeTable::datatype>},
    {"algo", CellType::kText, "RING, TREE, ...; empty unknown", op_shape_text<&ShapeTable::algo>},
    {"proto", CellType::kText, "LL, LL128, SIMPLE; empty unknown", op_shape_text<&ShapeTable::proto>},
    {"root", CellType::kNumber, "rank in the communicator; 0 for operations without a root",
     [](Context c, uint32_t row, Cell cell) {
       has_shape(c, row) ? cell.number(c.trace.shapes.root[c.trace.ops.shape[row]]) : cell.none();
     }},
    {"peer", CellType::kNumber, "sends and receives: rank in the communicator",
     [](Context c, uint32_t row, Cell cell) {
       c.trace.ops.peer[row] >= 0 ? cell.number(c.trace.ops.peer[row]) : cell.none();
     }},
    {"seq", CellType::kUnsigned, "NCCL's number per communicator and function",
     [](Context c, uint32_t row, Cell cell) { unless_unsigned(cell, c.trace.ops.seq[row], model::kNoSeq); }},
    {"count", CellType::kUnsigned, "elements as passed", op_number<&OpTable::count>},
    {"bytes", CellType::kUnsigned, "size of the message", op_number<&OpTable::bytes>},
    {"channels", CellType::kUnsigned, "channels that carry it; 0 unknown", op_number<&OpTable::channels>},
    {"gpu", CellType::kNumber, "run-wide device number",
     [](Context c, uint32_t row, Cell cell) { cell.number(c.numbers.op_gpu[row]); }},
    {"stream", CellType::kText, "its stream, in hex",
     [](Context c, uint32_t row, Cell cell) {
       c.trace.ops.stream[row] != 0 ? cell.text(hex(c.trace.ops.stream[row])) : cell.none();
     }},
    {"tid", CellType::kNumber, "thread that called it",
     [](Context c, uint32_t row, Cell cell) { tid(c, c.trace.ops.thread[row], cell); }},
    {"called_ns", CellType::kNumber, "the call began, ns since the Unix epoch", op_time<&OpTable::called_ns>},
    {"enqueued_ns", CellType::kNumber, "NCCL enqueued it", op_time<&OpTable::enqueued_ns>},
    {"launched_ns", CellType::kNumber, "its kernel launch began", op_time<&OpTable::launched_ns>},
    {"gpu_start_ns", CellType::kNumber, "GPU work began, in host time", op_time<&OpTable::gpu_start_ns>},
    {"gpu_end_ns", CellType::kNumber, "GPU work ended, in host time", op_time<&OpTable::gpu_end_ns>},
    {"gpu_ns", CellType::kNumber, "length of its GPU work",
     [](Context c, uint32_t row, Cell cell) {
       const int64_t start = c.trace.ops.gpu_start_ns[row], end = c.trace.ops.gpu_end_ns[row];
       start != 0 && end != 0 ? cell.number(end - start) : cell.none();
     }},
    {"gpu_source", CellType::kText,
     "where the GPU times come from: none, KernelCh, Api, Cupti, Hsa, Watchdog, Inspector, Network",
     [](Context c, uint32_t row, Cell cell) {
       cell.text(model::gpu_source_name(c.trace.ops.gpu_source[row]));
     }},
    {"gpu_error_ns", CellType::kNumber, "half-width of the GPU-to-host conversion",
     [](Context c, uint32_t row, Cell cell) {
       c.trace.ops.gpu_error_ns[row] >= 0 ? cell.number(c.trace.ops.gpu_error_ns[row]) : cell.none();
     }},
    {"comms_id", CellType::kText,
     "hash:coll or p2p:number of the operation; equal on all ranks of a collective; empty: not known",
     [](Context c, uint32_t row, Cell cell) {
       if (!has_comm(c, row) || !has_same_index(c, row)) return cell.none();
       const uint32_t index = c.trace.ops.index[row];
       cell.text(hex16(c.trace.comms.comm_id[c.trace.ops.comm[row]]) +
                 (c.trace.ops.peer[row] >= 0 ? ":p2p:" : ":coll:") +
                 (index == model::kNoIndex ? "replay" : std::to_string(index)));
     }},
    {"torch_comms_id", CellType::kText, "PyTorch's Comms Id, as text: it may not fit a signed number",
     [](Context c, uint32_t row, Cell cell) {
       const uint64_t id = c.trace.ops.torch_comms_id[row];
       id != 0 ? cell.text(std::to_string(id)) : cell.none();
     }},
    {"torch_seq", CellType::kNumber, "PyTorch's number of it in its group, sends and receives counted apart",
     [](Context c, uint32_t row, Cell cell) {
       model::has_torch_seq(c.trace, row) ? cell.number(c.trace.ops.torch_seq[row]) : cell.none();
     }},
    {"in_count", CellType::kUnsigned, "elements of its whole input on this rank",
     op_number<&OpTable::in_count>},
    {"out_count", CellType::kUnsigned, "elements of its whole output on this rank",
     op_number<&OpTable::out_count>},
    {"place", CellType::kText, "where the program called it",
     [](Context c, uint32_t row, Cell cell) { cell.text(c.trace.strings[c.trace.ops.place[row]]); }},
};

constexpr TableColumn kKernels[] = {
    {"id", CellType::kNumber, "number of the kernel or copy in the run",
     [](Context c, uint32_t row, Cell cell) { cell.number(c.first_kernel + row); }},
    {"process", CellType::kNumber, "id in processes: who launched it", process_id},
    {"rank", CellType::kNumber, "rank of the process; -1 unknown", rank},
    {"gpu", CellType::kNumber, "run-wide device number",
     [](Context c, uint32_t row, Cell cell) { cell.number(c.numbers.kernel_gpu[row]); }},
    {"stream", CellType::kUnsigned, "number of the stream as the source gives it",
     [](Context c, uint32_t row, Cell cell) { cell.unsigned_number(c.trace.kernels.stream[row]); }},
    {"name", CellType::kText, "name as the source gives it, demangled",
     [](Context c, uint32_t row, Cell cell) { cell.text(c.trace.strings[c.trace.kernels.name[row]]); }},
    {"kind", CellType::kText, "compute, communication or copy",
     [](Context c, uint32_t row, Cell cell) {
       constexpr std::string_view kKinds[] = {"compute", "communication", "copy"};
       const uint8_t kind = c.trace.kernels.kind[row];
       kind < std::size(kKinds) ? cell.text(kKinds[kind]) : cell.none();
     }},
    {"op", CellType::kNumber, "id in ops: the communication it does, the first of several",
     [](Context c, uint32_t row, Cell cell) {
       const uint32_t op = c.trace.kernels.op[row];
       op < c.trace.ops.size() ? cell.number(c.first_op + op) : cell.none();
     }},
    {"graph", CellType::kUnsigned, "graph that it was launched with", kernel_known<&KernelTable::graph>},
    {"graph_node", CellType::kUnsigned, "its node in the graph, equal in all replays",
     kernel_known<&KernelTable::graph_node>},
    {"start_ns", CellType::kNumber, "began, in host time, ns since the Unix epoch",
     kernel_number<&KernelTable::start_ns>},
    {"end_ns", CellType::kNumber, "ended, in host time", kernel_number<&KernelTable::end_ns>},
    {"gpu_ns", CellType::kNumber, "length",
     [](Context c, uint32_t row, Cell cell) {
       cell.number(c.trace.kernels.end_ns[row] - c.trace.kernels.start_ns[row]);
     }},
    {"launched_ns", CellType::kNumber, "the call that launched it began",
     [](Context c, uint32_t row, Cell cell) {
       const uint32_t launch = c.trace.kernels.launch[row];
       launch < c.trace.launches.size() ? cell.number(c.trace.launches.start_ns[launch]) : cell.none();
     }},
    {"launched_by", CellType::kNumber, "thread of that call",
     [](Context c, uint32_t row, Cell cell) {
       const uint32_t launch = c.trace.kernels.launch[row];
       launch < c.trace.launches.size() ? tid(c, c.trace.launches.thread[launch], cell) : cell.none();
     }},
    {"blocks", CellType::kUnsigned, "blocks of its grid", kernel_known<&KernelTable::blocks>},
    {"bytes", CellType::kUnsigned, "copies: moved", kernel_known<&KernelTable::bytes>},
};

constexpr TableColumn kMarks[] = {
    {"id", CellType::kNumber, "number of the mark in the run",
     [](Context c, uint32_t row, Cell cell) { cell.number(c.first_mark + row); }},
    {"process", CellType::kNumber, "id in processes", process_id},
    {"rank", CellType::kNumber, "rank of the process; -1 unknown", rank},
    {"tid", CellType::kNumber, "thread that set it",
     [](Context c, uint32_t row, Cell cell) { tid(c, c.trace.marks.thread[row], cell); }},
    {"name", CellType::kText, "text; 'step' for steps",
     [](Context c, uint32_t row, Cell cell) { cell.text(c.trace.strings[c.trace.marks.name[row]]); }},
    {"value", CellType::kNumber, "number of the step",
     [](Context c, uint32_t row, Cell cell) { cell.number(c.trace.marks.value[row]); }},
    {"is_step", CellType::kNumber, "1: a step begins",
     [](Context c, uint32_t row, Cell cell) { cell.number(c.trace.marks.is_step[row]); }},
    {"time_ns", CellType::kNumber, "ns since the Unix epoch",
     [](Context c, uint32_t row, Cell cell) { cell.number(c.trace.marks.time_ns[row]); }},
};

constexpr TableColumn kRanges[] = {
    {"id", CellType::kNumber, "number of the range in the run",
     [](Context c, uint32_t row, Cell cell) { cell.number(c.first_range + row); }},
    {"process", CellType::kNumber, "id in processes", process_id},
    {"rank", CellType::kNumber, "rank of the process; -1 unknown", rank},
    {"tid", CellType::kNumber, "thread that began it",
     [](Context c, uint32_t row, Cell cell) { tid(c, c.trace.ranges.thread[row], cell); }},
    {"name", CellType::kText, "text as the program gave it",
     [](Context c, uint32_t row, Cell cell) { cell.text(c.trace.strings[c.trace.ranges.name[row]]); }},
    {"domain", CellType::kText,
     "name of the library or program that it belongs to; empty: the default domain",
     [](Context c, uint32_t row, Cell cell) { cell.text(c.trace.strings[c.trace.ranges.domain[row]]); }},
    {"kind", CellType::kText, "nested: pushed and popped; free: started and ended, maybe on another thread",
     [](Context c, uint32_t row, Cell cell) {
       constexpr std::string_view kKinds[] = {"", "nested", "free"};
       const uint8_t kind = c.trace.ranges.kind[row];
       kind > 0 && kind < std::size(kKinds) ? cell.text(kKinds[kind]) : cell.none();
     }},
    {"start_ns", CellType::kNumber, "began, ns since the Unix epoch",
     [](Context c, uint32_t row, Cell cell) { cell.number(c.trace.ranges.start_ns[row]); }},
    {"end_ns", CellType::kNumber, "ended; empty: never",
     [](Context c, uint32_t row, Cell cell) { unless(cell, c.trace.ranges.end_ns[row], 0); }},
    {"ns", CellType::kNumber, "length",
     [](Context c, uint32_t row, Cell cell) {
       const int64_t end = c.trace.ranges.end_ns[row];
       end != 0 ? cell.number(end - c.trace.ranges.start_ns[row]) : cell.none();
     }},
};

constexpr TableColumn kLosses[] = {
    {"process", CellType::kNumber, "id in processes; empty: the whole run",
     [](Context c, uint32_t row, Cell cell) { of_whole_run(c, row) ? cell.none() : cell.number(c.process); }},
    {"rank", CellType::kNumber, "rank of the process",
     [](Context c, uint32_t row, Cell cell) { of_whole_run(c, row) ? cell.none() : rank(c, row, cell); }},
    {"stage", CellType::kText, "where it was lost: capture, read, assemble, export",
     loss_text<&LossTable::stage>},
    {"kind", CellType::kText, "what was lost, in a word", loss_text<&LossTable::kind>},
    {"count", CellType::kUnsigned, "how many",
     [](Context c, uint32_t row, Cell cell) { cell.unsigned_number(c.trace.losses.count[row]); }},
    {"detail", CellType::kText, "what it means, or file and offset", loss_text<&LossTable::detail>},
};

constexpr TableLayout kTables[] = {
    {"processes", "a process of the job", kProcesses,
     [](const model::Trace& t) { return t.processes.size(); }},
    {"comms", "a communicator as one process sees it", kComms,
     [](const model::Trace& t) { return t.comms.size(); }},
    {"ops", "an operation of one process", kOps, [](const model::Trace& t) { return t.ops.size(); }},
    {"kernels", "a kernel or copy on a GPU", kKernels,
     [](const model::Trace& t) { return t.kernels.size(); }},
    {"marks", "a step or a named instant", kMarks, [](const model::Trace& t) { return t.marks.size(); }},
    {"ranges", "a range that the program marked through NVTX", kRanges,
     [](const model::Trace& t) { return t.ranges.size(); }},
    {"losses", "what is missing or guessed", kLosses, [](const model::Trace& t) { return t.losses.size(); }},
};

}  // namespace

std::span<const TableLayout> run_tables() { return kTables; }

TableContext TableNumbers::of(const model::Trace& trace) {
  numbers_.compute(trace);
  const auto take = [](int64_t& next, size_t count) {
    const int64_t first = next;
    next += static_cast<int64_t>(count);
    return first;
  };
  // trace.db numbers events of all kinds in one sequence, in this order. Calls and launches have no table
  // here but take their numbers, so that `ops.id` names the same operation in both.
  TableContext context{trace, numbers_, process_++, take(comms_, trace.comms.size())};
  take(events_, trace.calls.size());
  context.first_mark = take(events_, trace.marks.size());
  context.first_op = take(events_, trace.ops.size());
  take(events_, trace.launches.size());
  context.first_kernel = take(events_, trace.kernels.size());
  context.first_range = take(events_, trace.ranges.size());
  return context;
}

}  // namespace lockstep::exporters::common
