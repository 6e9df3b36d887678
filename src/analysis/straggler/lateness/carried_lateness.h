// SPDX-License-Identifier: Apache-2.0
// What a communicator's past says of each place of its repeating program.
//
// How much of a member's lateness it brings along from the operation before. Work that an operation holds up
// starts over with it: all members leave it together, and who is late at the next is late anew. Work that
// overlaps with it does not: who is late stays late, and must be blamed for that once. Which of the two it is
// shows in the fluctuations from one round to the next, whoever is late on average. Those who waited longer
// come the sooner at the next operation, by as much as their work went on meanwhile; where all come as soon
// as the one before is through, that does not show, and a change of a member's lateness is held against the
// same change at the place before. But a rank that works more slowly for a while is late at both without
// bringing anything. A rank whose host launches when nothing is outstanding has waited for all: it brings
// nothing.
//
// How long a member usually takes from its arrival at the operation before, by GPU times, when it had not to
// wait there or elsewhere. Members that are far ahead enter an operation as soon as the one before is
// through; they no longer show how long that takes.
//
// Arrivals of GPUs and of hosts do not compare: where a run broke off, hosts had called what no GPU came to.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "analysis/straggler/lateness/exclusive_times.h"
#include "analysis/straggler/lateness/op_finder.h"
#include "analysis/straggler/lateness/units.h"
#include "model/job.h"

namespace lockstep::analysis::straggler {

// One member's operations on a communicator, by position after Member::first. ns; NaN where not compared.
struct MemberPast {
  uint32_t member = 0;  // of Job::members
  Column<float> lateness, waiting;
  // From the last arrival of all at the operation before to its own here, and its own time where that is
  // shorter.
  Column<float> since, interval;
};

// The change of a member's lateness from one round to the next: at an operation, and before it.
struct Change {
  float before, here;
};
// How much of a change before is still there; nothing if there are too few.
std::optional<float> carried_share(const std::vector<Change>& changes);

// Whether work goes on beside an operation, by GPU times: then, what its process calls next on another
// communicator comes the sooner after it, the longer it lasted. Which it does not show where it always lasts
// as long.
class BesideChanges {
 public:
  enum class Answer : uint8_t { kNo, kYes, kUnknown };
  // From one round to the next, ns. What is less than jitter does not count.
  void add(double longer, double sooner);
  // The line through the changes has the slope 1, or 0; unknown: it may be either.
  Answer answer() const;

 private:
  size_t count_ = 0;
  double longer_squares_ = 0, products_ = 0, sooner_squares_ = 0;
};

class CarriedLateness {
 public:
  // `times`: by process.
  CarriedLateness(const model::Job& job, const std::vector<ExclusiveTimes>& times,
                  const std::vector<MemberPast>& past);
  // Share of the lateness at `index` - 1 that is still there at `index`: 0 to 1. All of it where nothing
  // repeats.
  float share(uint32_t index) const {
    const auto at = rounds_.place(index);
    return at ? share_[*at] : 1;
  }
  // Whether hosts come to it as if they had waited for the operation before: nobody brings anything.
  bool starts_over(uint32_t index) const { return share(index) < kLeastShare; }
  // Whether work goes on beside the operation at `index` - 1.
  BesideChanges::Answer beside(uint32_t index) const {
    const auto at = rounds_.place(index);
    return at ? beside_[*at].answer() : BesideChanges::Answer::kUnknown;
  }
  // Infinite: nobody shows it.
  float interval(uint32_t index) const {
    const auto at = rounds_.place(index);
    return at ? interval_[*at] : std::numeric_limits<float>::infinity();
  }
  const Rounds& rounds() const { return rounds_; }

  static constexpr float kLeastShare = 0.25f;

 private:
  // Of one place.
  struct Sample {
    std::vector<Change> lateness, waits;
    std::vector<float> intervals;  // of members, what each of them usually has
  };
  using Samples = std::vector<Sample>;
  void look_beside(const OpFinder& finder, const ExclusiveTimes& own, const model::JobOps& ops);
  // Adds those of a member at the places from `place` on.
  void collect(size_t place, const OpFinder& finder, const model::Job& job, const MemberPast& past,
               Samples& samples) const;
  // From one round to the next, of the member's operations at these positions.
  static void add_changes(const MemberPast& past, size_t now, size_t then, Sample& sample);
  float share_of(const Sample& sample) const;

  Rounds rounds_;
  // By place in a round.
  std::vector<float> share_, interval_;
  std::vector<BesideChanges> beside_;
};

}  // namespace lockstep::analysis::straggler
