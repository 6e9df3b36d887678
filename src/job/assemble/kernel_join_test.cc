// SPDX-License-Identifier: Apache-2.0
// Jobs made at random, of which it is known which kernel did which operation. Complete ones are joined
// completely; from others records are missing, and then operations may lack their kernels but never have
// another's.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "job/assemble/assemble.h"
#include "model/event_kind.h"

namespace lockstep::job::assemble {
namespace {

using model::EventKind;
using model::kNoRow;
using model::number;
using model::Trace;

struct Options {
  uint32_t seed = 1;
  double missing = 0;  // share of the records
  bool launch_calls = true;
  bool reports_capture = true;  // NCCL reports the tasks of a capture
  uint32_t threads = 3;
  bool all_capture = false;  // every thread, not only the first
};

class RandomJob {
 public:
  explicit RandomJob(const Options& options) : options_(options), random_(options.seed) {
    trace.processes.append({});
    for (uint32_t comm = 0; comm < kComms; ++comm) {
      model::Comm row{};
      row.comm_id = comm + 1;
      row.device = row.gpu = static_cast<int32_t>(comm % kDevices);
      trace.comms.append(row);
    }
    for (const char* func : kFuncs)
      shapes_.push_back(trace.intern_shape({trace.strings.intern(func), 0, 0, 0, 0}));
    for (uint32_t thread = 0; thread < options.threads; ++thread) {
      model::Thread row{};
      row.tid = 100 + thread;
      row.pthread = 0x7f00'0000'0000 + thread * 0x10'0000;
      trace.threads.append(row);
      now_ = 1'000'000 + thread * 777;
      for (int round = 0; round < 40; ++round) {
        if (below(8) == 0 && (thread == 0 || options.all_capture))
          capture_and_replay(thread);
        else if (below(4) == 0)
          compute(thread);
        else
          group(thread, false);
      }
    }
    number_graphs();
  }

  // What ran an operation, by its number (kept in `count`): pairs of (launch of the replay or 0, begin of the
  // kernel).
  std::multimap<uint64_t, std::pair<int64_t, int64_t>> truth;
  size_t kernels = 0;  // of NCCL
  Trace trace;

 private:
  static constexpr uint32_t kComms = 4, kDevices = 2;
  static constexpr const char* kFuncs[] = {"AllReduce", "AllGather", "Send", "Recv"};
  static constexpr const char* kNames[] = {"ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)",
                                           "ncclDevKernel_AllGather_RING_LL(x)", "ncclDevKernel_SendRecv(x)",
                                           "ncclDevKernel_SendRecv(x)"};
  struct CapturedNode {
    uint32_t comm, func;
    uint64_t node;
    std::vector<uint64_t> ops;
  };

  uint32_t below(uint32_t n) { return static_cast<uint32_t>(random_() % n); }
  bool is_missing() { return std::uniform_real_distribution<>()(random_) < options_.missing; }
  int64_t tick() { return now_ += 1 + below(500); }

  uint32_t call(EventKind kind, uint32_t thread, uint32_t comm, bool captured, uint32_t parent = kNoRow,
                uint32_t shape = kNoRow, uint64_t count = 0) {
    model::Call row{};
    row.thread = thread;
    row.comm = comm;
    row.kind = number(kind);
    row.flags = captured ? model::kFlagGraphCaptured : 0;
    row.parent = parent;
    row.shape = shape;
    row.count = count;
    row.start_ns = tick();
    row.end_ns = tick();
    return is_missing() ? kNoRow : trace.calls.append(row);
  }
  uint32_t driver_call(uint32_t thread, model::LaunchKind kind) {
    ++correlation_;
    model::Launch row{};
    row.thread = thread;
    row.kind = static_cast<uint8_t>(kind);
    row.correlation = correlation_;
    row.caller = static_cast<uint32_t>(trace.threads.pthread[thread]);
    row.start_ns = tick();
    row.end_ns = tick();
    return !options_.launch_calls || is_missing() ? kNoRow : trace.launches.append(row);
  }
  int64_t kernel(uint32_t device, const char* name, uint32_t launch, uint64_t graph = 0, uint64_t node = 0) {
    gpu_now_[device] = std::max(gpu_now_[device], now_) + 1 + below(5'000);
    const bool is_nccl = name[0] == 'n';
    kernels += is_nccl;
    model::Kernel row{};
    row.op = kNoRow;
    row.name = trace.strings.intern(name);
    row.kind =
        static_cast<uint8_t>(is_nccl ? model::KernelKind::kCommunication : model::KernelKind::kCompute);
    row.gpu = static_cast<int32_t>(device);
    row.stream = 7;
    row.graph = graph;
    row.graph_node = node;
    row.start_ns = gpu_now_[device];
    row.end_ns = gpu_now_[device] += 1 + below(5'000);
    row.launch = launch;
    row.correlation = correlation_;
    if (!is_missing()) trace.kernels.append(row);
    return row.start_ns;
  }
  void compute(uint32_t thread) {
    kernel(below(kDevices), "gemm", driver_call(thread, model::LaunchKind::kKernel));
  }

  // Operations of one or two communicators in one group; each communicator has one or two plans.
  std::vector<CapturedNode> group(uint32_t thread, bool captured) {
    const uint32_t comms = 1 + below(2), first_comm = below(kComms);
    const bool p2p = below(3) == 0;
    const uint32_t plans = captured ? 1 : 1 + below(2);
    struct Op {
      uint32_t comm, plan, func, call;
      uint64_t number;
    };
    std::vector<Op> ops;
    // A group's own interval encloses all; its row comes first, its end is known last.
    const bool has_group = !is_missing();
    const uint32_t group_row = has_group ? trace.calls.append({}) : kNoRow;
    const int64_t begun = tick();
    for (uint32_t c = 0; c < comms; ++c) {
      for (uint32_t i = 0, n = plans + below(3); i < n; ++i) {
        const uint32_t func = p2p ? 2 + below(2) : below(2), comm = (first_comm + c) % kComms;
        const uint32_t row = call(p2p ? EventKind::kP2pApi : EventKind::kCollApi, thread, comm, captured,
                                  group_row, shapes_[func], ++numbers_);
        ops.push_back({comm, i % plans, func, row, numbers_});
      }
    }
    std::vector<CapturedNode> nodes;
    for (uint32_t plan = 0; plan < plans; ++plan) {
      for (uint32_t c = 0; c < comms; ++c) {
        const uint32_t comm = (first_comm + c) % kComms, device = comm % kDevices;
        std::vector<Op> of_plan;
        for (const Op& op : ops) {
          if (op.comm == comm && op.plan == plan) of_plan.push_back(op);
        }
        const int64_t before = tick();
        const uint32_t launch_row = is_missing() ? kNoRow : trace.calls.append({});
        const uint32_t launched = driver_call(thread, model::LaunchKind::kKernel);
        if (launch_row != kNoRow) {
          model::Call row{};
          row.thread = thread;
          row.comm = comm;
          row.kind = number(EventKind::kKernelLaunch);
          row.parent = group_row;
          row.start_ns = before;
          row.end_ns = tick();
          put(launch_row, row);
        }
        if (captured) {
          nodes.push_back({comm, of_plan.front().func, ++nodes_, {}});
          for (const Op& op : of_plan) nodes.back().ops.push_back(op.number);
        } else {
          const int64_t start = kernel(device, kNames[of_plan.front().func], launched);
          for (const Op& op : of_plan) truth.emplace(op.number, std::pair(int64_t{0}, start));
        }
        if (captured && !options_.reports_capture) continue;
        const uint32_t plan_row = call(EventKind::kGroup, thread, comm, false);
        for (const Op& op : of_plan) {
          model::Task task{};
          task.thread = thread;
          task.comm = comm;
          task.kind = number(p2p ? EventKind::kP2p : EventKind::kColl);
          task.call = op.call;
          task.plan = plan_row;
          task.shape = shapes_[op.func];
          task.count = op.number;
          task.peer = -1;
          task.start_ns = tick();
          if (!is_missing()) trace.tasks.append(task);
        }
      }
    }
    if (has_group) {
      model::Call row{};
      row.thread = thread;
      row.comm = first_comm;
      row.kind = number(EventKind::kGroupApi);
      row.flags = captured ? model::kFlagGraphCaptured : 0;
      row.parent = kNoRow;
      row.shape = kNoRow;
      row.start_ns = begun;
      row.end_ns = tick();
      put(group_row, row);
    }
    return nodes;
  }
  void put(uint32_t at, const model::Call& row) {
    model::CallTable& calls = trace.calls;
    calls.thread[at] = row.thread;
    calls.comm[at] = row.comm;
    calls.kind[at] = row.kind;
    calls.flags[at] = row.flags;
    calls.parent[at] = row.parent;
    calls.shape[at] = kNoRow;
    calls.start_ns[at] = row.start_ns;
    calls.end_ns[at] = row.end_ns;
  }

  // In the order in which they were made, over all threads.
  void number_graphs() {
    for (uint64_t& graph : trace.kernels.all(&model::KernelTable::graph)) {
      if (graph == 0) continue;
      const int64_t made = graph_made_[graph - 1];
      graph = 1 + static_cast<uint64_t>(std::count_if(graph_made_.begin(), graph_made_.end(),
                                                      [made](int64_t other) { return other < made; }));
    }
  }

  void capture_and_replay(uint32_t thread) {
    compute(thread);
    std::vector<CapturedNode> nodes;
    for (uint32_t i = 0, n = 1 + below(4); i < n; ++i) {
      for (CapturedNode& node : group(thread, true)) nodes.push_back(std::move(node));
      driver_call(thread, model::LaunchKind::kKernel);  // of a captured kernel that computes
    }
    graph_made_.push_back(now_);
    const uint64_t graph = graph_made_.size();
    for (uint32_t replay = 0, n = 3 + below(3); replay < n; ++replay) {
      const uint32_t launch = driver_call(thread, model::LaunchKind::kGraph);
      const int64_t launched = now_;
      for (const CapturedNode& node : nodes) {
        const int64_t start = kernel(node.comm % kDevices, kNames[node.func], launch, graph, node.node);
        for (const uint64_t op : node.ops) truth.emplace(op, std::pair(launched, start));
      }
      if (below(2) == 0) group(thread, false);
    }
  }

  const Options options_;
  std::mt19937 random_;
  std::vector<uint32_t> shapes_;
  int64_t now_ = 0, gpu_now_[kDevices] = {};
  uint64_t numbers_ = 0, nodes_ = 0;
  std::vector<int64_t> graph_made_;
  uint32_t correlation_ = 0;
};

struct Outcome {
  std::string text;
  size_t right = 0, wrong = 0, joined_kernels = 0;
  uint64_t losses = 0;
};

Outcome judge(RandomJob& job) {
  Outcome outcome;
  EXPECT_TRUE(assemble(job.trace));
  const model::OpTable& ops = job.trace.ops;
  for (size_t op = 0; op < ops.size(); ++op) {
    if (ops.gpu_source[op] != static_cast<uint8_t>(model::GpuTimeSource::kCupti)) continue;
    const auto [first, end] = job.truth.equal_range(ops.count[op]);
    const bool is_right = std::any_of(first, end, [&](const auto& ran) {
      const bool is_replay = ran.second.first != 0;
      return ran.second.second == ops.gpu_start_ns[op] &&
             is_replay == ((ops.flags[op] & model::kFlagGraphCaptured) != 0);
    });
    ++(is_right ? outcome.right : outcome.wrong);
  }
  for (size_t kernel = 0; kernel < job.trace.kernels.size(); ++kernel)
    outcome.joined_kernels += job.trace.kernels.op[kernel] != kNoRow;
  for (size_t i = 0; i < job.trace.losses.size(); ++i) {
    outcome.losses += job.trace.losses.count[i];
    outcome.text += std::string(job.trace.strings[job.trace.losses.kind[i]]) + ' ';
  }
  return outcome;
}

TEST(KernelJoin, CompleteJobsAreJoinedCompletely) {
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    for (const bool reports_capture : {true, false}) {
      RandomJob job({.seed = seed, .reports_capture = reports_capture});
      const Outcome outcome = judge(job);
      EXPECT_EQ(outcome.wrong, 0u) << seed;
      EXPECT_EQ(outcome.right, job.truth.size()) << seed;
      EXPECT_EQ(outcome.joined_kernels, job.kernels) << seed;
      EXPECT_EQ(outcome.losses, 0u) << seed << ' ' << outcome.text;
    }
  }
}

// One operation whose launch is known, and a kernel in it; each test changes what it is about.
struct OneOperation {
  Trace trace;
  uint32_t thread = 0, group = 0, call = 0, launch = 0, plan = 0;
  OneOperation() {
    trace.processes.append({});
    trace.comms.append({});
    model::Thread row{};
    row.pthread = 0x7f00'0000'0007;
    thread = trace.threads.append(row);
    const uint32_t shape = trace.intern_shape({trace.strings.intern("AllReduce"), 0, 0, 0, 0});
    group = add(EventKind::kGroupApi, 1'000, 9'000, kNoRow, kNoRow);
    call = add(EventKind::kCollApi, 1'100, 1'200, group, shape);
    launch = add(EventKind::kKernelLaunch, 2'000, 3'000, group, kNoRow);
    plan = add(EventKind::kGroup, 3'100, 3'200, kNoRow, kNoRow);
    model::Task task{};
    task.kind = number(EventKind::kColl);
    task.call = call;
    task.plan = plan;
    task.shape = shape;
    task.peer = -1;
    task.start_ns = 3'110;
    trace.tasks.append(task);
    trace.launches.append({0, thread, 1, 5, 7, 2'100, 2'900, 0});
    kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)");
  }
  uint32_t add(EventKind kind, int64_t start, int64_t end, uint32_t parent, uint32_t shape) {
    model::Call row{};
    row.kind = number(kind);
    row.parent = parent;
    row.shape = shape;
    row.start_ns = start;
    row.end_ns = end;
    return trace.calls.append(row);
  }
  void kernel(const char* name) {
    model::Kernel row{};
    row.op = kNoRow;
    row.name = trace.strings.intern(name);
    row.kind = static_cast<uint8_t>(model::KernelKind::kCommunication);
    row.start_ns = 4'000;
    row.end_ns = 5'000;
    row.correlation = 5;
    trace.kernels = {};
    trace.kernels.append(row);
  }
  // The loss that says why not; empty: joined.
  std::string outcome() {
    EXPECT_TRUE(assemble(trace));
    for (size_t i = 0; i < trace.losses.size(); ++i) {
      const std::string_view kind = trace.strings[trace.losses.kind[i]];
      if (kind.starts_with("kernel_") && kind != "kernel_joined_by_order") return std::string(kind);
    }
    EXPECT_EQ(trace.kernels.op[0], 0u);
    EXPECT_EQ(trace.ops.gpu_start_ns[0], 4'000);
    EXPECT_EQ(trace.ops.gpu_end_ns[0], 5'000);
    return {};
  }
};

TEST(KernelJoin, SaysWhyAKernelIsNotJoined) {
  EXPECT_EQ(OneOperation().outcome(), "");
  OneOperation misnamed, outside, unlaunched, other_thread, unending, no_plan;
  misnamed.kernel("ncclDevKernel_SendRecv(x)");
  EXPECT_EQ(misnamed.outcome(), "kernel_name_mismatch");
  outside.trace.launches.end_ns[0] = 9'001;
  EXPECT_EQ(outside.outcome(), "kernel_launched_outside");
  unlaunched.trace.kernels.launch[0] = kNoRow;
  EXPECT_EQ(unlaunched.outcome(), "kernel_without_launch");
  other_thread.trace.launches.caller[0] = 8;
  EXPECT_EQ(other_thread.outcome(), "kernel_launched_outside");
  unending.trace.calls.end_ns[unending.launch] = 0;
  EXPECT_EQ(unending.outcome(), "kernel_without_op") << "it lies in the group alone";
  no_plan.trace.tasks.plan[0] = kNoRow;
  EXPECT_EQ(no_plan.outcome(), "kernel_without_op");
}

TEST(KernelJoin, PlansOfAnotherThread) {
  OneOperation job;
  job.trace.threads.append({});
  job.trace.calls.thread[job.plan] = 1;
  EXPECT_EQ(job.outcome(), "");
}

TEST(KernelJoin, KernelsOnSymmetricMemoryHaveNoLaunchEvent) {
  OneOperation job;
  job.trace.tasks = {};
  job.trace.calls.kind[job.launch] = job.trace.calls.kind[job.plan] = number(EventKind::kCeSync);
  job.kernel("ncclSymkDevKernel_AllReduce_AGxLL_R_sum_f32(x)");
  EXPECT_EQ(job.outcome(), "");
}

TEST(KernelJoin, WithoutLaunchingCallsTheOrderTells) {
  OneOperation job, fewer;
  job.trace.launches = {};
  fewer.trace.launches = {};
  job.trace.kernels.launch[0] = fewer.trace.kernels.launch[0] = kNoRow;
  EXPECT_EQ(job.outcome(), "");
  fewer.add(EventKind::kKernelLaunch, 6'000, 6'100, kNoRow, kNoRow);
  EXPECT_EQ(fewer.outcome(), "kernel_without_launch");
}

TEST(KernelJoin, AKernelThatBeginsBeforeItsLaunchWidensTheTimes) {
  OneOperation job;
  job.trace.kernels.start_ns[0] = 1'600;
  EXPECT_TRUE(assemble(job.trace));
  EXPECT_EQ(job.trace.ops.gpu_error_ns[0], 500);
}

// The uncertainty of the operation where another kernel of that device begins before its launch at that time.
int32_t error_beside(int32_t gpu, int64_t start_ns) {
  OneOperation job;
  model::Launch launch = job.trace.launches.row(0);
  launch.start_ns = start_ns + 700;
  launch.end_ns = start_ns + 800;
  model::Kernel kernel = job.trace.kernels.row(0);
  kernel.name = job.trace.strings.intern("sgemm");
  kernel.kind = static_cast<uint8_t>(model::KernelKind::kCompute);
  kernel.gpu = gpu;
  kernel.start_ns = start_ns;
  kernel.end_ns = start_ns + 10'000;
  kernel.correlation = launch.correlation = 6;
  kernel.launch = job.trace.launches.append(launch);
  job.trace.kernels.append(kernel);
  EXPECT_TRUE(assemble(job.trace));
  EXPECT_EQ(job.trace.losses.size(), 1u) << "it is counted wherever it is";
  return job.trace.ops.gpu_error_ns[0];
}

TEST(KernelJoin, ABadKernelSaysNothingOfOtherDevicesAndTimes) {
  EXPECT_EQ(error_beside(0, 20'000), 700);
  EXPECT_EQ(error_beside(0, 1'500'000'000), 700) << "within two seconds";
  EXPECT_EQ(error_beside(0, 3'000'000'000), 0);
  EXPECT_EQ(error_beside(1, 20'000), 0);
}

// A group of many captured sends, replayed as often: their product is not what the file holds.
TEST(KernelJoin, ReplaysOfAGroupAreBoundedByWhatWasRecorded) {
  constexpr uint32_t kEach = 3'000;
  Trace trace;
  trace.processes.append({});
  trace.comms.append({});
  model::Thread thread{};
  thread.pthread = 7;
  trace.threads.append(thread);
  const uint32_t shape = trace.intern_shape({trace.strings.intern("Send"), 0, 0, 0, 0});
  int64_t now = 1'000;
  const auto call = [&](EventKind kind, uint32_t parent) {
    model::Call row{};
    row.kind = number(kind);
    row.flags = model::kFlagGraphCaptured;
    row.parent = parent;
    row.shape = shape;
    row.start_ns = ++now;
    row.end_ns = ++now;
    return trace.calls.append(row);
  };
  const uint32_t group = call(EventKind::kGroupApi, kNoRow);
  for (uint32_t i = 0; i < kEach; ++i) call(EventKind::kP2pApi, group);
  call(EventKind::kKernelLaunch, group);
  for (uint32_t i = 0; i < kEach; ++i) {
    model::Launch launch{};
    launch.kind = static_cast<uint8_t>(model::LaunchKind::kGraph);
    launch.correlation = i + 1;
    launch.caller = 7;
    launch.start_ns = now += 10;
    launch.end_ns = now + 5;
    model::Kernel kernel{};
    kernel.op = kNoRow;
    kernel.name = trace.strings.intern("ncclDevKernel_SendRecv(x)");
    kernel.kind = static_cast<uint8_t>(model::KernelKind::kCommunication);
    kernel.graph = kernel.graph_node = 1;
    kernel.launch = trace.launches.append(launch);
    kernel.correlation = i + 1;
    kernel.start_ns = now + 6;
    kernel.end_ns = now + 9;
    trace.kernels.append(kernel);
  }
  ASSERT_TRUE(assemble(trace));
  EXPECT_EQ(trace.ops.size(), kEach) << "as captured";
  uint64_t refused = 0;
  for (size_t i = 0; i < trace.losses.size(); ++i) {
    if (trace.strings[trace.losses.kind[i]] == "graph_kernel") refused = trace.losses.count[i];
  }
  EXPECT_EQ(refused, kEach);
}

// Threads that capture at the same time leave open whose graph is whose; what is not open is joined.
TEST(KernelJoin, CapturesOfSeveralThreadsAreNotMixedUp) {
  size_t right = 0, all = 0;
  for (uint32_t seed = 1; seed <= 100; ++seed) {
    RandomJob job({.seed = seed, .all_capture = true});
    const Outcome outcome = judge(job);
    EXPECT_EQ(outcome.wrong, 0u) << seed;
    right += outcome.right;
    all += job.truth.size();
  }
  EXPECT_GT(right, all / 2);
}

TEST(KernelJoin, MissingRecordsNeverGiveAnOperationAnothersKernel) {
  size_t right = 0, all = 0;
  for (const double missing : {0.002, 0.01, 0.05, 0.2}) {
    for (uint32_t seed = 1; seed <= 100; ++seed) {
      RandomJob job({.seed = seed, .missing = missing, .reports_capture = seed % 2 == 0});
      const Outcome outcome = judge(job);
      EXPECT_EQ(outcome.wrong, 0u) << seed << ", " << missing << " missing";
      right += outcome.right;
      all += job.truth.size();
    }
  }
  EXPECT_GT(right, all / 3) << "it must not refuse everything";
}

}  // namespace
}  // namespace lockstep::job::assemble
