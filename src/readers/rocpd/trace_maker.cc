// SPDX-License-Identifier: Apache-2.0
// Makes an operation of each kernel of RCCL, so that times and sizes of communication show. Which
// communicator it worked for is in no column. So the kernels of each GPU stand as one communicator without an
// id, which nothing is matched with: a guess across processes would compare operations that may not be one.
#include "readers/rocpd/trace_maker.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "model/event_kind.h"
#include "model/names/kernel_name.h"

namespace lockstep::readers::rocpd {
namespace {

using model::KernelWork;
using model::kNoRow;
using model::Trace;

std::string_view func_of(KernelWork work) {
  switch (work) {
    case KernelWork::kAllReduce:
      return "AllReduce";
    case KernelWork::kBroadcast:
      return "Broadcast";
    case KernelWork::kReduce:
      return "Reduce";
    case KernelWork::kAllGather:
      return "AllGather";
    case KernelWork::kReduceScatter:
      return "ReduceScatter";
    case KernelWork::kSendRecv:
      return "SendRecv";
    case KernelWork::kAny:
    case KernelWork::kNone:
      break;
  }
  return "Generic";  // RCCL's one kernel for all
}

class TraceMaker {
 public:
  TraceMaker(const Placed& in, Trace& trace) : in_(in), process_(*in.process), trace_(trace) {}

  void make(Contents&& contents) {
    add_process();
    // By begin, as operations are numbered in that order. A file has rows as they ended, or in any order.
    std::sort(contents.work.begin(), contents.work.end(), [](const Work& a, const Work& b) {
      return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns < b.end_ns;
    });
    trace_.kernels.reserve(contents.work.size());
    for (const Work& work : contents.work) add_work(work);
    for (const Marker& marker : contents.markers) {
      trace_.marks.append({.process = 0,
                           .thread = kNoRow,
                           .name = marker.name,
                           .value = 0,
                           .is_step = 0,
                           .time_ns = marker.time_ns});
    }
    add_losses(contents);
  }

 private:
  void add_process() {
    model::Process row{};
    row.host = trace_.strings.intern(process_.host);
    row.boot_id = trace_.strings.intern(in_.clock);
    row.argv = trace_.strings.intern(process_.command);
    row.pid = process_.pid;
    row.rank = row.local_rank = row.world = row.node_rank = -1;
    row.device = row.gpu = -1;
    if (!process_.gpus.empty()) {
      // The first GPU stands for a process with several.
      row.device = process_.gpus.front().device;
      row.gpu = in_.gpus.front();
      row.gpu_model = trace_.strings.intern(process_.gpus.front().model);
    }
    row.first_ns = process_.first_ns;
    row.last_ns = row.heartbeat_ns = process_.last_ns;
    trace_.processes.append(row);
  }

  // Remembered, as this is asked for each row. A number that the file does not list is one behind the last
  // GPU.
  size_t gpu_of(int64_t number) {
    const auto known = gpu_rows_.find(number);
    if (known != gpu_rows_.end()) return known->second;
    const auto at = std::find_if(process_.gpus.begin(), process_.gpus.end(),
                                 [number](const Process::Gpu& gpu) { return gpu.number == number; });
    return gpu_rows_[number] = static_cast<size_t>(at - process_.gpus.begin());
  }

  void add_work(const Work& work) {
    const size_t gpu = gpu_of(work.gpu);
    model::Kernel kernel{};
    kernel.op = kernel.launch = kNoRow;
    kernel.name = work.name;
    kernel.kind = static_cast<uint8_t>(work.kind);
    kernel.gpu = gpu < in_.gpus.size() ? in_.gpus[gpu] : -1;
    unknown_gpu_ += kernel.gpu < 0 ? 1 : 0;
    kernel.stream = work.queue;
    kernel.start_ns = work.start_ns;
    kernel.end_ns = work.end_ns;
    // A copy stays one, whatever its name: only kernels communicate.
    if (work.kind == model::KernelKind::kCompute) {
      const KernelWork does = work_of(work.name);
      if (does != KernelWork::kNone) {
        kernel.kind = static_cast<uint8_t>(model::KernelKind::kCommunication);
        kernel.op = add_op(work, does, gpu, kernel.gpu);
      }
    }
    trace_.kernels.append(kernel);
  }

  // A few names for millions of rows, so each name is judged once.
  KernelWork work_of(model::StringId name) {
    const auto [at, is_new] = work_of_name_.try_emplace(name);
    if (is_new) at->second = model::work_of_kernel(trace_.strings[name]);
    return at->second;
  }

  // Which communicator a kernel works for is unknown: each GPU's are one.
  uint32_t comm_of(size_t gpu, int32_t number) {
    const auto [at, is_new] = comms_.try_emplace(gpu, kNoRow);
    if (!is_new) return at->second;
    model::Comm comm{};
    comm.index_in_process = static_cast<uint32_t>(trace_.comms.size());
    comm.name = trace_.strings.intern(number >= 0 ? "kernels of GPU " + std::to_string(number)
                                                  : std::string("kernels of an unknown GPU"));
    // Its comm_id stays 0: job/match compares nothing of a communicator without one.
    comm.rank = comm.ranks = comm.nodes = comm.api_version = -1;
    comm.device = gpu < process_.gpus.size() ? process_.gpus[gpu].device : -1;
    comm.gpu = number;
    comm.init_ns = process_.first_ns;
    return at->second = trace_.comms.append(comm);
  }

  uint32_t add_op(const Work& work, KernelWork does, size_t gpu, int32_t number) {
    model::Op op{};
    op.comm = comm_of(gpu, number);
    op.kind = model::number(model::EventKind::kColl);
    op.shape = trace_.intern_shape({trace_.strings.intern(func_of(does)), 0, 0, 0, 0});
    op.index = next_[op.comm]++;
    op.seq = model::kNoSeq;
    op.peer = -1;
    op.stream = work.queue;
    // Nothing of the host is in the file, so an operation has the GPU's times and no call.
    op.thread = op.task = op.call = op.group = kNoRow;
    op.gpu_start_ns = work.start_ns;
    op.gpu_end_ns = work.end_ns;
    op.gpu_source = static_cast<uint8_t>(model::GpuTimeSource::kHsa);
    op.gpu_error_ns = -1;
    return trace_.ops.append(op);
  }

  void add_losses(const Contents& contents) {
    const auto lose = [this](std::string_view kind, uint64_t count, const std::string& text) {
      trace_.lose(0, "read", kind, count, text + ": " + in_.file);
    };
    lose("bad_record", contents.bad, "rows with an impossible time or GPU");
    lose("missing_record", contents.left_out, "rows beyond the limit for one process");
    lose("other_work", contents.other, "rows that are neither kernels nor copies nor markers");
    lose("unknown_gpu", unknown_gpu_, "kernels and copies of a device that the file does not list");
    if (!contents.damage.empty()) trace_.lose(0, "read", "cut_file", 1, contents.damage);
  }

  const Placed& in_;
  const Process& process_;
  Trace& trace_;
  std::unordered_map<int64_t, size_t> gpu_rows_;
  std::unordered_map<model::StringId, KernelWork> work_of_name_;
  std::map<size_t, uint32_t> comms_;   // by GPU
  std::map<uint32_t, uint32_t> next_;  // by comm
  uint64_t unknown_gpu_ = 0;
};

}  // namespace

void make_trace(const Placed& placed, Contents&& contents, model::Trace& trace) {
  TraceMaker(placed, trace).make(std::move(contents));
}

}  // namespace lockstep::readers::rocpd
