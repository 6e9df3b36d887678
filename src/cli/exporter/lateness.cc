// SPDX-License-Identifier: Apache-2.0
#include "cli/exporter/lateness.h"

#include <algorithm>

namespace lockstep::cli::exporter {
namespace {

void compare(const std::vector<Beginning>& all, const Lateness::Matched& matched) {
  std::vector<int64_t> times;
  for (const Beginning& one : all) times.push_back(one.at_ns);
  auto middle = times.begin() + static_cast<std::ptrdiff_t>((times.size() - 1) / 2);
  std::nth_element(times.begin(), middle, times.end());
  const int64_t median = *middle, last = *std::max_element(times.begin(), times.end());
  for (const Beginning& one : all)
    matched(one.label, static_cast<double>(std::max<int64_t>(one.at_ns - median, 0)) * 1e-9,
            static_cast<double>(last - one.at_ns) * 1e-9);
}

}  // namespace

void Lateness::add_member(const std::string& comm, int32_t ranks, const std::string& boot_id) {
  auto known = comms_.find(comm);
  if (known == comms_.end()) {
    if (ranks < 2 || static_cast<size_t>(ranks) > kMostMembers) return;
    if (comms_.size() >= kMostComms) {
      for (auto& [func, function] : comms_.begin()->second.functions) {
        while (!function.open.empty()) drop_oldest(function);
      }
      comms_.erase(comms_.begin());
    }
    known = comms_.try_emplace(comm, Comm{.ranks = ranks, .boot_id = boot_id, .functions = {}}).first;
  }
  if (known->second.boot_id != boot_id) known->second.aligned = false;
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
  if (known == comms_.end() || !known->second.aligned || beginning.member < 0) return false;
  auto& functions = known->second.functions;
  if (functions.size() >= kMostFunctions && !functions.contains(func)) return false;
  Function& function = functions[func];
  if (number < function.done) {
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
  if (whole) {
    compare(all, matched);
    for (const Beginning& one : all) function.done_ns = std::max(function.done_ns, one.at_ns);
    // Members number alike and in order: what is older and not whole will not be.
    while (!function.open.empty() && function.open.begin()->first <= number) drop_oldest(function);
  }
  while (function.open.size() > kWindow || (held_ > kMostHeld && !function.open.empty()))
    drop_oldest(function);
  return whole;
}

size_t Lateness::unaligned_comms() const {
  return static_cast<size_t>(
      std::count_if(comms_.begin(), comms_.end(), [](const auto& comm) { return !comm.second.aligned; }));
}

}  // namespace lockstep::cli::exporter
