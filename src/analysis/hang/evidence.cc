// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "analysis/hang/draft.h"
#include "analysis/hang/file_words.h"
#include "analysis/hang/verdicts.h"
#include "base/text/wording.h"

namespace lockstep::analysis::hang {
namespace {

// Nothing has moved anywhere for longer than is normal, and not everybody ended in order.
bool all_quiet(const Scene& scene, const std::vector<Block>& blocks) {
  bool open = false;
  for (const Actor& actor : scene.actors()) open = open || actor.fate != Fate::kClosed;
  if (!open || blocks.empty()) return false;
  return std::all_of(scene.actors().begin(), scene.actors().end(), [&](const Actor& actor) {
    return actor.quiet_ns > blocks.front().patience.certain_ns();
  });
}

struct Missing {
  std::string id, what, settle;
};

// CUPTI tells its kernels, each once it has ended.
bool tells_kernels(const model::JobProcess& process) {
  const auto& sources = process.ops.gpu_source;
  return std::find(sources.begin(), sources.end(), static_cast<uint8_t>(model::GpuTimeSource::kCupti)) !=
         sources.end();
}

Missing missing(const Scene& scene, const Block& block) {
  const model::Job& job = scene.job();
  const FileWords files = file_words(job, scene.ranks());
  bool any_kernels = false;
  for (uint32_t row : job.comms[block.comm].members) {
    if (row == model::kNoRow) continue;
    const model::Member& member = job.members[row];
    if (member.alignment == model::Member::Alignment::kNone && member.ops > 0)
      return {"evidence-missing.ring",
              files.overwritten + ", so that the ranks' operations cannot be compared", files.keep_older};
    if (scene.cut_short(member.process)) return {"evidence-missing.cut", files.cut, files.keep_all};
    const bool has_kernels = tells_kernels(job.processes[member.process]);
    if (job.processes[member.process].graphs && !has_kernels)
      return {"evidence-missing.graphs", "replays of CUDA graphs are not reported without GPU times",
              "GPU times: " + std::string(wording::kGpuTimesSetting)};
    any_kernels = any_kernels || has_kernels;
  }
  if (any_kernels)
    return {
        "evidence-missing.gpu-times",
        "no GPU times tell whether it ended: kernels are recorded once they have ended, and none of it is",
        "GPU times of what runs: lockstep trace -m deep"};
  return {"evidence-missing.gpu-times", "no GPU times tell whether it ended",
          "GPU times: " + std::string(wording::kGpuTimesSetting)};
}

// A rank whose process starts later than others' leaves its file later: a live run that has only begun lacks nobody yet.
bool has_only_begun(const Scene& scene) {
  constexpr int64_t kStartUp = 30'000'000'000;
  if (!scene.is_live()) return false;
  return std::all_of(scene.actors().begin(), scene.actors().end(), [&](const Actor& actor) {
    const int64_t first = scene.job().processes[actor.process].row.first_ns;
    return first == 0 || actor.end_ns - first < kStartUp;
  });
}

Finding absent_files(const Scene& scene) {
  Finding finding;
  finding.id = "evidence-missing.files";
  finding.finding_class = FindingClass::kEvidenceMissing;
  finding.severity = Severity::kWarning;
  finding.ranks = scene.absent();
  finding.statement = wording::ranks(scene.absent()) + " of " + std::to_string(scene.ranks()) +
                      " left no file; of the others there is nothing wrong to be seen";
  const FileWords files = file_words(scene.job(), scene.ranks());
  finding.evidence.push_back(files.named);
  finding.advice = files.have;
  finding.settle = "the files of these ranks";
  return finding;
}

}  // namespace

void add_missing_evidence(const Scene& scene, const std::vector<Block>& blocks,
                          std::vector<Finding>& findings) {
  if (!scene.absent().empty() && !has_only_begun(scene)) {
    findings.push_back(absent_files(scene));
    return;
  }
  const Block* longest = nullptr;
  for (const Block& block : blocks) {
    if (block.kind == Block::Kind::kSilent && block.certain() &&
        (longest == nullptr || block.waiting.size() > longest->waiting.size() ||
         (block.waiting.size() == longest->waiting.size() && block.waited_ns < longest->waited_ns)))
      longest = &block;
  }
  if (longest == nullptr || !all_quiet(scene, blocks)) return;
  if (auto swapped = swapped_verdict(scene, blocks)) {
    findings.push_back(*std::move(swapped));
    return;
  }
  Draft draft(scene);
  Missing of = missing(scene, *longest);
  Finding finding = draft.make(FindingClass::kEvidenceMissing, of.id, *longest, {}, 0);
  finding.severity = Severity::kWarning;
  finding.statement = "nothing has moved for " + wording::duration(longest->waited_ns) + " since " +
                      draft.operation(*longest) +
                      ", and whether the job stands still in it or outside NCCL cannot be told: " + of.what;
  finding.advice = "find out where the host code of some ranks is while it hangs: look at their stacks";
  finding.settle = of.settle;
  findings.push_back(std::move(finding));
}

}  // namespace lockstep::analysis::hang
