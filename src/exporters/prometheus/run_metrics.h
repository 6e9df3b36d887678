// SPDX-License-Identifier: Apache-2.0
// What the exporter reports of a run, kept from look to look: counters that only grow for as long as their
// labels are there (label_slots.h), also when a process file disappears or is read again, and gauges of the
// last look. Bounded by the limits and by kMostGone. One thread; times in seconds, sizes in bytes.
#pragma once
#include <array>
#include <compare>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "exporters/prometheus/label_slots.h"
#include "live/lateness.h"
#include "live/live_run.h"
#include "live/rank_rows.h"
#include "readers/native/tail/live_tally.h"

namespace lockstep::exporters::metrics {

struct Limits {
  size_t ranks = 64, comms = 16;
};

class RunMetrics {
 public:
  static constexpr size_t kMostFunctions = 24, kMostGone = 1024;

  explicit RunMetrics(const Limits& limits)
      : ranks_(limits.ranks), comms_(limits.comms), functions_(kMostFunctions) {}

  // Takes in what a LiveRun with Depth::kAll has seen, and what a RankWatch makes of it.
  void look(const std::vector<live::SeenProcess>& processes, const live::RankRows& rows);
  // What the next looks compare beginnings on several hosts by.
  void set_clocks(const live::Clocks& clocks) { lateness_.set_clocks(clocks); }
  // The run cannot be seen now: gauges end, counters stay.
  void look_in_vain();

  struct OpKey {
    uint16_t rank = 0, comm = 0, func = 0;
    auto operator<=>(const OpKey&) const = default;
  };
  struct OpCounts {
    double ops = 0, bytes = 0;
  };
  struct GpuKey {
    uint16_t comm = 0, func = 0;
    uint8_t source = 0, size = 0;
    auto operator<=>(const GpuKey&) const = default;
  };
  struct MemberKey {
    uint16_t rank = 0, comm = 0;
    auto operator<=>(const MemberKey&) const = default;
  };
  struct MemberCounts {
    double late_s = 0, wait_s = 0;
  };
  struct RankState {
    std::string host;
    bool up = false;
    double behind = 0, behind_s = 0, in_flight = 0;
  };
  struct LossKey {
    uint16_t rank = 0;
    uint8_t kind = 0;  // of losses.def
    auto operator<=>(const LossKey&) const = default;
  };

  const LabelSlots& ranks() const { return ranks_; }
  const LabelSlots& comms() const { return comms_; }
  const LabelSlots& functions() const { return functions_; }
  // The labels `rank` and `job_id` of a place.
  std::pair<std::string, std::string> rank_labels(uint16_t slot) const;

  const std::map<OpKey, OpCounts>& operations() const { return operations_; }
  const std::map<uint16_t, readers::native::SecondsHistogram>& calls() const { return calls_; }
  const std::map<GpuKey, readers::native::SecondsHistogram>& gpu() const { return gpu_; }
  const std::map<GpuKey, readers::native::BandwidthHistogram>& bandwidth() const { return bandwidth_; }
  const std::map<MemberKey, MemberCounts>& members() const { return members_; }
  const std::map<uint16_t, double>& matched() const { return matched_; }
  const std::map<LossKey, double>& losses() const { return losses_; }
  const std::map<uint16_t, double>& passed_over() const { return passed_over_; }
  // Gauges of the last look.
  const std::map<uint16_t, RankState>& rank_states() const { return rank_states_; }
  const std::map<MemberKey, double>& in_flight_age() const { return in_flight_age_; }
  const std::array<size_t, live::kHealths>& states() const { return states_; }  // by live::Health
  double lag_s() const { return lag_s_; }
  bool present() const { return present_; }
  size_t unaligned_comms() const { return lateness_.unaligned_comms(); }

 private:
  // What of a file has been counted already.
  struct Sums {
    readers::native::LiveCounts counts;
    double ops = 0,
           bytes = 0;  // the most there have been: calls and tasks of an operation may differ in bytes
  };
  struct Counted {
    std::map<readers::native::LiveTally::Key, Sums> functions;
    std::array<uint64_t, format::kAllLossKinds> losses{};
    uint64_t passed_over = 0;
    bool seen = false, gone = false;  // in this look; among gone_
  };
  void assign_slots(const std::vector<live::SeenProcess>& processes, const live::RankRows& rows);
  void count(const live::SeenProcess& process, uint16_t rank);
  void count(const live::SeenFile& file, uint16_t rank, Counted& before);
  void count_times(uint16_t comm, uint16_t func, const readers::native::LiveCounts& now,
                   const readers::native::LiveCounts& before);
  void compare_beginnings(const std::vector<live::SeenProcess>& processes);
  void note_state(const live::SeenProcess& process, const live::RankRow& row, uint16_t rank);
  void forget_rank(uint16_t slot);
  void forget_comm(uint16_t slot);
  void forget_function(uint16_t slot);
  void forget_gone();

  LabelSlots ranks_, comms_, functions_;
  std::map<std::string, Counted> counted_;  // by path
  std::deque<std::string> gone_;            // paths that are there no more, the first one first
  std::map<OpKey, OpCounts> operations_;
  std::map<uint16_t, readers::native::SecondsHistogram> calls_;  // by function
  std::map<GpuKey, readers::native::SecondsHistogram> gpu_;
  std::map<GpuKey, readers::native::BandwidthHistogram> bandwidth_;
  std::map<MemberKey, MemberCounts> members_;
  std::map<uint16_t, double> matched_;  // by communicator
  std::map<LossKey, double> losses_;
  std::map<uint16_t, double> passed_over_;
  std::map<uint16_t, RankState> rank_states_;
  std::map<MemberKey, double> in_flight_age_;
  std::array<size_t, live::kHealths> states_{};
  double lag_s_ = 0;
  bool present_ = false;
  live::Lateness lateness_;
};

}  // namespace lockstep::exporters::metrics
