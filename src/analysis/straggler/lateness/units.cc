// SPDX-License-Identifier: Apache-2.0
// A step holds some operation once. So the distances between equal operations are asked for the length of a
// step: of each kind of operation the distance that most of its neighbors lie apart. Of these lengths the
// shortest wins whose copies, found by walking along the sequence and skipping what does not belong, hold
// nearly all operations. An exact period, of three repetitions or more, need not be the step: it is when its
// parts take different times. One operation over and over, as a step's buckets are, is none of its own while
// there are others.
#include "analysis/straggler/lateness/units.h"

#include <algorithm>
#include <map>
#include <set>

#include "analysis/straggler/median.h"

namespace lockstep::analysis::straggler {
namespace {

constexpr size_t kLeastCopies = 4;
constexpr double kUsualGap =
    0.75;  // of the distances between an operation and the next like it, or of what they add up to
constexpr double kCovered = 0.9;  // of the operations, by the copies of a step
constexpr double kAlike =
    1.5;  // times that the slow ones among the parts of a period may take of the fast ones'

// Distances that are usual between an operation and the next like it, ascending.
std::vector<size_t> usual_gaps(const std::vector<uint32_t>& sequence) {
  struct Item {
    size_t last = 0, seen = 0;
    std::map<size_t, size_t> gaps;
  };
  std::map<uint32_t, Item> items;
  for (size_t i = 0; i < sequence.size(); ++i) {
    Item& item = items[sequence[i]];
    if (item.seen++ > 0) ++item.gaps[i - item.last];
    item.last = i;
  }
  std::set<size_t> lengths;
  for (const auto& [what, item] : items) {
    if (item.seen < kLeastCopies) continue;
    size_t apart = 0;  // the first of them and the last
    for (const auto& [gap, count] : item.gaps) apart += gap * count;
    for (const auto& [gap, count] : item.gaps) {
      // Short steps, as of an evaluation, may be many and still hold few operations.
      if (static_cast<double>(count) >= kUsualGap * static_cast<double>(item.seen - 1) ||
          static_cast<double>(gap * count) >= kUsualGap * static_cast<double>(apart))
        lengths.insert(gap);
    }
  }
  return {lengths.begin(), lengths.end()};
}

bool is_copy(const std::vector<uint32_t>& sequence, size_t a, size_t b, size_t length) {
  return b + length <= sequence.size() && std::equal(sequence.begin() + static_cast<ptrdiff_t>(a),
                                                     sequence.begin() + static_cast<ptrdiff_t>(a + length),
                                                     sequence.begin() + static_cast<ptrdiff_t>(b));
}

bool is_one_thing(const std::vector<uint32_t>& sequence, size_t begin, size_t length) {
  return std::all_of(sequence.begin() + static_cast<ptrdiff_t>(begin),
                     sequence.begin() + static_cast<ptrdiff_t>(begin + length),
                     [&](uint32_t item) { return item == sequence[begin]; });
}

Units walk(const std::vector<uint32_t>& sequence, size_t length) {
  Units units;
  size_t first = 0;
  while (first + 2 * length <= sequence.size() && !is_copy(sequence, first, first + length, length)) ++first;
  if (first + 2 * length > sequence.size() || is_one_thing(sequence, first, length)) return units;
  for (size_t at = first; at + length <= sequence.size();) {
    if (is_copy(sequence, first, at, length)) {
      units.begins.push_back(at);
      at += length;
    } else {
      ++at;
    }
  }
  const auto covered = static_cast<double>(units.begins.size() * length);
  if (units.begins.size() < kLeastCopies || covered < kCovered * static_cast<double>(sequence.size()))
    return {};
  units.length = length;
  return units;
}

Units whole(const Period& exact) {
  Units units;
  units.length = exact.length;
  for (size_t i = 0; i < exact.repeats; ++i) units.begins.push_back(exact.begin + i * exact.length);
  return units;
}

bool covers_nearly_all(const Period& exact, const std::vector<uint32_t>& sequence) {
  const auto covered = static_cast<double>(exact.length * exact.repeats);
  return exact.length != 0 && covered >= kCovered * static_cast<double>(sequence.size());
}

// Whether the units take about the same time wherever in the period they stand.
bool are_alike(const Units& units, const Period& exact, const std::function<int64_t(size_t)>& time_ns) {
  std::map<size_t, std::vector<int64_t>> by_place;
  for (size_t i = 0; i + 1 < units.begins.size(); ++i) {
    if (units.begins[i] < exact.begin || units.begins[i + 1] - units.begins[i] != units.length) continue;
    by_place[(units.begins[i] - exact.begin) % exact.length].push_back(time_ns(units.begins[i + 1]) -
                                                                       time_ns(units.begins[i]));
  }
  std::vector<int64_t> usual;
  for (auto& [place, times] : by_place) usual.push_back(lower_median(std::span(times)));
  if (usual.size() < 2) return true;
  std::sort(usual.begin(), usual.end());
  const size_t tenth = usual.size() / 10;
  const int64_t fast = usual[tenth], slow = usual[usual.size() - 1 - tenth];
  return static_cast<double>(slow) <= kAlike * static_cast<double>(fast);
}

}  // namespace

Units find_units(const std::vector<uint32_t>& sequence, const Period& exact,
                 const std::function<int64_t(size_t)>& time_ns) {
  const bool is_all = covers_nearly_all(exact, sequence);
  for (size_t length : usual_gaps(sequence)) {
    if (is_all && length >= exact.length) break;
    Units units = walk(sequence, length);
    if (units.length != 0 && (exact.length <= length || are_alike(units, exact, time_ns))) return units;
  }
  return is_all || exact.length > 1 ? whole(exact) : Units{};
}

Units find_rounds(const std::vector<uint32_t>& sequence) {
  const Period exact = find_period(sequence);
  const bool is_all = covers_nearly_all(exact, sequence);
  Units rounds;
  if (!is_all) {
    for (size_t length : usual_gaps(sequence)) {
      rounds = walk(sequence, length);
      if (rounds.length != 0) break;
    }
  }
  if (rounds.length == 0 && (is_all || exact.length > 1)) rounds = whole(exact);
  if (rounds.length == 0) return rounds;
  for (size_t at = rounds.begins.back() + rounds.length; at < sequence.size(); ++at) {
    if (!is_copy(sequence, rounds.begins.front(), at, sequence.size() - at)) continue;
    rounds.begins.push_back(at);
    break;
  }
  return rounds;
}

Rounds::Rounds(const std::vector<uint32_t>& sequence, uint64_t oldest) {
  const Units found = find_rounds(sequence);
  length_ = found.length;
  for (size_t begin : found.begins) begins_.push_back(oldest + begin);
}

std::optional<size_t> Rounds::place(uint64_t index) const {
  if (begins_.empty() || index < begins_.front()) return std::nullopt;
  // Nothing lies between most rounds, so most are found without a search.
  size_t round = std::min((index - begins_.front()) / length_, begins_.size() - 1);
  if (begins_[round] > index)
    round =
        static_cast<size_t>(std::upper_bound(begins_.begin(), begins_.end(), index) - begins_.begin()) - 1;
  const uint64_t at = index - begins_[round];
  return at < length_ ? std::optional(at) : std::nullopt;
}

}  // namespace lockstep::analysis::straggler
