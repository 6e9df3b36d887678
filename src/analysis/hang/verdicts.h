// SPDX-License-Identifier: Apache-2.0
// Findings from where the wait-for graph ends. One finding for ranks that are missing in the same way.
#pragma once
#include <optional>
#include <vector>

#include "analysis/finding.h"
#include "analysis/hang/wait_graph.h"

namespace lockstep::analysis::hang {

void add_verdicts(const JobState& job_state, const std::vector<Block>& blocks, const Culprits& culprits,
                  std::vector<Finding>& findings);

// stuck_verdict.cc: all have joined and it does not move. From proxy steps where there are any.
Finding stuck_verdict(const JobState& job_state, const std::vector<Block>& blocks, const Root& root);
// stuck_verdict.cc: drops transfers that wait for a rank which another cause holds up, or is.
void drop_starved(const JobState& job_state, const std::vector<Block>& blocks, Culprits& culprits);

// cycle_verdict.cc: these ranks wait for each other. Named are those who called their two operations against
// the order that they had kept before; all, where nothing shows who did.
Finding cycle_verdict(const JobState& job_state, const std::vector<Block>& blocks, const Cycle& cycle);

// doubt.cc: the rank left as the wait began; one that left later had its time.
bool has_left(const JobState& job_state, uint32_t actor, const Block& block);
// Who is gone, or has left, holds the others up for certain. That a rank without GPU times calls nothing
// more, once it has no longer been there, may follow from that: it stands behind operations that all have
// called.
void drop_followers(const JobState& job_state, const std::vector<Block>& blocks, Culprits& culprits);
// doubt.cc: hosts run ahead of their GPUs, so where no GPU times are, a rank that calls nothing more may just
// stand behind operations that all have called. One such rank explains why all others wait; where that is not
// so, or where several stopped together behind one operation, these roots, as one, are in doubt.
std::optional<Root> doubtful(const JobState& job_state, const std::vector<Block>& blocks,
                             const Culprits& culprits);
Finding doubt_verdict(const JobState& job_state, const std::vector<Block>& blocks, const Root& root);

// incomplete.cc: the files of those that may hold the others up do not tell whether they do.
Finding incomplete_verdict(const JobState& job_state, const std::vector<Block>& blocks,
                           const std::vector<Root>& roots);

// swapped_verdict.cc: see swapped_calls.h.
std::optional<Finding> swapped_verdict(const JobState& job_state, const std::vector<Block>& blocks);

// unreceived.cc: sends that have ended although nobody called their receive, where nothing is under way any
// more. Notes: nobody waits.
void add_unreceived(const JobState& job_state, std::vector<Finding>& findings);

// incomplete.cc: what reaches us of these ranks is too old to say whether they called the operation.
Finding unseen_verdict(const JobState& job_state, const Block& block, const Root& root);

// broke_off.cc: nobody runs any more, and not all ended in order or came equally far; nothing shows who did
// it. Or a process is gone while others run, and nobody has waited for it for long.
void add_broken_off(const JobState& job_state, const std::vector<job::match::Difference>& differences,
                    std::vector<Finding>& findings);

// contradiction.cc: ranks whose operations differ at one index, where a record that lost nothing skips a
// number of NCCL's: the calls may differ, or their places. `weight` is that of the finding that they come
// before.
void add_contradictions(const JobState& job_state, const std::vector<job::match::Difference>& differences,
                        double weight, std::vector<Finding>& findings);

// evidence.cc: what could not be determined, where nothing else was found.
void add_missing_evidence(const JobState& job_state, const std::vector<Block>& blocks,
                          std::vector<Finding>& findings);

}  // namespace lockstep::analysis::hang
