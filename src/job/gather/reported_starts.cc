// SPDX-License-Identifier: Apache-2.0
// Decides since when a missing GPU begin means that the operation has not begun. Kernel records of CUPTI come
// when a kernel has ended, so their absence means nothing. KernelCh events come at the begin, but only in
// deep mode and only for the operations that were selected: one hole in the sequence shows that some were
// left out.
#include "job/gather/reported_starts.h"

#include <algorithm>
#include <charconv>

#include "model/event_kind.h"
#include "model/job.h"

namespace lockstep::job::gather {
namespace {

using model::JobOps;
using model::kNoRow;

struct Mode {
  std::string_view name;  // empty unknown
  int64_t since_ns = 0;
};

// The last of 'default 1700000000000000000, sample=1/100 1700000005000000000'.
Mode last_mode(std::string_view modes) {
  const size_t comma = modes.rfind(", ");
  if (comma != std::string_view::npos) modes.remove_prefix(comma + 2);
  const size_t blank = std::min(modes.find(' '), modes.size());
  Mode mode{modes.substr(0, blank)};
  modes.remove_prefix(std::min(blank + 1, modes.size()));
  std::from_chars(modes.data(), modes.data() + modes.size(), mode.since_ns);
  return mode;
}

int64_t entered_ns(const model::OpTable& ops, size_t i) {
  const bool is_replay = (ops.flags[i] & model::kFlagGraphCaptured) != 0 && ops.enqueued_ns[i] != 0;
  if (ops.called_ns[i] != 0 && !is_replay) return ops.called_ns[i];
  return ops.enqueued_ns[i] != 0 ? ops.enqueued_ns[i] : ops.launched_ns[i];
}

}  // namespace

int64_t starts_reported_from(const model::Trace& trace, std::string_view modes,
                             const std::vector<uint32_t>& bucket, size_t buckets) {
  const model::OpTable& ops = trace.ops;
  std::vector<bool> has_begin(trace.tasks.size());
  bool is_any = false;
  for (size_t i = 0; i < trace.channels.size(); ++i) {
    const uint32_t task = trace.channels.task[i];
    if (task >= has_begin.size() || trace.channels.kind[i] != number(model::EventKind::kKernelCh)) continue;
    has_begin[task] = is_any = true;
  }
  const auto is_by_kernel = [&](size_t i) {
    return ops.gpu_source[i] == static_cast<uint8_t>(model::GpuTimeSource::kCupti) ||
           ops.gpu_source[i] == static_cast<uint8_t>(model::GpuTimeSource::kHsa);
  };
  if (!is_any) {
    for (size_t i = 0; i < ops.size(); ++i) {
      if (bucket[i] != kNoRow && is_by_kernel(i)) return JobOps::kNeverReported;
    }
    return 0;
  }
  const Mode mode = last_mode(modes);
  if (!mode.name.empty() && mode.name != "deep") return JobOps::kNeverReported;

  enum class Seen : uint8_t { kNothing, kEndOnly, kBegin, kHole };
  std::vector<Seen> seen(buckets, Seen::kNothing);
  int64_t from = JobOps::kNeverReported;
  for (size_t i = 0; i < ops.size(); ++i) {
    const int64_t entered = entered_ns(ops, i);
    if (bucket[i] == kNoRow || entered < mode.since_ns) continue;
    Seen& of = seen[bucket[i]];
    const uint32_t task = ops.task[i];
    if (task < has_begin.size() && has_begin[task]) {
      // Below a size, or by number, operations are left out.
      if (of == Seen::kHole) return JobOps::kNeverReported;
      of = Seen::kBegin;
      if (entered != 0) from = std::min(from, entered);
    } else if (is_by_kernel(i)) {
      if (of == Seen::kBegin || of == Seen::kHole) return JobOps::kNeverReported;
      of = Seen::kEndOnly;
    } else if (of == Seen::kBegin && task < has_begin.size()) {
      of = Seen::kHole;
    }
  }
  // Nothing asks for the begin of this communicator's, or this peer's.
  if (std::find(seen.begin(), seen.end(), Seen::kEndOnly) != seen.end()) return JobOps::kNeverReported;
  return from;
}

}  // namespace lockstep::job::gather
