// SPDX-License-Identifier: Apache-2.0
#include "job/live_calls.h"

#include <time.h>

namespace lockstep::sim::job {
namespace {

namespace abi = nccl_abi;
using Descriptor = abi::v7::Descriptor;

Descriptor blank(uint64_t type, void* parent, int rank) {
  Descriptor d{};
  d.type = type;
  d.parent = parent;
  d.rank = rank;
  return d;
}

uint64_t gpu_now() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

void* stream_of(const Unit& unit) {
  return reinterpret_cast<void*>(0x7000 + static_cast<uintptr_t>(unit.dim));
}

}  // namespace

Result<LiveCalls> LiveCalls::open(const std::string& plugin) {
  LOCKSTEP_ASSIGN(PluginLibrary library, PluginLibrary::open(plugin, 5));
  Behaviour behaviour;
  behaviour.api = library.api();
  behaviour.recorded_api = library.api();
  auto binding = make_binding(behaviour, library.symbol());
  return LiveCalls(std::move(library), std::move(binding));
}

void LiveCalls::create_comm(const Group& group, int rank) {
  Comm& comm = comms_[static_cast<size_t>(group.dim)];
  comm.rank = rank;
  binding_->init({group.comm_id, group.name.c_str(), group.nodes, group.size(), rank}, &mask_, nullptr,
                 &comm.context, &stats_);
}

void LiveCalls::finalize() {
  for (const Comm& comm : comms_) {
    if (comm.context != nullptr) binding_->finalize(comm.context, &stats_);
  }
}

void* LiveCalls::start(const Comm& comm, const Descriptor& descriptor) {
  if ((static_cast<uint32_t>(mask_) & descriptor.type) == 0) return nullptr;
  void* handle = nullptr;
  binding_->start(comm.context, &handle, descriptor, &stats_);
  return handle;
}

void LiveCalls::stop(void* handle) {
  if (handle != nullptr) binding_->stop(handle, &stats_);
}

void LiveCalls::state(void* handle, int number, uint64_t value) {
  if (handle != nullptr) binding_->state(handle, number, value, 0, &stats_);
}

void* LiveCalls::start_call(const Comm& comm, void* group, const Unit& unit, const Task& task) {
  Descriptor d = blank(task.is_p2p() ? abi::kTypeP2pApi : abi::kTypeCollApi, group, comm.rank);
  if (task.is_p2p()) {
    d.p2p_api = {name_of(task.func), task.count, name_of(task.type), stream_of(unit), false, 0};
  } else {
    d.coll_api = {name_of(task.func), task.count, name_of(task.type), task.root, stream_of(unit), false, 0};
  }
  return start(comm, d);
}

void* LiveCalls::start_task(Comm& comm, void* call, void* plan, const Task& task) {
  Descriptor d = blank(task.is_p2p() ? abi::kTypeP2p : abi::kTypeColl, call, comm.rank);
  if (task.is_p2p()) {
    d.p2p.func = name_of(task.func);
    d.p2p.count = task.count;
    d.p2p.datatype = name_of(task.type);
    d.p2p.peer = task.peer;
    d.p2p.channels = 1;
    d.p2p.parent_group = plan;
  } else {
    const bool in_bytes = task.func == Func::kAllGather || task.func == Func::kBroadcast;
    d.coll.seq = comm.sequence[static_cast<size_t>(task.func)]++;
    d.coll.func = name_of(task.func);
    d.coll.count = in_bytes ? task.bytes() : task.count;
    d.coll.root = task.root;
    d.coll.datatype = name_of(in_bytes ? DataType::kInt8 : task.type);
    d.coll.channels = 1;
    d.coll.warps = 16;
    d.coll.algo = "RING";
    d.coll.proto = "SIMPLE";
    d.coll.parent_group = plan;
  }
  return start(comm, d);
}

LiveCalls::Kernels LiveCalls::call(const Unit& unit) {
  Comm& comm = comms_[static_cast<size_t>(unit.dim)];
  Descriptor d = blank(abi::kTypeGroupApi, nullptr, comm.rank);
  d.group_api.depth = 1;
  void* const group = start(comm, d);
  state(group, abi::kGroupStartApiStop, 0);
  std::vector<void*> calls;
  for (const Task& task : unit.tasks) {
    calls.push_back(start_call(comm, group, unit, task));
    stop(calls.back());
  }
  state(group, abi::kGroupEndApiStart, 0);
  d = blank(abi::kTypeKernelLaunch, group, comm.rank);
  d.kernel_launch.stream = stream_of(unit);
  stop(start(comm, d));
  void* const plan = start(comm, blank(abi::kTypeGroup, nullptr, comm.rank));
  std::vector<void*> tasks;
  for (size_t i = 0; i < unit.tasks.size(); ++i) {
    tasks.push_back(start_task(comm, calls[i], plan, unit.tasks[i]));
    stop(tasks.back());
  }
  stop(plan);
  stop(group);
  Kernels kernels;
  for (void* task : tasks) {
    d = blank(abi::kTypeKernelCh, task, comm.rank);
    d.kernel_ch.ptimer = gpu_now();
    if (task != nullptr) kernels.push_back(start(comm, d));
  }
  return kernels;
}

void LiveCalls::end(const Kernels& kernels) {
  for (void* kernel : kernels) {
    state(kernel, abi::kKernelChStop, gpu_now());
    stop(kernel);
  }
}

}  // namespace lockstep::sim::job
