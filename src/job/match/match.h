// SPDX-License-Identifier: Apache-2.0
// Makes the operations of a job comparable: after it, equal `index` on one communicator is one operation on
// all ranks, as far as that can be known. An operation of a collective is known by its place in the order of
// calls, which is the same on all ranks of a correct program; where the older part is gone (ring retention,
// losses), NCCL's own number per function finds the place again, as long as the number names one operation
// alone: replays of a graph repeat it. Point-to-point operations count per (communicator, sender, receiver).
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "model/job.h"

namespace lockstep::job::match {

// Why an operation has no counterpart on some rank.
enum class Reason : uint8_t {
  kRankAbsent,   // a member of the communicator left no file
  kNotCalled,    // another member has not come so far
  kForgotten,    // another member no longer has it: a ring that wrapped, or a loss
  kNotAligned,   // nothing shows how the member's numbers compare
  kCommUnknown,  // the communicator has no id
};
inline constexpr size_t kReasons = 5;
std::string_view reason_text(Reason reason);  // "rank absent", ...

// Operations of all members of one communicator.
struct CommMatch {
  uint64_t matched = 0;                        // all members have it
  std::array<uint64_t, kReasons> unmatched{};  // by the first reason that applies
};

// An index at which members of a communicator are in different operations.
struct Difference {
  uint32_t comm = 0;
  uint32_t index = 0;
  std::vector<uint32_t>
      members;         // who differ from the majority (of the ranks that have it), rows of Job::members
  uint32_t like = 0;   // a member of the majority
  bool tie = false;    // no majority: `members` is one side, by chance
  size_t unknown = 0;  // ranks of the communicator of which nothing shows what they called there
  bool open = false;   // with those on another side there would be no majority
};

// NCCL numbers the calls of a function from 0 on. The first operation of the member whose number is not the
// next.
struct SkippedNumber {
  uint32_t op = 0;        // row of its process' operations
  uint32_t expected = 0;  // the number that would follow
};
std::optional<SkippedNumber> skipped_number(const model::JobOps& ops,
                                            const std::vector<model::Signature>& signatures,
                                            const model::Member& member);
inline std::optional<SkippedNumber> skipped_number(const model::Job& job, const model::Member& member) {
  return skipped_number(job.ops(member), job.signatures, member);
}

// Fills `index` and Member::alignment. Once, before anything else looks at the job.
void align(model::Job& job);

// By row of Job::comms. After align().
std::vector<CommMatch> count_matches(const model::Job& job);

// The first difference of each communicator, where func, datatype, bytes or root differ; later ones follow
// from it.
std::vector<Difference> differences(const model::Job& job);

// By row of Job::signatures: equal for signatures that may stand for one operation. Algorithm, protocol and
// channels are each rank's own choice.
std::vector<uint32_t> essences(const model::Job& job);

// Whether nobody leaves an operation like it before all have entered it.
bool waits_for_all(const model::Job& job, const model::Signature& signature);
// Whether the end that KernelCh reports of an operation like it is that of its last data.
bool ends_with_data(const model::Job& job, const model::Signature& signature);

// Nothing was lost of what the process called, and its recording was never switched off.
bool has_all(const model::Job& job, const model::JobProcess& process);
// A lane's counterpart at the other end; nullptr if that end is not in the run or has none.
const model::Lane* counterpart(const model::Job& job, const model::Member& member, const model::Lane& lane,
                               const model::Member** other);
// Whether the n-th operation of a lane is the n-th of its counterpart: both have all from the first on.
// Point-to-point operations have no number of NCCL's, so nothing finds the place again once some are gone.
bool pairs_comparable(const model::Job& job, const model::Member& a, const model::Member& b);

}  // namespace lockstep::job::match
