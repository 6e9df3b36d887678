// SPDX-License-Identifier: Apache-2.0
#include <unordered_map>

#include "analysis/hang/draft.h"
#include "analysis/hang/verdicts.h"
#include "analysis/operation_name.h"
#include "base/text/wording.h"
#include "job/match/match.h"

namespace lockstep::analysis::hang {
namespace {

using job::match::Difference;
using model::kNoIndex;
using model::Member;

class Contradictions {
 public:
  Contradictions(const Scene& scene, std::vector<Finding>& findings)
      : scene_(scene), job_(scene.job()), draft_(scene), findings_(findings) {}

  void add(const Difference& difference) {
    const std::vector<uint32_t>& rows = job_.comms[difference.comm].members;
    for (uint32_t row : rows) {
      if (row == model::kNoRow || !job_.op_at(job_.members[row], difference.index)) continue;
      if (std::optional<std::string> jump = jump_of(job_.members[row])) return add(difference, row, *jump);
    }
  }

 private:
  // Where a function's numbers skip one that the process neither called nor lost.
  std::optional<std::string> jump_of(const Member& member) const {
    const model::JobProcess& process = job_.processes[member.process];
    if (!scene_.is_captured(member.process) || !job::match::has_all(job_, process)) return std::nullopt;
    const model::JobOps& ops = process.ops;
    std::unordered_map<model::StringId, uint32_t> next;
    for (uint32_t op = member.first; op < member.first + member.ops; ++op) {
      const uint32_t seq = ops.seq[op];
      if (seq == kNoIndex) continue;
      const model::StringId func = job_.signatures[ops.signature[op]].func;
      uint32_t& expected = next[func];
      if (seq > expected)
        return "NCCL numbered its " + std::string(job_.text(func)) + " of operation " +
               std::to_string(ops.index[op]) + " with " + std::to_string(seq) + ", where " +
               std::to_string(expected) + " would follow, and no record was lost";
      expected = std::max(expected, seq + 1);
    }
    return std::nullopt;
  }

  void add(const Difference& difference, uint32_t contradicting, const std::string& jump) {
    const Member& like = job_.members[difference.like];
    const uint32_t like_op = *job_.op_at(like, difference.index);
    const Member& odd = job_.members[difference.members.front()];
    const model::Signature& usual = signature(like, like_op);
    const model::Signature& other = signature(odd, *job_.op_at(odd, difference.index));
    const uint32_t process = job_.members[contradicting].process;
    Finding finding;
    finding.id = "evidence-missing.contradiction";
    finding.finding_class = FindingClass::kEvidenceMissing;
    finding.severity = Severity::kWarning;
    finding.comm = job_.comm_name(difference.comm);
    finding.comm_row = difference.comm;
    analysis::name_operation(job_, like.process, like_op, finding);
    finding.statement = "the record of " + job_.process_name(process) +
                        " contradicts itself, so it cannot be told whether operation " +
                        std::to_string(difference.index) + " of " + draft_.comm(difference.comm) +
                        " is one on all ranks: " + job_.process_name(odd.process) + " called " +
                        draft_.signature(other, usual) + ", " + job_.process_name(like.process) + " " +
                        draft_.signature(usual, other);
    finding.evidence = {jump};
    finding.advice = "compare what the code does on " + job_.process_name(odd.process) +
                     " before this call; record the run again";
    finding.settle = "Flight Recorder dumps, which number the operations by themselves";
    findings_.push_back(std::move(finding));
  }

  const model::Signature& signature(const Member& member, uint32_t op) const {
    return job_.signatures[job_.ops(member).signature[op]];
  }

  const Scene& scene_;
  const model::Job& job_;
  Draft draft_;
  std::vector<Finding>& findings_;
};

}  // namespace

void add_contradictions(const Scene& scene, const std::vector<Difference>& differences,
                        std::vector<Finding>& findings) {
  Contradictions contradictions(scene, findings);
  for (const Difference& difference : differences) contradictions.add(difference);
}

}  // namespace lockstep::analysis::hang
