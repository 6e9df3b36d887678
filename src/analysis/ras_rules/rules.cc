// SPDX-License-Identifier: Apache-2.0
// Each rule looks at one communicator of the newest snapshot. What a moment can show by chance, such as a
// rank that is one operation behind, is critical only if an earlier snapshot shows the same of the same
// ranks; else it is a warning that asks for a second one. A rank that has moved since is not stuck, however
// far behind it is.
#include "analysis/ras_rules/rules.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/largest_camp.h"
#include "base/text/wording.h"

namespace lockstep::analysis::ras_rules {
namespace {

using readers::ras::kInProgress;
using readers::ras::kRemoteError;
using readers::ras::kSuccess;

constexpr std::string_view kAskAgain =
    "a second snapshot, some seconds later, given together with this one: ncclras -v";

std::string_view error_text(int32_t result) {
  constexpr std::string_view kTexts[] = {"success",
                                         "an unhandled CUDA error",
                                         "a system error",
                                         "an internal error",
                                         "an invalid argument",
                                         "invalid usage",
                                         "an error of another process"};
  return result > 0 && result <= kRemoteError ? kTexts[result] : "an unknown error";
}

bool is_error(int32_t result) { return result != kSuccess && result != kInProgress; }
// What happened while it ran says more than how its creation ended.
int32_t error_of(const Rank& rank) { return is_error(rank.async_error) ? rank.async_error : rank.init_state; }
bool is_ending(const Rank& rank) { return rank.finalize_called || rank.destroyed; }

// Ranks that are in it, about to stay, and say what they launched.
std::vector<const Rank*> running(const Comm& comm) {
  std::vector<const Rank*> ranks;
  for (const Rank& rank : comm.ranks) {
    // A rank without counts is one of which they are not known, and not one that launched nothing.
    const bool has_counts = comm.is_summary || !rank.launched.empty();
    if (rank.init_state == kSuccess && !rank.aborted && !is_ending(rank) && has_counts)
      ranks.push_back(&rank);
  }
  return ranks;
}

// How many these are. A summary leaves out ranks that are in order.
size_t staying(const Comm& comm) {
  if (!comm.is_summary) return running(comm).size();
  const auto ends =
      static_cast<size_t>(std::count_if(comm.ranks.begin(), comm.ranks.end(), [](const Rank& rank) {
        return rank.init_state != kSuccess || rank.aborted || is_ending(rank);
      }));
  // Counted from the whole, since those in order are not listed.
  const size_t gone = ends + comm.missing.size(), size = static_cast<size_t>(std::max(comm.size, 0));
  return size - std::min(size, gone);
}

template <class Row, class Has>
std::vector<const RankPlace*> those(const std::vector<Row>& rows, Has&& has) {
  std::vector<const RankPlace*> places;
  for (const Row& row : rows) {
    if (has(row)) places.push_back(&row);
  }
  return places;
}

bool are(const std::vector<const RankPlace*>& ranks) { return ranks.size() != 1; }

std::string has_of(const std::vector<const RankPlace*>& ranks) { return are(ranks) ? "have" : "has"; }

// Whether an earlier snapshot shows the same of all these ranks: what takes a moment is over by then.
template <class Same>
bool stands(const View& view, const Comm& comm, const std::vector<const RankPlace*>& ranks, Same&& same) {
  const Comm* const before = view.before(comm);
  return before != nullptr &&
         std::all_of(ranks.begin(), ranks.end(), [&](const RankPlace* rank) { return same(*before, *rank); });
}

// Sets how sure a case is that only time can show.
void weigh(const View& view, const Comm& comm, bool stands, Case& found) {
  if (stands) {
    found.severity = Severity::kCritical;
    found.evidence.push_back("the snapshot of " + view.time_before(comm) + " shows the same");
  } else {
    found.severity = Severity::kWarning;
    found.needed_evidence = kAskAgain;
  }
}

std::optional<Case> missing(const Comm& comm, bool (*has)(const MissingRank&), std::string_view one,
                            std::string_view many) {
  Case found;
  found.blamed = those(comm.missing, has);
  if (found.blamed.empty()) return std::nullopt;
  const size_t others =
      comm.is_summary ? static_cast<size_t>(comm.size) - comm.missing.size() : comm.ranks.size();
  found.what = are(found.blamed) ? many : one;
  found.what += "; " + wording::count(others, "other rank") + " of " + View::name(comm) +
                (others == 1 ? " answers" : " answer");
  return found;
}

// The functions that some of these ranks have launched more often than others.
std::vector<std::string> uneven_functions(const std::vector<const Rank*>& ranks) {
  std::map<std::string, std::pair<uint64_t, uint64_t>> range;
  for (const Rank* rank : ranks) {
    for (const auto& [func, count] : rank->launched) range.try_emplace(func, UINT64_MAX, 0);
  }
  // A rank that does not list a function has launched none of it.
  for (auto& [func, counts] : range) {
    for (const Rank* rank : ranks) {
      const uint64_t count = launched(*rank, func);
      counts = {std::min(counts.first, count), std::max(counts.second, count)};
    }
  }
  std::vector<std::string> uneven;
  for (const auto& [func, counts] : range) {
    if (counts.first != counts.second) uneven.push_back(func);
  }
  return uneven;
}

// Ranks by what they launched, as text: a function that a rank does not list is one that it did not launch.
using Camps = std::map<std::string, std::vector<const RankPlace*>>;
Camps camps_of(const std::vector<const Rank*>& ranks) {
  Camps camps;
  for (const Rank* rank : ranks) camps[operations(*rank)].push_back(rank);
  return camps;
}

void add_operations(const View& view, const Camps& camps, Case& found) {
  constexpr size_t kMostCamps = 4;
  std::vector<std::pair<std::string, std::vector<const RankPlace*>>> by_size(camps.begin(), camps.end());
  std::stable_sort(by_size.begin(), by_size.end(),
                   [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
  for (size_t i = 0; i < std::min(kMostCamps, by_size.size()); ++i) {
    std::vector<int32_t> numbers;
    for (const RankPlace* rank : by_size[i].second) {
      const int32_t global = view.global_rank(*rank);
      numbers.push_back(global >= 0 ? global : rank->rank);
    }
    std::sort(numbers.begin(), numbers.end());
    found.evidence.push_back(wording::ranks(numbers) + " launched " + by_size[i].first);
  }
}

}  // namespace

std::optional<Case> dead(const View&, const Comm& comm) {
  return missing(
      comm, [](const MissingRank& rank) { return rank.considered_dead; },
      "is dead: RAS has given up on its process", "are dead: RAS has given up on their processes");
}

std::optional<Case> unreachable(const View&, const Comm& comm) {
  return missing(
      comm, [](const MissingRank& rank) { return rank.unresponsive && !rank.considered_dead; },
      "did not answer RAS in time: its process is stopped, or its host is unreachable",
      "did not answer RAS in time: their processes are stopped, or their hosts are unreachable");
}

std::optional<Case> errors(const View&, const Comm& comm) {
  Case found;
  // Others report what came over them from those who failed first.
  const auto own = [](const Rank& rank) {
    return is_error(error_of(rank)) && error_of(rank) != kRemoteError;
  };
  const auto remote = [](const Rank& rank) { return error_of(rank) == kRemoteError; };
  found.blamed = those(comm.ranks, own);
  const auto victims = those(comm.ranks, remote);
  if (found.blamed.empty()) found.blamed = victims;
  if (found.blamed.empty()) return std::nullopt;
  std::set<std::string_view> texts;
  for (const RankPlace* rank : found.blamed)
    texts.insert(error_text(error_of(static_cast<const Rank&>(*rank))));
  for (const std::string_view text : texts)
    found.what +=
        (found.what.empty() ? are(found.blamed) ? "report " : "reports " : " or ") + std::string(text);
  found.what += " in " + View::name(comm);
  if (!victims.empty() && found.blamed != victims)
    found.evidence.push_back(wording::count(victims.size(), "other rank") +
                             " report an error of another process");
  return found;
}

std::optional<Case> other_operations(const View& view, const Comm& comm) {
  const std::vector<const Rank*> ranks = running(comm);
  for (const Rank* rank : ranks) {
    // Equal sums of different parts: ranks that called as often, and not the same.
    if (launched(*rank) != launched(*ranks.front())) return std::nullopt;  // who is behind comes first
  }
  const Camps camps = camps_of(ranks);
  if (camps.size() < 2) return std::nullopt;
  const auto* const usual = largest_camp(camps);
  Case found;
  for (const auto& camp : camps) {
    if (&camp != usual) found.blamed.insert(found.blamed.end(), camp.second.begin(), camp.second.end());
  }
  found.what = has_of(found.blamed) + " launched as many operations ";
  if (usual == nullptr) {
    found.what += "of " + View::name(comm) + " each, but different ones: any of them may be wrong";
  } else {
    found.what += "as the " + wording::count(ranks.size() - found.blamed.size(), "other rank") + " of " +
                  View::name(comm) + ", but different ones";
  }
  add_operations(view, camps, found);
  weigh(view, comm,
        stands(view, comm, found.blamed,
               [&](const Comm& before, const RankPlace& place) {
                 const Rank* const was = find(before, place.rank);
                 return was != nullptr && operations(*was) == operations(static_cast<const Rank&>(place));
               }),
        found);
  return found;
}

std::optional<Case> init_unfinished(const View& view, const Comm& comm) {
  Case found;
  const auto is_in_init = [](const Rank& rank) { return rank.init_state == kInProgress; };
  const auto inside = those(comm.ranks, is_in_init);
  if (inside.empty()) return std::nullopt;
  // Who has not come to it is missing; else nobody in particular is to blame.
  found.blamed = those(comm.missing,
                       [](const MissingRank& rank) { return !rank.considered_dead && !rank.unresponsive; });
  const std::string wait = wording::count(inside.size(), "rank") + (are(inside) ? " are" : " is") +
                           " inside the creation of " + View::name(comm);
  found.what = found.blamed.empty() ? wait : has_of(found.blamed) + " not joined it: " + wait;
  weigh(view, comm,
        stands(view, comm, inside,
               [](const Comm& before, const RankPlace& place) {
                 const Rank* const was = find(before, place.rank);
                 return was != nullptr && was->init_state == kInProgress;
               }),
        found);
  return found;
}

std::optional<Case> behind(const View& view, const Comm& comm) {
  const std::vector<const Rank*> ranks = running(comm);
  if (ranks.size() < 2) return std::nullopt;
  const auto less = [](const Rank* a, const Rank* b) { return launched(*a) < launched(*b); };
  const auto [low, high] = std::minmax_element(ranks.begin(), ranks.end(), less);
  const uint64_t least = launched(**low), most = launched(**high);
  if (least == most) return std::nullopt;
  Case found;
  for (const Rank* rank : ranks) {
    if (launched(*rank) == least) found.blamed.push_back(rank);
  }
  if (const Comm* const before = view.before(comm); before != nullptr) {
    // Who goes on is not stuck.
    std::erase_if(found.blamed, [&](const RankPlace* rank) {
      const Rank* const was = find(*before, rank->rank);
      return was != nullptr && launched(*was) < least;
    });
    if (found.blamed.empty()) return std::nullopt;
  }
  const std::vector<std::string> uneven = uneven_functions(ranks);
  if (uneven.size() == 1) found.func = uneven.front();
  // A summary does not count operations of other functions.
  // Numbers begin at 0, so the first operation that is missing bears the number of those that are there.
  if (!comm.is_summary) found.op_index = least;
  const uint64_t ahead = ranks.size() - found.blamed.size();
  const std::string operation =
      comm.is_summary && uneven.size() == 1 ? uneven.front() + " operation" : "operation";
  found.what = has_of(found.blamed) + " launched " + wording::count(least, operation) + " of " +
               View::name(comm) + ", " + wording::count(ahead, "other rank") +
               (ahead == 1 ? " has" : " have") + " launched up to " + std::to_string(most) +
               (found.func.empty() || comm.is_summary ? "" : " (the difference is in " + found.func + ")");
  add_operations(view, camps_of(ranks), found);
  weigh(view, comm,
        stands(view, comm, found.blamed,
               [&](const Comm& was, const RankPlace& place) {
                 const Rank* const rank = find(was, place.rank);
                 return rank != nullptr && launched(*rank) == least;
               }),
        found);
  return found;
}

std::optional<Case> behind_by_number(const View&, const Comm& comm) {
  if (comm.counted.size() < 2) return std::nullopt;
  Case found;
  found.severity = Severity::kWarning;
  found.what = "the ranks of " + View::name(comm) +
               " have launched different numbers of operations, but the text does not say which rank "
               "launched how many";
  for (const readers::ras::CountedRanks& camp : comm.counted)
    found.evidence.push_back(wording::count(camp.ranks, "rank") + " launched " +
                             wording::count(camp.launched, camp.func + " operation"));
  found.needed_evidence = "the text of ncclras -v, or of a newer release ncclras -f json, which name all";
  return found;
}

std::optional<Case> left(const View& view, const Comm& comm) {
  Case found;
  found.blamed = those(comm.missing,
                       [](const MissingRank& rank) { return !rank.considered_dead && !rank.unresponsive; });
  const size_t stay = staying(comm);
  if (found.blamed.empty() || stay == 0) return std::nullopt;
  found.what =
      std::string(are(found.blamed) ? "answer RAS but do not have " : "answers RAS but does not have ") +
      View::name(comm) + ", which " + wording::count(stay, "other rank") + (stay == 1 ? " is in" : " are in");
  weigh(view, comm,
        stands(view, comm, found.blamed,
               [](const Comm& before, const RankPlace& place) {
                 return std::any_of(before.missing.begin(), before.missing.end(),
                                    [&](const MissingRank& rank) { return rank.rank == place.rank; });
               }),
        found);
  return found;
}

std::optional<Case> closing(const View& view, const Comm& comm) {
  Case found;
  found.blamed = those(comm.ranks, [](const Rank& rank) { return is_ending(rank) && !rank.aborted; });
  const size_t stay = staying(comm);
  if (found.blamed.empty() || stay == 0) return std::nullopt;
  found.what = has_of(found.blamed) + " begun to close " + View::name(comm) + ", in which " +
               wording::count(stay, "other rank") + (stay == 1 ? " is" : " are") + " still at work";
  weigh(view, comm,
        stands(view, comm, found.blamed,
               [](const Comm& before, const RankPlace& place) {
                 const Rank* const was = find(before, place.rank);
                 return was != nullptr && is_ending(*was);
               }),
        found);
  return found;
}

std::optional<Case> aborting(const View&, const Comm& comm) {
  Case found;
  found.blamed = those(comm.ranks, [](const Rank& rank) { return rank.aborted; });
  if (found.blamed.empty()) return std::nullopt;
  found.severity = staying(comm) == 0 ? Severity::kNote : Severity::kWarning;
  found.what = has_of(found.blamed) + " aborted " + View::name(comm);
  return found;
}

}  // namespace lockstep::analysis::ras_rules
