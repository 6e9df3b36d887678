// SPDX-License-Identifier: Apache-2.0
// Reports sends that ended although their receive was never called. A small message fits into NCCL's buffers,
// so the send returns and the job is well; a larger one would hang. It is a note, and only where both ends
// are idle: a process that still works may call the receive yet.
#include <algorithm>

#include "analysis/hang/verdicts.h"
#include "analysis/operation_name.h"
#include "base/text/wording.h"
#include "job/match/match.h"

namespace lockstep::analysis::hang {
namespace {

constexpr size_t kNotesMost = 4;

// Everything that it called has ended: whoever still works may call the receive yet.
// Without GPU times nothing proves that it is idle, so there is no note.
bool is_idle(const model::JobProcess& process) {
  return !process.ops.gpu_end_ns.empty() &&
         std::none_of(process.ops.gpu_end_ns.begin(), process.ops.gpu_end_ns.end(),
                      [](int64_t end) { return end == 0; });
}

Finding make_note(const model::Job& job, const model::Member& sender, const model::Lane& lane,
                  const model::Member& receiver, uint32_t received) {
  const uint32_t first = model::Job::op_from(job.ops(sender), lane.first, lane.ops, received);
  Finding finding(FindingId::kNeverJoinedUnreceived);
  const std::string to = job.process_name(receiver.process);
  if (job.processes[receiver.process].row.rank >= 0)
    finding.ranks = {job.processes[receiver.process].row.rank};
  analysis::name_operation(job, sender.process, first, finding);
  finding.statement = to + " has not called its end of " + finding.operation + ", which has ended without it";
  finding.evidence.push_back(to + " has called " + wording::count(received, "receive") + " for " +
                             wording::count(job.next_index(sender, lane), "send"));
  finding.advice =
      "Check whether the receive was left out: with a larger message or another transport, the send would "
      "hang.";
  return finding;
}

}  // namespace

void add_unreceived(const JobState& job_state, std::vector<Finding>& findings) {
  const model::Job& job = job_state.job();
  size_t added = 0;
  for (const model::Member& member : job.members) {
    for (const model::Lane& lane : member.lanes) {
      const model::Member* other = nullptr;
      const model::Lane* there = lane.is_send ? job::match::counterpart(job, member, lane, &other) : nullptr;
      if (!lane.is_send || other == nullptr || !job::match::pairs_comparable(job, member, *other)) continue;
      const uint32_t received = there == nullptr ? 0 : job.next_index(*other, *there);
      if (received >= job.next_index(member, lane) || !is_idle(job.processes[member.process]) ||
          !is_idle(job.processes[other->process]))
        continue;
      findings.push_back(make_note(job, member, lane, *other, received));
      if (++added == kNotesMost) return;
    }
  }
}

}  // namespace lockstep::analysis::hang
