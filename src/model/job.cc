// SPDX-License-Identifier: Apache-2.0
#include "model/job.h"

#include <algorithm>

#include "base/hex.h"

namespace lockstep::model {

// Matching is arithmetic (docs/decisions/0006-matching-is-arithmetic.md): indexes ascend, so the place of one
// is known unless operations are missing, and then it lies before the guess.
std::optional<uint32_t> Job::op_at(const Member& member, uint32_t index) const {
  if (member.ops == 0) return std::nullopt;
  const Column<uint32_t>& numbers = ops(member).index;
  uint32_t first = numbers[member.first];
  if (index < first) return std::nullopt;
  // Without gaps the place is known; a gap only moves it towards the front.
  uint32_t guess = index - first;
  if (guess < member.ops && numbers[member.first + guess] == index) return member.first + guess;
  auto begin = numbers.begin() + member.first, end = begin + std::min(guess, member.ops);
  auto found = std::lower_bound(begin, end, index);
  if (found == end || *found != index) return std::nullopt;
  return static_cast<uint32_t>(found - numbers.begin());
}

uint32_t Job::next_index(const Member& member) const {
  return member.ops == 0 ? 0 : ops(member).index[member.first + member.ops - 1] + 1;
}

uint32_t Job::oldest_index(const Member& member) const {
  return member.ops == 0 ? 0 : ops(member).index[member.first];
}

std::optional<Job::CommonTime> Job::common_ns(uint32_t process, int64_t ns) const {
  auto offset = hosts[processes[process].host].clock.offset(ns);
  if (!offset) return std::nullopt;
  return CommonTime{ns - offset->ns, offset->half_width_ns};
}

std::string Job::comm_name(uint32_t comm) const {
  const JobComm& row = comms[comm];
  if (row.name != 0) return std::string(text(row.name));
  if (row.comm_id == 0) return "?";
  return hex(row.comm_id);
}

}  // namespace lockstep::model
