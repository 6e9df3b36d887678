// SPDX-License-Identifier: Apache-2.0
// Compares the beginnings of one operation as they come in. A member is late by what lies between its own
// earliest possible beginning and the median of all members' latest ones: uncertain clocks then make it less
// late, never more. Members number alike and in order, so once an operation is whole, older ones that are not
// will not be, and are dropped.
#include "live/lateness.h"

#include <algorithm>

namespace lockstep::live {

uint32_t Lateness::add_member(const std::string& comm, int32_t ranks, const std::string& boot_id,
                              bool ended) {
  auto boot = boots_.find(boot_id);
  if (boot == boots_.end()) {
    // What is on clocks beyond the limit is not compared.
    if (boots_.size() >= kMostBoots) return kMostBoots;
    boot = boots_.emplace(boot_id, static_cast<uint32_t>(boots_.size())).first;
    clock_of_.push_back(clock_of(boot_id));
  }
  auto known = comms_.find(comm);
  if (known == comms_.end()) {
    if (ranks < 2 || static_cast<size_t>(ranks) > kMostMembers) return boot->second;
    if (comms_.size() >= kMostComms && (ended || !make_room())) return boot->second;
    known =
        comms_.try_emplace(comm, Comm{.ranks = ranks, .named = look_, .boots = {}, .functions = {}}).first;
  }
  // A member that has left does not keep a communicator that nobody else is in.
  if (!ended) known->second.named = look_;
  if (known->second.boots.insert(boot->second).second) known->second.aligned = is_aligned(known->second);
  return boot->second;
}

// Of those that members still have none goes: it would be added again at the next look, at the cost of
// another.
bool Lateness::make_room() {
  // All communicators were looked through in this look already, in vain.
  if (full_look_ == look_) return false;
  for (auto at = comms_.begin(); at != comms_.end();) {
    Comm& comm = at->second;
    if (comm.named + 2 > look_) {
      ++at;
      continue;
    }
    for (auto& [func, function] : comm.functions) {
      while (!function.open.empty()) drop_oldest(function);
    }
    at = comms_.erase(at);
  }
  if (comms_.size() < kMostComms) return true;
  full_look_ = look_;
  return false;
}

const model::HostClock* Lateness::clock_of(const std::string& boot_id) const {
  const auto known = clocks_.find(boot_id);
  return known == clocks_.end() || !known->second.known() ? nullptr : &known->second;
}

void Lateness::set_clocks(Clocks clocks) {
  clocks_ = std::move(clocks);
  for (const auto& [boot_id, number] : boots_) clock_of_[number] = clock_of(boot_id);
  for (auto& [name, comm] : comms_) comm.aligned = is_aligned(comm);
}

bool Lateness::is_aligned(const Comm& comm) const {
  return comm.boots.size() == 1 || std::all_of(comm.boots.begin(), comm.boots.end(),
                                               [this](uint32_t boot) { return clock_of_[boot] != nullptr; });
}

// With the interval in which each began: late by at least what lies between its begin and the median of the
// ends.
bool Lateness::compare(const Comm& comm, const std::vector<Beginning>& all, const Matched& matched) const {
  struct Interval {
    int64_t from, to;
  };
  std::vector<Interval> when;
  std::vector<int64_t> ends;
  int64_t last = INT64_MIN;
  for (const Beginning& one : all) {
    model::HostClock::Offset offset{};
    // On one clock no offset is needed, known or not.
    if (comm.boots.size() > 1) {
      if (one.boot >= clock_of_.size() || clock_of_[one.boot] == nullptr) return false;
      offset = *clock_of_[one.boot]->offset(one.at_ns);
    }
    const int64_t middle = one.at_ns - offset.ns;
    when.push_back({middle - offset.half_width_ns, middle + offset.half_width_ns});
    ends.push_back(when.back().to);
    last = std::max(last, when.back().from);
  }
  // Of an even number the earlier of the two middle ones: with two members the first is the measure.
  auto median = ends.begin() + static_cast<std::ptrdiff_t>((ends.size() - 1) / 2);
  std::nth_element(ends.begin(), median, ends.end());
  for (size_t i = 0; i < all.size(); ++i)
    matched(all[i].label, static_cast<double>(std::max<int64_t>(when[i].from - *median, 0)) * 1e-9,
            static_cast<double>(std::max<int64_t>(last - when[i].to, 0)) * 1e-9);
  return true;
}

void Lateness::drop_oldest(Function& function) {
  auto oldest = function.open.begin();
  held_ -= oldest->second.size();
  function.done = std::max(function.done, oldest->first + 1);
  function.open.erase(oldest);
}

bool Lateness::add(const std::string& comm, const std::string& func, uint64_t number,
                   const Beginning& beginning, const Matched& matched) {
  auto known = comms_.find(comm);
  if (known == comms_.end() || !known->second.aligned || beginning.member < 0 || beginning.at_ns < -kMostNs ||
      beginning.at_ns > kMostNs)
    return false;
  auto& functions = known->second.functions;
  // Names come from files: a damaged one may have any number of them.
  if (functions.size() >= kMostFunctions && !functions.contains(func)) return false;
  Function& function = functions[func];
  if (number < function.done) {
    // A smaller number that began later is of a process that counts anew.
    if (beginning.at_ns <= function.done_ns) return false;
    function.done = 0;  // the job began again
  }
  std::vector<Beginning>& all = function.open[number];
  for (const Beginning& one : all) {
    if (one.member == beginning.member) return false;
  }
  all.push_back(beginning);
  ++held_;
  const bool whole = all.size() == static_cast<size_t>(known->second.ranks);
  bool compared = false;
  if (whole) {
    compared = compare(known->second, all, matched);
    for (const Beginning& one : all) function.done_ns = std::max(function.done_ns, one.at_ns);
    // Members number alike and in order: what is older and not whole will not be.
    while (!function.open.empty() && function.open.begin()->first <= number) drop_oldest(function);
  }
  // An operation that one member never reports stays open, so the number of open ones is bounded.
  while (function.open.size() > kWindow || (held_ > kMostHeld && !function.open.empty()))
    drop_oldest(function);
  return compared;
}

void Lateness::relabel(uint16_t from, uint16_t to) {
  for (auto& [name, comm] : comms_)
    for (auto& [func, function] : comm.functions)
      for (auto& [number, all] : function.open)
        for (Beginning& one : all)
          if (one.label == from) one.label = to;
}

size_t Lateness::unaligned_comms() const {
  return static_cast<size_t>(
      std::count_if(comms_.begin(), comms_.end(), [](const auto& comm) { return !comm.second.aligned; }));
}

}  // namespace lockstep::live
