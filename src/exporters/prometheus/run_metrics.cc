// SPDX-License-Identifier: Apache-2.0
// Counters must never fall, though files are read again, processes end and ranks are started anew. So what is
// added is the growth between two looks, never less than 0, and what was counted stays counted when its
// process has gone, as long as its labels have a slot. Labels come from files and are bounded: each distinct
// one costs every scrape from then on.
#include "exporters/prometheus/run_metrics.h"

#include <algorithm>
#include <numeric>

#include "base/hex.h"
#include "readers/native/file/file_view.h"

namespace lockstep::exporters::metrics {
namespace {

using live::SeenFile;
using live::SeenProcess;
using readers::native::LiveCounts;
using readers::native::LiveHistogram;
using readers::native::LiveProcess;

constexpr std::string_view kNoComm = "none";

// As reports call it.
std::string comm_name(const LiveProcess& process, uint32_t comm) {
  if (comm >= process.comms.size()) return std::string(kNoComm);
  const auto& known = process.comms[comm];
  if (!known.name.empty()) return label_text(known.name);
  return known.comm_id == 0 ? std::string(kNoComm) : hex(known.comm_id);
}

std::string func_name(std::string_view func) { return func.empty() ? "?" : label_text(func); }

// Several jobs have a rank 0 each. A job id holds no newline once it is a label.
std::string rank_name(const SeenProcess& process) {
  std::string rank = process.rank >= 0 ? std::to_string(process.rank) : "pid " + std::to_string(process.pid);
  return rank + '\n' + label_text(process.job_id);
}

bool lives(live::Health health) {
  return health != live::Health::kGone && health != live::Health::kEnded && health != live::Health::kReplaced;
}

double grown(double now, double before) { return std::max(now - before, 0.0); }

template <const auto& kBounds>
void add_growth(const LiveHistogram<kBounds>& now, const LiveHistogram<kBounds>& before,
                LiveHistogram<kBounds>& sum) {
  for (size_t i = 0; i < now.counts.size(); ++i)
    sum.counts[i] += now.counts[i] > before.counts[i] ? now.counts[i] - before.counts[i] : 0;
  sum.sum += grown(now.sum, before.sum);
}

template <class Histogram>
uint64_t total(const Histogram& histogram) {
  return std::accumulate(histogram.counts.begin(), histogram.counts.end(), uint64_t{0});
}
template <class Histogram>
bool is_empty(const Histogram& histogram) {
  return total(histogram) == 0;
}

// Of a file that is read again, until it has come to where it was.
void keep_most(const LiveCounts& now, LiveCounts& kept) {
  // Totals compare, as a histogram that is read again grows from nothing to what it was.
  auto keep = [](const auto& new_one, auto& old_one) {
    if (total(new_one) >= total(old_one)) old_one = new_one;
  };
  keep(now.call_seconds, kept.call_seconds);
  for (size_t source = 0; source < readers::native::kLiveSources; ++source) {
    keep(now.gpu_seconds[source], kept.gpu_seconds[source]);
    for (size_t size = 0; size < readers::native::kLiveSizes; ++size)
      keep(now.bandwidth[source][size], kept.bandwidth[source][size]);
  }
}

double seconds_in(const LiveCounts& counts) {
  double seconds = counts.call_seconds.sum;
  for (const auto& gpu : counts.gpu_seconds) seconds += gpu.sum;
  return seconds;
}

}  // namespace

std::pair<std::string, std::string> RunMetrics::rank_labels(uint16_t slot) const {
  std::string name = ranks_.text(slot);
  size_t cut = name.find('\n');
  if (cut == std::string::npos) return {name, {}};
  return {name.substr(0, cut), name.substr(cut + 1)};
}

void RunMetrics::look(const std::vector<SeenProcess>& processes, const live::RankRows& rows) {
  // Before anything is counted: the place of a rank or communicator that changes hands is emptied first.
  assign_slots(processes, rows);
  rank_states_.clear();
  in_flight_age_.clear();
  states_.fill(0);
  lag_s_ = 0;
  present_ = true;
  for (auto& [path, counted] : counted_) counted.seen = false;
  for (size_t i = 0; i < processes.size(); ++i) {
    const uint16_t rank = ranks_.slot(rank_name(processes[i]));
    count(processes[i], rank);
    note_state(processes[i], rows.rows[i], rank);
  }
  compare_beginnings(processes);
  forget_gone();
}

void RunMetrics::look_in_vain() {
  rank_states_.clear();
  in_flight_age_.clear();
  states_.fill(0);
  lag_s_ = 0;
  present_ = false;
}

void RunMetrics::assign_slots(const std::vector<SeenProcess>& processes, const live::RankRows& rows) {
  for (LabelSlots* slots : {&ranks_, &comms_, &functions_}) slots->begin();
  for (size_t i = 0; i < processes.size(); ++i) {
    const bool alive = lives(rows.rows[i].health);
    double seconds = 0;
    for (const SeenFile& file : processes[i].files) {
      const LiveProcess& process = file.tail->process();
      for (const auto& [key, counts] : file.tail->tally()->counts()) {
        const double spent = seconds_in(counts);
        seconds += spent;
        const bool ended = key.first < process.comms.size() && process.comms[key.first].ended;
        comms_.want(comm_name(process, key.first), spent, alive && !ended);
        functions_.want(func_name(key.second), spent, true);
      }
      // Those without operations too: their gauges need a place.
      for (uint32_t comm = 0; comm < process.comms.size(); ++comm)
        comms_.want(comm_name(process, comm), 0, alive && !process.comms[comm].ended);
    }
    ranks_.want(rank_name(processes[i]), seconds, alive);
  }
  for (uint16_t slot : ranks_.finish()) forget_rank(slot);
  for (uint16_t slot : comms_.finish()) forget_comm(slot);
  for (uint16_t slot : functions_.finish()) forget_function(slot);
}

void RunMetrics::count(const SeenProcess& process, uint16_t rank) {
  for (const SeenFile& file : process.files) {
    Counted& before = counted_[file.path];
    before.seen = true;
    count(file, rank, before);
  }
}

void RunMetrics::count(const SeenFile& file, uint16_t rank, Counted& before) {
  const LiveProcess& process = file.tail->process();
  for (const auto& [key, now] : file.tail->tally()->counts()) {
    const uint16_t comm = comms_.slot(comm_name(process, key.first)),
                   func = functions_.slot(func_name(key.second));
    Sums& counted = before.functions[key];
    OpCounts& sums = operations_[{rank, comm, func}];
    sums.ops += grown(static_cast<double>(now.counted.operations()), counted.ops);
    sums.bytes += grown(now.counted.bytes(), counted.bytes);
    count_times(comm, func, now, counted.counts);
    keep_most(now, counted.counts);
    // Never less than before: a file that is read again must not be counted twice on its way back.
    counted.ops = std::max(counted.ops, static_cast<double>(now.counted.operations()));
    counted.bytes = std::max(counted.bytes, now.counted.bytes());
  }
  for (uint8_t kind = 0; kind < format::kAllLossKinds; ++kind) {
    const uint64_t now = process.losses[kind];
    if (now <= before.losses[kind]) continue;
    losses_[{rank, kind}] += static_cast<double>(now - before.losses[kind]);
    before.losses[kind] = now;
  }
  if (process.passed_over > before.passed_over) {
    passed_over_[rank] += static_cast<double>(process.passed_over - before.passed_over);
    before.passed_over = process.passed_over;
  }
}

void RunMetrics::count_times(uint16_t comm, uint16_t func, const LiveCounts& now, const LiveCounts& before) {
  if (!is_empty(now.call_seconds)) add_growth(now.call_seconds, before.call_seconds, calls_[func]);
  for (uint8_t source = 0; source < readers::native::kLiveSources; ++source) {
    if (is_empty(now.gpu_seconds[source])) continue;
    add_growth(now.gpu_seconds[source], before.gpu_seconds[source], gpu_[{comm, func, source, 0}]);
    for (uint8_t size = 0; size < readers::native::kLiveSizes; ++size) {
      if (is_empty(now.bandwidth[source][size])) continue;
      add_growth(now.bandwidth[source][size], before.bandwidth[source][size],
                 bandwidth_[{comm, func, source, size}]);
    }
  }
}

void RunMetrics::compare_beginnings(const std::vector<SeenProcess>& processes) {
  std::vector<uint32_t> boots(processes.size(), 0);
  lateness_.begin_look();
  for (size_t i = 0; i < processes.size(); ++i) {
    for (const live::SeenComm& comm : processes[i].comms)
      // All members first: lateness must know who belongs to a communicator before it can tell who is
      // missing.
      boots[i] = lateness_.add_member(comm.key, comm.ranks, processes[i].boot_id, comm.ended);
  }
  for (size_t i = 0; i < processes.size(); ++i) {
    const SeenProcess& process = processes[i];
    const uint16_t rank = ranks_.slot(rank_name(process));
    for (const SeenFile& file : process.files) {
      const LiveProcess& seen = file.tail->process();
      for (const auto& arrival : seen.arrivals) {
        const auto& comm = seen.comms[arrival.comm];
        // Without an id it cannot be matched with the same communicator of another process.
        if (comm.comm_id == 0) continue;
        const uint16_t label = comms_.slot(comm_name(seen, arrival.comm));
        bool whole = lateness_.add(hex(comm.comm_id), arrival.func, arrival.number,
                                   {comm.rank, rank, arrival.started_ns, boots[i]},
                                   [&](uint16_t member, double late_s, double wait_s) {
                                     MemberCounts& sums = members_[{member, label}];
                                     sums.late_s += late_s;
                                     sums.wait_s += wait_s;
                                   });
        if (whole) matched_[label] += 1;
      }
    }
  }
}

void RunMetrics::note_state(const SeenProcess& process, const live::RankRow& row, uint16_t rank) {
  ++states_[static_cast<size_t>(row.health)];
  for (const SeenFile& file : process.files) {
    const LiveProcess& seen = file.tail->process();
    // On the clock of the process' own host, as its records are.
    if (file.tail->behind() && seen.last)
      lag_s_ = std::max(lag_s_, static_cast<double>(process.now_ns - seen.last->started_ns) * 1e-9);
  }
  if (row.health == live::Health::kReplaced || row.health == live::Health::kHelper) return;
  // A rank that was started again has an old process, which has ended, and a new one, in any order. One that
  // is gone was not started again: it would be replaced.
  auto [state, is_new] = rank_states_.try_emplace(rank);
  if (is_new || (state->second.up && row.health != live::Health::kEnded)) {
    const bool shared = rank == ranks_.other();
    state->second.up = row.health != live::Health::kGone;
    state->second.host = shared ? std::string() : label_text(row.host);
  }
  if (!lives(row.health)) return;
  // Several processes share a place where ranks are `other`: the worst of them counts.
  state->second.behind = std::max(state->second.behind, static_cast<double>(row.behind));
  state->second.behind_s = std::max(state->second.behind_s, static_cast<double>(row.late_ns) * 1e-9);
  state->second.in_flight += static_cast<double>(row.open);
  for (const SeenFile& file : process.files) {
    const LiveProcess& seen = file.tail->process();
    for (uint32_t i = 0; i < seen.comms.size(); ++i) {
      if (seen.comms[i].ended) continue;
      const int64_t since = seen.comms[i].oldest_open_ns;
      double& age = in_flight_age_[{rank, comms_.slot(comm_name(seen, i))}];
      if (since != 0) age = std::max(age, static_cast<double>(process.now_ns - since) * 1e-9);
    }
  }
}

void RunMetrics::forget_rank(uint16_t slot) {
  std::erase_if(operations_, [&](const auto& entry) { return entry.first.rank == slot; });
  std::erase_if(members_, [&](const auto& entry) { return entry.first.rank == slot; });
  std::erase_if(losses_, [&](const auto& entry) { return entry.first.rank == slot; });
  passed_over_.erase(slot);
  // What it had begun may yet be compared, and is not the next rank's.
  lateness_.relabel(slot, ranks_.other());
}

void RunMetrics::forget_comm(uint16_t slot) {
  std::erase_if(operations_, [&](const auto& entry) { return entry.first.comm == slot; });
  std::erase_if(members_, [&](const auto& entry) { return entry.first.comm == slot; });
  std::erase_if(gpu_, [&](const auto& entry) { return entry.first.comm == slot; });
  std::erase_if(bandwidth_, [&](const auto& entry) { return entry.first.comm == slot; });
  matched_.erase(slot);
}

void RunMetrics::forget_function(uint16_t slot) {
  std::erase_if(operations_, [&](const auto& entry) { return entry.first.func == slot; });
  std::erase_if(gpu_, [&](const auto& entry) { return entry.first.func == slot; });
  std::erase_if(bandwidth_, [&](const auto& entry) { return entry.first.func == slot; });
  calls_.erase(slot);
}

// A file may vanish and come back, and must not be counted twice. So what was counted of it is kept for a
// while, which is bounded by the number of files that are gone.
void RunMetrics::forget_gone() {
  for (auto& [path, counted] : counted_) {
    if (counted.seen || counted.gone) continue;
    counted.gone = true;
    gone_.push_back(path);
  }
  std::erase_if(gone_, [&](const std::string& path) {
    Counted& counted = counted_[path];
    if (counted.seen) counted.gone = false;
    return counted.seen;
  });
  while (gone_.size() > kMostGone) {
    counted_.erase(gone_.front());
    gone_.pop_front();
  }
}

}  // namespace lockstep::exporters::metrics
