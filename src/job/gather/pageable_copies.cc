// SPDX-License-Identifier: Apache-2.0
// Counted from the first kernel that communicates to the last: what a program loads before, or saves behind,
// its steps do not wait for. Many communicate before they load, or save between steps: that is in few parts
// of the time, so their median says what is usual.
#include "job/gather/pageable_copies.h"

#include <algorithm>
#include <map>
#include <vector>

#include "model/intervals.h"

namespace lockstep::job::gather {
namespace {

using model::Interval;
using model::Intervals;
using model::KernelKind;

constexpr size_t kMostGpus = 64;  // of one process: a forged file cannot make the map grow
constexpr int64_t kParts = 8;

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
  std::vector<int64_t> borders;
  for (int64_t i = 0; i <= kParts; ++i)
    borders.push_back(between.begin + (between.end - between.begin) / kParts * i);
  borders.back() = between.end;
  for (auto& [gpu, of] : devices) {
    const Intervals pageable = model::union_of(std::move(of.pageable));
    const Intervals working = model::union_of(std::move(of.working));
    std::vector<int64_t> alone = model::covered_between(pageable, borders);
    for (const int64_t busy : alone) sum.busy_ns += busy;
    const std::vector<int64_t> beside = model::covered_between(model::common_to(pageable, working), borders);
    for (size_t i = 0; i < alone.size(); ++i) alone[i] -= beside[i];
    for (const int64_t part : alone) sum.alone_ns += part;
    // The lower one of the two in the middle.
    const auto middle = alone.begin() + (kParts - 1) / 2;
    std::nth_element(alone.begin(), middle, alone.end());
    sum.usual_ns += kParts * *middle;
    sum.length_ns += between.end - between.begin;
  }
}

}  // namespace lockstep::job::gather
