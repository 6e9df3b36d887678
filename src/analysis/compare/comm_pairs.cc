// SPDX-License-Identifier: Apache-2.0
// Pairs the communicators of two runs, from the most certain to the least: by name and members, by members
// alone, by name and size, by name alone. The last two apply only where the key is unique in both runs.
// NCCL's ids cannot be used, as they differ from run to run.
#include "analysis/compare/comm_pairs.h"

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <tuple>

namespace lockstep::analysis::compare {
namespace {

// What a communicator is known by; an empty text: it is not.
using Key = std::tuple<std::string, int32_t, std::vector<int32_t>>;
using MakeKey = std::function<Key(const CommSamples&)>;
using Groups = std::map<Key, std::vector<uint32_t>>;

class Pairer {
 public:
  Pairer(std::span<const CommSamples> a, std::span<const CommSamples> b)
      : a_(a), b_(b), a_done_(a.size()), b_done_(b.size()) {}

  // The first of a key is the first of the other run. `alone`: only where neither run has several of it.
  void pair(const MakeKey& key, bool alone) {
    const Groups of_a = group(a_, a_done_, key), of_b = group(b_, b_done_, key);
    for (const auto& [name, rows] : of_a) {
      const auto others = of_b.find(name);
      if (others == of_b.end() || (alone && (rows.size() > 1 || others->second.size() > 1))) continue;
      for (size_t i = 0; i < std::min(rows.size(), others->second.size()); ++i)
        add(rows[i], others->second[i]);
    }
  }
  std::vector<CommPair> take() {
    std::sort(pairs_.begin(), pairs_.end(), [](const CommPair& x, const CommPair& y) { return x.a < y.a; });
    return std::move(pairs_);
  }

 private:
  static Groups group(std::span<const CommSamples> comms, const std::vector<bool>& done, const MakeKey& key) {
    Groups groups;
    for (uint32_t row = 0; row < comms.size(); ++row) {
      if (done[row]) continue;
      if (Key of = key(comms[row]); !std::get<0>(of).empty()) groups[std::move(of)].push_back(row);
    }
    // A program creates its communicators in the same order in each run.
    for (auto& [name, rows] : groups) {
      std::stable_sort(rows.begin(), rows.end(),
                       [&](uint32_t x, uint32_t y) { return comms[x].first_ns < comms[y].first_ns; });
    }
    return groups;
  }
  void add(uint32_t a, uint32_t b) {
    a_done_[a] = b_done_[b] = true;
    pairs_.push_back({a, b, a_[a].ranks != b_[b].ranks});
  }

  std::span<const CommSamples> a_, b_;
  std::vector<bool> a_done_, b_done_;
  std::vector<CommPair> pairs_;
};

}  // namespace

std::vector<CommPair> pair_comms(std::span<const CommSamples> a, std::span<const CommSamples> b) {
  Pairer pairer(a, b);
  pairer.pair([](const CommSamples& of) { return Key(of.name, of.ranks, of.members); }, false);
  pairer.pair(
      [](const CommSamples& of) { return Key(of.members.empty() ? "" : "ranks", of.ranks, of.members); },
      false);
  pairer.pair([](const CommSamples& of) { return Key(of.name, of.ranks, {}); }, true);
  pairer.pair([](const CommSamples& of) { return Key(of.name, 0, {}); }, true);
  return pairer.take();
}

}  // namespace lockstep::analysis::compare
