// SPDX-License-Identifier: Apache-2.0
// Sums the GPU time between sends and receives up to the next collective, with a lower and an upper bound.
// Ranks with the same neighbours in every pipeline are one stage, recognised by a hash of their sends and
// receives. Only ranks of one stage do comparable work.
#include "analysis/straggler/lateness/compute_segments.h"

#include <algorithm>
#include <limits>

#include "analysis/straggler/lateness/ends.h"

namespace lockstep::analysis::straggler {
namespace {

using model::Job;
using model::Lane;
using model::Member;

class Segments {
 public:
  Segments(const Job& job, const model::JobProcess& process, const std::vector<int64_t>& ends,
           ExclusiveTimes& times)
      : times_(times), ends_(ends), part_(ends.size(), Part::kCollective), member_(ends.size()) {
    for (uint32_t row : process.members) {
      std::fill_n(member_.begin() + job.members[row].first, job.members[row].ops, row);
      for (const Lane& lane : job.members[row].lanes)
        std::fill_n(part_.begin() + lane.first, lane.ops, lane.is_send ? Part::kSend : Part::kReceive);
    }
    times.least_segments.assign(ends.size(), 0);
    times.most_segments.assign(ends.size(), 0);
    times.beside_segments.assign(ends.size(), 0);
  }

  // In the order of the calls.
  void follow(uint32_t op, bool timed) {
    if (part_[op] == Part::kCollective)
      end_sum(op);
    else
      add_segment(op, timed);
    latest_ = std::max(latest_, times_.arrival[op]);
    const int64_t end = known_end(ends_[op], times_.arrival[op]);
    if (part_[op] == Part::kCollective)
      begin_sum(op, end);
    else if (part_[op] == Part::kReceive)
      gates_.add(end);
  }

 private:
  enum class Part : uint8_t { kCollective, kSend, kReceive };

  void end_sum(uint32_t op) {
    times_.least_segments[op] = static_cast<float>(least_);
    times_.most_segments[op] = known_ ? static_cast<float>(most_) : std::numeric_limits<float>::infinity();
    if (before_ != kNone && member_[before_] == member_[op])
      times_.beside_segments[op] = static_cast<float>(beside_);
    least_ = most_ = beside_ = 0;
    known_ = true;
  }

  void begin_sum(uint32_t op, int64_t end) {
    if (before_ != kNone) gates_.add(end_before_);
    before_ = op;
    end_before_ = end;
  }

  // What leads up to an operation that was called before, and arrived after, is in its segment already.
  void add_segment(uint32_t op, bool timed) {
    const int64_t arrival = times_.arrival[op];
    int64_t left = std::max(gates_.latest_until(arrival), latest_pair_);
    if (before_ != kNone && end_before_ <= arrival && end_before_ > left) {
      beside_ += end_before_ - std::max(left, times_.arrival[before_]);
      left = end_before_;
    }
    known_ = known_ && timed && left != 0;
    most_ += std::max<int64_t>(arrival - left, 0);
    latest_pair_ = std::max(latest_pair_, arrival);
    if (timed) least_ += std::clamp<int64_t>(arrival - latest_, 0, static_cast<int64_t>(times_.gpu_own[op]));
  }

  ExclusiveTimes& times_;
  const std::vector<int64_t>& ends_;
  static constexpr uint32_t kNone = UINT32_MAX;
  std::vector<Part> part_;
  std::vector<uint32_t> member_;               // of collectives
  Ends gates_;                                 // of receives and collectives, without the one before
  uint32_t before_ = kNone;                    // the collective before
  int64_t end_before_ = 0;                     // its end
  int64_t latest_ = 0, latest_pair_ = 0;       // arrivals: of all, and of sends and receives
  int64_t least_ = 0, most_ = 0, beside_ = 0;  // since the last collective
  bool known_ = true;                          // `most_` is
};

// The order of the communicators does not matter.
uint64_t stage_of(const Job& job, const model::JobProcess& process) {
  uint64_t stage = 0;
  for (uint32_t row : process.members) {
    const Member& member = job.members[row];
    if (member.lanes.empty()) continue;
    uint64_t hash = 0;
    auto mix = [&hash](uint64_t value) { hash = (hash ^ value) * 0x9e3779b97f4a7c15u, hash ^= hash >> 32; };
    const size_t ranks = job.comms[member.comm].members.size();
    mix(ranks + 1);
    if (!exchanges_with_all(job, member)) {
      mix(static_cast<uint32_t>(member.rank));
      for (const Lane& lane : member.lanes)
        mix(uint64_t{static_cast<uint32_t>(lane.peer)} << 1 | uint64_t{lane.is_send});
    }
    stage += hash | 1;
  }
  return stage;
}

}  // namespace

bool exchanges_with_all(const Job& job, const Member& member) {
  return member.lanes.size() == 2 * job.comms[member.comm].members.size();
}

void add_compute_segments(const Job& job, const model::JobProcess& process, const std::vector<int64_t>& ends,
                          ExclusiveTimes& times) {
  times.stage = stage_of(job, process);
  if (times.stage == 0) return;
  Segments segments(job, process, ends, times);
  for (uint32_t op : times.order) segments.follow(op, process.ops.gpu_start_ns[op] != 0);
}

}  // namespace lockstep::analysis::straggler
