// SPDX-License-Identifier: Apache-2.0
// Files do not say of which window they are, and clocks of hosts differ, so begins are compared. Half the
// shortest time from one file of a rank to its next is the reach: files that follow each other within it are
// of one window until a rank comes again. Of those with the most ranks the newest is used, as it shows the
// job as it was last.
#include "readers/kineto/windows.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <set>

namespace lockstep::readers::kineto {
namespace {

bool by_rank_and_time(const TraceFile& a, const TraceFile& b) {
  return std::pair(a.heading.rank, a.heading.first_ns) < std::pair(b.heading.rank, b.heading.first_ns);
}

// Half the shortest time from one file of a rank to its next: what begins closer together may be of one
// window.
// If no rank has two files, the reach is without end, and all files are of one window.
int64_t reach_ns(const std::vector<TraceFile>& by_rank) {
  int64_t least = INT64_MAX;
  for (size_t i = 1; i < by_rank.size(); ++i) {
    const Heading &before = by_rank[i - 1].heading, &heading = by_rank[i].heading;
    const int64_t gap = heading.first_ns - before.first_ns;
    if (heading.rank == before.rank && gap > 0) least = std::min(least, gap);
  }
  return least / 2;
}

// When the newest of the windows that most ranks have begins.
int64_t best_begin_ns(const std::vector<TraceFile>& by_rank) {
  const int64_t reach = reach_ns(by_rank);
  std::vector<std::pair<int64_t, int32_t>> begins;  // and ranks
  for (const TraceFile& file : by_rank) begins.emplace_back(file.heading.first_ns, file.heading.rank);
  std::sort(begins.begin(), begins.end());
  int64_t best_ns = 0, begin_ns = 0;
  size_t most = 0;
  std::set<int32_t> ranks;
  for (size_t i = 0; i < begins.size(); ++i) {
    const bool is_near = i > 0 && begins[i].first - begins[i - 1].first <= reach;
    const bool is_copy = i > 0 && begins[i] == begins[i - 1];
    if (!is_copy && (!is_near || ranks.count(begins[i].second) > 0)) {
      ranks.clear();
      begin_ns = begins[i].first;
    }
    ranks.insert(begins[i].second);
    // On a tie the later one wins.
    if (ranks.size() < most) continue;
    most = ranks.size();
    best_ns = begin_ns;
  }
  return best_ns;
}

// Copies of a file have one begin: the first by name is used.
void choose_of_rank(std::vector<TraceFile>::iterator from, std::vector<TraceFile>::iterator until,
                    int64_t begin_ns, ChosenFiles& chosen) {
  const auto distance = [begin_ns](const TraceFile& file) {
    return file.heading.first_ns > begin_ns ? file.heading.first_ns - begin_ns
                                            : begin_ns - file.heading.first_ns;
  };
  const auto used = std::min_element(
      from, until, [&](const TraceFile& a, const TraceFile& b) { return distance(a) < distance(b); });
  for (auto at = from; at != until; ++at) {
    if (at == used) continue;
    const int64_t later_ns = at->heading.first_ns - used->heading.first_ns;
    UnusedFile unused{at->path, "older_trace",
                      "a later trace of its rank is there, of a window that no fewer ranks have"};
    if (later_ns == 0) unused.why = "another trace of its rank begins at the same time";
    if (later_ns > 0) {
      unused.kind = "newer_trace";
      unused.why = "an earlier trace of its rank is used, of a window that more ranks have";
    }
    chosen.unused.push_back(std::move(unused));
  }
  chosen.used.push_back(std::move(*used));
}

}  // namespace

ChosenFiles choose_window(std::vector<TraceFile> files) {
  ChosenFiles chosen;
  const auto has_events = [](const TraceFile& file) { return file.heading.has_events; };
  if (std::any_of(files.begin(), files.end(), has_events)) {
    const auto empty = std::stable_partition(files.begin(), files.end(), has_events);
    for (auto at = empty; at != files.end(); ++at)
      chosen.unused.push_back({at->path, "empty_trace", "it holds no event"});
    files.erase(empty, files.end());
  }
  std::stable_sort(files.begin(), files.end(), by_rank_and_time);
  const auto known =
      std::find_if(files.begin(), files.end(), [](const TraceFile& file) { return file.heading.rank >= 0; });
  chosen.used.assign(std::make_move_iterator(files.begin()), std::make_move_iterator(known));
  files.erase(files.begin(), known);
  const int64_t begin_ns = best_begin_ns(files);
  for (auto from = files.begin(); from != files.end();) {
    const auto until = std::find_if(
        from, files.end(), [from](const TraceFile& file) { return file.heading.rank != from->heading.rank; });
    choose_of_rank(from, until, begin_ns, chosen);
    from = until;
  }
  return chosen;
}

}  // namespace lockstep::readers::kineto
