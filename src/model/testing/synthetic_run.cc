// SPDX-License-Identifier: Apache-2.0
#include "model/testing/synthetic_run.h"

#include "model/event_kind.h"
#include "model/torch/torch_groups.h"

namespace lockstep::model::testing {
namespace {

constexpr uint32_t kCaller = 1, kProxy = 2;  // rows of threads
constexpr uint32_t kChannels = 2;
uint8_t kind(EventKind k) { return number(k); }

}  // namespace

Result<void> SyntheticRun::load(size_t i, Trace& trace) {
  auto rank = static_cast<int32_t>(i);
  add_process(rank, trace);
  for (uint32_t n = 0; n < options_.ops; ++n) {
    add_op(rank, n, trace);
    if (n % 8 == 7) add_send_or_recv(rank, n, trace);
  }
  for (size_t op = 0; op < trace.ops.size(); ++op) {
    trace.ops.in_count[op] = trace.ops.out_count[op] = trace.ops.count[op];
    trace.ops.place[op] = trace.strings.intern("train.py:" + std::to_string(op % 4 + 1) + " (step)");
  }
  for (size_t task = 0; task < trace.tasks.size(); ++task) trace.tasks.handle[task] = 64 + task;
  for (uint64_t& context : trace.proxy_ops.all(&ProxyOpTable::context)) context = (i + 1) << 32 | 1;
  trace.comms.context[0] = (i + 1) << 32 | 1;
  name_torch_groups(trace, RunMembers());
  number_torch_operations(trace);
  return {};
}

void SyntheticRun::run_losses(Trace& trace) {
  trace.lose(kNoRow, "read", "no_trace", 1, "extra.txt is no trace");
}

Result<void> SyntheticRun::host_counters(const HostCounterVisitor& visit) {
  constexpr int64_t kTenSeconds = 10'000'000'000;
  if (!options_.host_counters) return {};
  for (const char* const host : {"node0", "node1"}) {
    const auto give = [&](const char* kind, const char* device, const char* name, const char* unit,
                          bool is_gauge, std::vector<HostCounter::Value> values) {
      visit({host, kind, device, name, unit, is_gauge, std::move(values)});
    };
    give("port", "mlx5_0/1", "sent", "bytes", false,
         {{kStart, 0}, {kStart + kTenSeconds, 250'000'000'000}, {kStart + 2 * kTenSeconds, 300'000'000'000}});
    give("port", "mlx5_0/1", "symbol_error", "count", false, {{kStart, 0}, {kStart + kTenSeconds, 7}});
    give("port", "mlx5_0/1", "link_downed", "count", false, {{kStart, 0}});
    give("gpu", "0000:1b:00.0", "sm_clock", "MHz", true, {{kStart, 1980}});
  }
  return {};
}

void SyntheticRun::add_process(int32_t rank, Trace& trace) const {
  auto text = [&](const std::string& t) { return trace.strings.intern(t); };
  auto host = static_cast<int32_t>(static_cast<uint32_t>(rank) / options_.ranks_per_host);
  auto local = static_cast<int32_t>(static_cast<uint32_t>(rank) % options_.ranks_per_host);
  int32_t gpu = options_.gpu_known ? rank : -1;
  Process p;
  p.host = text("node" + std::to_string(host));
  p.host_id = text("id" + std::to_string(host));
  p.boot_id = text("boot" + std::to_string(host));
  p.pid = 4000 + local;  // pids repeat across hosts
  p.start_ns = kStart - 5'000'000'000;
  p.rank = rank;
  p.local_rank = local;
  p.world = static_cast<int32_t>(options_.ranks);
  p.node_rank = host;
  p.launcher = text("torchrun");
  p.job = text("job 7");
  p.argv = text("python train.py --name \"x\\y\"");
  p.visible_devices = text(std::to_string(local));
  p.pci = text("0000:1b:00.0");
  p.uuid = text("GPU-" + std::to_string(rank));
  p.gpu_model = text("NVIDIA H200");
  p.device = 0;  // every rank sees its GPU as device 0
  p.gpu = gpu;
  p.nccl_version = 22809;
  p.nccl_library = text("/usr/lib/libnccl.so.2");
  p.nccl_build_id = text("0a1b2c3d");
  p.other_nccl = text("22706 /opt/libnccl.so.2");
  p.mode = 3;
  p.modes = text("default 1700000000000000000, deep 1700000001000000000");
  p.retention = 1;
  p.gpu_clock = 1;
  p.closed = 1;
  p.first_ns = kStart;
  p.last_ns = kStart + int64_t{options_.ops} * kOpPeriod;
  p.heartbeat_ns = p.last_ns - 1;
  trace.processes.append(p);
  trace.clock_anchors.append({0, 12345678, 111, 222, kStart, 40});
  Comm c;
  c.process = 0;
  c.index_in_process = 0;
  c.comm_id = 0x8000000000000abc;  // above 2^63: the file stores its bits
  c.name = text(options_.comm_name);
  c.rank = rank;
  c.ranks = static_cast<int32_t>(options_.ranks);
  c.nodes = 2;
  c.api_version = 5;
  c.device = 0;
  c.gpu = gpu;
  c.pci = p.pci;
  c.uuid = p.uuid;
  c.init_ns = kStart - 1'000'000;
  c.end_ns = p.last_ns + 1;
  c.numbered = 1;
  trace.comms.append(c);
  trace.threads.append({0, 4000 + local, text("main"), 0x7f01});
  trace.threads.append({0, 4100 + local, text("python"), 0x7f02});
  trace.threads.append({0, 4200 + local, text("NCCL Progress"), 0x7f03});
  trace.intern_shape({text("Broadcast"), text("ncclInt8"), 0, 0, 1});
  trace.histograms.append({0, 0, kind(EventKind::kColl),
                           trace.intern_shape({text("AllReduce"), text("ncclFloat32"), 0, 0, 0}), 20, 10,
                           1000, 9, 900, 50, 200, kStart, kStart + 9});
  trace.lose(0, "capture", "clamped", 3, "values too large for their field");
}

void SyntheticRun::add_op(int32_t rank, uint32_t n, Trace& trace) const {
  auto text = [&](std::string_view t) { return trace.strings.intern(t); };
  int64_t start = kStart + int64_t{n} * kOpPeriod + rank * 1000;
  if (n % 10 == 0) trace.marks.append({0, kCaller, text("step"), int64_t{n} / 10, 1, start - 500});
  if (n % 10 == 0) {
    trace.ranges.append({0, kCaller, text("forward"), 0, static_cast<uint8_t>(RangeKind::kNested),
                         start - 400, start + kOpPeriod / 2});
    trace.ranges.append({0, kCaller, text("prefetch"), text("loader"), static_cast<uint8_t>(RangeKind::kFree),
                         start - 300, n + 10 < options_.ops ? start + 11 * kOpPeriod : 0});
  }
  if (n % 10 == 5) trace.marks.append({0, kCaller, text("checkpoint"), 0, 0, start - 500});
  uint32_t api_shape = trace.intern_shape({text("AllReduce"), text("ncclFloat32"), 0, 0, 0});
  uint32_t shape = trace.intern_shape(
      {text("AllReduce"), text("ncclFloat32"), text("RING"), text(n % 2 ? "LL" : "SIMPLE"), 0});
  uint64_t stream = 0x7f00'0000'1000;
  uint64_t count = uint64_t{1} << (10 + n % 10);
  Call group{0,
             kCaller,
             0,
             kind(EventKind::kGroupApi),
             0,
             kNoRow,
             kNoRow,
             0,
             0,
             1,
             start,
             start + 30'000,
             start + 100,
             start + 29'000,
             0};
  uint32_t group_row = trace.calls.append(group);
  Call call{0,
            kCaller,
            0,
            kind(EventKind::kCollApi),
            1,
            group_row,
            api_shape,
            stream,
            count,
            0,
            start + 1'000,
            start + 20'000,
            0,
            0,
            77};
  uint32_t call_row = trace.calls.append(call);
  Call plan{0, kCaller, 0, kind(EventKind::kGroup), 0, kNoRow, kNoRow, 0, 0, 0, start + 5'000, start + 15'000,
            0, 0,       0};
  uint32_t plan_row = trace.calls.append(plan);
  trace.calls.append({0, kCaller, 0, kind(EventKind::kKernelLaunch), 0, group_row, kNoRow, stream, 0, 0,
                      start + 21'000, start + 25'000, 0, 0, 0});
  Task t{0,
         kCaller,
         0,
         kind(EventKind::kColl),
         kFlagSymmetric,
         call_row,
         plan_row,
         shape,
         n,
         count,
         0,
         0x1000,
         0x2000,
         stream,
         -1,
         kChannels,
         16,
         start + 6'000,
         start + 12'000,
         0,
         0,
         77};
  uint32_t task = trace.tasks.append(t);
  if (n % 10 == 3) {
    trace.calls.append({0, kCaller, 0, kind(EventKind::kCeSync), 8, task, kNoRow, stream, 4, 0,
                        start + 13'000, start + 14'000, 0, 0, 0});
  }
  int64_t gpu_start = start + 40'000, gpu_end = start + 140'000;
  for (uint16_t ch = 0; ch < kChannels && options_.gpu_times; ++ch) {
    trace.channels.append({0, kProxy, 0, task, kind(EventKind::kKernelCh), ch, 0, 900'000ull + n * 1000,
                           900'500ull + n * 1000, gpu_start + ch * 100, gpu_end - ch * 100});
  }
  if (options_.network) add_network(rank, task, start, trace);
  Op op{0,
        0,
        n,
        kind(EventKind::kColl),
        kFlagSymmetric,
        shape,
        n,
        count,
        count * 4,
        -1,
        kChannels,
        stream,
        kCaller,
        task,
        call_row,
        group_row,
        start + 1'000,
        start + 6'000,
        start + 21'000,
        gpu_start,
        gpu_end,
        1,
        2'000};
  if (!options_.gpu_times) {
    op.gpu_start_ns = op.gpu_end_ns = 0;
    op.gpu_source = 0;
    op.gpu_error_ns = -1;
  }
  const uint32_t row = trace.ops.append(op);
  if (options_.gpu_times) add_kernels(rank, row, trace);
}

// The kernel of the operation, one that computes beside and behind it, and a copy now and then.
void SyntheticRun::add_kernels(int32_t rank, uint32_t op, Trace& trace) const {
  auto text = [&](std::string_view t) { return trace.strings.intern(t); };
  const int32_t gpu = options_.gpu_known ? rank : -1;
  const uint64_t graph = op % 2, node = graph * (op + 1);
  const int64_t start = trace.ops.gpu_start_ns[op], end = trace.ops.gpu_end_ns[op];
  trace.kernels.append({0, op, text("ncclDevKernel_AllReduce_Sum_f32_RING_LL"),
                        static_cast<uint8_t>(KernelKind::kCommunication), gpu, trace.ops.stream[op], graph,
                        node, start, end, kNoRow, 0, 2, 0});
  const uint32_t launch = trace.launches.append(
      {0, kCaller, static_cast<uint8_t>(graph != 0 ? LaunchKind::kGraph : LaunchKind::kKernel), op + 1, 77,
       start + 10'000, start + 20'000, 0x7f001000});
  trace.kernels.append({0, kNoRow, text("void gemm<float, 4>(float*)"),
                        static_cast<uint8_t>(KernelKind::kCompute), gpu, 7, graph, node, start + 50'000,
                        end + 100'000, launch, op + 1, 4, 0});
  if (op % 4 == 0) {
    trace.kernels.append({0, kNoRow, text("Memcpy DtoH (Device -> Pinned)"),
                          static_cast<uint8_t>(KernelKind::kCopy), gpu, 8, 0, 0, end + 150'000, end + 160'000,
                          kNoRow, 0, 0, 4096});
  }
}

// As v1 to v4 report it: no API call.
void SyntheticRun::add_send_or_recv(int32_t rank, uint32_t n, Trace& trace) const {
  auto text = [&](std::string_view t) { return trace.strings.intern(t); };
  int64_t start = kStart + int64_t{n} * kOpPeriod + 400'000 + rank * 1000;
  uint32_t shape = trace.intern_shape({text(rank % 2 ? "Recv" : "Send"), text("ncclBfloat16"), 0, 0, 0});
  int32_t peer = rank ^ 1;
  Task t{0, kCaller, 0,     kind(EventKind::kP2p), 0, kNoRow, kNoRow, shape, 0, 512, 0, 0x3000, 0, 0, peer,
         1, 0,       start, start + 2'000,         0, 0,      0};
  uint32_t task = trace.tasks.append(t);
  trace.ops.append({0,       0,     n / 8,  kind(EventKind::kP2p),
                    0,       shape, kNoSeq, 512,
                    1024,    peer,  1,      0,
                    kCaller, task,  kNoRow, kNoRow,
                    0,       start, 0,      0,
                    0,       0,     -1});
}

void SyntheticRun::add_network(int32_t rank, uint32_t task, int64_t start, Trace& trace) const {
  auto ranks = static_cast<int32_t>(options_.ranks);
  for (uint16_t i = 0; i < 2 * kChannels; ++i) {
    bool send = i % 2 == 0;
    int64_t begin = start + 30'000 + i * 100;
    ProxyOp p{0,
              kProxy,
              0,
              task,
              0xabc,
              4000,
              rank,
              (rank + (send ? 1 : ranks - 1)) % ranks,
              static_cast<uint16_t>(i / 2),
              send,
              4,
              65536,
              begin,
              begin + 1'000,
              begin + 90'000};
    uint32_t proxy_op = trace.proxy_ops.append(p);
    for (int32_t step = 0; step < 4; ++step) {
      // Steps of one op overlap, as a real proxy keeps several in flight.
      int64_t s = begin + 2'000 + step * 15'000;
      uint32_t row = trace.proxy_steps.append(
          {proxy_op, 0, step, 65536, send, 1, 0, s, s + 3'000, s + 9'000, s + 12'000, s + 30'000});
      if (step == 0)
        trace.net_events.append({0, kProxy, row, 0x10001, 1, 42, 2, 65536, 1, s + 9'100, s + 11'000});
    }
  }
  trace.proxy_ctrls.append(
      {0, kProxy, 0, 15, 16, 3, start + 140'000, start + 141'000, start + 150'000, start + 151'000});
}

}  // namespace lockstep::model::testing
