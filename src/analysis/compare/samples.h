// SPDX-License-Identifier: Apache-2.0
// What a run says of itself for a comparison: sums by step, small enough to keep two runs of any size beside
// each other. After it the job is not needed any more.
//
// Every process counts its own steps (analysis/straggler/lateness/steps.h), so no clocks are compared. The
// first steps warm up and the last may be cut: they are left out. Where the program does not repeat most of
// what it does, as a benchmark that goes through sizes, each operation of a class is a step of that class,
// and only classes compare. Runs of more than kMostBlocks steps are summed by blocks of several.
#pragma once
#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/column_memory.h"
#include "model/job.h"

namespace lockstep::analysis::compare {

inline constexpr size_t kMostBlocks = 2048;
inline constexpr size_t kMostClasses = 8192;  // more are a damaged file's
inline constexpr size_t kWarmUpSteps = 2;

// By block of steps: sums of a time in ns, and of what it is divided by. A block of a long run adds up
// millions of operations: a float's rounding would be percents of it.
struct Series {
  Column<double> sums, units;
  void add(size_t block, double sum, double unit);
};

// How a time was taken. Times of different kinds do not compare.
inline constexpr uint8_t kCallToEnd = 255;   // else a model::GpuTimeSource
std::string_view time_text(uint8_t source);  // "Cupti", "call to end"

struct ClassKey {
  std::string func;
  int bucket = 0;     // bits of the size: [2^(bucket-1), 2^bucket) bytes
  uint32_t comm = 0;  // of Samples::comms
  uint8_t source = 0;
  auto operator<=>(const ClassKey&) const = default;
};
struct ClassSamples {
  Series series;
  uint64_t ops = 0;
  double bytes = 0;                  // of them
  double factor = 1;                 // busbw = bytes / ns * factor
  std::set<std::string> algorithms;  // "RING SIMPLE"
};
using Classes = std::map<ClassKey, ClassSamples>;

struct CommSamples {
  std::string name, label;       // label: its name, else its ranks, else its id
  std::vector<int32_t> members;  // global ranks, ascending; empty: not all known
  std::set<uint32_t> processes;  // rows of those of its ranks that the run has
  int32_t ranks = -1;
  int64_t first_ns = 0;  // created
};

struct Samples {
  enum class Steps : uint8_t { kNone, kMarks, kPeriod, kOperations } steps_by = Steps::kNone;
  struct Block {
    // Of its first step: as the program or the count calls it, on its host's clock. By operations: the number
    // within its class, and no time.
    int64_t number = 0, begin_ns = 0;
  };
  std::vector<Block> blocks;  // of the process with the most steps
  size_t steps_in_block = 1;
  int64_t begin_ns = 0;  // the first record; 0 none
  uint32_t processes = 0, unranked = 0;
  bool is_amd = false;  // any GPU is AMD's
  std::set<int32_t> ranks;
  std::vector<CommSamples> comms;
  Classes moving;         // sums: the part in which all were there; units: bytes
  Classes durations;      // sums: of a rank, with its waiting; units: operations
  uint64_t left_out = 0;  // operations of further classes
  Series step;            // units: steps
  std::map<std::pair<int32_t, uint8_t>, Series> communicating;  // by rank and kind of time; units: steps
  std::map<int32_t, Series> late;     // by rank: time that it is to blame for; units: steps
  std::map<int32_t, Series> exposed;  // by rank; units: steps
};
// The job is matched and its clocks are aligned. Cost is linear in operations.
Samples take(const model::Job& job);

}  // namespace lockstep::analysis::compare
