// SPDX-License-Identifier: Apache-2.0
// Lists where in the program the ranks of a block are: one line for each function and place, waiting ranks
// first. Only inputs with stack frames, such as Flight Recorder dumps, know places. Sends and receives are
// placed by the newest call, because the index of a pair's block counts transfers of another pair.
#include "analysis/hang/calls/call_places.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/text/wording.h"

namespace lockstep::analysis::hang {
namespace {

constexpr size_t kMostLines = 6;

// Those who wait, then those who are waited for.
using Key = std::tuple<bool, model::StringId, model::StringId>;  // waits, function, place

class Places {
 public:
  explicit Places(const JobState& job_state) : job_state_(job_state), job_(job_state.job()) {}

  void add(uint32_t actor, bool waits, const Block& block) {
    const model::JobProcess& process = job_.processes[job_state_.actor(actor).process];
    if (process.ops.place.empty() || job_state_.actor(actor).rank < 0) return;
    std::optional<uint32_t> op;
    if (waits) op = in_block(actor, process, block);
    if (!op) op = newest(actor, process);
    if (!op || process.ops.place_of(*op) == 0) return;
    const model::Signature& signature = job_.signatures[process.ops.signature[*op]];
    ranks_[{!waits, signature.func, process.ops.place_of(*op)}].push_back(job_state_.actor(actor).rank);
  }

  void list(std::vector<std::string>& lines) {
    size_t listed = 0;
    for (auto& [key, ranks] : ranks_) {
      if (listed++ == kMostLines) {
        lines.push_back("other ranks are at " + wording::count(ranks_.size() - kMostLines, "further place"));
        return;
      }
      std::sort(ranks.begin(), ranks.end());
      const auto& [is_missing, func, place] = key;
      const std::string who = wording::ranks(ranks);
      lines.push_back((is_missing ? "the last call of " + who + " was "
                                  : who + (ranks.size() == 1 ? " is in " : " are in ")) +
                      std::string(job_.text(func)) + " at " + std::string(job_.text(place)));
    }
  }

 private:
  std::optional<uint32_t> in_block(uint32_t actor, const model::JobProcess& process,
                                   const Block& block) const {
    // Its index counts the transfers between two ranks and names no collective.
    if (block.kind == Block::Kind::kPair) return std::nullopt;
    for (const uint32_t row : process.members) {
      const model::Member& member = job_.members[row];
      if (member.comm == block.comm && job_state_.actor_of(row) == actor)
        return job_.op_at(member, block.index);
    }
    return std::nullopt;
  }

  std::optional<uint32_t> newest(uint32_t actor, const model::JobProcess& process) const {
    std::optional<uint32_t> newest;
    const auto look = [&](uint32_t first, uint32_t ops) {
      if (ops == 0) return;
      const uint32_t op = first + ops - 1;
      if (!newest || process.ops.entered_ns(op) > process.ops.entered_ns(*newest)) newest = op;
    };
    for (const uint32_t row : process.members) {
      const model::Member& member = job_.members[row];
      if (job_state_.actor_of(row) != actor) continue;
      look(member.first, member.ops);
      for (const model::Lane& lane : member.lanes) look(lane.first, lane.ops);
    }
    return newest;
  }

  const JobState& job_state_;
  const model::Job& job_;
  std::map<Key, std::vector<int32_t>> ranks_;
};

}  // namespace

void add_places(const JobState& job_state, const Block& block, std::vector<std::string>& lines) {
  Places places(job_state);
  for (const uint32_t actor : block.waiting) places.add(actor, true, block);
  for (const uint32_t actor : block.missing) places.add(actor, false, block);
  places.list(lines);
}

}  // namespace lockstep::analysis::hang
