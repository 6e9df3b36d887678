// SPDX-License-Identifier: Apache-2.0
// Replays of captured graphs, from the kernels that the GPU driver's tools gave. A replay is one call that
// launches the graph; all its kernels bear that call's correlation, and each the number of its node,
// which is equal in all replays.
//
// NCCL's calls say that they were captured, but not into which graph. The nodes of a graph, in the order of
// their numbers, are the launches in the order in which they were captured; so a stretch of captured launches
// (of one device and thread, up to one that ran, or launched a graph) is a graph's if it has as many, and all
// names fit, and no other stretch could be it when stretches and graphs are taken in order; and, as threads
// do not keep to one order, no stretch of another thread. What remains open is counted, and its kernels stay
// unjoined.
//
// On AMD's GPUs kernels name no graph and no node, but their communicator (DeviceComms). If its launches were
// captured in one stretch, replays run them in their order, again and again; and that is only believed where
// no other order could give a kernel another operation: all of the communicator's captured operations are
// alike, or differ in their channels, which are the kernel's blocks. If they were captured in several, any of
// these graphs may have run at any time: what is left are the channels, if no two captured launches of the
// communicator have as many.
//
// Each replay of each operation is an operation. Where NCCL reports replays itself (a task on a callback
// thread of CUDA: it does so with KernelCh, or when there is network work), those are the operations, and get
// their kernels here.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "job/assemble/device_comms.h"
#include "job/assemble/kernel_works.h"
#include "model/trace.h"

namespace lockstep::job::assemble {

class GraphReplays {
 public:
  // Adds to the losses of `trace`. All outlive the object.
  GraphReplays(model::Trace& trace, const DeviceComms& device_comms, KernelWorks& works);

  struct Replay {
    uint32_t call, task;  // as captured; no task: kNoRow
    uint32_t kernel;      // row of kernels
    int64_t launched_ns;  // the graph was launched; its kernel's begin where that is not known
  };
  // Operations that only their kernels show.
  std::span<const Replay> operations() const { return operations_; }
  // Whether the task is that of a capture which has `operations`: nothing ran then.
  bool is_capture(uint32_t task) const { return task < is_capture_.size() && is_capture_[task]; }
  // The kernel of a replay that NCCL reported: row of kernels; kNoRow unknown.
  uint32_t kernel_of(uint32_t task) const {
    return task < kernel_of_task_.size() ? kernel_of_task_[task] : model::kNoRow;
  }

 private:
  struct Node {       // a captured launch
    uint32_t launch;  // row of calls: KernelLaunch
    uint32_t epoch;   // another one where its thread ran something between two captured launches
    int32_t gpu;
  };
  struct Stretch {
    size_t first, count;  // in nodes_
  };
  struct Graph {
    int32_t gpu;
    uint64_t number;
    int64_t first_launch_ns;        // 0 unknown
    std::vector<uint32_t> kernels;  // one of each node, by the nodes' numbers
    size_t first, count;            // in graph_kernels_
    size_t first_node = SIZE_MAX;   // in nodes_; SIZE_MAX: not known which it captured
  };
  struct Run {  // a kernel of a replay, of one node
    size_t node;
    uint32_t kernel;
    int64_t not_before_ns;  // when the replay before was over, and this one launched
  };
  struct OfCall {
    uint64_t key;  // GroupApi << 32 | comm; or call
    uint32_t row;  // of calls; or of tasks
  };

  void list_graphs();
  void list_nodes();
  void count_epochs();
  void sort_nodes();
  std::vector<Stretch> stretches_of(int32_t gpu) const;
  void match_device(std::span<Graph> graphs);
  bool match_in_order(std::span<Graph> graphs, const std::vector<Stretch>& stretches);
  bool match_pieces(std::span<Graph> graphs, const std::vector<Stretch>& stretches);
  bool fits(const Graph& graph, const Stretch& stretch);
  bool has_rival(const Graph& graph, const std::vector<Stretch>& stretches);
  void add_runs(const Graph& graph);
  void add_runs(const DeviceComms::Replays& replays);
  bool is_in_order(const DeviceComms::Replays& replays, std::span<const size_t> nodes);
  // By kernel of the replays; none: they cannot be told apart.
  std::vector<size_t> nodes_by_channels(const DeviceComms::Replays& replays, std::span<const size_t> nodes);
  bool are_alike(uint32_t launch, uint32_t other) const;
  uint32_t channels_of(uint32_t launch) const;
  void list_captured_calls();
  void list_tasks();
  void add_operations();
  void add_operations(std::span<const Run> runs, uint32_t call);
  void give_to_tasks(std::span<const Run> runs, std::span<const OfCall> tasks);
  std::span<const OfCall> calls_of(uint32_t launch) const;
  uint64_t key_of(uint32_t launch) const;
  int64_t launch_ns(uint32_t kernel) const;  // 0 unknown

  model::Trace& trace_;
  KernelWorks& works_;
  std::vector<uint32_t> graph_kernels_;  // of NCCL, by gpu, graph and node
  std::vector<Graph> graphs_;            // by gpu and number
  std::vector<Node> nodes_;              // by gpu, end of their epoch, and time
  std::vector<OfCall> captured_calls_;   // by GroupApi and comm
  std::vector<OfCall> tasks_;            // of captured calls, by call and time
  std::vector<Run> runs_;
  std::vector<Replay> operations_;
  std::vector<bool> is_capture_;
  std::vector<uint32_t> kernel_of_task_;
  uint64_t unjoined_ = 0;
};

}  // namespace lockstep::job::assemble
