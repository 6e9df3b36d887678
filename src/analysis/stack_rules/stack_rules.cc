// SPDX-License-Identifier: Apache-2.0
// Looks for the rank that is somewhere else than all others. One stack shows a place and no duration, so
// little is concluded: exactly two places, the others in a call that waits, the few in one that does not, and
// at least two against one. Anything less clear is reported as places without a culprit.
#include "analysis/stack_rules/stack_rules.h"

#include <algorithm>
#include <utility>

#include "base/text/wording.h"

namespace lockstep::analysis::stack_rules {
namespace {

using readers::stacks::Stack;
using readers::stacks::StacksModel;

constexpr size_t kFewest = 3;  // ranks that show who stands out
constexpr size_t kMostLines = 6;
constexpr size_t kMostWho = 16;

// Calls in which a rank waits for others, or for its GPU, which does.
bool waits(const Stack& stack) {
  // Beginnings of names, as `all_gather_into_tensor` waits as well.
  constexpr std::string_view kCalls[] = {
      "all_reduce",         "all_gather",  "reduce",   "broadcast",
      "all_to_all",         "barrier",     "gather",   "scatter",
      "monitored_barrier",  "synchronize", "backward", "destroy_process_group",
      "init_process_group", "new_group"};
  if (stack.place.starts_with("nccl") || stack.place.starts_with("pnccl")) return true;  // of native code
  return std::any_of(std::begin(kCalls), std::end(kCalls),
                     [&](std::string_view call) { return stack.called.starts_with(call); });
}

// Also in a call of which only one other rank, or another program, may be meant.
bool may_wait(const Stack& stack) {
  constexpr std::string_view kCalls[] = {"send", "recv", "wait_tensor"};
  return waits(stack) || std::any_of(std::begin(kCalls), std::end(kCalls),
                                     [&](std::string_view call) { return stack.called.starts_with(call); });
}

using Group = std::vector<const Stack*>;

std::string place_of(const Stack& stack) {
  if (stack.place.empty()) return "no frame with a name";
  return stack.place + (stack.called.empty() ? "" : ", in " + stack.called);
}

// Ranks, or processes where these are not known.
std::string who_of(const Group& group) {
  std::vector<int32_t> ranks;
  std::string pids;
  for (const Stack* stack : group) {
    if (stack->rank >= 0) {
      ranks.push_back(stack->rank);
    } else if (pids.size() < 200) {
      pids += (pids.empty() ? "" : ", ") + (stack->pid >= 0 ? std::to_string(stack->pid) : stack->file);
    }
  }
  std::sort(ranks.begin(), ranks.end());
  std::string text = ranks.empty() ? "" : wording::ranks(ranks);
  if (pids.empty()) return text;
  const bool one = group.size() - ranks.size() == 1;
  return text + (text.empty() ? "" : " and ") + (one ? "process " : "processes ") + pids;
}

std::string is_of(const Group& group) { return group.size() == 1 ? " is at " : " are at "; }

// Each rank or process once, the last of it. Launchers are none.
Group each_once(const StacksModel& model) {
  std::map<std::pair<int32_t, std::pair<std::string, int64_t>>, const Stack*> last;
  const bool are_launchers = std::all_of(model.stacks.begin(), model.stacks.end(),
                                         [](const Stack& stack) { return stack.is_launcher; });
  for (const Stack& stack : model.stacks) {
    if (stack.is_launcher && !are_launchers) continue;
    const bool is_rank = stack.rank >= 0;
    // Without a rank a process is known by its number, which is only unique in one file's host.
    last[{stack.rank, {is_rank ? "" : stack.file, is_rank ? -1 : stack.pid}}] = &stack;
  }
  Group once;
  for (const auto& [key, stack] : last) once.push_back(stack);
  return once;
}

void blame(const Group& group, Finding& finding) {
  for (const Stack* stack : group) {
    if (stack->rank >= 0) finding.ranks.push_back(stack->rank);
    if (!stack->host.empty() &&
        std::find(finding.hosts.begin(), finding.hosts.end(), stack->host) == finding.hosts.end())
      finding.hosts.push_back(stack->host);
    if (finding.who.size() < kMostWho) {
      model::Who who{.rank = stack->rank};
      who.host = stack->host;
      who.pid = stack->pid;
      finding.who.push_back(std::move(who));
    }
  }
  std::sort(finding.ranks.begin(), finding.ranks.end());
}

Finding outlier(const Group& few, const Group& many) {
  Finding finding(FindingId::kNeverJoinedStacks);
  finding.statement = who_of(few) + is_of(few) + place_of(*few.front()) + ", where " +
                      wording::count(many.size(), "other rank") +
                      (many.size() == 1 ? " waits at " : " wait at ") + place_of(*many.front());
  finding.advice = "Find out what " + who_of(few) +
                   " does there; a second stack some seconds later shows whether it moves.";
  finding.needed_evidence = "stacks of all ranks once more, some seconds later";
  blame(few, finding);
  return finding;
}

Finding undecided(const std::vector<Group>& groups, size_t all) {
  Finding finding(FindingId::kEvidenceMissingStacks);
  const std::string first = place_of(*groups.front().front());
  if (all == 1) {
    finding.statement = "the only stack given is at " + first + ", which does not say whom it waits for";
  } else if (groups.size() == 1) {
    finding.statement =
        "the stacks of all " + wording::count(all, "rank") + " given are at the same place: " + first;
  } else {
    finding.statement = "the stacks of " + wording::count(all, "rank") + " are at " +
                        wording::count(groups.size(), "place") +
                        ", and no rank stands out as the one that the others wait for";
  }
  finding.advice =
      "Give the stacks of all ranks, and what else the job left: dumps of PyTorch's Flight Recorder, logs.";
  finding.needed_evidence = "dumps of PyTorch's Flight Recorder, which show who called what";
  return finding;
}

}  // namespace

std::vector<Finding> judge(const StacksModel& model) {
  const Group all = each_once(model);
  if (all.empty()) return {};
  std::map<std::string, Group> by_place;
  for (const Stack* stack : all) by_place[place_of(*stack)].push_back(stack);
  std::vector<Group> groups;
  for (auto& [place, group] : by_place) groups.push_back(std::move(group));
  std::stable_sort(groups.begin(), groups.end(),
                   [](const Group& a, const Group& b) { return a.size() > b.size(); });
  const Group& most = groups.front();
  // All others wait at one place, and are most of them.
  const bool stands_out = groups.size() == 2 && all.size() >= kFewest &&
                          most.size() >= 2 * groups[1].size() && waits(*most.front()) &&
                          !may_wait(*groups[1].front());
  // Equally many ranks at both places, or a third place, leave open who waits for whom.
  Finding finding = stands_out ? outlier(groups[1], most) : undecided(groups, all.size());
  for (size_t i = 0; i < std::min(groups.size(), kMostLines); ++i)
    finding.evidence.push_back(who_of(groups[i]) + is_of(groups[i]) + place_of(*groups[i].front()) + " (" +
                               groups[i].front()->file + ":" + std::to_string(groups[i].front()->line) + ")");
  if (groups.size() > kMostLines)
    finding.evidence.push_back("and " + wording::count(groups.size() - kMostLines, "further place"));
  if (model.left_out > 0) finding.evidence.push_back(wording::count(model.left_out, "stack") + " left out");
  finding.evidence.insert(finding.evidence.end(), model.unreadable_files.begin(),
                          model.unreadable_files.end());
  return {std::move(finding)};
}

std::map<int32_t, std::string> hosts(const StacksModel& model) {
  std::map<int32_t, std::string> hosts;
  for (const Stack& stack : model.stacks) {
    if (stack.rank >= 0) hosts.emplace(stack.rank, stack.host);
  }
  return hosts;
}

}  // namespace lockstep::analysis::stack_rules
