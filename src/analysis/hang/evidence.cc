// SPDX-License-Identifier: Apache-2.0
// Says which missing input would decide, when a job has stopped and no rank can be blamed. It reports only if
// nothing has moved anywhere for longer than the run's cadence allows; before that, silence is not evidence
// of anything. What is missing is chosen in the order of how much it hides: absent files, then overwritten
// records, then a capture that ended early, then files with gaps, then GPU times.
#include <algorithm>
#include <optional>

#include "analysis/hang/file_words.h"
#include "analysis/hang/finding_builder.h"
#include "analysis/hang/verdicts.h"
#include "base/text/wording.h"

namespace lockstep::analysis::hang {
namespace {

// Nothing has moved anywhere for longer than is normal, and not everybody ended in order.
bool all_quiet(const JobState& job_state, const std::vector<Block>& blocks) {
  bool open = false;
  for (const Actor& actor : job_state.actors()) open = open || actor.fate != Fate::kClosed;
  if (!open || blocks.empty()) return false;
  return std::all_of(job_state.actors().begin(), job_state.actors().end(), [&](const Actor& actor) {
    return actor.quiet_ns > blocks.front().patience.certain_ns();
  });
}

struct Missing {
  FindingId id;
  std::string what, needed_evidence;
  std::vector<uint32_t> actors = {};  // whose files have gaps
};

// The GPU vendor's interface reports its kernels, each once it has ended.
bool has_kernel_times(const model::JobProcess& process) {
  const auto& sources = process.ops.gpu_source;
  return std::any_of(sources.begin(), sources.end(), [](uint8_t source) {
    return source == static_cast<uint8_t>(model::GpuTimeSource::kCupti) ||
           source == static_cast<uint8_t>(model::GpuTimeSource::kHsa);
  });
}

// What a gap hides may be what the ranks differ in: without whole files GPU times would not show it.
std::optional<Missing> gaps(const JobState& job_state, const Block& block) {
  const model::Job& job = job_state.job();
  std::vector<uint32_t> actors;
  std::vector<std::string> names;
  for (uint32_t row : job.comms[block.comm].members) {
    if (row == model::kNoRow || !job_state.gap(job.members[row].process).any()) continue;
    actors.push_back(job_state.actor_of(row));
    names.push_back(job.process_name(job.members[row].process));
  }
  if (actors.empty()) return std::nullopt;
  const std::string& lost = job_state.gap(job_state.actor(actors.front()).process).text;
  return Missing{FindingId::kEvidenceMissingIncomplete, wording::incomplete(names, lost),
                 std::string(wording::kWholeFiles), std::move(actors)};
}

Missing missing(const JobState& job_state, const Block& block) {
  const model::Job& job = job_state.job();
  const FileWords files = file_words(job, job_state.ranks());
  const bool is_amd = job.has_amd_gpus();
  const std::string needed = "GPU times: " + std::string(wording::gpu_times_setting(is_amd));
  bool any_kernels = false;
  for (uint32_t row : job.comms[block.comm].members) {
    if (row == model::kNoRow) continue;
    const model::Member& member = job.members[row];
    if (member.alignment == model::Member::Alignment::kNone && member.ops > 0)
      return {FindingId::kEvidenceMissingRing,
              files.overwritten + ", so the ranks' operations cannot be compared", files.keep_older};
    if (job_state.cut_short(member.process))
      return {FindingId::kEvidenceMissingCut, files.cut, files.keep_all};
    const bool has_kernels = has_kernel_times(job.processes[member.process]);
    if (job.processes[member.process].graphs && !has_kernels)
      return {FindingId::kEvidenceMissingGraphs,
              std::string("without GPU times, replays of ") + (is_amd ? "HIP" : "CUDA") +
                  " graphs are not recorded",
              needed};
    any_kernels = any_kernels || has_kernels;
  }
  if (auto of = gaps(job_state, block)) return *std::move(of);
  if (any_kernels)
    return {FindingId::kEvidenceMissingGpuTimes,
            "no GPU times show whether it ended: kernels are recorded only once they end, and none was",
            "GPU times of running kernels: lockstep trace -m deep"};
  return {FindingId::kEvidenceMissingGpuTimes, "no GPU times show whether it ended", needed};
}

// A rank whose process starts later than others' leaves its file later: a live run that has only begun lacks
// nobody yet.
bool has_only_begun(const JobState& job_state) {
  constexpr int64_t kStartUp = 30'000'000'000;
  if (!job_state.is_live()) return false;
  return std::all_of(job_state.actors().begin(), job_state.actors().end(), [&](const Actor& actor) {
    const int64_t first = job_state.job().processes[actor.process].row.first_ns;
    return first == 0 || actor.end_ns - first < kStartUp;
  });
}

Finding absent_files(const JobState& job_state) {
  Finding finding(FindingId::kEvidenceMissingFiles);
  finding.severity = Severity::kWarning;
  finding.ranks = job_state.absent();
  finding.statement = wording::ranks(job_state.absent()) + " of " + std::to_string(job_state.ranks()) +
                      " left no file; no other rank is stuck";
  const FileWords files = file_words(job_state.job(), job_state.ranks());
  finding.evidence.push_back(files.named);
  finding.advice = files.have;
  finding.needed_evidence = "the files of these ranks";
  return finding;
}

}  // namespace

void add_missing_evidence(const JobState& job_state, const std::vector<Block>& blocks,
                          std::vector<Finding>& findings) {
  if (!job_state.absent().empty() && !has_only_begun(job_state)) {
    findings.push_back(absent_files(job_state));
    return;
  }
  const Block* longest = nullptr;
  for (const Block& block : blocks) {
    if (block.kind == Block::Kind::kSilent && block.certain() &&
        (longest == nullptr || block.waiting.size() > longest->waiting.size() ||
         (block.waiting.size() == longest->waiting.size() && block.waited_ns < longest->waited_ns)))
      longest = &block;
  }
  if (longest == nullptr || !all_quiet(job_state, blocks)) return;
  if (auto swapped = swapped_verdict(job_state, blocks)) {
    findings.push_back(*std::move(swapped));
    return;
  }
  FindingBuilder builder(job_state);
  Missing of = missing(job_state, *longest);
  Finding finding = builder.make(of.id, *longest, of.actors, 0);
  finding.severity = Severity::kWarning;
  finding.statement = "no rank has made progress for " + wording::duration(longest->waited_ns) + " since " +
                      builder.operation(*longest) +
                      "; Lockstep cannot tell whether the job is stuck in it or outside NCCL: " + of.what;
  finding.advice = "Find out what the host code of the ranks is doing: take stacks while the job hangs.";
  for (uint32_t actor : of.actors) {
    const uint32_t process = job_state.actor(actor).process;
    finding.evidence.push_back(job_state.job().process_name(process) +
                               "'s file: " + job_state.gap(process).text);
    finding.advice = wording::kCopyAgain;
  }
  finding.needed_evidence = of.needed_evidence;
  findings.push_back(std::move(finding));
}

}  // namespace lockstep::analysis::hang
