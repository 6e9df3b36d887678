// SPDX-License-Identifier: Apache-2.0
// Walks from the waiting ranks to those that wait for nobody. A rank that holds up several operations is
// blamed at the first one that it would have reached, found from the order of its earlier calls: the other
// blocks follow from that one. Where the rank's own order is unknown, the ranks that wait decide by majority.
// Cycles are looked for along the oldest wait of each rank first, because the cycle that those waits close is
// the deadlock, and later ones follow from it.
//
// The walk is iterative and visits every rank and block once. A job of 10,000 ranks must neither overflow the
// stack nor take time that grows with its square.
#include "analysis/hang/wait_graph.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>

#include "analysis/hang/calls/call_order.h"

namespace lockstep::analysis::hang {
namespace {

constexpr size_t kMostStarts = 16;    // of a cycle, from which a shorter one is looked for
constexpr size_t kMostCompared = 64;  // blocks that one rank holds up
constexpr size_t kMostVoters = 4096;  // ranks that tell which of two operations comes first

class Graph {
 public:
  Graph(const JobState& job_state, const std::vector<Block>& blocks)
      : job_state_(job_state),
        blocks_(blocks),
        actors_(job_state.actors().size()),
        out_(actors_),
        held_(actors_) {
    different_.resize(actors_);
    for (uint32_t b = 0; b < blocks.size(); ++b) {
      for (uint32_t actor : blocks[b].waiting) out_[actor].push_back(b);
      for (uint32_t actor : blocks[b].missing) held_[actor].push_back(b);
      if (blocks[b].kind != Block::Kind::kMismatch) continue;
      for (uint32_t actor : blocks[b].missing) different_[actor] = true;
    }
  }

  Culprits find() {
    find_roots();
    find_cycles();
    doubt_cycles();
    // A silent operation with ranks that left no file is the answer only where there is no better one.
    auto silent = [this](const Root& root) {
      return root.kind == Root::Kind::kAbsent && blocks_[root.block].kind == Block::Kind::kSilent;
    };
    if (!culprits_.cycles.empty() || !std::all_of(culprits_.roots.begin(), culprits_.roots.end(), silent))
      std::erase_if(culprits_.roots, silent);
    // Where the ring kept too little of sends and receives to follow them, a rank that stands in one waits
    // for somebody.
    auto follows = [this](const Root& root) {
      return root.kind == Root::Kind::kStuck && !root.actors.empty() &&
             std::all_of(root.actors.begin(), root.actors.end(),
                         [this](uint32_t actor) { return stands_in_unordered(actor); });
    };
    if (!culprits_.cycles.empty() || !std::all_of(culprits_.roots.begin(), culprits_.roots.end(), follows))
      std::erase_if(culprits_.roots, follows);
    // So is a kernel that has ended on other members and seems to run on: its end may be lost, and nobody
    // waits for it.
    auto alone = [this](const Root& root) { return runs_alone(root); };
    if (!culprits_.cycles.empty() || !std::all_of(culprits_.roots.begin(), culprits_.roots.end(), alone))
      std::erase_if(culprits_.roots, alone);
    // Whom records with gaps leave possible is the answer only where whole records prove nobody.
    auto unknown = [](const Root& root) { return root.kind == Root::Kind::kUnknown; };
    if (!culprits_.cycles.empty() || !std::all_of(culprits_.roots.begin(), culprits_.roots.end(), unknown))
      std::erase_if(culprits_.roots, unknown);
    return std::move(culprits_);
  }

 private:
  bool gone(uint32_t actor) const {
    Fate fate = job_state_.actor(actor).fate;
    return fate == Fate::kDead || fate == Fate::kUnreachable || fate == Fate::kStopped;
  }
  // Its record does not prove that it holds anybody up.
  bool is_unknown(uint32_t actor) const {
    const uint32_t process = job_state_.actor(actor).process;
    if (job_state_.torn(process) || job_state_.gap(process).unproven) return true;
    const auto& members = job_state_.job().processes[process].members;
    const bool unordered = std::any_of(members.begin(), members.end(), [&](uint32_t row) {
      const model::Member& member = job_state_.job().members[row];
      return member.ops > 0 && member.alignment == model::Member::Alignment::kNone;
    });
    if (job_state_.gap(process).any() && unordered) return true;
    return std::all_of(held_[actor].begin(), held_[actor].end(),
                       [this](uint32_t b) { return blocks_[b].uncertain; });
  }
  // Where the way ends, whatever else the rank waits for.
  bool terminal(uint32_t actor) const { return gone(actor) || different_[actor] || !waits(actor); }
  bool waits(uint32_t actor) const {
    return std::any_of(out_[actor].begin(), out_[actor].end(),
                       [this](uint32_t b) { return holds(blocks_[b]); });
  }
  // A silent operation holds nobody for all we know, unless somebody in it is gone or was never seen.
  static bool holds(const Block& block) {
    return block.kind != Block::Kind::kSilent || !block.missing.empty() || !block.absent.empty();
  }

  void find_roots() {
    std::map<std::pair<uint32_t, Root::Kind>, Root> roots;  // by block
    auto add = [&](uint32_t block, Root::Kind kind) -> Root& {
      Root& root = roots[{block, kind}];
      root.kind = kind;
      root.block = block;
      return root;
    };
    for (uint32_t actor = 0; actor < actors_; ++actor) {
      // Ways end at these: somebody waits for them, and they wait for nobody.
      if (held_[actor].empty() || !terminal(actor)) continue;
      uint32_t block = first_held(actor);
      // The first that applies, from what explains most to what explains least. A record with gaps comes
      // before any claim that rests on counts.
      Root::Kind kind = different_[actor]                            ? Root::Kind::kDifferent
                        : gone(actor)                                ? Root::Kind::kGone
                        : is_unknown(actor)                          ? Root::Kind::kUnknown
                        : blocks_[block].kind == Block::Kind::kStuck ? Root::Kind::kStuck
                        : is_unseen(actor, blocks_[block])           ? Root::Kind::kUnseen
                                                                     : Root::Kind::kNotHere;
      add(block, kind).actors.push_back(actor);
    }
    for (uint32_t b = 0; b < blocks_.size(); ++b) {
      // Nobody who is in the run is missing here: it ends with ranks that left no file, or with the GPU or
      // network.
      if (!blocks_[b].missing.empty()) continue;
      if (!blocks_[b].absent.empty())
        add(b, Root::Kind::kAbsent);
      else if (blocks_[b].kind == Block::Kind::kStuck)
        add(b, Root::Kind::kStuck);
    }
    for (auto& [key, root] : roots) {
      root.waiting = reach_back(root.actors, root.block);
      culprits_.roots.push_back(std::move(root));
    }
  }

  bool runs_alone(const Root& root) const {
    const Block& block = blocks_[root.block];
    // All have begun it and nobody waits but in it: the operation runs, and nothing else is known.
    return root.kind == Root::Kind::kStuck && root.actors.empty() && !block.pair &&
           block.index < job_state_.begun(block.comm) && root.waiting == block.waiting.size();
  }

  // Its GPU runs a send or receive whose other end cannot be found.
  bool stands_in_unordered(uint32_t actor) const {
    const model::JobProcess& process = job_state_.job().processes[job_state_.actor(actor).process];
    return std::any_of(process.members.begin(), process.members.end(), [&](uint32_t row) {
      const model::Member& member = job_state_.job().members[row];
      return job_state_.actor_of(row) == actor && member.alignment != model::Member::Alignment::kFromStart &&
             std::any_of(member.lanes.begin(), member.lanes.end(), [&](const model::Lane& lane) {
               return progress(process.ops, lane.first, lane.ops).state == Progress::State::kRunning;
             });
    });
  }

  // It was not watched for so long that it would have come.
  bool is_unseen(uint32_t actor, const Block& block) const {
    const Actor& of = job_state_.actor(actor);
    // Its file may be late. It is unseen only if it was not watched for long enough after the others began to
    // wait.
    if (!of.stale || block.process == model::kNoRow) return false;
    const auto watched = job_state_.between(block.process, block.since_ns, of.process, of.end_ns);
    return !watched || *watched <= block.patience.suspicious_ns();
  }

  // Where the rank holds others up first; the other blocks follow from that one.
  uint32_t first_held(uint32_t actor) const {
    std::vector<uint32_t> held = held_[actor];
    if (held.size() == 1) return held.front();
    auto key = [this](uint32_t b) { return std::pair(Place::sort_of(blocks_[b]), -blocks_[b].waited_ns); };
    std::stable_sort(held.begin(), held.end(), [&](uint32_t a, uint32_t b) { return key(a) < key(b); });
    // Each is compared with each; the rest is of lower sort, or waits less.
    held.resize(std::min(held.size(), kMostCompared));
    std::optional<CallOrder> order;
    auto not_called = [this](uint32_t b) { return !blocks_[b].all_called(); };
    if (std::count_if(held.begin(), held.end(), not_called) > 1) order.emplace(job_state_, actor);
    std::vector<Place> places;
    for (uint32_t b : held) places.push_back(place(actor, b, order));
    auto follows = [&](size_t i) {
      for (size_t j = 0; j < held.size(); ++j) {
        if (j != i && before(held[j], places[j], held[i], places[i])) return true;
      }
      return false;
    };
    for (size_t i = 0; i < held.size(); ++i) {
      // The first that nothing comes before. With votes that go round in a circle there is none: the longest
      // wait stands.
      if (!follows(i)) return held[i];
    }
    return held.front();
  }

  // Where a block stands in what the rank does.
  struct Place {
    // Differing operations explain more than the wait that follows from them, what it has called comes before
    // what it has not, and what nothing is known of last.
    enum class Sort : uint8_t { kDiffers, kCalled, kNotCalled, kSilent } sort = Sort::kSilent;
    std::optional<int64_t> when{};  // called: at; not called: after so many calls

    static Sort sort_of(const Block& block) {
      if (block.kind == Block::Kind::kMismatch) return Sort::kDiffers;
      if (block.kind == Block::Kind::kSilent) return Sort::kSilent;
      return block.all_called() ? Sort::kCalled : Sort::kNotCalled;
    }
  };
  Place place(uint32_t actor, uint32_t b, const std::optional<CallOrder>& order) const {
    const Block& block = blocks_[b];
    Place place{.sort = Place::sort_of(block)};
    if (place.sort == Place::Sort::kNotCalled) {
      if (order) place.when = order->until(block.comm, block.kind == Block::Kind::kPair);
    } else if (place.sort != Place::Sort::kSilent) {
      auto at = std::lower_bound(block.missing.begin(), block.missing.end(), actor);
      int64_t called = block.missing_ns[static_cast<size_t>(at - block.missing.begin())];
      if (called != 0) place.when = called;
    }
    return place;
  }

  bool before(uint32_t a, const Place& at, uint32_t b, const Place& then) const {
    if (at.sort != then.sort) return at.sort < then.sort;
    if (at.when && then.when && *at.when != *then.when) return *at.when < *then.when;
    return votes(blocks_[a], blocks_[b]) > votes(blocks_[b], blocks_[a]);
  }

  // Ranks that wait in `first` and called `second` later, or have not joined it: they do what the one does
  // that they wait for.
  static size_t votes(const Block& first, const Block& second) {
    // What a rank did first, it holds to be first; one that waits only in the first and is missed in the
    // second agrees with it by not having come.
    size_t votes = 0;
    for (size_t i = 0; i < std::min(first.waiting.size(), kMostVoters); ++i) {
      uint32_t actor = first.waiting[i];
      auto at = std::lower_bound(second.waiting.begin(), second.waiting.end(), actor);
      if (at != second.waiting.end() && *at == actor) {
        int64_t entered = second.waiting_ns[static_cast<size_t>(at - second.waiting.begin())];
        votes += first.waiting_ns[i] != 0 && entered != 0 && first.waiting_ns[i] < entered;
      } else {
        votes += std::binary_search(second.missing.begin(), second.missing.end(), actor);
      }
    }
    return votes;
  }

  // How many ranks wait for these, directly or through others.
  size_t reach_back(const std::vector<uint32_t>& from, uint32_t block) const {
    // Backwards along both kinds of edges; each is taken once, so a cycle ends the walk, too.
    std::vector<bool> seen(actors_), visited(blocks_.size());
    std::vector<uint32_t> queue{block};
    visited[block] = true;
    for (uint32_t actor : from) {
      seen[actor] = true;
      push_blocks(actor, visited, queue);
    }
    size_t waiting = 0;
    while (!queue.empty()) {
      uint32_t b = queue.back();
      queue.pop_back();
      for (uint32_t actor : blocks_[b].waiting) {
        if (seen[actor]) continue;
        seen[actor] = true;
        ++waiting;
        push_blocks(actor, visited, queue);
      }
    }
    return waiting;
  }
  void push_blocks(uint32_t actor, std::vector<bool>& visited, std::vector<uint32_t>& queue) const {
    for (uint32_t b : held_[actor]) {
      if (!visited[b]) queue.push_back(b);
      visited[b] = true;
    }
  }

  // Every way from a rank that is not terminal leads to a root or into a cycle: walk, and see what comes
  // again. Actors and blocks are both nodes, so that each is left once. One cycle of a knot is enough.
  //
  // What a rank called first holds it first: a cycle of such waits is the deadlock, and others, which are
  // closed by what it called later, follow from it.
  void find_cycles() {
    keep_oldest();
    find_cycles_in_ways();
    if (!culprits_.cycles.empty()) return;
    ways_ = out_;
    find_cycles_in_ways();
  }

  void keep_oldest() {
    ways_ = out_;
    for (uint32_t actor = 0; actor < actors_; ++actor) {
      const auto called = [&](uint32_t b) {
        const Block& block = blocks_[b];
        const auto at = std::lower_bound(block.waiting.begin(), block.waiting.end(), actor);
        const int64_t ns = block.waiting_ns[static_cast<size_t>(at - block.waiting.begin())];
        return ns == 0 ? INT64_MAX : ns;
      };
      // Where a rank has called several operations, it is held by the oldest that holds anybody.
      std::vector<uint32_t>& ways = ways_[actor];
      std::erase_if(ways, [this](uint32_t b) { return !holds(blocks_[b]); });
      const auto oldest = std::min_element(ways.begin(), ways.end(),
                                           [&](uint32_t a, uint32_t b) { return called(a) < called(b); });
      if (oldest != ways.end()) ways = {*oldest};
    }
  }

  void find_cycles_in_ways() {
    enum : uint8_t { kNew, kOnWay, kDone };
    std::vector<uint8_t> state(actors_ + blocks_.size(), kNew);
    struct Step {
      size_t node;
      size_t next = 0;
    };
    for (size_t start = 0; start < actors_; ++start) {
      if (state[start] != kNew) continue;
      std::vector<Step> way{{start}};
      state[start] = kOnWay;
      bool found = false;
      while (!way.empty()) {
        const std::vector<uint32_t>& ahead = leads_to(way.back().node);
        if (way.back().next == ahead.size()) {
          state[way.back().node] = kDone;
          way.pop_back();
          continue;
        }
        size_t next = ahead[way.back().next++] + (way.back().node < actors_ ? actors_ : 0);
        if (state[next] == kNew) {
          state[next] = kOnWay;
          way.push_back({next});
        } else if (state[next] == kOnWay && !found) {
          found = true;
          auto first =
              std::find_if(way.begin(), way.end(), [&](const Step& step) { return step.node == next; });
          std::vector<size_t> nodes;
          for (; first != way.end(); ++first) nodes.push_back(first->node);
          add_cycle(nodes);
        }
      }
    }
  }

  const std::vector<uint32_t>& leads_to(size_t node) const {
    static const std::vector<uint32_t> kNowhere;
    if (node >= actors_) return blocks_[node - actors_].missing;
    return terminal(static_cast<uint32_t>(node)) ? kNowhere : ways_[node];
  }

  // Of the cycles through these nodes the shortest says most.
  void add_cycle(const std::vector<size_t>& nodes) {
    std::vector<size_t> shortest = nodes;
    // A knot of many ranks has many cycles. A few starts suffice for a short one, and all would take the
    // square of its size.
    size_t tried = 0;
    for (size_t node : nodes) {
      if (node >= actors_ || ++tried > kMostStarts) continue;
      std::vector<size_t> cycle = shortest_through(node);
      if (!cycle.empty() && (cycle.size() < shortest.size() || shortest.front() >= actors_)) shortest = cycle;
    }
    Cycle cycle;
    for (size_t i = 0; i + 1 < shortest.size(); i += 2) {
      cycle.actors.push_back(static_cast<uint32_t>(shortest[i]));
      cycle.blocks.push_back(static_cast<uint32_t>(shortest[i + 1] - actors_));
    }
    cycle.waiting = reach_back(cycle.actors, cycle.blocks.front());
    culprits_.cycles.push_back(std::move(cycle));
  }

  // That a record with gaps lacks an operation does not prove that its rank waits elsewhere for want of it.
  void doubt_cycles() {
    auto has_gap = [this](uint32_t actor) { return job_state_.gap(job_state_.actor(actor).process).any(); };
    // Such a cycle becomes a question about the files of those with gaps.
    std::erase_if(culprits_.cycles, [&](const Cycle& cycle) {
      Root root;
      root.kind = Root::Kind::kUnknown;
      root.block = cycle.blocks.front();
      root.waiting = cycle.waiting;
      std::copy_if(cycle.actors.begin(), cycle.actors.end(), std::back_inserter(root.actors), has_gap);
      if (root.actors.empty()) return false;
      std::sort(root.actors.begin(), root.actors.end());
      culprits_.roots.push_back(std::move(root));
      return true;
    });
  }

  // Nodes from `start`, an actor, along the shortest way back to it; empty if there is none.
  std::vector<size_t> shortest_through(size_t start) const {
    constexpr size_t kNew = SIZE_MAX;
    std::vector<size_t> from(actors_ + blocks_.size(), kNew), queue{start};
    for (size_t i = 0; i < queue.size(); ++i) {
      size_t node = queue[i];
      for (uint32_t ahead : leads_to(node)) {
        size_t next = ahead + (node < actors_ ? actors_ : 0);
        if (from[next] != kNew) continue;
        from[next] = node;
        if (next != start) {
          queue.push_back(next);
          continue;
        }
        std::vector<size_t> way;
        for (size_t at = node; at != start; at = from[at]) way.push_back(at);
        way.push_back(start);
        std::reverse(way.begin(), way.end());
        return way;
      }
    }
    return {};
  }

  const JobState& job_state_;
  const std::vector<Block>& blocks_;
  size_t actors_;
  std::vector<std::vector<uint32_t>> out_, held_;  // by actor: where it waits, where it is waited for
  std::vector<std::vector<uint32_t>> ways_;        // of out_, those that cycles are looked for in
  std::vector<bool> different_;
  Culprits culprits_;
};

}  // namespace

Culprits find_culprits(const JobState& job_state, const std::vector<Block>& blocks) {
  return Graph(job_state, blocks).find();
}

}  // namespace lockstep::analysis::hang
