// SPDX-License-Identifier: Apache-2.0
// Names who broke the order when ranks wait for each other in a circle. Each rank of the circle is asked
// whether it had called these two operations in this order before. If one has changed its order, it is blamed
// and those who kept theirs are not. If nobody's habit is known, all are named: from the circle alone every
// link looks equally guilty.
#include <algorithm>
#include <set>

#include "analysis/hang/calls/call_order.h"
#include "analysis/hang/finding_builder.h"
#include "analysis/hang/verdicts.h"

namespace lockstep::analysis::hang {
namespace {

constexpr size_t kMostLinks = 4;  // named in the statement

class CycleVerdict {
 public:
  CycleVerdict(const JobState& job_state, const std::vector<Block>& blocks, const Cycle& cycle)
      : job_state_(job_state), blocks_(blocks), cycle_(cycle), builder_(job_state) {
    for (size_t i = 0; i < cycle.actors.size(); ++i) habits_.push_back(habit(i));
  }

  Finding finding() const {
    const Block* longest = &waits(0);
    std::set<uint32_t> comms;
    bool pairs = true;
    for (size_t i = 0; i < cycle_.actors.size(); ++i) {
      if (waits(i).waited_ns > longest->waited_ns) longest = &waits(i);
      comms.insert(waits(i).comm);
      pairs = pairs && waits(i).pair;
    }
    const std::vector<uint32_t> all = with([](CallOrder::Habit) { return true; });
    const std::vector<uint32_t> named = blamed();
    Finding finding = builder_.make(comms.size() > 1 ? FindingId::kCrossCommDeadlock
                                    : pairs          ? FindingId::kCrossCommDeadlockSendReceive
                                                     : FindingId::kCrossCommDeadlockOneComm,
                                    *longest, named, cycle_.waiting + all.size());
    const std::string broken = broken_order();
    finding.statement = broken + builder_.list(all) + " wait for each other";
    // Whose order is broken names the operations already; the evidence has the links in any case.
    const size_t stated = broken.empty() ? std::min(kMostLinks, all.size()) : 0;
    for (size_t i = 0; i < all.size(); ++i) {
      const std::string link = builder_.list({cycle_.actors[i]}) + " in " + builder_.operation(waits(i)) +
                               " for " + builder_.list({cycle_.actors[(i + 1) % all.size()]});
      finding.evidence.push_back(link);
      if (i < stated) finding.statement += (i == 0 ? ": " : ", ") + link;
    }
    if (stated > 0 && stated < all.size()) finding.statement += ", and so on";
    const std::vector<uint32_t> kept =
        with([](CallOrder::Habit of) { return of == CallOrder::Habit::kKept; });
    if (!kept.empty()) finding.evidence.push_back("kept the order of earlier calls: " + builder_.list(kept));
    finding.advice =
        comms.size() > 1 ? kOneOrder : "Put sends and receives that belong together into one group.";
    return finding;
  }

 private:
  // Where the i-th waits, and where the one before waits for it.
  const Block& waits(size_t i) const { return blocks_[cycle_.blocks[i]]; }
  const Block& holds(size_t i) const { return waits(i == 0 ? cycle_.blocks.size() - 1 : i - 1); }

  CallOrder::Habit habit(size_t i) const {
    const uint32_t actor = cycle_.actors[i];
    const auto at = [&](const std::vector<uint32_t>& actors, const std::vector<int64_t>& times) {
      return times[static_cast<size_t>(std::lower_bound(actors.begin(), actors.end(), actor) -
                                       actors.begin())];
    };
    const Block &in = waits(i), &of = holds(i);
    return CallOrder(job_state_, actor)
        .habit({in.comm, at(in.waiting, in.waiting_ns), in.pair},
               {of.comm, at(of.missing, of.missing_ns), of.pair});
  }

  template <class Test>
  std::vector<uint32_t> with(Test&& test) const {
    std::vector<uint32_t> actors;
    for (size_t i = 0; i < habits_.size(); ++i) {
      if (test(habits_[i])) actors.push_back(cycle_.actors[i]);
    }
    std::sort(actors.begin(), actors.end());
    return actors;
  }

  // What ranks did as ever had gone well before: where one has changed its order, those who kept theirs are
  // not at fault.
  std::vector<uint32_t> blamed() const {
    const bool is_known =
        std::find(habits_.begin(), habits_.end(), CallOrder::Habit::kBroken) != habits_.end();
    return with([&](CallOrder::Habit of) { return !is_known || of != CallOrder::Habit::kKept; });
  }

  std::string broken_order() const {
    std::string text;
    for (size_t i = 0; i < habits_.size(); ++i) {
      if (habits_[i] != CallOrder::Habit::kBroken) continue;
      text += builder_.who(cycle_.actors[i]) + " reached " + builder_.operation(waits(i)) + " before " +
              builder_.operation(holds(i)) + ", reversing its earlier order; ";
    }
    return text;
  }

  const JobState& job_state_;
  const std::vector<Block>& blocks_;
  const Cycle& cycle_;
  FindingBuilder builder_;
  std::vector<CallOrder::Habit> habits_;  // of Cycle::actors
};

}  // namespace

Finding cycle_verdict(const JobState& job_state, const std::vector<Block>& blocks, const Cycle& cycle) {
  return CycleVerdict(job_state, blocks, cycle).finding();
}

}  // namespace lockstep::analysis::hang
