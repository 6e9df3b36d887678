// SPDX-License-Identifier: Apache-2.0
#include "model/event_counts.h"

#include <algorithm>
#include <span>

namespace lockstep::model {
namespace {

void add(EventCounts& counts, std::span<const uint8_t> kinds) {
  for (uint8_t kind : kinds) {
    // Kinds may be those of a damaged file.
    if (kind < kEventKinds) ++counts[kind];
  }
}

}  // namespace

std::string_view event_name(uint8_t kind) {
  switch (kind) {
#define EVENT(number, name) \
  case number:              \
    return #name;
#include "model/event_kind.def"
#undef EVENT
    default:
      return {};
  }
}

EventCounts count_events(const Trace& trace) {
  EventCounts counts{};
  add(counts, trace.calls.all(&CallTable::kind));
  add(counts, trace.tasks.all(&TaskTable::kind));
  add(counts, trace.channels.all(&ChannelTable::kind));
  counts[number(EventKind::kProxyOp)] += trace.proxy_ops.size();
  counts[number(EventKind::kProxyStep)] += trace.proxy_steps.size();
  counts[number(EventKind::kProxyCtrl)] += trace.proxy_ctrls.size();
  counts[number(EventKind::kNetPlugin)] += trace.net_events.size();
  counts[number(EventKind::kMark)] += trace.marks.size();
  return counts;
}

KernelCounts count_kernels(const Trace& trace) {
  KernelCounts counts;
  counts.launches = trace.launches.size();
  for (size_t i = 0; i < trace.kernels.size(); ++i) {
    const auto kind = static_cast<KernelKind>(trace.kernels.kind[i]);
    ++(kind == KernelKind::kCopy ? counts.copies : counts.kernels);
    if (kind != KernelKind::kCommunication) continue;
    ++counts.communication;
    counts.joined += trace.kernels.op[i] != kNoRow;
  }
  return counts;
}

std::vector<size_t> uneven_places(std::span<const uint64_t> counts) {
  std::vector<size_t> places;
  const uint64_t most = counts.empty() ? 0 : *std::max_element(counts.begin(), counts.end());
  for (size_t i = 0; i < counts.size(); ++i) {
    // Less than half of `most`, without a product that could overflow.
    if (counts[i] < most - counts[i]) places.push_back(i);
  }
  return places;
}

}  // namespace lockstep::model
