// SPDX-License-Identifier: Apache-2.0
// What a cut or damage took of the record of a process, as its losses show. Such a process may have done more
// than its record says: it can wait and can be unknown, but what is missing of it proves nothing against it.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "model/job.h"

namespace lockstep::model {

// Kinds of loss that say so; their count is in what their detail names.
inline constexpr std::string_view kLossIncompleteEnd = "incomplete_end",
                                  kLossIncompleteMiddle = "incomplete_middle",
                                  kLossIncompleteSlightly = "incomplete_slightly",
                                  kLossUnproven = "unproven_rest";
// Network operations for a process whose file is not in the run: no gap of the process that did them.
inline constexpr std::string_view kLossForeignParent = "foreign_parent";

// Kinds of loss that leave a hole in the order of events; others say that something about an event is not
// known.
bool events_gone(std::string_view loss);

struct RecordGap {
  bool at_end = false;    // what it did last may be missing, or what its records name
  bool inside = false;    // what is missing lies before what is there
  bool slight = true;     // no more than a twentieth is missing, and not at the end
  std::string text;       // "12 chunks of 15 cannot be read, the newest records among them"
  bool unproven = false;  // it is damaged, and nothing proves that what can be read of it is what was written
  bool any() const { return at_end || inside; }
};
// By process.
std::vector<RecordGap> record_gaps(const Job& job);

// Files of the run of which nothing can be read, so that it is not known whose they are.
size_t unreadable_files(const Job& job);

}  // namespace lockstep::model
