// SPDX-License-Identifier: Apache-2.0
// A name does not tell things apart, so facts beside it decide. Two that contradict each other are two
// things; else the best agreement wins. Things that share a fact are tried first: names of which there are
// thousands stay cheap.
#include "readers/common/identities.h"

#include <algorithm>

namespace lockstep::readers::common {
namespace {

// Of so many of one name those are known that none of their facts leads to: comparing all pairs of many takes
// long.
constexpr size_t kMostCompared = 1024;

bool share_one(const std::set<std::string>& a, const std::set<std::string>& b) {
  return std::any_of(a.begin(), a.end(), [&b](const std::string& value) { return b.count(value) > 0; });
}

// Facts in common; -1: they contradict each other.
int agreement(const Facts& a, const Facts& b) {
  const Facts& fewer = a.size() < b.size() ? a : b;
  const Facts& more = a.size() < b.size() ? b : a;
  int common = 0;
  for (const auto& [what, values] : fewer) {
    const auto other = more.find(what);
    if (other == more.end() || values.empty() || other->second.empty()) continue;
    // A fact may have several values, as a process may have several GPUs. One in common is enough.
    if (!share_one(values, other->second)) return -1;
    ++common;
  }
  return common;
}

}  // namespace

Identities::Place Identities::place(const std::string& name, const Facts& facts) {
  Named& named = by_name_[name];
  Place place{facts_.size(), true, named.numbers.size()};
  int most = -1;
  const auto consider = [&](size_t number) {
    const int common = agreement(facts_[number], facts);
    if (common > most) place = {number, false};
    most = std::max(most, common);
  };
  for (const auto& [what, values] : facts) {
    for (const std::string& value : values) {
      const auto known = named.by_fact.find({what, value});
      if (known != named.by_fact.end()) consider(known->second);
    }
  }
  for (size_t i = 0; place.is_new && i < std::min(named.numbers.size(), kMostCompared); ++i)
    consider(named.numbers[i]);
  if (place.is_new) {
    named.numbers.push_back(place.number);
    facts_.emplace_back();
  }
  for (const auto& [what, values] : facts) {
    facts_[place.number][what].insert(values.begin(), values.end());
    for (const std::string& value : values) named.by_fact.try_emplace({what, value}, place.number);
  }
  return place;
}

}  // namespace lockstep::readers::common
