// SPDX-License-Identifier: Apache-2.0
// Readers write down what is missing as losses of fixed kinds; analyses ask what a process may have done
// beyond its record. This is the one place that turns the first into the second.
#include "model/record_gaps.h"

#include <algorithm>
#include <iterator>

namespace lockstep::model {

bool events_gone(std::string_view loss) {
  constexpr std::string_view kKinds[] = {
      "no_chunk",       "disk_full",         "size_cap",          "overwritten",      "no_log",
      "closed",         "meta_full",         "overwritten_chunk", "missing_chunk",    "missing_record",
      "cut_record",     "cut_file",          "bad_record",        "unknown_record",   "recycled_record",
      "bad_chunk",      "unreadable_file",   "damaged_table",     kLossIncompleteEnd, kLossIncompleteMiddle,
      "damaged_record", "damaged_definition"};
  return std::find(std::begin(kKinds), std::end(kKinds), loss) != std::end(kKinds);
}

std::vector<RecordGap> record_gaps(const Job& job) {
  std::vector<RecordGap> gaps(job.processes.size());
  for (size_t i = 0; i < job.losses.size(); ++i) {
    if (job.losses.process[i] >= gaps.size()) continue;
    const std::string_view kind = job.text(job.losses.kind[i]);
    const bool slight = kind == kLossIncompleteSlightly, at_end = kind == kLossIncompleteEnd,
               inside = slight || kind == kLossIncompleteMiddle;
    RecordGap& gap = gaps[job.losses.process[i]];
    gap.unproven = gap.unproven || kind == kLossUnproven;
    if (!at_end && !inside) continue;
    // Of several gaps one at the end is reported: it leaves open what the process did last.
    if (gap.text.empty() || (at_end && !gap.at_end)) {
      const std::string_view detail = job.text(job.losses.detail[i]);
      gap.text = std::to_string(job.losses.count[i]) + " " + std::string(detail.substr(0, detail.find(": ")));
    }
    gap.at_end = gap.at_end || at_end;
    gap.inside = gap.inside || inside;
    gap.slight = gap.slight && slight;
  }
  return gaps;
}

size_t unreadable_files(const Job& job) {
  size_t files = 0;
  for (size_t i = 0; i < job.losses.size(); ++i) {
    if (job.losses.process[i] == kNoRow && job.text(job.losses.kind[i]) == "unreadable_file")
      files += job.losses.count[i];
  }
  return files;
}

}  // namespace lockstep::model
