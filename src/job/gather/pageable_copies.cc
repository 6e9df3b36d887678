// SPDX-License-Identifier: Apache-2.0
// Counted from the first kernel that communicates to the last, as a program that loads its weights before, or
// saves them behind, does not wait for it in its steps.
#include "job/gather/pageable_copies.h"

#include <algorithm>
#include <array>
#include <map>

#include "model/intervals.h"

namespace lockstep::job::gather {
namespace {

using model::Interval;
using model::Intervals;
using model::KernelKind;

constexpr size_t kMostGpus = 64;  // of one process

struct OfDevice {
  Intervals pageable, working;
};

}  // namespace

void add_pageable_copies(const model::Trace& trace, const model::StringPool& strings,
                         model::JobProcess& process) {
  const model::KernelTable& kernels = trace.kernels;
  std::map<model::StringId, bool> is_pageable;
  Interval between{INT64_MAX, INT64_MIN};
  bool any = false;
  for (size_t i = 0; i < kernels.size(); ++i) {
    const auto kind = static_cast<KernelKind>(kernels.kind[i]);
    if (kind == KernelKind::kCommunication)
      between = {std::min(between.begin, kernels.start_ns[i]), std::max(between.end, kernels.end_ns[i])};
    if (kind != KernelKind::kCopy) continue;
    const auto [found, is_new] = is_pageable.try_emplace(kernels.name[i], false);
    if (is_new) found->second = strings[kernels.name[i]].find("Pageable") != std::string_view::npos;
    any |= found->second;
  }
  if (!any || between.end <= between.begin) return;
  std::map<int32_t, OfDevice> devices;
  model::PageableCopies& sum = process.pageable;
  for (size_t i = 0; i < kernels.size(); ++i) {
    const int64_t begin = std::max(kernels.start_ns[i], between.begin);
    const int64_t end = std::min(kernels.end_ns[i], between.end);
    if (begin >= end) continue;
    // A forged file cannot make lists grow.
    if (!devices.contains(kernels.gpu[i]) && devices.size() == kMostGpus) continue;
    OfDevice& of = devices[kernels.gpu[i]];
    if (static_cast<KernelKind>(kernels.kind[i]) != KernelKind::kCopy) {
      of.working.push_back({begin, end});
    } else if (is_pageable[kernels.name[i]]) {
      of.pageable.push_back({begin, end});
      ++sum.copies;
      sum.bytes += kernels.bytes[i];
    }
  }
  for (auto& [gpu, of] : devices) {
    const std::array<int64_t, 2> borders{between.begin, between.end};
    const Intervals pageable = model::union_of(std::move(of.pageable));
    const Intervals working = model::union_of(std::move(of.working));
    const int64_t busy = model::covered_between(pageable, borders)[0];
    sum.busy_ns += busy;
    sum.alone_ns += busy - model::covered_between(model::common_to(pageable, working), borders)[0];
    sum.length_ns += between.end - between.begin;
  }
}

}  // namespace lockstep::job::gather
