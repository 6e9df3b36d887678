// SPDX-License-Identifier: Apache-2.0
// What PyTorch's watchdogs, its desync report and the launcher show: watchdog.h, as findings. A rank is said
// to have never joined if its own count is behind and it neither waits elsewhere nor died. If no finding
// explains the stop, one says why Lockstep cannot tell and which logs would decide it.
#include <algorithm>
#include <iterator>

#include "analysis/log_rules/rules.h"
#include "base/largest_camp.h"
#include "base/text/wording.h"

namespace lockstep::analysis::log_rules {
namespace {

using Ranks = std::vector<int32_t>;

constexpr size_t kHitsMost = 16;  // of one rule: each looks through all lines

Ranks without(const Ranks& ranks, const Ranks& others) {
  Ranks left;
  std::set_difference(ranks.begin(), ranks.end(), others.begin(), others.end(), std::back_inserter(left));
  return left;
}

// Of those behind, who waits in no other group and is not dead: they are the cause.
Ranks causes(const View& view, const Stall& stall) {
  Ranks free;
  std::copy_if(stall.behind.begin(), stall.behind.end(), std::back_inserter(free),
               [&](int32_t rank) { return !view.torch().waits(rank); });
  return without(free, stall.dead);
}

std::string waited(const Stall& stall) {
  std::string text = wording::count(stall.waiting.size(), "rank") + " waited for it";
  if (stall.milliseconds > 0)
    text += " for " + wording::duration(std::min<int64_t>(stall.milliseconds, 1e12) * 1'000'000);
  return text + ", until PyTorch's watchdog gave up";
}

Hit hit_of(const View& view, const Stall& stall) {
  Hit hit;
  hit.comm = stall.group->name;
  hit.func = stall.func;
  if (stall.seq > 0) hit.op_index = static_cast<uint64_t>(stall.seq - 1);
  for (const TorchLine* line : stall.evidence) prove(view, line->first, hit);
  if (stall.milliseconds > 0) {
    // The longest wait that a watchdog printed: the job stood at least as long.
    const double ns = static_cast<double>(stall.milliseconds) * 1e6;
    hit.effect = Effect{.value = ns, .unit = "ns", .low = ns, .high = ns};
  }
  return hit;
}

// Where the program called the operation in which `ranks` wait.
void add_place(const View& view, const Ranks& ranks, Hit& hit) {
  for (const TorchLine* line : view.torch().lines(TorchRemark::kCalledAt)) {
    if (!std::binary_search(ranks.begin(), ranks.end(), line->rank)) continue;
    hit.evidence.push_back("rank " + std::to_string(line->rank) + " called it in " + line->text);
    return;
  }
}

std::string no_log(const Ranks& ranks) {
  return "no line of " + wording::ranks(ranks) + " says how far it got";
}

// "rank 3 waited for operation 8 of default_pg (AllReduce of 26 elements) for 10.0 min, until PyTorch's
// watchdog gave up"
std::string who_waited(const Stall& stall) {
  std::string text = wording::ranks(stall.waiting) + " waited for " + operation_text(stall);
  const bool is_sized = stall.by_size.size() == 1 && text.ends_with('(' + stall.func + ')');
  if (is_sized)
    text.replace(text.size() - stall.func.size() - 1, stall.func.size(), stall.by_size.begin()->first);
  if (stall.milliseconds > 0)
    text += " for " + wording::duration(std::min<int64_t>(stall.milliseconds, 1e12) * 1'000'000);
  return text + ", until PyTorch's watchdog gave up";
}

// How far those who wait have come, as far as their own lines say.
void add_progress(const Stall& stall, Hit& hit) {
  constexpr size_t kShown = 3;
  size_t reported = 0;
  for (const int32_t rank : stall.waiting) {
    const auto position = stall.group->positions.find(rank);
    if (position == stall.group->positions.end() || position->second.enqueued < 0 ||
        position->second.completed < 0)
      continue;
    if (++reported > kShown) return;
    hit.evidence.push_back("rank " + std::to_string(rank) + " had called " +
                           wording::count(static_cast<uint64_t>(position->second.enqueued), "operation") +
                           " of " + stall.group->name + ", of which " +
                           std::to_string(position->second.completed) + " had ended");
  }
}

// Lines of one remark, a rank each.
std::optional<Hit> of_remark(const View& view, TorchRemark remark, std::string_view what) {
  Hit hit;
  std::set<int32_t> ranks;
  for (const TorchLine* line : view.torch().lines(remark)) {
    if (line->rank >= 0) ranks.insert(line->rank);
    prove(view, line->first, hit);
  }
  if (hit.evidence.empty()) return std::nullopt;
  hit.ranks.assign(ranks.begin(), ranks.end());
  hit.what = (ranks.empty() ? std::string("a rank") : wording::ranks(hit.ranks)) + ": " + std::string(what);
  return hit;
}

bool is_remote(const TorchLine& line) {
  for (const std::string_view word :
       {"remote process exited", "ncclRemoteError", "network error", "Connection closed"}) {
    if (line.text.find(word) != std::string::npos) return true;
  }
  return false;
}
bool is_cuda(const TorchLine& line) {
  return line.text.find("CUDA error") != std::string::npos ||
         line.text.find("Cuda failure") != std::string::npos ||
         line.text.find("unhandled cuda error") != std::string::npos;
}

bool is_gpu_fault(const TorchLine& line) {
  return is_cuda(line) && line.text.find("uncorrectable") != std::string::npos;
}

template <class Accept>
std::optional<Hit> of_errors(const View& view, Accept accept, std::string_view what) {
  Hit hit;
  std::set<int32_t> ranks;
  std::string text;
  for (const TorchLine* line : view.torch().lines(TorchRemark::kError)) {
    if (!accept(*line)) continue;
    if (text.empty()) text = line->text;
    if (line->rank >= 0) ranks.insert(line->rank);
    prove(view, line->first, hit);
  }
  if (hit.evidence.empty()) return std::nullopt;
  hit.ranks.assign(ranks.begin(), ranks.end());
  hit.what = (ranks.empty() ? std::string("a rank") : wording::ranks(hit.ranks)) + ": " + std::string(what) +
             " (" + text + ')';
  return hit;
}

std::string exit_text(const TorchLine& line) {
  if (line.remark == TorchRemark::kRaised) return "ended with " + line.text;
  const int32_t code = line.exit_code;
  if (code == TorchLine::kNoCode) return "ended first";
  return code < 0 ? "was ended by signal " + std::to_string(-code)
                  : "ended with exit code " + std::to_string(code);
}

// Something names who is to blame, or what is wrong.
bool is_explained(const View& view) {
  const TorchJob& job = view.torch();
  if (!job.dead().empty() || !job.circles().empty()) return true;
  return std::any_of(job.stalls().begin(), job.stalls().end(), [&](const Stall& stall) {
    return stall.kind == StallKind::kOtherOp || stall.kind == StallKind::kStuck ||
           (stall.kind == StallKind::kNeverJoined && !causes(view, stall).empty());
  });
}

// "rank 0 waits in operation 96116 of it (AllReduce)"
std::string elsewhere_text(const std::map<int32_t, const TorchLine*>& elsewhere) {
  constexpr size_t kShown = 4;
  std::string text;
  size_t reported = 0;
  for (const auto& [rank, line] : elsewhere) {
    if (++reported > kShown) break;
    text += (reported == 1 ? "rank " : ", rank ") + std::to_string(rank) + " waits in operation " +
            std::to_string(line->seq - 1) + (line->func.empty() ? "" : " (" + line->func + ')');
  }
  return reported > kShown ? text + " and others elsewhere" : text;
}

// What is missing is lines of some ranks, and nothing else.
bool is_silence(const Stall& stall) {
  const TorchGroup& group = *stall.group;
  return stall.elsewhere.empty() && (group.transfers.empty() || !stall.behind.empty()) &&
         !group.mixes_counts && !group.is_clashing && !group.is_of_attempts && !group.name.empty();
}

// Lines of PyTorch before 1.13: "ranks 3 and 5 waited for Broadcast".
// Without numbers nobody can be compared, so nobody is blamed.
std::optional<Hit> without_number(const View& view) {
  Hit hit;
  std::map<std::string, std::set<int32_t>> ranks_of_func;
  for (const TorchLine* line : view.torch().lines(TorchRemark::kTimeout)) {
    if (line->rank < 0 || line->seq > 0 || line->func.empty()) continue;
    ranks_of_func[line->func].insert(line->rank);
    prove(view, line->first, hit);
  }
  if (hit.evidence.empty()) return std::nullopt;
  for (const auto& [func, ranks] : ranks_of_func)
    hit.what +=
        (hit.what.empty() ? "" : ", ") + wording::ranks({ranks.begin(), ranks.end()}) + " waited for " + func;
  hit.what = "an operation did not end, and these lines do not number it: " + hit.what;
  hit.needed_evidence = "the logs of the other ranks, or dumps of PyTorch's Flight Recorder";
  return hit;
}

std::string why_unknown(const Stall& stall) {
  if (!stall.elsewhere.empty())
    return "ranks wait in different operations: " + elsewhere_text(stall.elsewhere) +
           (stall.group->name.empty() ? "; these lines do not name the group" : "");
  if (!stall.group->transfers.empty() && stall.behind.empty())
    return "PyTorch's lines do not name the other end of a send or receive";
  if (stall.group->mixes_counts)
    return "sends and receives are counted with the collectives of this group, so counts of ranks cannot be "
           "compared";
  if (stall.group->is_clashing) return "two groups have this name";
  if (stall.group->is_of_attempts) return "these lines are of several attempts of the job";
  std::string text;
  if (stall.group->name.empty()) {
    // Two groups may both have come to one number.
    if (stall.by_func.size() > 1)
      text = "they wait in different ones of that number (" + calls_text(stall.by_func) + "); ";
    return text + "these lines name neither the group nor its members";
  }
  if (!stall.ahead.empty())
    text = "it ended where " + elsewhere_text(stall.ahead) + ", so these ranks may count different calls; ";
  if (!stall.silent.empty()) return text + no_log(stall.silent);
  const auto members = static_cast<uint64_t>(std::max(stall.group->size, 0));
  const size_t seen = stall.group->positions.size();
  if (seen < members)
    return text + "the group has " + wording::count(members, "rank") + ", and these logs have lines of " +
           std::to_string(seen);
  return text + "every rank in these logs has called it" +
         (members == 0 ? ", but they do not show how many ranks there are" : "");
}

}  // namespace

std::vector<Hit> watchdog_other_op(const View& view) {
  std::vector<Hit> hits;
  for (const Stall& stall : view.torch().stalls()) {
    if (stall.kind != StallKind::kOtherOp || hits.size() >= kHitsMost) continue;
    Hit hit = hit_of(view, stall);
    const auto* const usual = largest_camp(*differing_calls(stall));
    for (const auto& camp : *differing_calls(stall)) {
      const auto& [call, ranks] = camp;
      if (&camp != usual) hit.ranks.insert(hit.ranks.end(), ranks.begin(), ranks.end());
      const TorchLine* proof = stall.proofs.at(call);
      if (proof != stall.evidence.front()) prove(view, proof->first, hit);
    }
    std::sort(hit.ranks.begin(), hit.ranks.end());
    hit.what =
        "ranks made different calls as " + operation_text(stall) + ": " + calls_text(*differing_calls(stall));
    hits.push_back(std::move(hit));
  }
  return hits;
}

namespace {

// The rank of the job for one of the group in which ranks call different things; -1: not known. Where marks
// of lines are those ranks, it is the job's group, or nobody can tell.
int32_t rank_in_job(const std::vector<const TorchLine*>& lines, int32_t in_group) {
  std::map<int32_t, std::set<int32_t>> marks, numbers;
  for (const TorchLine* line : lines) {
    marks[line->group_rank].insert(line->rank);
    numbers[line->rank].insert(line->group_rank);
  }
  const auto is_same = [](const auto& row) { return row.second == std::set<int32_t>{row.first}; };
  if (std::all_of(marks.begin(), marks.end(), is_same)) return in_group;
  const auto at = marks.find(in_group);
  // Several groups have a rank of one number, and a mark may be that of a host.
  const bool is_one = at != marks.end() && at->second.size() == 1 && numbers[*at->second.begin()].size() == 1;
  return is_one ? *at->second.begin() : -1;
}

}  // namespace

std::optional<Hit> fingerprints_differ(const View& view) {
  const auto lines = view.torch().lines(TorchRemark::kMismatch);
  if (lines.empty()) return std::nullopt;
  Hit hit;
  const TorchLine& first = *lines.front();
  const int32_t rank = rank_in_job(lines, first.group_rank), other = rank_in_job(lines, first.other_rank);
  const auto name = [](int32_t known, int32_t in_group) {
    return "rank " + std::to_string(known >= 0 ? known : in_group) + (known >= 0 ? "" : " of a group");
  };
  const std::string other_name = name(other, first.other_rank);
  for (const TorchLine* line : lines) prove(view, line->first, hit);
  hit.func = first.func;
  // Either may be wrong: one alone is not named.
  if (rank >= 0 && other >= 0) hit.ranks = {rank, other};
  const bool is_apart = first.seq >= 0 && first.other_seq >= 0 && first.seq != first.other_seq;
  if (first.seq > 0 && !is_apart) hit.op_index = static_cast<uint64_t>(first.seq - 1);
  const std::string own = name(rank, first.group_rank) + " calls " + first.op;
  if (first.other_rank < 0) {
    hit.what = own + ", and another rank does not";
  } else if (is_apart) {
    hit.what = own + " as number " + std::to_string(first.seq) + " of their group, and " + other_name +
               " calls " + (first.text.empty() ? "another" : first.text) + " as number " +
               std::to_string(first.other_seq) + ": they are out of step";
  } else {
    hit.what = own + ", and " + other_name + " calls " +
               (first.text == first.op ? "it with other tensors" : first.text);
  }
  if (first.seq > 0 && !is_apart)
    hit.what += ", as operation " + std::to_string(first.seq) + " of their group";
  return hit;
}

// Ranks announce what they call a moment before: at any time they are apart by a few. It is a hint, and
// nobody is blamed: the numbers may be of different groups.
std::optional<Hit> announced_apart(const View& view) {
  constexpr size_t kShown = 4;
  const auto lines = view.torch().lines(TorchRemark::kAnnounced);
  std::map<int64_t, Ranks> by_number;
  for (const TorchLine* line : lines) by_number[line->seq].push_back(line->rank);
  const auto& comms = view.model().comms;
  const bool is_over = std::any_of(comms.begin(), comms.end(),
                                   [](const CommPart& part) { return part.ended && !part.aborted; });
  if (by_number.size() < 2 || is_over) return std::nullopt;
  Hit hit;
  size_t reported = 0;
  for (auto at = by_number.rbegin(); at != by_number.rend() && reported < kShown; ++at) {
    std::sort(at->second.begin(), at->second.end());
    hit.what +=
        (reported++ == 0 ? "" : ", ") + wording::ranks(at->second) + ": number " + std::to_string(at->first);
  }
  for (const TorchLine* line : lines) prove(view, line->first, hit);
  hit.what = "the last collectives that ranks announced differ: " + hit.what +
             (by_number.size() > kShown ? " and others" : "");
  hit.needed_evidence = "dumps of PyTorch's Flight Recorder, or what the ranks printed up to the job's end";
  return hit;
}

std::vector<Hit> watchdog_deadlock(const View& view) {
  std::vector<Hit> hits;
  for (const Circle& circle : view.torch().circles()) {
    if (hits.size() >= kHitsMost) break;
    Hit hit = hit_of(view, *circle.stalls.front());
    hit.ranks.assign(circle.ranks.begin(), circle.ranks.end());
    for (const Stall* stall : circle.stalls) {
      hit.what += (hit.what.empty() ? "" : "; ") + wording::ranks(stall->waiting) + " in " +
                  operation_text(*stall) + " for " + wording::ranks(stall->behind);
      if (stall != circle.stalls.front() && !stall->evidence.empty())
        prove(view, stall->evidence.front()->first, hit);
    }
    hit.what = "groups of ranks wait for each other: " + hit.what;
    hits.push_back(std::move(hit));
  }
  return hits;
}

std::optional<Hit> launcher_saw_end(const View& view) {
  const auto& dead = view.torch().dead();
  if (dead.empty()) return std::nullopt;
  Hit hit;
  for (const Stall& stall : view.torch().stalls()) {
    if (stall.dead.empty()) continue;
    hit = hit_of(view, stall);
    // The lines of the dead are the proof; those of who waited only say what it led to.
    hit.evidence.clear();
    hit.what = "; " + waited(stall) + ": " + operation_text(stall);
    break;
  }
  std::string who;
  for (const auto& [rank, line] : dead) {
    hit.ranks.push_back(rank);
    prove(view, line->first, hit);
    if (hit.ranks.size() <= 4)
      who += (who.empty() ? "" : ", ") + ("the process of rank " + std::to_string(rank)) + ' ' +
             exit_text(*line);
  }
  if (dead.size() > 4) who += " and " + wording::count(dead.size() - 4, "other");
  hit.what = who + hit.what;
  return hit;
}

std::optional<Hit> watchdog_gpu_fault(const View& view) {
  return of_errors(view, is_gpu_fault,
                   "the GPU reported a hardware fault, and the process ended because of it");
}

std::optional<Hit> watchdog_cuda_error(const View& view) {
  return of_errors(
      view, [](const TorchLine& line) { return is_cuda(line) && !is_gpu_fault(line); },
      "CUDA failed, and the process ended because of it");
}

std::optional<Hit> watchdog_remote_error(const View& view) {
  return of_errors(
      view, [](const TorchLine& line) { return !is_cuda(line) && is_remote(line); }, "NCCL lost a peer");
}

std::vector<Hit> watchdog_never_joined(const View& view) {
  std::vector<Hit> hits;
  for (const Stall& stall : view.torch().stalls()) {
    // Who waits in another group is held up there, and that stall has a finding of its own.
    const Ranks ranks = causes(view, stall);
    if (stall.kind != StallKind::kNeverJoined || ranks.empty() || hits.size() >= kHitsMost) continue;
    Hit hit = hit_of(view, stall);
    hit.ranks = ranks;
    hit.what = wording::ranks(ranks) + " never called " + operation_text(stall) + "; " + waited(stall);
    add_place(view, stall.waiting, hit);
    if (!stall.silent.empty()) hit.evidence.push_back(no_log(stall.silent));
    hits.push_back(std::move(hit));
  }
  return hits;
}

std::vector<Hit> watchdog_stuck(const View& view) {
  std::vector<Hit> hits;
  for (const Stall& stall : view.torch().stalls()) {
    if (stall.kind != StallKind::kStuck || hits.size() >= kHitsMost) continue;
    Hit hit = hit_of(view, stall);
    const size_t all = stall.group->positions.size();
    const bool is_all = stall.waiting.size() == all;
    if (!is_all) hit.ranks = stall.waiting;
    hit.what = "all " + wording::count(all, "rank") + " called " + operation_text(stall) +
               ", and it ended on " +
               (is_all ? std::string("none") : "all but " + wording::ranks(stall.waiting));
    // The first operation of all: direct access between GPUs may be answered, and lead nowhere.
    const auto& rows = view.model().connections;
    const auto p2p = std::find_if(rows.begin(), rows.end(),
                                  [](const Connection& row) { return row.transport == Transport::kP2p; });
    if (stall.seq == 1 && is_all && p2p != rows.end()) {
      prove(view, p2p->first, hit);
      hit.needed_evidence =
          "a run with NCCL_P2P_DISABLE=1: if that run goes on, PCIe's access control (ACS) blocks P2P";
    }
    add_place(view, stall.waiting, hit);
    hits.push_back(std::move(hit));
  }
  return hits;
}

std::optional<Hit> watchdog_stood_still(const View& view) {
  return of_remark(view, TorchRemark::kWatchdogStuck, "PyTorch's watchdog itself was stuck");
}

std::optional<Hit> lock_held(const View& view) {
  return of_remark(view, TorchRemark::kLockHeld,
                   "Python's lock (GIL) was held when the process should have ended");
}

std::optional<Hit> watchdog_consequence(const View& view) {
  return of_remark(view, TorchRemark::kTakenDown,
                   "PyTorch ended the process because an operation failed or took too long");
}

std::vector<Hit> watchdog_cannot_tell(const View& view) {
  const TorchJob& job = view.torch();
  if (job.is_silent() || is_explained(view)) return {};
  std::vector<Hit> hits;
  for (const Stall& stall : job.stalls()) {
    if (stall.kind != StallKind::kCannotTell || hits.size() >= kHitsMost) continue;
    Hit hit = hit_of(view, stall);
    // Else it is not the n-th collective of those who wait, or not of all of them.
    if (!is_silence(stall)) hit.op_index.reset();
    hit.ranks = stall.group->is_world && is_silence(stall) ? stall.silent : Ranks();
    hit.what = "an operation did not end, and Lockstep cannot tell who held it up: " + who_waited(stall) +
               "; " + why_unknown(stall);
    add_progress(stall, hit);
    hit.needed_evidence =
        stall.silent.empty()
            ? "the logs of the other ranks, or dumps of PyTorch's Flight Recorder"
            : "the logs of " + wording::ranks(stall.silent) + ", or dumps of PyTorch's Flight Recorder";
    // As for those of which all is known: see watchdog_stuck.
    if (stall.seq == 1 && stall.group->is_world)
      hit.needed_evidence +=
          "; and, as it is the first operation of all, a run with NCCL_P2P_DISABLE=1: if that run goes on, "
          "direct access between the GPUs does not work here (PCIe's access control, a virtual machine)";
    add_place(view, stall.waiting, hit);
    hits.push_back(std::move(hit));
  }
  if (!hits.empty()) return hits;
  if (auto hit = without_number(view)) return {std::move(*hit)};
  // Only ranks that were told of it report it.
  Hit hit;
  const bool has_error = !job.lines(TorchRemark::kError).empty();  // then what ended the job is reported
  for (const TorchRemark remark :
       {TorchRemark::kTimeout, TorchRemark::kProgress, TorchRemark::kSignal, TorchRemark::kTakenDown}) {
    if (remark == TorchRemark::kTakenDown && has_error) continue;
    for (const TorchLine* line : job.lines(remark)) {
      const bool has_failed = line->other_rank >= 0 || (line->rank < 0 && line->seq > 0);
      if (remark != TorchRemark::kProgress || has_failed) prove(view, line->first, hit);
    }
  }
  if (hit.evidence.empty()) return {};
  hit.ranks = job.without_lines();
  hit.what = "an operation did not end, and these logs do not say which: " +
             (hit.ranks.empty() ? std::string("only ranks that other ranks told about it report it")
                                : "no line of " + wording::ranks(hit.ranks));
  hit.needed_evidence = "the logs of the ranks that timed out, or dumps of PyTorch's Flight Recorder";
  hits.push_back(std::move(hit));
  return hits;
}

}  // namespace lockstep::analysis::log_rules
