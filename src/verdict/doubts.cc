// SPDX-License-Identifier: Apache-2.0
// Asks what an input as a whole cannot answer for, before anybody believes its verdict. Files of two jobs
// give each rank two histories, and every comparison between them is nonsense; so a rank that is there twice,
// at one time and as two processes, is said before all else. A restarted rank and a copied file look alike at
// first: pid, boot and times tell them apart. "No problem" needs evidence of its own: half of the operations
// seen on all their ranks.
#include "verdict/doubts.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <set>

#include "analysis/log_rules/symptoms.h"
#include "base/text/units.h"
#include "base/text/wording.h"
#include "model/restarts.h"
#include "readers/native/native.h"
#include "run/process_files.h"

namespace lockstep::verdict {
namespace {

namespace fs = std::filesystem;
using analysis::Finding;
using analysis::FindingId;

Finding doubt(FindingId id, const DiagnosedRun& run) {
  Finding finding(id);
  if (!run.evidence.empty()) finding.sources = {run.evidence.front().source};
  return finding;
}

std::string digits(std::string_view boot_id) {
  std::string digits(boot_id);
  // Boot ids are written with and without dashes.
  std::erase(digits, '-');
  return digits;
}

// Only files of our own capture say job, process and boot for certain.
bool is_captured(const Evidence& evidence, const model::JobProcess& process) {
  return evidence.job->files.empty() && process.row.retention != 0;
}

// torchrun calls every job that was given no id by one name.
bool is_job_id(std::string_view job) { return !job.empty() && job != "none"; }

std::set<std::string> job_ids(const DiagnosedRun& run) {
  std::set<std::string> ids;
  for (const Evidence& evidence : run.evidence) {
    if (!evidence.job) continue;
    for (const model::JobProcess& process : evidence.job->processes) {
      const std::string_view id = evidence.job->text(process.row.job);
      if (is_captured(evidence, process) && is_job_id(id)) ids.emplace(id);
    }
  }
  return ids;
}

std::string place(const model::Job& job, const model::JobProcess& process) {
  return model::Who{.pid = process.row.pid, .host = std::string(job.text(process.row.host))}.name();
}

// "pid 1 on a, pid 2 on b": two processes that are one rank at one time, or one process that is there twice.
std::optional<std::string> rank_twice(const Evidence& evidence, int32_t& rank) {
  const model::Job& job = *evidence.job;
  const std::vector<bool> replaced = model::replaced_processes(job);
  std::map<int32_t, const model::JobProcess*> seen;
  for (size_t i = 0; i < job.processes.size(); ++i) {
    const model::JobProcess& process = job.processes[i];
    if (process.row.rank < 0 || process.members.empty() || replaced[i] || !is_captured(evidence, process))
      continue;
    const auto [at, is_new] = seen.try_emplace(process.row.rank, &process);
    if (is_new) continue;
    // One pid of one boot is one process, so its second file is a copy of the first.
    const bool is_copy =
        at->second->row.pid == process.row.pid && at->second->row.boot_id == process.row.boot_id;
    // A program may start others under its own rank.
    if (!is_copy && at->second->row.job == process.row.job && is_job_id(job.text(process.row.job))) continue;
    rank = process.row.rank;
    return is_copy ? place(job, process) + ", and a copy of its file"
                   : place(job, *at->second) + ", " + place(job, process);
  }
  return std::nullopt;
}

// Ranks that two inputs hold, each as a process of its own; and the first two such inputs.
std::vector<int32_t> shared_ranks(const std::vector<Sighting>& sightings, std::string& inputs) {
  std::map<int32_t, const Sighting*> first;
  std::set<int32_t> shared;
  for (const Sighting& one : sightings) {
    if (one.rank < 0) continue;
    const auto [at, is_new] = first.try_emplace(one.rank, &one);
    const Sighting& other = *at->second;
    // Within one run directory a rank may be there twice: restarted, or with one file for each capture
    // library.
    if (is_new || other.input == one.input || (other.pid == one.pid && other.boot_id == one.boot_id))
      continue;
    if (shared.empty()) inputs = other.input + " and " + one.input;
    shared.insert(one.rank);
  }
  return {shared.begin(), shared.end()};
}

// The name of a file that two of the inputs hold.
std::string copied_file(const std::vector<Sighting>& sightings, std::string& inputs) {
  std::map<std::string, const Sighting*> first;
  for (const Sighting& one : sightings) {
    if (one.file.empty()) continue;
    const auto [at, is_new] = first.try_emplace(one.file, &one);
    const Sighting& other = *at->second;
    if (is_new || other.pid != one.pid || other.boot_id != one.boot_id) continue;
    inputs = other.input + " and " + one.input;
    return one.file;
  }
  return {};
}

std::vector<std::string> unread(const DiagnosedRun& run) {
  std::vector<std::string> files;
  for (const input::LossLine& trouble : run.troubles) files.push_back(trouble.detail);
  for (const Evidence& evidence : run.evidence) {
    if (!evidence.job) continue;
    const model::Job& job = *evidence.job;
    for (size_t i = 0; i < job.losses.size(); ++i) {
      if (job.text(job.losses.kind[i]) == "unreadable_file")
        files.emplace_back(job.text(job.losses.detail[i]));
    }
  }
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  return files;
}

}  // namespace

std::vector<Sighting> sightings(const std::vector<std::string>& paths) {
  std::vector<Sighting> all;
  std::set<fs::path> known;
  const auto add = [&](const run::ProcessFile& file, const std::string& input) {
    std::error_code error;
    // By its real path: a file that is named twice, or through a link, is no copy.
    if (!file.valid || !known.insert(fs::weakly_canonical(file.path, error)).second) return;
    all.push_back({input, static_cast<int32_t>(file.rank), digits(file.process.boot_id), file.process.pid,
                   fs::path(file.path).filename()});
  };
  for (const std::string& path : paths) {
    std::error_code error;
    const bool is_folder = fs::is_directory(path, error);
    if (!is_folder && !path.ends_with(".lks")) continue;
    const std::string input = is_folder ? path : fs::path(path).parent_path().string();
    for (const run::ProcessFile& file : run::process_files_at(path)) add(file, input);
  }
  return all;
}

std::optional<Finding> several_jobs(const DiagnosedRun& run, std::vector<Sighting> sightings) {
  Finding finding = doubt(FindingId::kEvidenceMissingSeveralJobs, run);
  // Ahead of every finding of its severity, as these compare what does not belong together.
  finding.weight = std::numeric_limits<double>::max();
  finding.advice = "Give the files of one run, each once; `lockstep compare A B` compares two runs.";
  for (const Evidence& evidence : run.evidence) {
    // The paths name who is in these.
    if (!evidence.job || evidence.source == readers::native::kFormat.summary) continue;
    for (const model::JobProcess& process : evidence.job->processes) {
      if (is_captured(evidence, process))
        sightings.push_back({evidence.source, process.row.rank,
                             digits(evidence.job->text(process.row.boot_id)), process.row.pid});
    }
  }
  std::string inputs;
  // The surest sign comes first: job ids are the launcher's own, ranks and copies are conclusions.
  if (const std::set<std::string> ids = job_ids(run); ids.size() > 1) {
    finding.statement = "these are files of " + format_count(ids.size()) + " jobs: " + *ids.begin() +
                        " and " + (ids.size() == 2 ? *ids.rbegin() : "others");
    return finding;
  }
  if (const std::vector<int32_t> ranks = shared_ranks(sightings, inputs); !ranks.empty()) {
    finding.statement = "these are files of two runs: " + inputs + " both hold " + wording::ranks(ranks);
    finding.ranks = ranks;
    return finding;
  }
  if (const std::string file = copied_file(sightings, inputs); !file.empty()) {
    finding.statement = "the same files were given twice: " + inputs + " both hold " + file;
    return finding;
  }
  for (const Evidence& evidence : run.evidence) {
    int32_t rank = -1;
    const auto places = evidence.job ? rank_twice(evidence, rank) : std::nullopt;
    if (!places) continue;
    finding.statement = "rank " + std::to_string(rank) + " appears twice at the same time (" + *places +
                        "): these are not the files of one run";
    finding.ranks = {rank};
    return finding;
  }
  return std::nullopt;
}

bool is_in_progress(const Finding& finding, const DiagnosedRun& run) {
  constexpr int64_t kCreationNs = 30'000'000'000;
  if (finding.id != FindingId::kInitStuckLog && finding.id != FindingId::kEvidenceMissingInit) return false;
  for (const Evidence& evidence : run.evidence) {
    if (!evidence.job || !cover(evidence).still_runs()) continue;
    std::set<int32_t> ranks, busy;
    for (const model::JobProcess& process : evidence.job->processes) {
      const model::Process& row = process.row;
      ranks.insert(row.rank);
      // Measured on the process's own clock, from its last record: a creation that takes longer is reported.
      if (std::max(row.heartbeat_ns, row.last_ns) - std::max(row.last_ns, row.start_ns) < kCreationNs)
        busy.insert(row.rank);
    }
    // That others are busy says nothing of those in the creation.
    return !busy.empty() && std::all_of(finding.ranks.begin(), finding.ranks.end(), [&](int32_t rank) {
      return busy.contains(rank) || !ranks.contains(rank);
    });
  }
  return false;
}

std::optional<Finding> unread_inputs(const DiagnosedRun& run) {
  const std::vector<std::string> files = unread(run);
  if (files.empty()) return std::nullopt;
  Finding finding = doubt(FindingId::kEvidenceMissingUnread, run);
  finding.statement = files.size() == 1
                          ? "an input could not be read and was left out: " + files.front()
                          : plural(files.size(), "input") + " could not be read and were left out";
  if (files.size() > 1) finding.evidence = files;
  finding.advice = "Copy these files again from where they were written, or leave them out.";
  return finding;
}

bool is_enough(const Coverage& coverage) {
  // Half of the operations seen on all ranks, and no more ranks missing than there.
  return coverage.ops > 0 && coverage.matched * 2 >= coverage.ops &&
         coverage.missing_ranks.size() <= coverage.ranks.size();
}

namespace {
using analysis::log_rules::first_symptom;
using readers::nccl_log::LineKind;
using readers::nccl_log::LogModel;

// Lines that nobody here knows and that report an error, and how many there are.
uint64_t unknown_errors(const DiagnosedRun& run, std::vector<std::string>& lines) {
  uint64_t count = 0;
  for (const Evidence& evidence : run.evidence) {
    if (evidence.logs == nullptr) continue;
    for (const auto& state : evidence.logs->states) {
      count += state.errors;
      for (const auto& line : state.first_errors)
        lines.push_back(evidence.logs->files[line.file] + ':' + std::to_string(line.line) + ": " + line.text);
    }
  }
  return count;
}

// The logs show how NCCL starts, and no communicator that was complete.
bool ends_while_it_starts(const DiagnosedRun& run) {
  bool has_begun = false;
  for (const Evidence& evidence : run.evidence) {
    if (evidence.logs == nullptr) continue;
    const LogModel& model = *evidence.logs;
    for (const LineKind kind : {LineKind::kBootstrap, LineKind::kNetworkUsed, LineKind::kSocketCards})
      has_begun = has_begun || !model.of(kind).empty();
    const bool is_made = std::any_of(model.comms.begin(), model.comms.end(),
                                     [](const auto& comm) { return comm.completed || comm.is_used; });
    if (is_made || model.collectives > 0) return false;
  }
  return has_begun;
}

// Of logs alone, what they leave open.
void state_of_logs(const DiagnosedRun& run, uint64_t warned, Finding& finding) {
  constexpr size_t kShown = 6;
  std::vector<std::string> lines;
  const uint64_t errors = unknown_errors(run, lines);
  const bool is_start = ends_while_it_starts(run);
  const std::string begin = warned > 0 ? "NCCL printed " + plural(warned, "warning") + "; " : "";
  if (errors > 0) {
    finding.statement =
        begin + plural(errors, "line") + " may report an error in words that Lockstep does not know";
    lines.resize(std::min(lines.size(), kShown));
    finding.evidence = lines;
  } else if (is_start) {
    finding.statement = begin + "the logs show how NCCL starts, and no communicator that is complete";
  } else {
    finding.statement =
        begin + (warned > 0 ? "the logs cannot show whether the job is healthy"
                            : "the logs show no problem, but cannot show that the job is healthy");
  }
  finding.advice =
      is_start
          ? "If the job hangs there: find out where all its ranks are (`py-spy dump --native`), and whether the "
            "hosts reach each other over the interface that the `Bootstrap` line names."
          : "If the job hangs, take the stacks of all ranks while it does (`py-spy dump`), or give other "
            "recordings of it along with the logs.";
}

// What somebody says of the job beside logs that show no trouble.
void add_symptom(const DiagnosedRun& run, Finding& finding) {
  for (const Evidence& evidence : run.evidence) {
    const auto found = evidence.logs == nullptr ? std::nullopt : first_symptom(*evidence.logs);
    if (!found) continue;
    finding.id = FindingId::kEvidenceMissingSymptom;
    finding.statement += "; the text describes " + std::string(found->what) + ": " + std::string(found->text);
    finding.evidence.insert(finding.evidence.begin(), evidence.logs->files[found->where->file] + ':' +
                                                          std::to_string(found->where->line) + ": " +
                                                          found->where->text);
    finding.advice = std::string(found->advice) + (ends_while_it_starts(run) ? " " + finding.advice : "");
    return;
  }
}

uint64_t warnings(const DiagnosedRun& run) {
  uint64_t count = 0;
  for (const Evidence& evidence : run.evidence) {
    if (evidence.logs == nullptr) continue;
    for (const auto& process : evidence.logs->processes) count += process.warnings;
  }
  return count;
}
}  // namespace

std::optional<Finding> too_little(const DiagnosedRun& run) {
  uint64_t ops = 0, matched = 0;
  bool logs_alone = !run.evidence.empty();
  for (const Evidence& evidence : run.evidence) {
    logs_alone = logs_alone && evidence.logs != nullptr;
    if (evidence.is_of_hosts || evidence.is_empty) continue;
    // Snapshots count the operations of all ranks themselves.
    if (!evidence.job && evidence.logs == nullptr) return std::nullopt;
    if (!evidence.job) continue;
    const Coverage coverage = cover(evidence);
    // One kind that shows enough is enough, so the others need not be counted.
    if (is_enough(coverage) || coverage.still_runs()) return std::nullopt;
    ops += coverage.ops;
    matched += coverage.matched;
  }
  const uint64_t warned = warnings(run);
  Finding finding = doubt(FindingId::kEvidenceMissingLittle, run);
  finding.statement =
      ops == 0 ? "no problem was seen, but no operation was recorded: too little to call the job healthy"
               : "no problem was seen, but of " + plural(ops, "operation") + " only " +
                     format_count(matched) + (matched == 1 ? " was" : " were") +
                     " seen on all their ranks: too little to call the job healthy";
  finding.advice = "Give the files of all ranks together.";
  if (logs_alone) {
    state_of_logs(run, warned, finding);
    add_symptom(run, finding);
  }
  finding.needed_evidence =
      "capture files of all ranks (lockstep trace), Flight Recorder dumps, or snapshots of NCCL's RAS";
  return finding;
}

}  // namespace lockstep::verdict
