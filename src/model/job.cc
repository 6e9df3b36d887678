// SPDX-License-Identifier: Apache-2.0
#include "model/job.h"

#include <algorithm>

#include "base/hex.h"

namespace lockstep::model {

// Matching is arithmetic (docs/decisions/0006-matching-is-arithmetic.md): indexes ascend, so the place of one
// is known unless operations are missing, and then it lies before the guess.
uint32_t Job::op_from(const JobOps& ops, uint32_t first, uint32_t count, uint32_t index) {
  if (count == 0 || index <= ops.index[first]) return first;
  // Without gaps the place is known; a gap only moves it towards the front.
  const uint32_t guess = index - ops.index[first];
  if (guess < count && ops.index[first + guess] == index) return first + guess;
  const auto begin = ops.index.begin() + first;
  return static_cast<uint32_t>(std::lower_bound(begin, begin + std::min(guess, count), index) -
                               ops.index.begin());
}

std::optional<uint32_t> Job::op_at(const JobOps& ops, uint32_t first, uint32_t count, uint32_t index) {
  const uint32_t at = op_from(ops, first, count, index);
  return at < first + count && ops.index[at] == index ? std::optional(at) : std::nullopt;
}

uint32_t Job::oldest_index(const Member& member) const {
  return member.ops == 0 ? 0 : ops(member).index[member.first];
}

std::optional<Job::CommonTime> Job::common_ns(uint32_t process, int64_t ns) const {
  auto offset = hosts[processes[process].host].clock.offset(ns);
  if (!offset) return std::nullopt;
  return CommonTime{ns - offset->ns, offset->half_width_ns};
}

bool Job::has_amd_gpus() const {
  return std::any_of(processes.begin(), processes.end(),
                     [&](const JobProcess& process) { return is_amd(process.row, strings); });
}

std::string Job::comm_name(uint32_t comm) const {
  const JobComm& row = comms[comm];
  if (row.name != 0) return std::string(text(row.name));
  if (row.comm_id == 0) return "?";
  return hex(row.comm_id);
}

}  // namespace lockstep::model
