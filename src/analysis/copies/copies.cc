// SPDX-License-Identifier: Apache-2.0
// Do copies of host memory that is not pinned hold up the GPUs? The driver copies such memory twice, piece by
// piece, and the caller waits; what they usually take while no kernel runs is what the program feels.
#include <algorithm>

#include "analysis/analysis.h"
#include "base/text/wording.h"

namespace lockstep::analysis::copies {
namespace {

constexpr double kWorthAWarning = 0.05;
constexpr size_t kMostLines = 4;

double share(const model::PageableCopies& of) {
  return of.length_ns > 0 ? static_cast<double>(of.usual_ns) / static_cast<double>(of.length_ns) : 0;
}

std::string line_of(const model::Job& job, uint32_t process) {
  const model::PageableCopies& of = job.processes[process].pageable;
  std::string line = job.process_name(process) + ": " + wording::count(of.copies, "copy");
  if (of.bytes > 0)
    line += " of " + wording::bytes(of.bytes) + " in all at " +
            wording::rate(static_cast<double>(of.bytes) / (static_cast<double>(of.busy_ns) * 1e-9));
  return line + ", " + wording::duration(of.alone_ns) + " of " + wording::duration(of.length_ns) +
         " while no kernel ran";
}

void run(const model::Job& job, std::vector<Finding>& findings) {
  std::vector<uint32_t> held_up;
  for (uint32_t process = 0; process < job.processes.size(); ++process)
    if (share(job.processes[process].pageable) >= kWorthAWarning) held_up.push_back(process);
  if (held_up.empty()) return;
  std::stable_sort(held_up.begin(), held_up.end(), [&job](uint32_t a, uint32_t b) {
    return share(job.processes[a].pageable) > share(job.processes[b].pageable);
  });
  const model::PageableCopies& most = job.processes[held_up.front()].pageable;
  Finding finding(FindingId::kSlowLinkPageable);
  finding.weight = static_cast<double>(most.usual_ns);
  for (const uint32_t process : held_up)
    if (job.processes[process].row.rank >= 0) finding.ranks.push_back(job.processes[process].row.rank);
  std::sort(finding.ranks.begin(), finding.ranks.end());
  const std::string who =
      finding.ranks.empty() ? job.process_name(held_up.front()) : wording::ranks(finding.ranks);
  finding.statement = who + ": copies of host memory that is not pinned usually take " +
                      (held_up.size() > 1 ? "up to " : "") + wording::percent(share(most)) +
                      " of the time, while no kernel runs";
  for (size_t i = 0; i < held_up.size() && i < kMostLines; ++i)
    finding.evidence.push_back(line_of(job, held_up[i]));
  if (held_up.size() > kMostLines)
    finding.evidence.push_back("and " + wording::count(held_up.size() - kMostLines, "process") + " more");
  finding.evidence.push_back(
      "counted from a process' first kernel of communication to its last; the share is the median of eight "
      "parts of that time, so that what is loaded or saved once does not count");
  finding.advice =
      "Pin that memory (PyTorch: pin_memory=True of the DataLoader, and .to(device, non_blocking=True)), so that copies run at the speed of the link and beside kernels; `lockstep links` measures that speed.";
  findings.push_back(std::move(finding));
}

}  // namespace

extern const Analysis kAnalysis = {
    .name = "copies",
    .question = "Do copies of host memory that is not pinned hold up the GPUs?",
    .run = run};

}  // namespace lockstep::analysis::copies
