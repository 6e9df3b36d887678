// SPDX-License-Identifier: Apache-2.0
// Reports a difference between ranks that may come from the record, not from the job. NCCL numbers its
// operations by function. If a number is skipped although no record was lost, then the rank called something
// that nobody wrote down, and every later operation stands one place too low. Blaming a rank for the
// difference would then blame the recorder's error on the job, so this says which record contradicts itself
// instead.
#include <optional>

#include "analysis/hang/finding_builder.h"
#include "analysis/hang/verdicts.h"
#include "analysis/operation_name.h"
#include "job/match/match.h"

namespace lockstep::analysis::hang {
namespace {

using job::match::Difference;
using model::Member;

class Contradictions {
 public:
  Contradictions(const JobState& job_state, double weight, std::vector<Finding>& findings)
      : job_state_(job_state),
        job_(job_state.job()),
        builder_(job_state),
        weight_(weight),
        findings_(findings) {}

  void add(const Difference& difference) {
    const std::vector<uint32_t>& rows = job_.comms[difference.comm].members;
    for (uint32_t row : rows) {
      if (row == model::kNoRow || !job_.op_at(job_.members[row], difference.index)) continue;
      if (std::optional<std::string> jump = jump_of(job_.members[row])) return add(difference, row, *jump);
    }
  }

 private:
  // Where NCCL's numbers skip a call that the process neither recorded nor lost.
  std::optional<std::string> jump_of(const Member& member) const {
    if (!job_state_.is_captured(member.process) || !job::match::has_all(job_, job_.processes[member.process]))
      return std::nullopt;
    const std::optional<job::match::SkippedNumber> skipped = job::match::skipped_number(job_, member);
    if (!skipped) return std::nullopt;
    const model::JobOps& ops = job_.ops(member);
    return "NCCL numbered the " + std::string(job_.text(signature(member, skipped->op).func)) +
           " of operation " + std::to_string(ops.index[skipped->op]) + " as " +
           std::to_string(ops.seq[skipped->op]) + ", where " + std::to_string(skipped->expected) +
           " should follow, and no record was lost";
  }

  void add(const Difference& difference, uint32_t contradicting, const std::string& jump) {
    const Member& like = job_.members[difference.like];
    const uint32_t like_op = *job_.op_at(like, difference.index);
    const Member& odd = job_.members[difference.members.front()];
    const model::Signature& usual = signature(like, like_op);
    const model::Signature& other = signature(odd, *job_.op_at(odd, difference.index));
    const uint32_t process = job_.members[contradicting].process;
    Finding finding(FindingId::kEvidenceMissingContradiction);
    finding.comm = job_.comm_name(difference.comm);
    finding.comm_row = difference.comm;
    analysis::name_operation(job_, like.process, like_op, finding);
    finding.statement = "the record of " + job_.process_name(process) +
                        " contradicts itself, so Lockstep cannot tell whether operation " +
                        std::to_string(difference.index) + " of " + builder_.comm(difference.comm) +
                        " is the same on all ranks: " + job_.process_name(odd.process) + " called " +
                        builder_.signature(other, usual) + ", " + job_.process_name(like.process) + " " +
                        builder_.signature(usual, other);
    finding.evidence = {jump};
    finding.advice = "Compare what the code does on " + job_.process_name(odd.process) + " and on " +
                     job_.process_name(like.process) + " before this call; record the run again.";
    finding.needed_evidence = "Flight Recorder dumps, which number operations independently";
    finding.weight = weight_;
    findings_.push_back(std::move(finding));
  }

  const model::Signature& signature(const Member& member, uint32_t op) const {
    return job_.signatures[job_.ops(member).signature[op]];
  }

  const JobState& job_state_;
  const model::Job& job_;
  FindingBuilder builder_;
  const double weight_;
  std::vector<Finding>& findings_;
};

}  // namespace

void add_contradictions(const JobState& job_state, const std::vector<Difference>& differences, double weight,
                        std::vector<Finding>& findings) {
  Contradictions contradictions(job_state, weight, findings);
  for (const Difference& difference : differences) contradictions.add(difference);
}

}  // namespace lockstep::analysis::hang
