// SPDX-License-Identifier: Apache-2.0
// Launches and kernels both come nearly in the order of their correlations, so the launches are a sorted
// list, in which the place mostly moves on by one with each kernel. A search finds what is out of order.
#include "readers/native/kernel_links.h"

#include <algorithm>
#include <string>
#include <vector>

namespace lockstep::readers::native {
namespace {

struct Entry {
  uint32_t correlation, launch;
  bool operator<(const Entry& other) const { return correlation < other.correlation; }
};

// By correlation, each once; kNoRow where several launches bear it.
std::vector<Entry> entries_of(const model::LaunchTable& launches, size_t first) {
  std::vector<Entry> entries;
  entries.reserve(launches.size() - first);
  for (size_t i = first; i < launches.size(); ++i)
    entries.push_back({launches.correlation[i], static_cast<uint32_t>(i)});
  // A thread's calls come in their order.
  if (!std::is_sorted(entries.begin(), entries.end())) std::sort(entries.begin(), entries.end());
  size_t kept = 0;
  for (const Entry& entry : entries) {
    if (kept > 0 && entries[kept - 1].correlation == entry.correlation)
      entries[kept - 1].launch = model::kNoRow;
    else
      entries[kept++] = entry;
  }
  entries.resize(kept);
  return entries;
}

}  // namespace

void link_kernels(model::Trace& trace, size_t first_kernel, size_t first_launch, const std::string& path,
                  ReadLosses& losses) {
  model::KernelTable& kernels = trace.kernels;
  const std::vector<Entry> entries = entries_of(trace.launches, first_launch);
  if (entries.empty()) return;
  uint64_t ambiguous = 0;
  size_t at = 0;
  for (size_t row = first_kernel; row < kernels.size(); ++row) {
    const uint32_t wanted = kernels.correlation[row];
    // Kernels come nearly in the order of their launches: the place is mostly the last one, or the next.
    if (at + 1 < entries.size() && entries[at + 1].correlation == wanted) ++at;
    if (entries[at].correlation != wanted) {
      const auto found = std::lower_bound(entries.begin(), entries.end(), Entry{wanted, 0});
      if (found == entries.end() || found->correlation != wanted) continue;
      at = static_cast<size_t>(found - entries.begin());
    }
    // Correlations wrap after 2^32 calls: one that several launches bear names none of them.
    kernels.launch[row] = entries[at].launch;
    ambiguous += entries[at].launch == model::kNoRow;
  }
  losses.add("repeated_correlation", ambiguous, [&] {
    return "kernels and copies without a launch, because several launches have their correlation id: " + path;
  });
}

}  // namespace lockstep::readers::native
