// SPDX-License-Identifier: Apache-2.0
// What all pages of a report draw from: the run as it was diagnosed, its times counted from its begin, and
// which processes, communicators and operations the findings name. Read-only once made; the run outlives it.
#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text/json_text.h"
#include "verdict/diagnosed_run.h"

namespace lockstep::report {

// A collective: row of Job::comms, and its index there.
using OperationKey = std::pair<uint32_t, uint32_t>;

class ReportContext {
 public:
  explicit ReportContext(const verdict::DiagnosedRun& run);

  const verdict::DiagnosedRun& run() const { return run_; }
  // The evidence that the pages are drawn from: the most trusted that holds operations. Null if none does.
  const verdict::Evidence* main() const { return main_; }
  // Its job; only where main() is not null.
  const model::Job& job() const { return *main_->job; }

  // The first record, on the reference host's clock, ns since the epoch; nothing without a record.
  std::optional<int64_t> begin_ns() const { return begin_ns_; }
  // From the first record to the last sign of life by the clock that recorded longest: of the run where there
  // is one clock, else the least that the run can have taken.
  int64_t length_ns() const { return length_ns_; }
  bool has_one_clock() const { return has_one_clock_; }

  // Processes with equal numbers have times that compare: 0 is the reference host and all that are aligned to
  // it.
  uint32_t clock_of(uint32_t process) const;
  // A time of a process on the reference host's clock. A host that is not aligned is placed as if its first
  // record were the begin of the run: its times compare with each other alone, but lie where the run does.
  int64_t placed_ns(uint32_t process, int64_t ns) const;
  // The same of a time that was brought to the reference host's clock where that could be done.
  int64_t placed_common_ns(uint32_t process, int64_t common_ns) const;
  // A placed time, from the begin of the run; null where it is no time of this run.
  Json since_begin(int64_t placed_ns) const;
  // The same of a process' own time; 0 is null.
  Json since_begin(uint32_t process, int64_t ns) const;
  // Since when a finding holds; null where it does not say, or not by which clock.
  Json since_begin_of(size_t finding) const;

  // By finding, ascending: rows of Job::processes that it names.
  const std::vector<uint32_t>& processes_of(size_t finding) const { return processes_[finding]; }
  bool is_named(uint32_t process) const { return named_[process]; }
  // By finding: row of Job::comms.
  std::optional<uint32_t> comm_of(size_t finding) const { return comms_[finding]; }
  std::optional<OperationKey> operation_of(size_t finding) const;
  // Of the global rank; kNoRow: none.
  uint32_t process_of_rank(int32_t rank) const;

 private:
  void find_span();
  void find_named();
  // As far as times tell; else it is of evidence that was only judged beside it.
  bool is_of_this_run(const analysis::Finding& finding) const;

  const verdict::DiagnosedRun& run_;
  const verdict::Evidence* main_ = nullptr;
  std::optional<int64_t> begin_ns_;
  int64_t length_ns_ = 0;
  bool has_one_clock_ = true;
  std::vector<int64_t> shifts_;  // by process: from its clock to its place
  std::vector<std::vector<uint32_t>> processes_;
  std::vector<std::optional<uint32_t>> comms_;
  std::vector<bool> named_;
  std::vector<std::pair<int32_t, uint32_t>> by_rank_;  // rank, process; ascending
};

// a - b and a + b, at the ends of the range where it does not fit: files may hold any times.
int64_t difference(int64_t a, int64_t b);
int64_t sum(int64_t a, int64_t b);
// Whole numbers for JSON: times that no clock gives become null.
Json whole_ns(double ns);
// Text from outside for a page: valid UTF-8 without control characters, at most kTextMost bytes.
inline constexpr size_t kTextMost = 1024;
std::string shown(std::string_view text);
// The same; null if it is empty.
Json shown_or_null(std::string_view text);
// {"missing": why}
Json missing(std::string why);
template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}
// "2026-01-31T12:00:00.123456789Z"
std::string iso_time(int64_t unix_ns);

}  // namespace lockstep::report
