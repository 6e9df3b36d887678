// SPDX-License-Identifier: Apache-2.0
// An operation without a known end is either still open or its end is lost, and a counter that mixes the two
// up grows for ever. It counts as open only if the ends of all operations that its communicator had called
// before are known: a gap earlier shows that ends get lost here. And the source of those ends must have been
// on throughout, as far as the modes say.
#include "exporters/common/process_counters.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "exporters/common/process_slices.h"
#include "model/event_kind.h"
#include "model/names/operation_size.h"

namespace lockstep::exporters::common {
namespace {

using model::GpuTimeSource;

constexpr double kMostMegabytes =
    1e9;  // a second: a million times what a GPU's links carry; sums fit 63 bits

// Sources from kInspector on give lengths or ends that do not say when the GPU worked.
bool is_placed(const model::OpTable& ops, uint32_t op) {
  return ops.gpu_start_ns[op] > 0 && ops.gpu_end_ns[op] != 0 &&
         ops.gpu_source[op] < static_cast<uint8_t>(GpuTimeSource::kInspector);
}

// 0: nobody knows that it was called, or only its capture is known.
int64_t begin_of(const model::Trace& trace, uint32_t op) {
  const bool is_captured = (trace.ops.flags[op] & model::kFlagGraphCaptured) != 0;
  const int64_t host = is_captured && trace.ops.enqueued_ns[op] == 0 ? 0 : host_interval(trace, op).start;
  return host > 0 ? host : is_placed(trace.ops, op) ? trace.ops.gpu_start_ns[op] : 0;
}

// What a communicator's operations show of their ends.
struct CommTimes {
  int64_t last_ns = 0;  // begin of the last one whose end is known
  uint8_t source = 0;   // of that end
  bool has_hole = false;
};

// KernelCh events are asked for in deep mode alone: where the mode changed, nothing is known of what was
// called after it. Where the modes are unknown, holes alone can show that.
bool has_all(uint8_t source, std::string_view modes) {
  // `modes` lists each mode with the time of its change, comma-separated: no comma means that it never
  // changed.
  return source != static_cast<uint8_t>(GpuTimeSource::kKernelCh) || modes.empty() ||
         (modes.starts_with("deep ") && modes.find(',') == std::string_view::npos);
}

}  // namespace

ProcessCounters::ProcessCounters(const model::Trace& trace) {
  find_open(trace);
  add_in_flight(trace);
  add_bus_bandwidth(trace);
}

void ProcessCounters::report_losses(model::Trace& run) const {
  run.lose(model::kNoRow, "export", "without_end", without_end_,
           "operations that no counter shows, because their end is unknown");
  run.lose(model::kNoRow, "export", "implausible_rate", too_fast_,
           "operations left out of the bus bandwidth, because they are faster than any link");
}

void ProcessCounters::find_open(const model::Trace& trace) {
  const model::OpTable& ops = trace.ops;
  // The last place is for operations whose communicator the trace lacks.
  std::vector<CommTimes> by_comm(trace.comms.size() + 1);
  const auto of = [&](uint32_t op) -> CommTimes& {
    return by_comm[std::min<size_t>(ops.comm[op], trace.comms.size())];
  };
  bool is_any = false;
  for (uint32_t op = 0; op < ops.size(); ++op) {
    if (!is_placed(ops, op)) continue;
    is_any = true;
    const int64_t begin = begin_of(trace, op);
    CommTimes& comm = of(op);
    // Of each communicator the newest operation whose end is known: what was called later may be open, and
    // what was called earlier is a hole.
    if (begin >= comm.last_ns) comm = {begin, ops.gpu_source[op], false};
  }
  open_.assign(ops.size(), false);
  if (!is_any) return;
  const auto lacks_end = [&](uint32_t op) { return !is_placed(ops, op) && begin_of(trace, op) > 0; };
  for (uint32_t op = 0; op < ops.size(); ++op) {
    if (lacks_end(op) && begin_of(trace, op) <= of(op).last_ns) of(op).has_hole = true;
  }
  const std::string_view modes = trace.strings[trace.processes.modes[0]];
  for (uint32_t op = 0; op < ops.size(); ++op) {
    if (!lacks_end(op)) continue;
    const CommTimes& comm = of(op);
    open_[op] = comm.last_ns != 0 && !comm.has_hole && ops.gpu_end_ns[op] == 0 && has_all(comm.source, modes);
    without_end_ += !open_[op];
  }
}

void ProcessCounters::add_in_flight(const model::Trace& trace) {
  const model::OpTable& ops = trace.ops;
  std::vector<Change> changes;
  changes.reserve(2 * ops.size());
  for (uint32_t op = 0; op < ops.size(); ++op) {
    if (!open_[op] && !is_placed(ops, op)) continue;
    const int64_t begin = begin_of(trace, op);
    // In flight counts from the call, which a GPU clock's error may put behind the end: hence the maximum
    // below.
    changes.push_back({begin, 1});
    if (!open_[op]) changes.push_back({std::max(begin, ops.gpu_end_ns[op]), -1});
  }
  add({"operations in flight", "count", false, {}}, std::move(changes));
}

void ProcessCounters::add_bus_bandwidth(const model::Trace& trace) {
  const model::OpTable& ops = trace.ops;
  std::vector<Change> changes;
  std::unordered_map<uint64_t, double>
      factors;  // bus bytes for a byte of an operation, by shape, comm, declared
  const auto factor_of = [&](uint32_t op) {
    const uint32_t shape = ops.shape[op], comm = ops.comm[op];
    if (shape >= trace.shapes.size() || comm >= trace.comms.size()) return 0.0;
    const int32_t ranks = trace.comms.ranks[comm];
    if (ranks < 1 && ops.peer[op] < 0) return 0.0;
    const bool is_declared = ops.kind[op] == model::number(model::EventKind::kApiOp);
    const uint64_t key = (uint64_t{comm} << 32 | shape) << 1 | is_declared;
    const auto [at, is_new] = factors.try_emplace(key, 0);
    if (is_new) {
      const std::string_view func = trace.strings[trace.shapes.func[shape]];
      at->second = static_cast<double>(model::operation_size(func, 1, ranks, is_declared)) *
                   model::bus_factor(func, ranks);
    }
    return at->second;
  };
  changes.reserve(2 * ops.size());
  for (uint32_t op = 0; op < ops.size(); ++op) {
    const int64_t start = ops.gpu_start_ns[op], end = ops.gpu_end_ns[op];
    if (!is_placed(ops, op) || end <= start) continue;
    const double rate =
        static_cast<double>(ops.bytes[op]) * factor_of(op) * 1e3 / static_cast<double>(end - start);
    if (rate > kMostMegabytes) {
      ++too_fast_;
      continue;
    }
    const auto megabytes = static_cast<int64_t>(std::llround(rate));
    changes.push_back({start, megabytes});
    changes.push_back({end, -megabytes});
  }
  add({"bus bandwidth", "GB/s", true, {}}, std::move(changes));
}

void ProcessCounters::add(Counter counter, std::vector<Change> changes) {
  std::sort(changes.begin(), changes.end(),
            [](const Change& a, const Change& b) { return a.time_ns < b.time_ns; });
  int64_t value = 0;
  for (size_t i = 0; i < changes.size();) {
    const int64_t time = changes[i].time_ns;
    // All changes of one instant are one value, so that an end and a begin at once draw no spike.
    for (; i < changes.size() && changes[i].time_ns == time; ++i) value += changes[i].by;
    if (value != (counter.values.empty() ? 0 : counter.values.back().value))
      counter.values.push_back({time, value});
  }
  if (!counter.values.empty()) counters_.push_back(std::move(counter));
}

}  // namespace lockstep::exporters::common
