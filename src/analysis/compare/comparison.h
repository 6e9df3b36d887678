// SPDX-License-Identifier: Apache-2.0
// Two runs beside each other: what is faster or slower in the second one, by how much, how sure, and since
// when.
//
// Lateness and exposed communication are often next to nothing, and a ratio to nothing says nothing. Theirs
// is of a step of run A with them, on top: (step + b) / (step + a). So 1.05 is what makes a step 5 % longer.
//
// A row is one figure of both runs. Its ratio is b / a of the typical step (estimate.h), with an interval
// that holds the true one in 95 of 100 cases. Of many rows some would stand out by chance: a row is called
// changed if it stands with no more than 5 % of the called ones being chance, and by at least kWorthAWord.
// docs/compare.md has all of it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/compare/estimate.h"
#include "analysis/compare/samples.h"

namespace lockstep::analysis::compare {

inline constexpr double kFalseShare = 0.05;
inline constexpr double kWorthAWord = 0.01;

enum class Metric : uint8_t { kStep, kBusbw, kDuration, kLateness, kExposed };
inline constexpr size_t kMetrics = 5;
std::string_view metric_name(Metric metric);  // "step", "busbw", "duration", "lateness", "exposed"

// What a row is of: each has one more of the names than the one before, but for ranks.
enum class Level : uint8_t { kJob, kFunc, kSize, kComm, kRank };

enum class Change : uint8_t { kNone, kBetter, kWorse, kCannotTell };

struct Since {
  bool by_operations = false;                   // `step` counts the operations of the class
  bool from_begin = false;                      // or so early that nothing was before it; else:
  int64_t step = 0, begin_ns = 0;               // the first step of it; on its host's clock
  std::optional<int64_t> until_step, until_ns;  // as good as before from then on
  std::optional<Ratio> ratio;                   // of the steps of it alone; nothing where they are too few
};

struct Row {
  Metric metric = Metric::kStep;
  Level level = Level::kJob;
  std::string func{};
  uint64_t size_from = 0, size_to = 0;  // kSize, kComm: bytes, the end exclusive
  std::string comm{};
  int32_t rank = -1;
  std::string time{};  // how both runs took the times; empty: the hosts' clocks
  size_t classes = 1;  // that are added up in it; of one, the row of that class says the same
  uint64_t ops_a = 0, ops_b = 0;
  size_t steps_a = 0, steps_b = 0;  // that have it
  // Typical: GB/s, or ns of an operation or step; 0 unknown, and of several classes together, which have no
  // figure of their own.
  double a = 0, b = 0;
  std::optional<Ratio> ratio{};  // nothing: cannot tell
  Change change = Change::kCannotTell;
  std::string reason{};  // why it cannot be determined, or what else is different
  // What the change adds to a step of one rank; < 0: what it saves. Of several classes: on average of the
  // ranks that have any.
  double cost_ns = 0;
  std::optional<Since> since{};  // of what got worse
  // Whether a larger ratio is good.
  bool more_is_better() const { return metric == Metric::kBusbw; }
};

struct Comparison {
  // What changed first, then what did not, then what cannot be known; of each the steps, then sums before
  // their parts, and what costs most, with durations behind the rest, as they hold the waiting for whatever
  // else is slower.
  std::vector<Row> rows;
  std::vector<std::string> notes;  // what does not compare, and why: sentences
  Samples::Steps steps_by_a = Samples::Steps::kNone, steps_by_b = Samples::Steps::kNone;
  size_t steps_in_block_b = 1;
  double step_ns = 0;      // typical of a; 0 unknown
  int64_t begin_ns_b = 0;  // its first record
  size_t tested = 0;       // rows that took part in the count of chances

  // The row of a level up to kSize; nullptr if neither run has it. `func` in any spelling; `bucket`: of
  // ClassKey.
  const Row* find(Metric metric, Level level, std::string_view func, uint64_t size) const;
};
Comparison compare(const Samples& a, const Samples& b);

// "allreduce" for "AllReduce", "all_reduce": functions however people write them.
std::string plain_func(std::string_view func);

}  // namespace lockstep::analysis::compare
