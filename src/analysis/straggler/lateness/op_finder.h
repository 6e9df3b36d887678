// SPDX-License-Identifier: Apache-2.0
// Job::op_at for one member that is asked for many operations.
#pragma once
#include <cstdint>
#include <optional>

#include "model/job.h"

namespace lockstep::analysis::straggler {

// The member stays where it is.
class OpFinder {
 public:
  OpFinder(const model::Job& job, const model::Member& member)
      : job_(&job),
        member_(&member),
        oldest_(job.oldest_index(member)),
        gapless_(job.next_index(member) - oldest_ == member.ops) {}

  const model::Member& member() const { return *member_; }
  bool gapless() const { return gapless_; }
  std::optional<uint32_t> at(uint32_t index) const {
    if (!gapless_) return job_->op_at(*member_, index);
    if (index < oldest_ || index - oldest_ >= member_->ops) return std::nullopt;
    return member_->first + (index - oldest_);
  }

 private:
  const model::Job* job_;
  const model::Member* member_;
  uint32_t oldest_;
  bool gapless_;
};

}  // namespace lockstep::analysis::straggler
