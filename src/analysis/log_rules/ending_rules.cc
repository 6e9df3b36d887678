// SPDX-License-Identifier: Apache-2.0
// What launchers and programs say of processes that ended or did not come. A launcher reports every process,
// also those that it ended itself or that a watchdog ended. Such ends are left out first: the rank in one of
// them is a victim. Ranks are blamed only where the program itself names those that are missing.
#include <algorithm>

#include "analysis/log_rules/rules.h"
#include "base/text/wording.h"
#include "readers/nccl_log/pattern.h"

namespace lockstep::analysis::log_rules {
namespace {

using readers::nccl_log::Captures;
using readers::nccl_log::Pattern;
using readers::nccl_log::to_int;

// PyTorch's watchdog ends its process by SIGABRT, and a launcher those that are left by SIGTERM.
bool is_consequence(const View& view, const std::string& text) {
  Captures captures;
  const bool gave_up = !view.torch().is_silent() && (!view.torch().lines(TorchRemark::kTimeout).empty() ||
                                                     !view.torch().lines(TorchRemark::kTakenDown).empty());
  const bool is_abort =
      text.find("Aborted") != std::string::npos || text.find("SIGABRT") != std::string::npos;
  if (gave_up && is_abort) return true;
  // A shell's word alone: whoever gave up, or a launcher, ends what is left like this.
  const bool is_reported =
      text.ends_with("Killed") &&
      (gave_up || !view.facts(LineKind::kWorkerStuck).empty() || !view.facts(LineKind::kOthersEnded).empty());
  if (is_reported) return true;
  static const Pattern kExit("(exitcode: {int})"), kCode("return code = {int}"), kDied("exit code: {int}"),
      kSignal("Signal {int} ("), kSpawned("terminated with exit code {int}"),
      kRemote("exited with exit code {int}"), kReport("exitcode  : {int} (pid: "),
      kLightning("terminated with code {int}"), kStatus("non-zero exit status {int}"),
      kNamed("died with <Signals.{skip}: {int}");
  for (const Pattern* pattern :
       {&kExit, &kCode, &kDied, &kSignal, &kSpawned, &kRemote, &kReport, &kLightning, &kStatus, &kNamed}) {
    const size_t at = text.find(pattern->head());
    if (at == std::string::npos || !pattern->match(std::string_view(text).substr(at), captures)) continue;
    const int64_t code = to_int(captures[0]),
                  signal = pattern == &kSignal || pattern == &kNamed ? code : signal_of(code);
    // SIGTERM (15) and SIGINT (2) come from outside. SIGABRT (6) and exit code 1 may be a watchdog's doing,
    // if one gave up.
    return code == 0 || code == 15 || signal == 15 || signal == 2 || (gave_up && (signal == 6 || code == 1));
  }
  return false;
}

// Ray reports every worker that ended, also of those whose watchdog ended them.
bool may_be_consequence(const View& view, const std::string& text) {
  const TorchJob& job = view.torch();
  const bool is_ray = text.find("worker died or was killed") != std::string::npos ||
                      text.find("worker process has died") != std::string::npos ||
                      text.find("actor died unexpectedly") != std::string::npos;
  return is_ray && !job.is_silent() && !job.lines(TorchRemark::kTakenDown).empty();
}

// torchrun's report says of what rank each end is, some lines above how it came about.
bool is_of_report(const View& view, const Fact& fact) {
  constexpr uint64_t kEntryLines = 5;
  if (fact.value(0).find("received by PID") == std::string::npos) return false;
  const auto exits = view.torch().lines(TorchRemark::kExit);
  return std::any_of(exits.begin(), exits.end(), [&](const TorchLine* line) {
    return line->first.file == fact.first.file && line->first.line < fact.first.line &&
           fact.first.line - line->first.line <= kEntryLines;
  });
}

// What wait() says of a child, as SGLang prints it: a signal, perhaps with 128 for a dump of memory, or 256
// times its exit code.
std::string status_text(int64_t status) {
  constexpr int64_t kSignals = 0x7F;
  if ((status & kSignals) != 0) return "by signal " + std::to_string(status & kSignals);
  return "with exit code " + std::to_string(status >> 8);
}

// "local rank 5 (pid 2630), by signal 9"; else the launcher's own words.
std::string ended_text(const std::string& text) {
  static const Pattern kTorchrun("(exitcode: {int}) local_rank: {int} (pid: {int}) of binary"),
      kChild("unexpectedly failed with exitcode={int}. pid={int}"),
      kChildOld("unexpectedly failed with an exit code {int}. pid={int}");
  Captures captures;
  for (const Pattern* pattern : {&kChild, &kChildOld}) {
    const size_t place = text.find(pattern->head());
    if (place == std::string::npos || !pattern->match(std::string_view(text).substr(place), captures))
      continue;
    return "pid " + std::string(captures[1]) + ", " + status_text(to_int(captures[0]));
  }
  const size_t at = text.find(kTorchrun.head());
  if (at == std::string::npos || !kTorchrun.match(std::string_view(text).substr(at), captures)) return text;
  std::string code(captures[0]);
  const bool by_signal = code.starts_with('-');
  return "local rank " + std::string(captures[1]) + " (pid " + std::string(captures[2]) + "), " +
         (by_signal ? "by signal " + code.substr(1) : "with exit code " + code);
}

// The numbers in "3, 7" or "{3, 7}".
void add_ranks(const std::string& list, std::set<int32_t>& ranks) {
  constexpr size_t kRanksMost = 1 << 16;
  for (size_t at = 0; at < list.size() && ranks.size() < kRanksMost;) {
    const size_t end = std::min(list.find_first_not_of("0123456789", at), list.size());
    // Nine digits are no rank, and more might not fit into one.
    if (end > at && end - at < 9)
      ranks.insert(static_cast<int32_t>(to_int(std::string_view(list).substr(at, end - at))));
    at = end + 1;
  }
}

// The numbers below the highest of "12, 0, 3" that are not among them.
std::set<int32_t> gaps_of(const std::string& list) {
  std::set<int32_t> listed, gaps;
  add_ranks(list, listed);
  int32_t next = 0;
  for (const int32_t rank : listed) {
    // One changed digit would otherwise name millions of ranks that the job does not have.
    constexpr size_t kGapsMost = 1 << 12;
    for (; next < rank && gaps.size() < kGapsMost; ++next) gaps.insert(next);
    next = rank + 1;
  }
  return gaps;
}

}  // namespace

std::optional<Hit> process_ended(const View& view) {
  Hit hit;
  bool is_certain = false;
  for (const Fact* fact : view.facts(LineKind::kProcessEnded)) {
    if (is_consequence(view, fact->value(0)) || is_of_report(view, *fact)) continue;
    is_certain = is_certain || !may_be_consequence(view, fact->value(0));
    const bool has_no_reason =
        hit.what.ends_with("before finishing this task");  // Ray's, above the one with it
    if (hit.what.empty() || has_no_reason) hit.what = ended_text(fact->value(0));
    if (hit.what.ends_with('.')) hit.what.pop_back();
    prove(view, fact->first, hit);
  }
  if (hit.evidence.empty()) return std::nullopt;
  // All of them may have been ended by watchdogs, whose findings then say more.
  if (!is_certain) hit.severity = Severity::kWarning;
  return hit;
}

// JAX's processes are tasks; those that stopped answering stand in lines below the one that says so.
std::optional<Hit> tasks_lost(const View& view) {
  constexpr uint64_t kListLines = 64;
  static const Pattern kSilent("/task:{int} heartbeat timeout");
  Hit hit;
  std::set<int32_t> tasks;
  Captures captures;
  for (const Fact* fact : view.facts(LineKind::kTasksLost)) {
    const std::string& text = fact->value(0);
    if (hit.what.empty()) hit.what = text;
    const size_t at = text.find(kSilent.head());
    if (at != std::string::npos && kSilent.match(std::string_view(text).substr(at), captures))
      add_ranks(std::string(captures[0]), tasks);
    prove(view, fact->first, hit);
    if (text.find("stopped sending heartbeats") == std::string::npos) continue;
    for (const Fact* listed : view.facts(LineKind::kTaskListed)) {
      const bool is_below = listed->first.file == fact->first.file && listed->first.line > fact->first.line &&
                            listed->first.line - fact->first.line <= kListLines;
      if (is_below) add_ranks(listed->value(0), tasks);
    }
  }
  if (hit.evidence.empty()) return std::nullopt;
  // Words for ranks: a task may have several GPUs, so it is none.
  const std::string list = wording::ranks({tasks.begin(), tasks.end()});
  hit.what = tasks.empty() ? "JAX's coordination service reports that a process failed (" + hit.what + ')'
                           : "JAX's coordination service no longer hears from task" +
                                 list.substr(std::string_view("rank").size());
  return hit;
}

// Where a launcher says only that it ends the others. What it names may have followed another rank: it is not
// blamed.
std::optional<Hit> others_ended(const View& view) {
  constexpr uint64_t kShown = 1;
  const bool is_stated =
      process_ended(view) || !view.torch().dead().empty() || !view.facts(LineKind::kEndRequested).empty();
  if (is_stated) return std::nullopt;
  Hit hit;
  for (const Fact* fact : view.facts(LineKind::kOthersEnded)) {
    if (hit.evidence.size() < kShown) hit.what = fact->value(0);
    prove(view, fact->first, hit);
  }
  if (hit.evidence.empty()) return std::nullopt;
  return hit;
}

// Horovod's coordinator says who has not submitted what others have, first after a minute: whoever is late
// may still come.
std::optional<Hit> horovod_waits(const View& view) {
  Hit hit;
  std::set<int32_t> ranks;
  for (const Fact* fact : view.facts(LineKind::kRanksAbsent)) {
    add_ranks(fact->value(0), ranks);
    prove(view, fact->first, hit);
  }
  // Older ones list who has submitted: ranks count from 0, so a number that is left out is one that waits.
  for (const Fact* fact : view.facts(LineKind::kRanksReady)) {
    // A list of that length was cut: ranks behind the cut would look absent.
    if (fact->value(0).size() < LogModel::kValueMost) ranks.merge(gaps_of(fact->value(0)));
    prove(view, fact->first, hit);
  }
  for (const Fact* fact : view.facts(LineKind::kHorovodWaits)) {
    // It announces that it will end the job, so late ranks no longer help.
    if (fact->value(0).find("Will shutdown") != std::string::npos) hit.severity = Severity::kCritical;
    prove(view, fact->first, hit);
  }
  if (hit.evidence.empty()) return std::nullopt;
  hit.ranks.assign(ranks.begin(), ranks.end());
  hit.what = ranks.empty() ? "Horovod waits for ranks that these lines do not name"
                           : "Horovod waits for " + wording::ranks(hit.ranks) +
                                 ": tensors that others submitted are missing there";
  return hit;
}

// Whoever wrote a record only waits: nobody is blamed by it.
std::optional<Hit> proxy_trace(const View& view) {
  constexpr size_t kShown = 4;
  Hit hit;
  std::set<std::string> waits;
  for (const Fact* fact : view.facts(LineKind::kProxyTraced)) {
    if (fact->value(7) == "DONE") continue;
    const bool is_receive = fact->value(5) == "R";
    waits.insert("rank " + fact->value(3) + (is_receive ? " receives from" : " sends to") + " rank " +
                 fact->value(4) + " (" + fact->value(7) + ')');
    prove(view, fact->first, hit);
  }
  if (hit.evidence.empty()) return std::nullopt;
  size_t reported = 0;
  for (const std::string& wait : waits) {
    if (reported++ < kShown) hit.what += (hit.what.empty() ? "" : ", ") + wait;
  }
  if (waits.size() > kShown) hit.what += " and " + wording::count(waits.size() - kShown, "other");
  return hit;
}

// RCCL lists its transfers when PyTorch's watchdog or a program asks it to.
std::optional<Hit> comm_dumped(const View& view) {
  if (proxy_trace(view)) return std::nullopt;
  Hit hit;
  for (const Fact* fact : view.facts(LineKind::kCommDumped)) add(view, *fact, hit);
  return unless_empty(std::move(hit));
}

// Ranks by the GPU that they share; of several hosts there may be several of one number.
std::optional<Hit> shared_gpu(const View& view) {
  constexpr size_t kShown = 4;
  struct Sharers {
    std::string device;
    std::set<int32_t> ranks;
  };
  Hit hit;
  std::vector<Sharers> groups;
  for (const Fact* fact : view.facts(LineKind::kSharedGpu)) {
    add(view, *fact, hit);
    if (fact->values.size() < 3) continue;
    std::set<int32_t> ranks;
    add_ranks(fact->value(0) + ' ' + fact->value(1), ranks);
    // NCCL prints pairs. Pairs of one device number belong together only if they have a rank in common.
    const auto known = std::find_if(groups.begin(), groups.end(), [&](const Sharers& group) {
      return group.device == fact->value(2) && std::any_of(ranks.begin(), ranks.end(), [&](int32_t rank) {
               return group.ranks.contains(rank);
             });
    });
    Sharers& group = known == groups.end() ? groups.emplace_back(Sharers{fact->value(2), {}}) : *known;
    group.ranks.insert(ranks.begin(), ranks.end());
    hit.ranks.insert(hit.ranks.end(), ranks.begin(), ranks.end());
  }
  if (hit.evidence.empty()) return std::nullopt;
  if (groups.empty()) hit.what = view.who(hit.processes) + ": two ranks use one GPU";
  for (size_t i = 0; i < std::min(groups.size(), kShown); ++i) {
    const std::vector<int32_t> ranks(groups[i].ranks.begin(), groups[i].ranks.end());
    hit.what +=
        (i == 0 ? "" : "; ") + wording::ranks(ranks) + " use one GPU (CUDA device " + groups[i].device + ')';
  }
  if (groups.size() > kShown) hit.what += "; and " + wording::count(groups.size() - kShown, "other GPU");
  return hit;
}

std::optional<Hit> barrier_missed(const View& view) {
  Hit hit;
  std::set<int32_t> ranks;
  for (const Fact* fact : view.facts(LineKind::kBarrierMissed)) {
    add_ranks(fact->value(0), ranks);
    if (hit.what.empty())
      hit.what = " did not reach a barrier within " +
                 wording::duration(std::clamp<int64_t>(to_int(fact->value(1)), 0, 1'000'000'000) * 1'000'000);
    prove(view, fact->first, hit);
  }
  if (hit.evidence.empty() || ranks.empty()) return std::nullopt;
  hit.ranks.assign(ranks.begin(), ranks.end());
  hit.what = wording::ranks(hit.ranks) + hit.what;
  return hit;
}

std::optional<Hit> analyser_misses(const View& view) {
  Hit hit;
  std::set<int32_t> ranks;
  for (const Fact* fact : view.facts(LineKind::kRanksMissing)) {
    add_ranks(fact->value(0), ranks);
    prove(view, fact->first, hit);
  }
  if (hit.evidence.empty() || ranks.empty()) return std::nullopt;
  hit.ranks.assign(ranks.begin(), ranks.end());
  hit.what = wording::ranks(hit.ranks);
  return hit;
}

namespace {

// "ranks 22 and 110 of 128: SIZE_OR_SYNTAX_MISMATCH, expected ..., found ...". The analyser compares all with
// one rank, so of more than a few that differ from it that one may be the odd one: nobody is blamed then.
std::optional<Hit> analyser_hit(const View& view, bool is_of_states) {
  Hit hit;
  std::set<int32_t> ranks;
  bool is_few = true;
  for (const Fact* fact : view.facts(LineKind::kRanksDiffer)) {
    const std::string type = fact->value(3);
    if ((type == "COLLECTIVE_STATE_MISMATCH") != is_of_states) continue;
    const int64_t count = to_int(fact->value(1)), all = to_int(fact->value(2));
    // `all` is 0 where the line does not say it; of two ranks either may be the odd one.
    is_few = is_few && (all > 2 ? count * 2 < all : count == 1 && all == 0);
    add_ranks(fact->value(0), ranks);
    if (hit.what.empty()) {
      std::set<int32_t> of_line;
      add_ranks(fact->value(0), of_line);
      const int64_t others = count - static_cast<int64_t>(of_line.size());  // that the reader cut off
      hit.what = wording::ranks({of_line.begin(), of_line.end()}) +
                 (others > 0 ? " and " + wording::count(static_cast<uint64_t>(others), "other") : "") +
                 (all > 0 ? " of " + std::to_string(all) : "") + " (" + type +
                 (fact->value(4).empty() ? "" : ": " + fact->value(4)) + ')';
    }
    prove(view, fact->first, hit);
  }
  if (hit.evidence.empty()) return std::nullopt;
  if (is_few && !is_of_states) hit.ranks.assign(ranks.begin(), ranks.end());
  if (!is_few && !is_of_states)
    hit.what += "; it compares all with one rank, which may be the one that differs";
  return hit;
}

}  // namespace

std::optional<Hit> analyser_differs(const View& view) { return analyser_hit(view, false); }
std::optional<Hit> analyser_states(const View& view) { return analyser_hit(view, true); }

}  // namespace lockstep::analysis::log_rules
