// SPDX-License-Identifier: Apache-2.0
// Says of each rank how far it is behind the front: the newest operation, by NCCL's number, that any member
// of its communicator has begun. Numbers need no common clock; how long the front has been there is measured
// on the clock of the member that leads. A rank without a function in its numbers may have called it before
// its file begins, so it counts as behind only if everything since its start was read.
#include "live/rank_rows.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <set>

#include "base/text/units.h"
#include "base/text/wording.h"
#include "model/restarts.h"

namespace lockstep::live {
namespace {

using model::Liveness;
using wording::ranks;

// The keeper refreshes the heartbeat about once a second.
constexpr int64_t kSilentNs = 5'000'000'000;
// Ranks that run ahead of each other by less are as good as together.
constexpr int64_t kLateNs = 1'000'000'000;
constexpr int64_t kIdleNs = 5'000'000'000;

// How far the members of a communicator have come.
struct Newest {
  uint64_t number = 0;
  int64_t age_ns = 0;  // since its first member began it, on that member's clock
};
using Front = std::map<std::string, Newest>;  // by function

std::map<std::string, Front> fronts_of(const std::vector<SeenProcess>& processes) {
  std::map<std::string, Front> fronts;
  for (const SeenProcess& process : processes) {
    for (const SeenComm& comm : process.comms) {
      Front& front = fronts[comm.key];
      for (const auto& [func, own] : comm.functions) {
        Newest mine{own.newest, process.now_ns - own.started_ns};
        Newest& newest = front.try_emplace(func, mine).first->second;
        // Of equal numbers the longest ago: the front is there since its first member began.
        if (std::pair(mine.number, mine.age_ns) > std::pair(newest.number, newest.age_ns)) newest = mine;
      }
    }
  }
  return fronts;
}

void measure(const SeenComm& comm, const Front& front, RankRow& row) {
  uint64_t behind = 0;
  int64_t late_ns = 0;
  std::string waiting;
  for (const auto& [func, newest] : front) {
    auto own = comm.functions.find(func);
    if (own == comm.functions.end() && !comm.from_start) continue;  // it may have called it long ago
    uint64_t done = own == comm.functions.end() ? 0 : own->second.newest + 1;
    if (newest.number + 1 <= done) continue;
    behind += newest.number + 1 - done;
    if (newest.age_ns > late_ns || waiting.empty()) waiting = func;
    late_ns = std::max({late_ns, newest.age_ns, int64_t{1}});
  }
  // A row is about one communicator, the one whose front waits longest.
  if (behind == 0 || late_ns < row.late_ns) return;
  row.behind = behind;
  row.late_ns = late_ns;
  row.behind_comm = comm.name;
  row.behind_key = comm.key;
  row.behind_func = waiting;
}

// Ranks of processes that communicate.
std::set<int32_t> ranks_of(const std::vector<SeenProcess>& processes) {
  std::set<int32_t> ranks;
  for (const SeenProcess& process : processes) {
    if (!process.comms.empty() && process.rank >= 0) ranks.insert(process.rank);
  }
  return ranks;
}

// It communicates with nobody, and its rank is another's: nobody waits for it, however it ends.
bool is_helper(const SeenProcess& process, const std::set<int32_t>& ranks) {
  return process.comms.empty() && !ranks.empty() && (process.rank < 0 || ranks.contains(process.rank));
}

std::vector<bool> replaced_of(const std::vector<SeenProcess>& processes) {
  std::vector<model::Life> lives;
  for (const SeenProcess& process : processes) {
    const int64_t seen_ns =
        process.heartbeat_age_ns < 0 ? INT64_MAX : process.now_ns - process.heartbeat_age_ns;
    lives.push_back({process.job_id, process.rank, process.start_ns, seen_ns});
  }
  return model::replaced(lives);
}

Health health_of(const SeenProcess& process, const RankRow& row, bool helper, bool replaced) {
  if (helper) return Health::kHelper;
  if (process.closed) return Health::kEnded;
  // A process that runs or is stopped still holds its rank, whatever was started since.
  if (replaced && (process.liveness == Liveness::kGone || process.liveness == Liveness::kUnknown))
    return Health::kReplaced;
  if (process.liveness == Liveness::kGone) return Health::kGone;
  if (process.liveness == Liveness::kStopped) return Health::kStopped;
  if (process.liveness == Liveness::kUnknown && process.heartbeat_age_ns > kSilentNs) return Health::kSilent;
  return row.late_ns > kLateNs ? Health::kLate : Health::kGood;
}

std::string names(const std::vector<const RankRow*>& rows) {
  std::vector<int32_t> numbers;
  for (const RankRow* row : rows) {
    if (row->rank >= 0) numbers.push_back(row->rank);
  }
  // Ranks alone would leave out the processes that have none.
  if (numbers.size() != rows.size()) return plural(rows.size(), "process");
  std::string text = ranks(numbers);
  text[0] = 'R';
  return text;
}

std::string capitalised(std::string text) {
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

std::string sentence(const std::vector<const RankRow*>& rows, Health health) {
  bool one = rows.size() == 1;
  const std::string who = one ? capitalised(who_is(*rows[0]).text()) + " is " : names(rows) + " are ";
  const RankRow& worst = **std::max_element(
      rows.begin(), rows.end(), [](const RankRow* a, const RankRow* b) { return a->late_ns < b->late_ns; });
  switch (health) {
    case Health::kGone:
      return who + "gone without closing " + (one ? "its file." : "their files.");
    case Health::kStopped:
      return who + "stopped by a signal or a debugger.";
    case Health::kSilent:
      return who + "silent: no heartbeat for " +
             format_duration(static_cast<double>(worst.heartbeat_age_ns)) + ".";
    default:
      return who + plural(worst.behind, "operation") + " behind on " + worst.behind_comm + ": others began " +
             worst.behind_func + " " + format_duration(static_cast<double>(worst.late_ns)) + " ago.";
  }
}

std::string end_sentence(const std::vector<const RankRow*>& rows) {
  std::vector<const RankRow*> behind;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(behind),
               [](const RankRow* row) { return row->behind > 0; });
  std::string text =
      "No rank shows a sign of life: the job ended without closing its files, or its hosts hang.";
  if (behind.empty()) return text;
  return text + " " + names(behind) + (behind.size() == 1 ? " was behind." : " were behind.");
}

bool holds_up(const RankRow& row) {
  return row.behind > 0 && (row.health == Health::kGone || row.health == Health::kStopped ||
                            row.health == Health::kSilent || row.health == Health::kLate);
}

// Who has begun nothing for a while, and is a member where somebody is behind, waits for that rank.
void find_waiting(const std::vector<SeenProcess>& processes, RankRows& seen) {
  std::map<std::string, std::vector<int32_t>> held_up_by;  // by communicator
  for (const RankRow& row : seen.rows) {
    if (holds_up(row) && row.rank >= 0) held_up_by[row.behind_key].push_back(row.rank);
  }
  for (size_t i = 0; i < seen.rows.size(); ++i) {
    RankRow& row = seen.rows[i];
    // Whoever began something a moment ago does not wait.
    if (row.health != Health::kGood || row.behind > 0 || !row.last || row.last->age_ns < kLateNs) continue;
    std::set<int32_t> waits_for;
    for (const SeenComm& comm : processes[i].comms) {
      if (const auto held = held_up_by.find(comm.key); held != held_up_by.end() && !comm.ended)
        waits_for.insert(held->second.begin(), held->second.end());
    }
    if (waits_for.empty()) continue;
    row.health = Health::kWaits;
    row.waits_for = ranks({waits_for.begin(), waits_for.end()});
  }
}

void judge(RankRows& seen) {
  const auto count = [&](Health health) {
    return static_cast<size_t>(std::count_if(seen.rows.begin(), seen.rows.end(),
                                             [&](const RankRow& row) { return row.health == health; }));
  };
  for (Health health : {Health::kGone, Health::kStopped, Health::kSilent, Health::kLate}) {
    std::vector<const RankRow*> rows;
    for (const RankRow& row : seen.rows) {
      if (row.health == health) rows.push_back(&row);
    }
    if (rows.empty()) continue;
    // Where all have fallen silent, no rank alone is to blame.
    bool nobody_lives = health == Health::kSilent && rows.size() > 1 &&
                        rows.size() + count(Health::kReplaced) + count(Health::kHelper) == seen.rows.size();
    seen.verdict = nobody_lives ? end_sentence(rows) : sentence(rows, health);
    seen.alarming = true;
    return;
  }
  size_t running = 0;
  int64_t idle_ns = INT64_MAX;
  for (const RankRow& row : seen.rows) {
    if (row.health != Health::kGood && row.health != Health::kWaits) continue;
    ++running;
    if (row.last) idle_ns = std::min(idle_ns, row.last->age_ns);
  }
  if (running == 0) {
    seen.verdict = "All " + plural(count(Health::kEnded), "process") + " ended normally.";
  } else if (idle_ns == INT64_MAX || idle_ns < kIdleNs) {
    seen.verdict = running == 1 ? "The process runs." : "All " + plural(running, "process") + " are in step.";
  } else {
    seen.verdict = "No rank is behind, and none has started an operation for " +
                   format_duration(static_cast<double>(idle_ns)) + ".";
  }
}

}  // namespace

std::string_view health_text(Health health) {
  constexpr std::string_view kTexts[kHealths] = {"gone", "stopped", "silent",   "late",  "waiting",
                                                 "good", "ended",   "replaced", "helper"};
  return kTexts[static_cast<size_t>(health)];
}

model::Who who_is(const RankRow& row) {
  return {.rank = row.rank, .device = row.device, .pid = row.pid, .host = row.host, .pci = row.pci};
}

RankRows RankWatch::look(const std::vector<SeenProcess>& processes) {
  std::map<std::string, Front> fronts = fronts_of(processes);
  const std::set<int32_t> ranks = ranks_of(processes);
  const std::vector<bool> replaced = replaced_of(processes);
  std::map<std::pair<std::string, int64_t>, Standing> standing;
  RankRows seen;
  for (const SeenProcess& process : processes) {
    RankRow row;
    row.rank = process.rank;
    row.who = process.rank >= 0 ? std::to_string(process.rank) : "pid " + std::to_string(process.pid);
    row.host = process.host;
    row.device = process.device;
    row.pci = process.pci;
    row.pid = process.pid;
    row.last = process.last;
    row.oldest_open = process.oldest_open;
    row.open = process.open;
    row.ops_per_s = process.ops_per_s;
    row.bytes_per_s = process.bytes_per_s;
    row.dropped = process.dropped;
    row.heartbeat_age_ns = process.heartbeat_age_ns;
    uint64_t progress = 0;
    for (const SeenComm& comm : process.comms) {
      for (const auto& [func, own] : comm.functions) progress += own.newest + 1;
      if (!comm.ended) measure(comm, fronts[comm.key], row);
    }
    if (row.behind > 0) {
      // A front that moves on begins ever newer operations; a rank that stands has been late since it was
      // first seen so.
      auto before = standing_.find({process.host, process.pid});
      bool stands = before != standing_.end() && before->second.progress == progress;
      // Only processes that are behind are remembered, so the map is no larger than the run.
      Standing& now = standing[{process.host, process.pid}];
      now = {progress, stands ? before->second.since_ns : process.now_ns};
      row.late_ns = std::max(row.late_ns, process.now_ns - now.since_ns);
    }
    row.health = health_of(process, row, is_helper(process, ranks), replaced[seen.rows.size()]);
    if (row.health == Health::kReplaced) {  // nobody waits for it any more
      row.behind = 0;
      row.late_ns = 0;
    }
    seen.rows.push_back(std::move(row));
  }
  standing_ = std::move(standing);
  find_waiting(processes, seen);
  judge(seen);
  return seen;
}

}  // namespace lockstep::live
