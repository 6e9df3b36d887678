// SPDX-License-Identifier: Apache-2.0
// merge_bench [--ranks N] [--ops N] [--rounds N] [--dir DIR]: rows a second into trace.db, and rows a second
// (calls, tasks, launches and kernels of one process) when kernels are joined to operations. The run is made
// up in memory, in the thread that would read it, so the figures are those of the writer with that thread
// beside it.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "bench/rounds.h"
#include "job/assemble/assemble.h"
#include "model/event_kind.h"
#include "model/testing/synthetic_run.h"
#include "store/store.h"

namespace {

using namespace lockstep;

using bench::measure;
using bench::Round;

Result<Round> merge(const model::testing::SyntheticOptions& options, const std::string& path) {
  model::testing::SyntheticRun run(options);
  LOCKSTEP_ASSIGN(auto merged, store::write_trace_db(run, path, {}, nullptr));
  return Round{merged.rows, merged.bytes};
}

// A process that computes nine kernels for each all-reduce; calls of two threads, delivered half a period
// late.
model::Trace kernel_trace(uint32_t ops) {
  using model::EventKind;
  using model::kNoRow;
  model::Trace trace;
  trace.processes.append({});
  trace.comms.append({});
  for (uint32_t thread = 0; thread < 2; ++thread) {
    model::Thread row{};
    row.pthread = 0x7f00'0000'0001 + thread;
    trace.threads.append(row);
  }
  const uint32_t shape = trace.intern_shape({trace.strings.intern("AllReduce"), 0, 0, 0, 0});
  const model::StringId nccl = trace.strings.intern("ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)"),
                        gemm = trace.strings.intern("gemm");
  const auto call = [&](EventKind kind, uint32_t thread, int64_t start, int64_t end, uint32_t parent) {
    model::Call row{};
    row.thread = thread;
    row.kind = model::number(kind);
    row.parent = parent;
    row.shape = shape;
    row.start_ns = start;
    row.end_ns = end;
    return trace.calls.append(row);
  };
  for (uint32_t op = 0; op < ops; ++op) {
    const uint32_t thread = op % 2, caller = static_cast<uint32_t>(trace.threads.pthread[thread]);
    const int64_t t = 1'000'000 + int64_t{op} * 100'000;
    const uint32_t group = call(EventKind::kGroupApi, thread, t, t + 9'000, kNoRow);
    const uint32_t api = call(EventKind::kCollApi, thread, t + 100, t + 200, group);
    call(EventKind::kKernelLaunch, thread, t + 1'000, t + 3'000, group);
    const uint32_t plan = call(EventKind::kGroup, thread, t + 3'100, t + 3'200, kNoRow);
    model::Task task{};
    task.thread = thread;
    task.kind = model::number(EventKind::kColl);
    task.call = api;
    task.plan = plan;
    task.shape = shape;
    task.peer = -1;
    task.start_ns = t + 3'150;
    trace.tasks.append(task);
    for (uint32_t i = 0; i < 10; ++i) {
      const int64_t at = t + (i == 0 ? 1'100 : 10'000 + i * 1'000);
      model::Launch launch{0, thread, 1, op * 10 + i + 1, caller, at, at + 500};
      model::Kernel kernel{};
      kernel.launch = trace.launches.append(launch);
      kernel.name = i == 0 ? nccl : gemm;
      kernel.kind =
          static_cast<uint8_t>(i == 0 ? model::KernelKind::kCommunication : model::KernelKind::kCompute);
      kernel.start_ns = at + 50'000;
      kernel.end_ns = at + 60'000;
      kernel.correlation = launch.correlation;
      trace.kernels.append(kernel);
    }
  }
  return trace;
}

Result<Round> join_kernels(model::Trace& trace) {
  trace.ops = {};
  for (uint32_t& op : trace.kernels.all(&model::KernelTable::op)) op = model::kNoRow;
  LOCKSTEP_TRY(job::assemble::assemble(trace));
  if (trace.kernels.op[0] != 0) return Error{ErrorCode::kInvalidInput, "kernels were not joined", {}};
  return Round{trace.calls.size() + trace.tasks.size() + trace.launches.size() + trace.kernels.size(), 0};
}

}  // namespace

int main(int argc, char** argv) {
  model::testing::SyntheticOptions options{.ranks = 8, .ranks_per_host = 8, .ops = 20000};
  int rounds = 5;
  std::filesystem::path dir = std::filesystem::temp_directory_path();
  for (int i = 1; i + 1 < argc; i += 2) {
    std::string name = argv[i];
    if (name == "--ranks") options.ranks = static_cast<uint32_t>(std::atoi(argv[i + 1]));
    if (name == "--ops") options.ops = static_cast<uint32_t>(std::atoi(argv[i + 1]));
    if (name == "--rounds") rounds = std::max(1, std::atoi(argv[i + 1]));
    if (name == "--dir") dir = argv[i + 1];
  }
  std::string stem = (dir / "lockstep_merge_bench").string();
  auto fresh = [](const std::string& path, auto write) {
    return [path, write] {
      std::filesystem::remove(path);
      return write(path);
    };
  };
  auto into_db = [&](const std::string& path) { return merge(options, path); };
  model::Trace kernels = kernel_trace(options.ranks * options.ops);
  bool good = measure("kernel join", "rows", rounds, [&] { return join_kernels(kernels); }) &&
              measure("merge", "rows", rounds, fresh(stem + ".db", into_db));
  std::filesystem::remove(stem + ".db");
  return good ? 0 : 1;
}
