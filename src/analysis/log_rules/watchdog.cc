// SPDX-License-Identifier: Apache-2.0
// Puts together what many ranks' watchdogs print of themselves and of each other: how far each had come in
// each group. A rank is behind only where its own count says so. Whoever times out first merely arrived
// first, and a rank that printed nothing may be the one that hangs or the one whose log is missing.
#include "analysis/log_rules/watchdog.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "analysis/operation_name.h"
#include "base/text/wording.h"

namespace lockstep::analysis::log_rules {
namespace {

constexpr std::string_view kWorld = "0";

bool is_point_to_point(const TorchLine& line) { return line.op == "SEND" || line.op == "RECV"; }

// As the reader of Flight Recorder dumps names groups: findings of both can then be joined.
std::string display_name(const std::string& name, const std::string& description) {
  if (name == kWorld && (description.empty() || description == "default_pg")) return "default_pg";
  if (name.empty() || name == description) return description;
  if (description.empty() || description == "undefined") return "group " + name;
  return description + " (group " + name + ')';
}

// Sizes that every member must have alike; those of the others differ with reason.
bool is_size_common(std::string_view func) {
  static constexpr std::array<std::string_view, 5> kFuncs = {"AllReduce", "Broadcast", "Reduce", "AllGather",
                                                             "ReduceScatter"};
  return std::find(kFuncs.begin(), kFuncs.end(), func) != kFuncs.end();
}

// Empty: not said, or it may differ.
std::string size_text(const TorchLine& line) {
  if (!is_size_common(line.func)) return {};
  if (!line.shape.empty()) return line.func + " of shape [" + line.shape + ']';
  if (line.in < 0) return {};
  return line.func + " of " + wording::count(static_cast<uint64_t>(line.in), "element");
}

// Of a group whose every member gives or gets one part: the sizes say how many there are; -1: they do not.
int32_t members_of(const TorchLine& line) {
  constexpr int64_t kMost = 1 << 20;
  const bool is_gather = line.func == "AllGather", is_scatter = line.func == "ReduceScatter";
  const int64_t part = is_gather ? line.in : line.out, all = is_gather ? line.out : line.in;
  const bool is_known = (is_gather || is_scatter) && part > 0 && all > part && all % part == 0;
  return is_known && all / part <= kMost ? static_cast<int32_t>(all / part) : -1;
}

// Signals with which a launcher stops what is left of a job.
bool is_stopped(int32_t exit_code) {
  return exit_code == 0 || signal_of(exit_code) == 15 || signal_of(exit_code) == 2;
}

// The clock is the launcher's host's, in whole seconds.
constexpr int64_t kTogetherS = 2;

}  // namespace

TorchJob::TorchJob(const readers::nccl_log::LogModel& model) : model_(model) {
  if (is_silent()) return;
  // Each step needs those before it: reports name ranks by place in a group and stalls need the dead.
  read();
  add_desync();
  find_dead();
  find_stalls();
  find_circles();
}

TorchGroup& TorchJob::group_of(const std::string& name, const std::string& description) {
  TorchGroup& group = groups_[name.empty() ? description : name];
  group.is_world = group.is_world || name == kWorld;
  if (group.name.empty() || !description.empty())
    group.name = display_name(group.is_world ? std::string(kWorld) : name, description);
  return group;
}

void TorchJob::read() {
  for (size_t row = 0; row < model_.torch.size(); ++row) {
    const TorchLine& line = model_.torch[row];
    if (line.other_rank >= 0 && line.remark != TorchRemark::kMismatch) named_.insert(line.other_rank);
    if (line.remark == TorchRemark::kProgress && line.other_rank >= 0) gave_up_.insert(line.other_rank);
    if (line.seq > 0 && !line.group.empty()) groups_at_[line.seq].insert(line.group);
    named_.insert(line.ranks.begin(), line.ranks.end());
    if (line.rank < 0) continue;
    // Such a line says how a process ended, and nothing of how far it came in a group.
    if (line.remark == TorchRemark::kExit || line.remark == TorchRemark::kRaised) {
      named_.insert(line.rank);
      continue;
    }
    const bool is_of_some_group =
        line.remark == TorchRemark::kMismatch || line.remark == TorchRemark::kAnnounced;
    if (is_of_some_group) continue;  // that it does not name
    spoken_.insert(line.rank);
    rows_of_rank_[line.rank].push_back(row);
    if (line.group.empty()) continue;
    TorchGroup& group = group_of(line.group, line.description);
    GroupRank& position = group.positions[line.rank];
    if (line.group_rank >= 0) {
      const auto [at, is_new] = group.rank_at.emplace(line.group_rank, line.rank);
      group.is_clashing = group.is_clashing || (!is_new && at->second != line.rank);
    }
    group.size = std::max(group.size, line.size);
    if (line.remark == TorchRemark::kPointToPoint) group.mixes_counts = true;
    if (line.remark != TorchRemark::kProgress) continue;
    if (position.progress == nullptr || line.enqueued > position.enqueued) position.progress = &line;
    position.enqueued = std::max(position.enqueued, line.enqueued);
    position.completed = std::max(position.completed, line.completed);
  }
  const auto is_timeout = [&](size_t row) {
    return model_.torch[row].remark == TorchRemark::kTimeout && model_.torch[row].rank >= 0;
  };
  for (size_t row = 0; row < model_.torch.size(); ++row) {
    const TorchLine& line = model_.torch[row];
    // All numbers and functions come first: a line without a group is placed by what the others say.
    if (is_timeout(row) && !line.func.empty()) func_.try_emplace({group_beside(row), line.seq}, line.func);
  }
  for (size_t row = 0; row < model_.torch.size(); ++row) {
    if (is_timeout(row)) add_timeout(row);
  }
  add_failed_work();
  for (auto& [name, group] : groups_) {
    if (group.is_world) size_ = std::max(size_, group.size);
  }
  for (const auto& part : model_.comms) size_ = std::max(size_, part.ranks);
  for (auto& [name, group] : groups_) {
    for (const auto& [rank, position] : group.positions) {
      // What timed out never completes, unless the job was started again into the same log.
      const bool completed_later =
          !position.timeouts.empty() && position.completed >= position.timeouts.begin()->first;
      group.is_of_attempts = group.is_of_attempts || completed_later;
    }
    if (!group.is_world) continue;
    group.size = size_;
    for (const int32_t rank : spoken_) group.positions.try_emplace(rank);
  }
}

// The line that says what timed out need not name the group; the next one of that rank about the same work
// does.
std::string TorchJob::group_beside(size_t row) const {
  const TorchLine& line = model_.torch[row];
  if (!line.group.empty() || !line.description.empty())
    return line.group.empty() ? line.description : line.group;
  const auto& rows = rows_of_rank_.at(line.rank);
  // The lines stand close together; the bound keeps the search linear over a long log.
  constexpr std::ptrdiff_t kAhead = 64;
  auto at = std::upper_bound(rows.begin(), rows.end(), row);
  const auto end = rows.end() - at > kAhead ? at + kAhead : rows.end();
  for (; at != end; ++at) {
    const TorchLine& next = model_.torch[*at];
    if (next.remark == TorchRemark::kProgress && next.seq == line.seq && !next.group.empty())
      return next.group;
  }
  return {};
}

// Ranks that say what timed out, and not in which group, are in the only one in which that number is waited
// for, unless it is another operation there.
std::string TorchJob::only_group_with(const TorchLine& timeout) const {
  const auto groups = groups_at_.find(timeout.seq);
  if (groups == groups_at_.end() || groups->second.size() != 1) return {};
  const std::string& group = *groups->second.begin();
  const auto func = func_.find({group, timeout.seq});
  return func == func_.end() || func->second == timeout.func ? group : std::string();
}

void TorchJob::add_timeout(size_t row) {
  const TorchLine& line = model_.torch[row];
  const std::string beside = group_beside(row), name = beside.empty() ? only_group_with(line) : beside;
  TorchGroup& group = line.description.empty() && groups_.contains(name) ? groups_.at(name)
                                                                         : group_of(name, line.description);
  has_timeouts_ = true;
  group.size = std::max(group.size, members_of(line));
  if (is_point_to_point(line)) {
    group.mixes_counts = true;
    group.transfers.emplace(line.rank, &line);
  } else if (line.seq > 0) {
    group.positions[line.rank].timeouts.emplace(line.seq, &line);
    report_of_.try_emplace(line.rank, &group);
  }
}

// A group's own line of a failure names the work: an operation that did not end, also where no line says
// which it was.
void TorchJob::add_failed_work() {
  for (const TorchLine& line : model_.torch) {
    if (line.remark != TorchRemark::kProgress || line.seq <= 0 || line.rank < 0 || line.group.empty())
      continue;
    const auto group = groups_.find(line.group);
    if (group == groups_.end() || !group->second.transfers.empty() || line.completed >= line.seq) continue;
    has_timeouts_ = true;
    group->second.positions[line.rank].timeouts.emplace(line.seq, &line);
    report_of_.try_emplace(line.rank, &group->second);
  }
}

// The report is of the group in which its writer waits, and its ranks are those in the group.
void TorchJob::add_desync() {
  for (const TorchLine& line : model_.torch) {
    if (line.ranks.empty() || line.rank < 0) continue;
    const auto group = report_of_.find(line.rank);
    if (group != report_of_.end()) add_report(line, *group->second);
  }
}

void TorchJob::add_report(const TorchLine& line, TorchGroup& group) {
  const bool is_behind = line.remark == TorchRemark::kNotJoined || line.remark == TorchRemark::kNeverJoined;
  // PyTorch counts from 1, so 0 is nothing yet.
  const int64_t had = line.remark == TorchRemark::kNeverJoined ? 0
                      : line.remark == TorchRemark::kNotJoined ? line.seq - 1
                                                               : line.seq;
  // A line without a number says nothing of a place.
  if (had < 0) return;
  for (const int32_t in_group : line.ranks) {
    const auto at = group.rank_at.find(in_group);
    if (at == group.rank_at.end() && !group.is_world) continue;
    GroupRank& position = group.positions[at == group.rank_at.end() ? in_group : at->second];
    if (position.progress == nullptr || had > position.enqueued) position.progress = &line;
    position.enqueued = std::max(position.enqueued, had);
    if (is_behind || line.remark == TorchRemark::kFinished)
      position.completed = std::max(position.completed, had);
    if (line.remark == TorchRemark::kStarted) position.started.emplace(line.seq, line.func);
  }
}

// A process whose own watchdog spoke ended because of that.
void TorchJob::find_dead() {
  std::set<int32_t> gave_up;
  for (const TorchLine& line : model_.torch) {
    if (line.remark == TorchRemark::kTimeout || line.remark == TorchRemark::kTakenDown)
      gave_up.insert(line.rank);
  }
  for (const TorchLine& line : model_.torch) {
    if (line.remark == TorchRemark::kRaised && !gave_up.contains(line.rank))
      dead_.try_emplace(line.rank, &line);
  }
  // By file: when the first of the processes in a launcher's report ended. It ends the others, some of them
  // by force.
  std::map<uint32_t, int64_t> first_end;
  for (const TorchLine& line : model_.torch) {
    if (line.remark != TorchRemark::kExit || line.ended_s == TorchLine::kUnknown) continue;
    const auto [at, is_new] = first_end.try_emplace(line.first.file, line.ended_s);
    if (!is_new) at->second = std::min(at->second, line.ended_s);
  }
  for (const TorchLine& line : model_.torch) {
    if (line.remark != TorchRemark::kExit || is_stopped(line.exit_code) || gave_up.contains(line.rank))
      continue;
    const bool is_later =
        line.ended_s != TorchLine::kUnknown && line.ended_s > first_end[line.first.file] + kTogetherS;
    if (!is_later) dead_.try_emplace(line.rank, &line);
  }
  forgive_followers();
}

// Processes that exited by themselves, as when a peer is lost, follow the one that their launcher saw first.
// The first of a host follows one that was killed on another: hosts' clocks agree to seconds as a rule.
void TorchJob::forgive_followers() {
  constexpr int64_t kAbort = 6;  // may be a watchdog's
  std::map<uint32_t, int32_t> first_of_file;
  int64_t killed_s = INT64_MAX - kTogetherS;
  for (const auto& [rank, line] : dead_) {
    if (line->remark != TorchRemark::kExit) continue;
    if (line->is_first_end) first_of_file.emplace(line->first.file, rank);
    const int64_t signal = line->exit_code == TorchLine::kNoCode ? 0 : signal_of(line->exit_code);
    if (signal != 0 && signal != kAbort && line->ended_s != TorchLine::kUnknown)
      killed_s = std::min(killed_s, line->ended_s);
  }
  std::erase_if(dead_, [&](const auto& entry) {
    const auto& [rank, line] = entry;
    if (line->remark != TorchRemark::kExit || line->exit_code <= 0 || signal_of(line->exit_code) != 0)
      return false;
    const auto first = first_of_file.find(line->first.file);
    return (first != first_of_file.end() && first->second != rank) || line->ended_s > killed_s + kTogetherS;
  });
}

// Number of the first operation of a group that did not end; -1: nothing stands still.
int64_t TorchJob::first_open(const TorchGroup& group) const {
  int64_t first = -1;
  const auto lower = [&](int64_t seq) { first = first < 0 ? seq : std::min(first, seq); };
  for (const auto& [rank, position] : group.positions) {
    if (!position.timeouts.empty()) lower(position.timeouts.begin()->first);
    // Where no line says what timed out: what is enqueued and not complete when others say that time was up.
    const bool is_reported =
        !has_timeouts_ && position.progress != nullptr && position.progress->other_rank >= 0;
    if (is_reported && position.completed >= 0 && position.enqueued > position.completed)
      lower(position.completed + 1);
  }
  return first;
}

// Of the job's own group, ranks that say nothing.
void TorchJob::add_absent(Stall& stall) const {
  const auto most = [](const std::set<int32_t>& ranks) { return ranks.empty() ? -1 : *ranks.rbegin(); };
  constexpr int32_t kRanksMost = 1 << 20;
  const int32_t least = std::min(std::max({size_, most(spoken_) + 1, most(named_) + 1}), kRanksMost);
  for (int32_t rank = 0; rank < least; ++rank) {
    if (!stall.group->positions.contains(rank) && !gave_up_.contains(rank)) stall.silent.push_back(rank);
  }
  std::sort(stall.silent.begin(), stall.silent.end());
}

// Of one group. seq < 0: nothing of it stands still.
Stall TorchJob::stall_of(const TorchGroup& group) const {
  Stall stall;
  stall.group = &group;
  stall.seq = first_open(group);
  if (stall.seq < 0) return stall;
  const TorchLine* behind = nullptr;
  const auto wait = [&](int32_t rank, const TorchLine* line, const std::string& func) {
    if (stall.waiting.empty()) stall.evidence.push_back(line);
    stall.waiting.push_back(rank);
    if (func.empty()) return;
    stall.by_func[func].push_back(rank);
    stall.proofs.try_emplace(func, line);
  };
  for (const auto& [rank, position] : group.positions) {
    const auto timeout = position.timeouts.find(stall.seq);
    const auto started = position.started.find(stall.seq);
    if (timeout != position.timeouts.end()) {
      wait(rank, timeout->second, timeout->second->func);
      if (const std::string size = size_text(*timeout->second); !size.empty()) {
        stall.by_size[size].push_back(rank);
        stall.proofs.try_emplace(size, timeout->second);
      }
      stall.milliseconds = std::max(stall.milliseconds, timeout->second->milliseconds);
    } else if (position.progress == nullptr && !position.timeouts.empty()) {
      // Its time was up in another operation, and no count says whether it called this one.
      stall.elsewhere.emplace(rank, position.timeouts.begin()->second);
    } else if (position.progress == nullptr) {
      stall.silent.push_back(rank);
    } else if (position.enqueued < stall.seq) {
      if (behind == nullptr) behind = position.progress;
      const bool is_reported = position.progress->remark == TorchRemark::kNotJoined ||
                               position.progress->remark == TorchRemark::kNeverJoined;
      stall.is_reported = is_reported && (stall.is_reported || stall.behind.empty());
      stall.behind.push_back(rank);
    } else if (position.completed < stall.seq) {
      wait(rank, position.progress, started == position.started.end() ? std::string() : started->second);
    } else if (!position.timeouts.empty()) {
      stall.ahead.emplace(rank, position.timeouts.begin()->second);
    }
  }
  if (stall.by_func.size() == 1) stall.func = stall.by_func.begin()->first;
  if (behind != nullptr) stall.evidence.insert(stall.evidence.begin(), behind);
  if (group.is_world) add_absent(stall);
  stall.is_whole = group.size > 0 && group.positions.size() >= static_cast<size_t>(group.size);
  const auto add_dead = [&](int32_t rank) {
    if (!std::binary_search(stall.waiting.begin(), stall.waiting.end(), rank)) stall.dead.push_back(rank);
  };
  if (group.is_world) {
    for (const auto& [rank, line] : dead_) add_dead(rank);
  } else {
    for (const auto& [rank, position] : group.positions) {
      if (dead_.contains(rank)) add_dead(rank);
    }
  }
  return stall;
}

namespace {

// A send or receive that did not end: its line does not name the other end.
Stall stall_of_transfers(const TorchGroup& group) {
  Stall stall;
  stall.group = &group;
  stall.kind = StallKind::kCannotTell;
  for (const auto& [rank, line] : group.transfers) {
    if (stall.waiting.empty()) {
      stall.seq = line->seq;
      stall.func = line->func;
    }
    stall.waiting.push_back(rank);
    stall.evidence.push_back(line);
    stall.milliseconds = std::max(stall.milliseconds, line->milliseconds);
  }
  return stall;
}

}  // namespace

void TorchJob::find_stalls() {
  for (const auto& [name, group] : groups_) {
    Stall stall = stall_of(group);
    if (stall.seq < 0 && !group.transfers.empty()) {
      stalls_.push_back(stall_of_transfers(group));
      waiting_.insert(stalls_.back().waiting.begin(), stalls_.back().waiting.end());
      continue;
    }
    if (stall.seq < 0) continue;
    waiting_.insert(stall.waiting.begin(), stall.waiting.end());
    // A desync report counts collectives alone, so it holds where sends are mixed into the groups' own
    // counts.
    const bool is_known = (!group.mixes_counts || stall.is_reported) && !group.is_clashing &&
                          !group.is_of_attempts && !name.empty();
    if (is_known && differing_calls(stall) != nullptr) {
      stall.kind = StallKind::kOtherOp;
    } else if (is_known && !stall.behind.empty()) {
      stall.kind = StallKind::kNeverJoined;
    } else if (is_known && stall.is_whole && stall.silent.empty() && stall.elsewhere.empty() &&
               stall.ahead.empty()) {
      stall.kind = StallKind::kStuck;
    } else {
      stall.kind = StallKind::kCannotTell;
    }
    stalls_.push_back(std::move(stall));
  }
}

// Who is behind in one group may wait in another: then that one's stall is the cause, or the two hold each
// other.
void TorchJob::find_circles() {
  std::map<int32_t, std::vector<const Stall*>> waits_in;
  for (const Stall& stall : stalls_) {
    for (const int32_t rank : stall.waiting) waits_in[rank].push_back(&stall);
  }
  const auto stall_in_which = [&](int32_t rank, const Stall* not_here) -> const Stall* {
    const auto of = waits_in.find(rank);
    if (of == waits_in.end()) return nullptr;
    for (const Stall* stall : of->second) {
      if (stall != not_here) return stall;
    }
    return nullptr;
  };
  std::set<const Stall*> seen;
  for (const Stall& start : stalls_) {
    std::vector<const Stall*> path;
    std::vector<int32_t> ranks;
    for (const Stall* stall = &start; stall != nullptr && stall->kind == StallKind::kNeverJoined;) {
      const auto at = std::find(path.begin(), path.end(), stall);
      if (at != path.end()) {
        Circle circle;
        circle.stalls.assign(at, path.end());
        circle.ranks.insert(ranks.begin() + (at - path.begin()), ranks.end());
        circles_.push_back(std::move(circle));
        break;
      }
      // A path that meets an earlier one goes on as that did: each stall is walked once.
      if (!seen.insert(stall).second) break;
      path.push_back(stall);
      // One that waits nowhere ends the path: it is the cause.
      const Stall* next = nullptr;
      for (const int32_t rank : stall->behind) {
        next = stall_in_which(rank, stall);
        if (next == nullptr) break;
        ranks.resize(path.size(), rank);
        ranks.back() = rank;
      }
      stall = next;
    }
  }
}

std::vector<const TorchLine*> TorchJob::lines(TorchRemark remark) const {
  std::vector<const TorchLine*> found;
  for (const TorchLine& line : model_.torch) {
    if (line.remark == remark) found.push_back(&line);
  }
  return found;
}

std::vector<int32_t> TorchJob::without_lines() const {
  std::vector<int32_t> ranks;
  std::set_difference(named_.begin(), named_.end(), spoken_.begin(), spoken_.end(),
                      std::back_inserter(ranks));
  return ranks;
}

const std::map<std::string, std::vector<int32_t>>* differing_calls(const Stall& stall) {
  if (stall.by_func.size() > 1) return &stall.by_func;
  return stall.by_size.size() > 1 ? &stall.by_size : nullptr;
}

std::string calls_text(const std::map<std::string, std::vector<int32_t>>& camps) {
  std::string text;
  for (const auto& [call, ranks] : camps)
    text += (text.empty() ? "" : ", ") + wording::ranks(ranks) + ": " + call;
  return text;
}

std::string operation_text(const Stall& stall) {
  analysis::OperationName name{.comm = stall.group->name, .func = stall.func};
  if (name.comm.empty()) name.comm = "an unnamed group";
  if (stall.seq < 1) return "an operation of " + name.comm;
  name.index = static_cast<uint64_t>(stall.seq) - 1;  // PyTorch counts from 1
  return name.text();
}

}  // namespace lockstep::analysis::log_rules
