// SPDX-License-Identifier: Apache-2.0
// Decides who ought to have left a file and did not, from two independent lists: the files, and the processes
// that a launcher saw. A rank in the environment or a mapped NCCL says that a process takes part in the job,
// but both are inherited: data loaders have their parent's rank, and torchrun maps NCCL and only starts
// others. So whoever has a file excuses its ancestors and descendants, and of the processes of one rank only
// the topmost is named. Being too lenient here costs a line of the report; a false alarm would name a process
// that was never meant to be seen.
//
// Ranks beyond those of the files and the census are missed by arithmetic, from the world size that a
// launcher named. That also finds ranks of hosts that nobody watched.
#include "run/missing_processes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace lockstep::run {
namespace {

constexpr const char* kAdvice =
    "check that NCCL_PROFILER_PLUGIN reaches them (ssh, sudo and containers may drop it), and that their "
    "NCCL is 2.23 or newer";
constexpr const char* kGone =
    "copy it from where the job wrote it; if it was never created, NCCL's log or the job's stderr says why";
constexpr int64_t kMostRanks = 1 << 20;  // a world size beyond this is not believed
constexpr size_t kMostListed = 16;

std::string command_of(const SeenProcess& seen) {
  std::string text;
  for (const std::string& word : seen.argv) {
    if (!text.empty()) text += ' ';
    text += word;
    if (text.size() > 120) return text.substr(0, 117) + "...";
  }
  return text.empty() ? "?" : text;
}

// Which processes of one census are not missed: those with a file, their ancestors and descendants, and
// processes without a rank above ones with a rank, which start the job and take no part in it.
std::vector<bool> excused(const CensusReport& census, const std::vector<ProcessFile>& files) {
  std::set<std::pair<int64_t, uint64_t>> with_file;
  for (const ProcessFile& file : files) {
    if (file.process.host == census.launcher.host)
      with_file.emplace(file.process.pid, file.process.start_ticks);
  }
  const std::vector<SeenProcess>& seen = census.processes;
  std::map<int64_t, size_t> row_of;  // parents come first, so a reused pid means its latest owner
  std::vector<size_t> parent(seen.size());
  std::vector<bool> excused(seen.size()), below(seen.size());
  for (size_t i = 0; i < seen.size(); ++i) {
    auto up = row_of.find(seen[i].parent);
    parent[i] = up == row_of.end() ? i : up->second;
    row_of[seen[i].pid] = i;
    bool has_file = with_file.contains({seen[i].pid, seen[i].start_ticks});
    // Parents come first in a census, so one pass downwards is enough.
    below[i] = has_file || (parent[i] != i && below[parent[i]]);
    if (below[i]) excused[i] = true;
    if (!has_file && seen[i].rank < 0) continue;
    for (size_t at = i; parent[at] != at; at = parent[at]) {
      if (has_file || seen[parent[at]].rank < 0) excused[parent[at]] = true;
    }
  }
  return excused;
}

// "0-3, 6"
std::string ranges(const std::set<int64_t>& ranks) {
  std::string text;
  size_t listed = 0;
  for (auto first = ranks.begin(); first != ranks.end();) {
    auto last = first, next = std::next(first);
    while (next != ranks.end() && *next == *last + 1) last = next++;
    if (++listed > kMostListed) return text + ", ...";
    text += (listed > 1 ? ", " : "") + std::to_string(*first);
    if (last != first) text += "-" + std::to_string(*last);
    first = next;
  }
  return text;
}

std::string list(const std::set<std::string>& words) {
  std::string text;
  size_t listed = 0;
  for (const std::string& word : words) {
    if (++listed > kMostListed) return text + ", ...";
    text += (listed > 1 ? ", " : "") + word;
  }
  return text;
}

// Processes that a report names in one line.
struct Missed {
  std::set<int64_t> ranks;
  std::set<std::string> hosts;
  uint64_t processes = 0;
  int64_t first_pid = 0;
  std::string first_command;

  void add(const SeenProcess& seen, const std::string& host) {
    if (seen.rank >= 0) ranks.insert(seen.rank);
    hosts.insert(host);
    if (processes++ > 0) return;
    first_pid = seen.pid;
    first_command = command_of(seen);
  }
  std::string who() const {
    return ranks.empty() ? std::to_string(processes) + (processes == 1 ? " process" : " processes")
                         : (ranks.size() == 1 ? "rank " : "ranks ") + ranges(ranks);
  }
  RunLoss loss(bool captured) const {
    std::string who = this->who();
    std::string pid = (processes > 1 ? "first pid " : "pid ") + std::to_string(first_pid);
    const std::string shown = " (" + pid + ": " + first_command + "); ";
    who += " on host" + std::string(hosts.size() > 1 ? "s " : " ") + list(hosts);
    if (captured)
      return {"file_gone", processes,
              who + " loaded the capture library, and " +
                  (processes > 1 ? "their files are" : "its file is") + " gone" + shown + kGone};
    return {"never_loaded", processes, who + " never loaded the capture library" + shown + kAdvice};
  }
};

// Of the processes of a rank, the topmost may be a shell around the one that captures.
bool any_captures(const CensusReport& census, int64_t rank) {
  return std::any_of(census.processes.begin(), census.processes.end(),
                     [&](const SeenProcess& seen) { return seen.rank == rank && seen.captures; });
}

// Processes with AMD's runtime in which it never called our library: those that have a file of another one of
// ours, or use RCCL. A starter or a helper that maps it has neither.
std::optional<RunLoss> without_hsa(const std::vector<ProcessFile>& files,
                                   const std::vector<CensusReport>& censuses) {
  Missed missed;
  for (const CensusReport& census : censuses) {
    if (!census.expects_hsa) continue;
    for (const SeenProcess& seen : census.processes) {
      const auto is_its = [&](const ProcessFile& file) {
        return file.process.host == census.launcher.host && file.process.pid == seen.pid &&
               file.process.start_ticks == seen.start_ticks;
      };
      const bool has_any = std::any_of(files.begin(), files.end(), is_its);
      const bool has_hsa = std::any_of(files.begin(), files.end(),
                                       [&](const ProcessFile& file) { return is_its(file) && file.is_hsa; });
      if (seen.maps_hsa && !has_hsa && (has_any || seen.captures)) missed.add(seen, census.launcher.host);
    }
  }
  if (missed.processes == 0) return std::nullopt;
  return RunLoss{
      "hsa_never_called", missed.processes,
      "AMD kernels of " + missed.who() + " were not recorded: its runtime never called our library (pid " +
          std::to_string(missed.first_pid) + ": " + missed.first_command +
          "); check that HSA_TOOLS_LIB (with LOCKSTEP_HSA=sdk ROCP_TOOL_LIBRARIES) reaches them, and that "
          "HSA_TOOLS_ROCPROFILER_V1_TOOLS is 1 where another tool loads rocprofiler's SDK"};
}

}  // namespace

std::vector<RunLoss> missing_processes(const std::vector<ProcessFile>& files,
                                       const std::vector<CensusReport>& censuses) {
  std::vector<RunLoss> losses;
  std::set<int64_t> ranks_seen;
  int64_t world = -1;
  for (const ProcessFile& file : files) {
    if (file.rank >= 0) ranks_seen.insert(file.rank);
    world = std::max(world, file.world);
  }
  Missed ranked[2];                                         // by whether they have loaded the capture library
  std::map<std::pair<bool, std::string>, Missed> rankless;  // likewise, and by command
  for (const CensusReport& census : censuses) {
    std::vector<bool> present = excused(census, files);
    for (size_t i = 0; i < census.processes.size(); ++i) {
      const SeenProcess& seen = census.processes[i];
      if (present[i] || (seen.rank < 0 && !seen.maps_nccl) || ranks_seen.contains(seen.rank)) continue;
      // The topmost process of a rank stands for its helpers.
      if (ranked[0].ranks.contains(seen.rank) || ranked[1].ranks.contains(seen.rank)) continue;
      const bool captured = seen.captures || (seen.rank >= 0 && any_captures(census, seen.rank));
      (seen.rank >= 0 ? ranked[captured] : rankless[{captured, command_of(seen)}])
          .add(seen, census.launcher.host);
    }
    if (census.unseen > 0) {
      losses.push_back({"census_cut", census.unseen,
                        "the census does not hold all processes on " + census.launcher.host +
                            ": some may be missing unnoticed"});
    }
  }
  for (const bool captured : {false, true}) {
    if (ranked[captured].processes > 0) losses.push_back(ranked[captured].loss(captured));
  }
  for (const auto& [key, missed] : rankless) losses.push_back(missed.loss(key.first));
  if (const auto loss = without_hsa(files, censuses)) losses.push_back(*loss);
  std::set<int64_t> missing;
  for (int64_t rank = 0; rank < std::min(world, kMostRanks); ++rank) {
    if (!ranks_seen.contains(rank) && !ranked[0].ranks.contains(rank) && !ranked[1].ranks.contains(rank))
      missing.insert(rank);
  }
  if (!missing.empty()) {
    losses.push_back(
        {"missing_rank", missing.size(),
         "missing file: " + std::string(missing.size() == 1 ? "rank " : "ranks ") + ranges(missing) + " of " +
             std::to_string(world) +
             "; on several nodes all ranks need the same run directory, on a shared file system"});
  }
  return losses;
}

void note_captured(CensusReport& census, const std::vector<ProcessFile>& files) {
  for (const ProcessFile& file : files) {
    if (file.process.host != census.launcher.host) continue;
    std::vector<SeenProcess>& all = census.processes;
    auto seen = std::find_if(all.begin(), all.end(), [&](const SeenProcess& other) {
      return other.pid == file.process.pid && other.start_ticks == file.process.start_ticks;
    });
    // It lived between two samples: its file shows that it was there.
    if (seen == all.end()) {
      if (file.rank < 0) continue;  // other launchers on this host share the run
      seen = all.emplace(all.end());
      seen->pid = file.process.pid;
      seen->parent = census.launcher.pid;
      seen->start_ticks = file.process.start_ticks;
    }
    seen->captures = true;
    if (seen->rank < 0) seen->rank = file.rank, seen->world = file.world;
  }
}

std::vector<RunLoss> missing_processes(const std::string& run) {
  std::vector<CensusReport> censuses = read_censuses(run);
  // A folder of the hosts' own directories is read as one run.
  for (const std::string& folder : folders_in(run)) {
    for (CensusReport& census : read_censuses(folder)) censuses.push_back(std::move(census));
  }
  return missing_processes(process_files_at(run), censuses);
}

}  // namespace lockstep::run
