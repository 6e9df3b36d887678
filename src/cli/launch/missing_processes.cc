// SPDX-License-Identifier: Apache-2.0
#include "cli/launch/missing_processes.h"

#include <algorithm>
#include <map>
#include <set>

namespace lockstep::cli::launch {
namespace {

constexpr const char* kAdvice =
    "check that NCCL_PROFILER_PLUGIN reaches it, and that its NCCL is 2.23 or newer";
constexpr int64_t kMostRanks = 1 << 20;  // a world size beyond this is not believed

std::string command_of(const SeenProcess& seen) {
  std::string text;
  for (const std::string& word : seen.argv) {
    if (!text.empty()) text += ' ';
    text += word;
    if (text.size() > 120) return text.substr(0, 117) + "...";
  }
  return text.empty() ? "?" : text;
}

// The processes of one census with a file, and their ancestors and descendants.
std::set<size_t> related_to_files(const CensusReport& census, const std::vector<ProcessFile>& files) {
  std::set<std::pair<int64_t, uint64_t>> with_file;
  for (const ProcessFile& file : files) {
    if (file.process.host == census.launcher.host)
      with_file.emplace(file.process.pid, file.process.start_ticks);
  }
  std::map<int64_t, size_t>
      row_of;  // parents come before their children, so a reused pid means its latest owner
  std::vector<size_t> parent(census.processes.size());
  std::set<size_t> related;
  std::vector<bool> below(census.processes.size());
  for (size_t i = 0; i < census.processes.size(); ++i) {
    const SeenProcess& seen = census.processes[i];
    auto up = row_of.find(seen.parent);
    parent[i] = up == row_of.end() ? i : up->second;
    row_of[seen.pid] = i;
    bool has_file = with_file.contains({seen.pid, seen.start_ticks});
    below[i] = has_file || (parent[i] != i && below[parent[i]]);
    if (below[i]) related.insert(i);
    if (!has_file) continue;
    for (size_t at = i; parent[at] != at; at = parent[at]) related.insert(parent[at]);
  }
  return related;
}

std::string rank_list(const std::vector<int64_t>& ranks) {
  std::string text;
  for (size_t i = 0; i < ranks.size() && i < 16; ++i) text += (i > 0 ? ", " : "") + std::to_string(ranks[i]);
  return ranks.size() > 16 ? text + ", ..." : text;
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
  std::set<int64_t> ranks_reported;
  for (const CensusReport& census : censuses) {
    std::set<size_t> related = related_to_files(census, files);
    for (size_t i = 0; i < census.processes.size(); ++i) {
      const SeenProcess& seen = census.processes[i];
      if (related.contains(i) || (seen.rank < 0 && !seen.maps_nccl) || ranks_seen.contains(seen.rank))
        continue;
      // The topmost process of a rank stands for its helpers.
      if (seen.rank >= 0 && !ranks_reported.insert(seen.rank).second) continue;
      std::string who =
          "pid " + std::to_string(seen.pid) + " on " + census.launcher.host + " (" + command_of(seen) + ")";
      if (seen.rank >= 0) who = "rank " + std::to_string(seen.rank) + ", " + who;
      losses.push_back({"never_loaded", 1, who + " never loaded the capture library; " + kAdvice});
    }
    if (census.unseen > 0) {
      losses.push_back({"census_cut", census.unseen,
                        "more processes on " + census.launcher.host +
                            " than the census holds: some may be missing unnoticed"});
    }
  }
  std::vector<int64_t> missing;
  for (int64_t rank = 0; rank < std::min(world, kMostRanks); ++rank) {
    if (!ranks_seen.contains(rank) && !ranks_reported.contains(rank)) missing.push_back(rank);
  }
  if (!missing.empty()) {
    losses.push_back(
        {"missing_rank", missing.size(),
         "no file of rank " + rank_list(missing) + " of " + std::to_string(world) +
             "; on several nodes all ranks need the same run directory, on a file system they share"});
  }
  return losses;
}

std::vector<RunLoss> missing_processes(const std::string& run) {
  return missing_processes(process_files(run), read_censuses(run));
}

}  // namespace lockstep::cli::launch
