// SPDX-License-Identifier: Apache-2.0
#include "exporters/common/run_tables.h"

#include <cstdio>

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
void hex(Cell cell, const char* format, uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof(text), format, static_cast<unsigned long long>(value));
  cell.text(text);
}

bool has_comm(Context c, uint32_t op) { return c.trace.ops.comm[op] < c.trace.comms.size(); }
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
    {"id", "number of the process in the run", process_id},
    {"rank", "global rank; -1 unknown", process_number<&ProcessTable::rank>},
    {"local_rank", "rank on its host; -1 unknown", process_number<&ProcessTable::local_rank>},
    {"world", "ranks of the job; -1 unknown", process_number<&ProcessTable::world>},
    {"host", "name of its host", process_text<&ProcessTable::host>},
    {"node", "number of its host in the run",
     [](Context c, uint32_t row, Cell cell) { cell.number(c.numbers.process_node[row]); }},
    {"pid", "process id", process_number<&ProcessTable::pid>},
    {"device", "device ordinal inside the process; -1 unknown", process_number<&ProcessTable::device>},
    {"gpu", "run-wide device number; -1 unknown", process_number<&ProcessTable::gpu>},
    {"pci", "PCI address of the device", process_text<&ProcessTable::pci>},
    {"uuid", "UUID of the device", process_text<&ProcessTable::uuid>},
    {"gpu_model", "model of the device", process_text<&ProcessTable::gpu_model>},
    {"boot_id", "names the clock of the host: times with equal boot ids compare exactly",
     process_text<&ProcessTable::boot_id>},
    {"launcher", "torchrun, slurm, openmpi, pmi or none", process_text<&ProcessTable::launcher>},
    {"job", "job id", process_text<&ProcessTable::job>},
    {"argv", "command line, blank-separated", process_text<&ProcessTable::argv>},
    {"nccl_version", "as ncclGetVersion gives it; 0 unknown", process_number<&ProcessTable::nccl_version>},
    {"closed", "1: every file of it was closed in order", process_number<&ProcessTable::closed>},
    {"start_ns", "process start, ns since the Unix epoch; 0 unknown",
     process_number<&ProcessTable::start_ns>},
    {"first_ns", "first record, ns since the Unix epoch; 0 none", process_number<&ProcessTable::first_ns>},
    {"last_ns", "last record, ns since the Unix epoch; 0 none", process_number<&ProcessTable::last_ns>},
};

constexpr TableColumn kComms[] = {
    {"id", "number of the member in the run",
     [](Context c, uint32_t row, Cell cell) { cell.number(c.first_comm + row); }},
    {"run_comm", "number of the communicator in the run: equal on all its members",
     [](Context c, uint32_t row, Cell cell) { cell.number(c.numbers.comm_run[row]); }},
    {"process", "id in processes", process_id},
    {"global_rank", "rank of the process; -1 unknown", rank},
    {"name", "name of the communicator, may be empty", comm_text<&CommTable::name>},
    {"hash", "NCCL's id, 16 hex digits, equal on all members",
     [](Context c, uint32_t row, Cell cell) { hex(cell, "%016llx", c.trace.comms.comm_id[row]); }},
    {"rank", "rank in the communicator; -1 unknown", comm_number<&CommTable::rank>},
    {"ranks", "members; -1 unknown", comm_number<&CommTable::ranks>},
    {"nodes", "hosts as NCCL counts them; -1 unknown", comm_number<&CommTable::nodes>},
    {"gpu", "run-wide device number; -1 unknown", comm_number<&CommTable::gpu>},
    {"collectives", "collective operations of this member",
     [](Context c, uint32_t row, Cell cell) { cell.unsigned_number(c.numbers.comm_collectives[row]); }},
    {"p2ps", "point-to-point operations of this member",
     [](Context c, uint32_t row, Cell cell) { cell.unsigned_number(c.numbers.comm_p2ps[row]); }},
    {"api_version", "version of the profiler's interface; 0: declared through lockstep.h",
     comm_number<&CommTable::api_version>},
    {"init_ns", "creation called, ns since the Unix epoch", comm_number<&CommTable::init_ns>},
    {"end_ns", "destruction called; 0 never", comm_number<&CommTable::end_ns>},
    {"members", "declared groups: global ranks, comma-separated", comm_text<&CommTable::members>},
    {"group_name", "PyTorch's name of the group; empty unknown", comm_text<&CommTable::group_name>},
    {"group_description", "PyTorch's description of it", comm_text<&CommTable::group_description>},
};

constexpr TableColumn kOps[] = {
    {"id", "number of the operation in the run",
     [](Context c, uint32_t row, Cell cell) { cell.number(c.first_op + row); }},
    {"process", "id in processes", process_id},
    {"rank", "rank of the process; -1 unknown", rank},
    {"comm", "name of its communicator",
     [](Context c, uint32_t row, Cell cell) {
       has_comm(c, row) ? cell.text(c.trace.strings[c.trace.comms.name[c.trace.ops.comm[row]]]) : cell.none();
     }},
    {"comm_hash", "NCCL's id of its communicator",
     [](Context c, uint32_t row, Cell cell) {
       has_comm(c, row) ? hex(cell, "%016llx", c.trace.comms.comm_id[c.trace.ops.comm[row]]) : cell.none();
     }},
    {"run_comm", "run_comm in comms",
     [](Context c, uint32_t row, Cell cell) {
       has_comm(c, row) ? cell.number(c.numbers.comm_run[c.trace.ops.comm[row]]) : cell.none();
     }},
    {"comm_rank", "rank of the process in the communicator", op_comm_number<&CommTable::rank>},
    {"ranks", "members of the communicator", op_comm_number<&CommTable::ranks>},
    {"op_index", "n-th operation of the process on the communicator; empty: a later replay of a graph",
     [](Context c, uint32_t row, Cell cell) {
       unless_unsigned(cell, c.trace.ops.index[row], model::kNoIndex);
     }},
    {"kind", "Coll, P2p, CeColl, ApiOp, CollApi or P2pApi",
     [](Context c, uint32_t row, Cell cell) {
       const std::string_view name = model::event_name(c.trace.ops.kind[row]);
       name.empty() ? cell.none() : cell.text(name);
     }},
    {"func", "AllReduce, Send, ...", op_shape_text<&ShapeTable::func>},
    {"datatype", "NCCL's spelling", op_shape_text<&ShapeTable::datatype>},
    {"algo", "RING, TREE, ...; empty unknown", op_shape_text<&ShapeTable::algo>},
    {"proto", "LL, LL128, SIMPLE; empty unknown", op_shape_text<&ShapeTable::proto>},
    {"root", "rank in the communicator; 0 for operations without a root",
     [](Context c, uint32_t row, Cell cell) {
       has_shape(c, row) ? cell.number(c.trace.shapes.root[c.trace.ops.shape[row]]) : cell.none();
     }},
    {"peer", "sends and receives: rank in the communicator",
     [](Context c, uint32_t row, Cell cell) {
       c.trace.ops.peer[row] >= 0 ? cell.number(c.trace.ops.peer[row]) : cell.none();
     }},
    {"seq", "NCCL's number per communicator and function",
     [](Context c, uint32_t row, Cell cell) { unless_unsigned(cell, c.trace.ops.seq[row], model::kNoSeq); }},
    {"count", "elements as passed", op_number<&OpTable::count>},
    {"bytes", "size of the message", op_number<&OpTable::bytes>},
    {"channels", "channels that carry it; 0 unknown", op_number<&OpTable::channels>},
    {"gpu", "run-wide device number",
     [](Context c, uint32_t row, Cell cell) { cell.number(c.numbers.op_gpu[row]); }},
    {"stream", "its stream, in hex",
     [](Context c, uint32_t row, Cell cell) {
       c.trace.ops.stream[row] != 0 ? hex(cell, "0x%llx", c.trace.ops.stream[row]) : cell.none();
     }},
    {"tid", "thread that called it",
     [](Context c, uint32_t row, Cell cell) { tid(c, c.trace.ops.thread[row], cell); }},
    {"called_ns", "the call began, ns since the Unix epoch", op_time<&OpTable::called_ns>},
    {"enqueued_ns", "NCCL enqueued it", op_time<&OpTable::enqueued_ns>},
    {"launched_ns", "its kernel launch began", op_time<&OpTable::launched_ns>},
    {"gpu_start_ns", "GPU work began, in host time", op_time<&OpTable::gpu_start_ns>},
    {"gpu_end_ns", "GPU work ended, in host time", op_time<&OpTable::gpu_end_ns>},
    {"gpu_ns", "length of its GPU work",
     [](Context c, uint32_t row, Cell cell) {
       const int64_t start = c.trace.ops.gpu_start_ns[row], end = c.trace.ops.gpu_end_ns[row];
       start != 0 && end != 0 ? cell.number(end - start) : cell.none();
     }},
    {"gpu_source",
     "where the GPU times come from: none, KernelCh, Api, Cupti, Hsa, Watchdog, Inspector, Network",
     [](Context c, uint32_t row, Cell cell) {
       cell.text(model::gpu_source_name(c.trace.ops.gpu_source[row]));
     }},
    {"gpu_error_ns", "half-width of the GPU-to-host conversion",
     [](Context c, uint32_t row, Cell cell) {
       c.trace.ops.gpu_error_ns[row] >= 0 ? cell.number(c.trace.ops.gpu_error_ns[row]) : cell.none();
     }},
    {"comms_id", "hash:coll or p2p:number of the operation; equal on all ranks of a collective",
     [](Context c, uint32_t row, Cell cell) {
       if (!has_comm(c, row)) return cell.none();
       const uint32_t index = c.trace.ops.index[row];
       char text[48];
       std::snprintf(text, sizeof(text), "%016llx:%s:%s",
                     static_cast<unsigned long long>(c.trace.comms.comm_id[c.trace.ops.comm[row]]),
                     c.trace.ops.peer[row] >= 0 ? "p2p" : "coll",
                     index == model::kNoIndex ? "replay" : std::to_string(index).c_str());
       cell.text(text);
     }},
    {"torch_comms_id", "PyTorch's Comms Id, as text: it may not fit a signed number",
     [](Context c, uint32_t row, Cell cell) {
       const uint64_t id = c.trace.ops.torch_comms_id[row];
       id != 0 ? cell.text(std::to_string(id)) : cell.none();
     }},
    {"torch_seq", "PyTorch's number of it in its group, sends and receives counted apart",
     [](Context c, uint32_t row, Cell cell) {
       model::has_torch_seq(c.trace, row) ? cell.number(c.trace.ops.torch_seq[row]) : cell.none();
     }},
    {"in_count", "elements of its whole input on this rank", op_number<&OpTable::in_count>},
    {"out_count", "elements of its whole output on this rank", op_number<&OpTable::out_count>},
    {"place", "where the program called it",
     [](Context c, uint32_t row, Cell cell) { cell.text(c.trace.strings[c.trace.ops.place[row]]); }},
};

constexpr TableColumn kKernels[] = {
    {"id", "number of the kernel or copy in the run",
     [](Context c, uint32_t row, Cell cell) { cell.number(c.first_kernel + row); }},
    {"process", "id in processes: who launched it", process_id},
    {"rank", "rank of the process; -1 unknown", rank},
    {"gpu", "run-wide device number",
     [](Context c, uint32_t row, Cell cell) { cell.number(c.numbers.kernel_gpu[row]); }},
    {"stream", "number of the stream as the source gives it",
     [](Context c, uint32_t row, Cell cell) { cell.unsigned_number(c.trace.kernels.stream[row]); }},
    {"name", "name as the source gives it, demangled",
     [](Context c, uint32_t row, Cell cell) { cell.text(c.trace.strings[c.trace.kernels.name[row]]); }},
    {"kind", "compute, communication or copy",
     [](Context c, uint32_t row, Cell cell) {
       constexpr std::string_view kKinds[] = {"compute", "communication", "copy"};
       const uint8_t kind = c.trace.kernels.kind[row];
       kind < std::size(kKinds) ? cell.text(kKinds[kind]) : cell.none();
     }},
    {"op", "id in ops: the communication it does, the first of several",
     [](Context c, uint32_t row, Cell cell) {
       const uint32_t op = c.trace.kernels.op[row];
       op < c.trace.ops.size() ? cell.number(c.first_op + op) : cell.none();
     }},
    {"graph", "graph that it was launched with", kernel_known<&KernelTable::graph>},
    {"graph_node", "its node in the graph, equal in all replays", kernel_known<&KernelTable::graph_node>},
    {"start_ns", "began, in host time, ns since the Unix epoch", kernel_number<&KernelTable::start_ns>},
    {"end_ns", "ended, in host time", kernel_number<&KernelTable::end_ns>},
    {"gpu_ns", "length",
     [](Context c, uint32_t row, Cell cell) {
       cell.number(c.trace.kernels.end_ns[row] - c.trace.kernels.start_ns[row]);
     }},
    {"launched_ns", "the call that launched it began",
     [](Context c, uint32_t row, Cell cell) {
       const uint32_t launch = c.trace.kernels.launch[row];
       launch < c.trace.launches.size() ? cell.number(c.trace.launches.start_ns[launch]) : cell.none();
     }},
    {"launched_by", "thread of that call",
     [](Context c, uint32_t row, Cell cell) {
       const uint32_t launch = c.trace.kernels.launch[row];
       launch < c.trace.launches.size() ? tid(c, c.trace.launches.thread[launch], cell) : cell.none();
     }},
    {"blocks", "blocks of its grid", kernel_known<&KernelTable::blocks>},
    {"bytes", "copies: moved", kernel_known<&KernelTable::bytes>},
};

constexpr TableColumn kMarks[] = {
    {"id", "number of the mark in the run",
     [](Context c, uint32_t row, Cell cell) { cell.number(c.first_mark + row); }},
    {"process", "id in processes", process_id},
    {"rank", "rank of the process; -1 unknown", rank},
    {"tid", "thread that set it",
     [](Context c, uint32_t row, Cell cell) { tid(c, c.trace.marks.thread[row], cell); }},
    {"name", "text; 'step' for steps",
     [](Context c, uint32_t row, Cell cell) { cell.text(c.trace.strings[c.trace.marks.name[row]]); }},
    {"value", "number of the step",
     [](Context c, uint32_t row, Cell cell) { cell.number(c.trace.marks.value[row]); }},
    {"is_step", "1: a step begins",
     [](Context c, uint32_t row, Cell cell) { cell.number(c.trace.marks.is_step[row]); }},
    {"time_ns", "ns since the Unix epoch",
     [](Context c, uint32_t row, Cell cell) { cell.number(c.trace.marks.time_ns[row]); }},
};

constexpr TableColumn kRanges[] = {
    {"id", "number of the range in the run",
     [](Context c, uint32_t row, Cell cell) { cell.number(c.first_range + row); }},
    {"process", "id in processes", process_id},
    {"rank", "rank of the process; -1 unknown", rank},
    {"tid", "thread that began it",
     [](Context c, uint32_t row, Cell cell) { tid(c, c.trace.ranges.thread[row], cell); }},
    {"name", "text as the program gave it",
     [](Context c, uint32_t row, Cell cell) { cell.text(c.trace.strings[c.trace.ranges.name[row]]); }},
    {"domain", "name of the library or program that it belongs to; empty: the default domain",
     [](Context c, uint32_t row, Cell cell) { cell.text(c.trace.strings[c.trace.ranges.domain[row]]); }},
    {"kind", "nested: pushed and popped; free: started and ended, maybe on another thread",
     [](Context c, uint32_t row, Cell cell) {
       constexpr std::string_view kKinds[] = {"", "nested", "free"};
       const uint8_t kind = c.trace.ranges.kind[row];
       kind > 0 && kind < std::size(kKinds) ? cell.text(kKinds[kind]) : cell.none();
     }},
    {"start_ns", "began, ns since the Unix epoch",
     [](Context c, uint32_t row, Cell cell) { cell.number(c.trace.ranges.start_ns[row]); }},
    {"end_ns", "ended; empty: never",
     [](Context c, uint32_t row, Cell cell) { unless(cell, c.trace.ranges.end_ns[row], 0); }},
    {"ns", "length",
     [](Context c, uint32_t row, Cell cell) {
       const int64_t end = c.trace.ranges.end_ns[row];
       end != 0 ? cell.number(end - c.trace.ranges.start_ns[row]) : cell.none();
     }},
};

constexpr TableColumn kLosses[] = {
    {"process", "id in processes; empty: the whole run",
     [](Context c, uint32_t row, Cell cell) { of_whole_run(c, row) ? cell.none() : cell.number(c.process); }},
    {"rank", "rank of the process",
     [](Context c, uint32_t row, Cell cell) { of_whole_run(c, row) ? cell.none() : rank(c, row, cell); }},
    {"stage", "where it was lost: capture, read, assemble, export", loss_text<&LossTable::stage>},
    {"kind", "what was lost, in a word", loss_text<&LossTable::kind>},
    {"count", "how many",
     [](Context c, uint32_t row, Cell cell) { cell.unsigned_number(c.trace.losses.count[row]); }},
    {"detail", "what it means, or file and offset", loss_text<&LossTable::detail>},
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

}  // namespace lockstep::exporters::common
