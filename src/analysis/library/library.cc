// SPDX-License-Identifier: Apache-2.0
// Do the ranks of a communicator run one NCCL? Compared are releases, and where those agree builds (GNU build
// ids); where a library lies is nobody's fault. What a rank does not say is not compared.
#include <algorithm>
#include <map>
#include <set>

#include "analysis/analysis.h"
#include "base/text/wording.h"
#include "model/torch/process_group.h"

namespace lockstep::analysis::library {
namespace {

constexpr size_t kLongestPath = 160;

// Processes by what they run, as text.
using ByText = std::map<std::string, std::vector<uint32_t>>;

std::string build_of(const model::Job& job, const model::Process& row) {
  return wording::name(job.text(row.nccl_build_id));
}

std::vector<int32_t> ranks_of(const model::Job& job, const std::vector<uint32_t>& processes) {
  std::vector<int32_t> ranks;
  for (const uint32_t process : processes) {
    if (job.processes[process].row.rank >= 0) ranks.push_back(job.processes[process].row.rank);
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

// The processes that share a communicator with each other, each communicator by itself.
std::vector<std::vector<uint32_t>> groups(const model::Job& job) {
  std::set<std::vector<uint32_t>> groups;
  for (const model::JobComm& comm : job.comms) {
    // Groups of `lockstep.h` are the program's own; NCCL need not run in them.
    if (comm.declared) continue;
    std::set<uint32_t> processes;
    for (const auto* members : {&comm.members, &comm.unranked}) {
      for (const uint32_t member : *members) {
        if (member != model::kNoRow) processes.insert(job.members[member].process);
      }
    }
    if (processes.size() > 1) groups.emplace(processes.begin(), processes.end());
  }
  std::vector<std::vector<uint32_t>> largest(groups.begin(), groups.end());
  std::stable_sort(largest.begin(), largest.end(),
                   [](const auto& a, const auto& b) { return a.size() > b.size(); });
  return largest;
}

std::string line_of(const model::Job& job, const std::string& what, const std::vector<uint32_t>& processes) {
  const model::Process& row = job.processes[processes.front()].row;
  const std::string path = wording::name(job.text(row.nccl_library), kLongestPath);
  std::string line = wording::count(processes.size(), "process") + " (" +
                     job.process_name(processes.front()) + (processes.size() > 1 ? " and others" : "") +
                     "): " + what;
  if (!path.empty()) line += ", " + path;
  return line;
}

Finding differ(const model::Job& job, const ByText& by, FindingId id, const char* what) {
  Finding finding(id);
  // Who runs what most do not is named; where as many run the one as the other, nobody is.
  const auto most = std::max_element(
      by.begin(), by.end(), [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  std::vector<uint32_t> others;
  for (const auto& [text, processes] : by) {
    finding.evidence.push_back(line_of(job, text, processes));
    if (text != most->first) others.insert(others.end(), processes.begin(), processes.end());
  }
  // More than all others together, not only more than the next.
  const bool is_majority = most->second.size() > others.size();
  if (is_majority) finding.ranks = ranks_of(job, others);
  finding.statement = std::string("ranks of one communicator run different ") + what;
  if (is_majority && !finding.ranks.empty())
    finding.statement = wording::ranks(finding.ranks) + " " + (finding.ranks.size() > 1 ? "run" : "runs") +
                        " another " + (id == FindingId::kMisconfiguredNcclBuild ? "build" : "release") +
                        " of NCCL than the ranks they talk to";
  finding.advice =
      "Give all ranks one libnccl: one image or environment on all hosts, the same CUDA flavour (cu12, cu13), and the same LD_LIBRARY_PATH and LD_PRELOAD. `lockstep info --json` shows each rank's path and build id.";
  return finding;
}

void compare(const model::Job& job, std::vector<Finding>& findings) {
  for (const std::vector<uint32_t>& group : groups(job)) {
    ByText releases, builds;
    for (const uint32_t process : group) {
      const model::Process& row = job.processes[process].row;
      if (row.nccl_version != 0)
        releases["NCCL " + model::nccl_version_text(row.nccl_version)].push_back(process);
      if (row.nccl_build_id != 0 && !build_of(job, row).empty())
        builds["build " + build_of(job, row)].push_back(process);
    }
    // One finding suffices: the largest communicator comes first, and smaller ones repeat what it shows.
    if (releases.size() > 1) {
      findings.push_back(differ(job, releases, FindingId::kMisconfiguredNcclRelease, "releases of NCCL"));
      return;
    }
    if (builds.size() > 1) {
      findings.push_back(
          differ(job, builds, FindingId::kMisconfiguredNcclBuild, "builds of one release of NCCL"));
      return;
    }
  }
}

// One that is mapped beside the one in use, and is not the same file under another name.
void find_two(const model::Job& job, std::vector<Finding>& findings) {
  std::vector<uint32_t> processes;
  std::string example;
  for (uint32_t i = 0; i < job.processes.size(); ++i) {
    const model::Process& row = job.processes[i].row;
    const std::string_view others = job.text(row.other_nccl), build = job.text(row.nccl_build_id);
    // A line is a build id, a space and a path.
    for (size_t at = 0; at < others.size();) {
      const std::string_view line = others.substr(at, others.find('\n', at) - at);
      at += line.size() + 1;
      if (build.empty() || line.starts_with(build)) continue;
      if (processes.empty() || processes.back() != i) processes.push_back(i);
      if (example.empty())
        example = job.process_name(i) + " uses " + wording::name(job.text(row.nccl_library), kLongestPath) +
                  ", and has " + wording::name(line.substr(line.find(' ') + 1), kLongestPath) + " too";
    }
  }
  if (processes.empty()) return;
  Finding finding(FindingId::kMisconfiguredNcclTwice);
  finding.ranks = ranks_of(job, processes);
  finding.statement = (processes.size() == 1 ? job.process_name(processes[0]) + " has"
                                             : wording::count(processes.size(), "process") + " have") +
                      " two different libraries of NCCL loaded";
  finding.evidence.push_back(example);
  finding.advice =
      "Make everything linked against NCCL find the same file: remove one of the packages (nvidia-nccl-cu12 beside nvidia-nccl-cu13, a system libnccl2), or set LD_PRELOAD to the one you want.";
  findings.push_back(std::move(finding));
}

void run(const model::Job& job, std::vector<Finding>& findings) {
  compare(job, findings);
  find_two(job, findings);
}

}  // namespace

extern const Analysis kAnalysis = {.name = "library", .question = "Do all ranks run one NCCL?", .run = run};

}  // namespace lockstep::analysis::library
