// SPDX-License-Identifier: Apache-2.0
// What only the logs of several ranks show: whether both ends of a connection report the same, whether rings
// close, how they run through hosts, and whether ranks called the same things. An end that printed nothing
// contradicts nobody: each rule compares only what both sides said. Calls are compared by place and number,
// as NCCL's lines of calls carry no time by default.
#include <algorithm>
#include <map>
#include <tuple>

#include "analysis/log_rules/rules.h"
#include "base/largest_camp.h"
#include "base/text/wording.h"

namespace lockstep::analysis::log_rules {
namespace {

using readers::nccl_log::ChannelPosition;

using Parts = std::vector<const CommPart*>;

// By rank; empty unless every rank is there once.
Parts by_rank(const Parts& parts) {
  const int32_t ranks = parts.front()->ranks;
  if (ranks < 1 || parts.size() != static_cast<size_t>(ranks)) return {};
  Parts ordered(parts.size());
  for (const CommPart* part : parts) {
    if (part->rank < 0 || part->rank >= ranks || ordered[static_cast<size_t>(part->rank)] != nullptr)
      return {};
    ordered[static_cast<size_t>(part->rank)] = part;
  }
  return ordered;
}

// What tells hosts apart for NCCL.
std::string node_of(const View& view, const CommPart& part) {
  const Fact* by_hand = view.setting(part.process, "HOSTID");
  return by_hand != nullptr ? by_hand->value(1) : view.model().processes[part.process].host;
}

std::string network_of(const Connection& row) {
  const size_t network = row.via.find('/');
  return network == std::string::npos ? row.via : row.via.substr(0, row.via.find('/', network + 1));
}

// A connection over the network, from both of its ends.
struct Edge {
  const Connection* send = nullptr;
  const Connection* receive = nullptr;
};
using EdgeKey = std::tuple<std::string, int32_t, int32_t, std::string>;  // communicator, from, to, channels

std::map<EdgeKey, Edge> edges(const View& view) {
  // More than any job has; some of them would look one-sided without the others.
  constexpr size_t kEdgesMost = 1 << 20;
  std::map<EdgeKey, Edge> found;
  for (const Connection& row : view.model().connections) {
    if (row.transport != Transport::kNet || row.comm == kNobody || row.lanes.none()) continue;
    const std::string& group = view.model().comms[row.comm].group;
    if (group.empty()) continue;
    // Each channel is an edge; a row holds those that are alike.
    for (size_t lane = 0; lane < row.lanes.size(); ++lane) {
      if (!row.lanes.test(lane)) continue;
      Edge& edge = found[{group, row.from, row.to, std::to_string(lane)}];
      (row.is_receive ? edge.receive : edge.send) = &row;
    }
    if (found.size() > kEdgesMost) return {};
  }
  return found;
}

// The process at an end reports connections of that communicator at all.
std::set<std::pair<std::string, int32_t>> speakers(const View& view) {
  std::set<std::pair<std::string, int32_t>> found;
  for (const Connection& row : view.model().connections) {
    if (row.transport != Transport::kNet || row.comm == kNobody) continue;
    const CommPart& part = view.model().comms[row.comm];
    found.emplace(part.group, part.rank);
  }
  return found;
}

std::string edge_text(const EdgeKey& key) {
  return "from rank " + std::to_string(std::get<1>(key)) + " to rank " + std::to_string(std::get<2>(key)) +
         " of communicator " + std::get<0>(key);
}

const Fact* cross_nic_off(const View& view, uint32_t process) {
  for (const Fact* fact : view.facts(LineKind::kSearchResult, process)) {
    // Pattern 4 is NCCL's ring. With crossNic 0 its search promises that a ring keeps to one rail.
    if (fact->value(0) == "4" && fact->value(1) == "0") return fact;
  }
  return nullptr;
}

}  // namespace

std::optional<Hit> edges_one_sided(const View& view) {
  const auto reporting = speakers(view);
  Hit hit;
  for (const auto& [key, edge] : edges(view)) {
    const Connection* one = edge.send != nullptr ? edge.send : edge.receive;
    const bool is_lost = edge.send == nullptr || edge.receive == nullptr;
    const int32_t silent = edge.send == nullptr ? one->from : one->to;
    // A process that reports no connection at all has said nothing about this one either.
    if (is_lost && !reporting.contains({std::get<0>(key), silent})) continue;
    if (!is_lost && network_of(*edge.send) == network_of(*edge.receive)) continue;
    if (hit.what.empty())
      hit.what = edge_text(key) + (is_lost ? ": only one end reports it"
                                           : ": " + network_of(*edge.send) + " at one end, " +
                                                 network_of(*edge.receive) + " at the other");
    hit.processes.insert(one->process);
    prove(view, one->first, hit);
    if (is_lost) continue;
    hit.processes.insert(edge.receive->process);
    prove(view, edge.receive->first, hit);
  }
  return unless_empty(std::move(hit));
}

std::optional<Hit> rails_crossed(const View& view) {
  Hit hit;
  for (const auto& [key, edge] : edges(view)) {
    if (edge.send == nullptr || edge.receive == nullptr || view.uses_sockets(edge.send->process)) continue;
    if (edge.send->card < 0 || edge.receive->card < 0 || edge.send->card == edge.receive->card) continue;
    const Fact* search = cross_nic_off(view, edge.send->process);
    if (search == nullptr) continue;
    if (hit.what.empty())
      hit.what = ": card " + std::to_string(edge.send->card) + " sends to card " +
                 std::to_string(edge.receive->card) + ' ' + edge_text(key);
    hit.processes.insert(edge.send->process);
    prove(view, edge.send->first, hit);
    prove(view, edge.receive->first, hit);
    prove(view, search->first, hit);
  }
  return unless_empty(std::move(hit));
}

std::optional<Hit> uneven_card_load(const View& view) {
  std::map<std::string, std::map<int32_t, std::pair<size_t, const Connection*>>> hosts;
  for (const Connection& row : view.model().connections) {
    if (row.transport != Transport::kNet || row.is_receive || row.card < 0 || view.uses_sockets(row.process))
      continue;
    auto& load = hosts[view.model().processes[row.process].host][row.card];
    load.first += row.lanes.count();
    load.second = &row;
  }
  Hit hit;
  for (const auto& [host, cards] : hosts) {
    const auto less = [](const auto& a, const auto& b) { return a.second.first < b.second.first; };
    const auto [least, most] = std::minmax_element(cards.begin(), cards.end(), less);
    // Channels need not divide evenly by cards.
    if (most->second.first <= least->second.first + 1) continue;
    if (hit.what.empty())
      hit.what = ": card " + std::to_string(most->first) + " of " + host + " has " +
                 wording::count(most->second.first, "channel") + " to send, card " +
                 std::to_string(least->first) + " has " + std::to_string(least->second.first);
    for (const auto* card : {&*least, &*most}) {
      hit.processes.insert(card->second.second->process);
      prove(view, card->second.second->first, hit);
    }
  }
  return unless_empty(std::move(hit));
}

std::optional<Hit> rings_do_not_close(const View& view) {
  Hit hit;
  for (const auto& [group, parts] : view.groups()) {
    const Parts members = by_rank(parts);
    if (members.empty()) continue;
    for (size_t channel = 0; channel < members[0]->positions.size(); ++channel) {
      const auto behind = [&](size_t rank) {
        const auto& positions = members[rank]->positions;
        return channel < positions.size() ? positions[channel].ring_behind : ChannelPosition::kUnknown;
      };
      bool is_reported = true;
      for (size_t rank = 0; rank < members.size() && is_reported; ++rank)
        is_reported = behind(rank) != ChannelPosition::kUnknown;
      if (!is_reported) continue;
      // Each rank knows its neighbours only. The walk is bounded, as a ring that closes without rank 0 would
      // never end.
      size_t seen = 0, at = 0;
      do {
        const int32_t next = behind(at);
        if (next < 0 || static_cast<size_t>(next) >= members.size()) break;
        at = static_cast<size_t>(next);
        ++seen;
      } while (at != 0 && seen <= members.size());
      if (at == 0 && seen == members.size()) continue;
      if (hit.what.empty()) hit.what = "ring " + std::to_string(channel) + " of communicator " + group;
      for (const CommPart* part : members) hit.processes.insert(part->process);
      prove(view, members[0]->first, hit);
      break;
    }
  }
  return unless_empty(std::move(hit));
}

namespace {

// Numbers by their place in order: hosts need not number their devices alike.
void place_among(std::vector<int32_t>& numbers) {
  std::vector<int32_t> sorted = numbers;
  std::sort(sorted.begin(), sorted.end());
  for (int32_t& number : numbers)
    number = static_cast<int32_t>(std::lower_bound(sorted.begin(), sorted.end(), number) - sorted.begin());
}

// A ring as it runs through hosts: which, and with which of their devices in which order.
struct Course {
  std::vector<std::pair<std::string, std::vector<int32_t>>> stays;
  std::set<std::string> nodes;
};
std::optional<Course> course_of(const View& view, const Parts& members, const std::vector<int32_t>& order) {
  if (order.size() != members.size()) return std::nullopt;
  // Where some have an id by hand, the others do: their lines are missing.
  const auto has_id = [&](const CommPart* part) { return view.setting(part->process, "HOSTID") != nullptr; };
  const auto with_id = std::count_if(members.begin(), members.end(), has_id);
  if (with_id > 0 && static_cast<size_t>(with_id) < members.size()) return std::nullopt;
  std::vector<std::string> nodes;
  for (const int32_t rank : order) {
    if (rank < 0 || static_cast<size_t>(rank) >= members.size()) return std::nullopt;
    nodes.push_back(node_of(view, *members[static_cast<size_t>(rank)]));
  }
  // A ring has no first rank. It is turned to begin where a host begins, so that no stay is split.
  size_t begin = 0;  // of a stay
  while (begin < nodes.size() && nodes[begin] == nodes.back()) ++begin;
  Course course;
  for (size_t i = 0; i < order.size(); ++i) {
    const size_t at = (begin + i) % order.size();
    if (i == 0 || nodes[at] != course.stays.back().first) course.stays.push_back({nodes[at], {}});
    course.stays.back().second.push_back(members[static_cast<size_t>(order[at])]->nvml_device);
    course.nodes.insert(nodes[at]);
  }
  for (auto& [node, devices] : course.stays) place_among(devices);
  return course;
}

}  // namespace

std::optional<Hit> rings_cross_hosts(const View& view) {
  Hit often, unlike;
  for (const auto& [group, parts] : view.groups()) {
    const Parts members = by_rank(parts);
    for (const CommPart* reporter : members) {
      for (size_t channel = 0; channel < reporter->orders.size(); ++channel) {
        const auto course = course_of(view, members, reporter->orders[channel]);
        if (!course || course->nodes.size() < 2) continue;
        const auto differs = [&](const auto& stay) { return stay.second != course->stays.front().second; };
        const bool is_often = course->stays.size() > course->nodes.size();
        if (!is_often && std::none_of(course->stays.begin(), course->stays.end(), differs)) continue;
        Hit& hit = is_often ? often : unlike;
        if (hit.what.empty())
          hit.what = "ring " + std::to_string(channel) + " of communicator " + group +
                     (is_often ? " goes " + wording::count(course->stays.size(), "time") +
                                     " from one host to another, and " +
                                     std::to_string(course->nodes.size()) + " would do"
                               : " takes the GPUs of hosts in different orders");
        hit.processes.insert(reporter->process);
        prove(view, reporter->first, hit);
      }
    }
  }
  // Each extra crossing costs network bandwidth; another order of GPUs is only worth a note.
  if (!often.evidence.empty()) return often;
  unlike.severity = Severity::kNote;
  return unless_empty(std::move(unlike));
}

std::optional<Hit> channels_differ(const View& view) {
  Hit hit;
  for (const auto& [group, parts] : view.groups()) {
    const CommPart* least = nullptr;
    const CommPart* most = nullptr;
    for (const CommPart* part : parts) {
      if (part->coll_channels < 0) continue;
      if (least == nullptr || part->coll_channels < least->coll_channels) least = part;
      if (most == nullptr || part->coll_channels > most->coll_channels) most = part;
    }
    if (least == nullptr || least->coll_channels == most->coll_channels) continue;
    if (hit.what.empty())
      hit.what = std::to_string(least->coll_channels) + " and " + std::to_string(most->coll_channels) +
                 " in communicator " + group;
    for (const CommPart* part : {least, most}) {
      hit.processes.insert(part->process);
      prove(view, part->first, hit);
    }
  }
  return unless_empty(std::move(hit));
}

namespace {

std::string call_line(const View& view, const CommPart& part, size_t at) {
  const uint32_t file = view.model().processes[part.process].file;
  return view.model().files[file] + ':' + std::to_string(part.calls[at].line) + ": rank " +
         std::to_string(part.rank) + " of communicator " + part.group + " calls " +
         view.model().call_shapes[part.calls[at].shape];
}

std::string func_of(const View& view, const CommPart& part, size_t at) {
  const std::string& shape = view.model().call_shapes[part.calls[at].shape];
  return shape.substr(0, shape.find(' '));
}

// Members that report what they called from the same call on.
Parts callers(const Parts& parts) {
  Parts found;
  for (const CommPart* part : parts) {
    if (part->calls.empty()) continue;
    // Logs that begin at different calls have different calls at one place.
    if (!found.empty() && part->first_call != found.front()->first_call) return {};
    found.push_back(part);
  }
  return found.size() < 2 ? Parts() : found;
}

const CommPart& longest_of(const Parts& parts) {
  return **std::max_element(parts.begin(), parts.end(), [](const CommPart* a, const CommPart* b) {
    return a->calls.size() < b->calls.size();
  });
}

// Place of the first call that not all of those who made it made alike.
std::optional<size_t> first_difference(const Parts& parts) {
  const auto& longest = longest_of(parts).calls;
  for (size_t at = 0; at < longest.size(); ++at) {
    for (const CommPart* part : parts) {
      if (at < part->calls.size() && part->calls[at].shape != longest[at].shape) return at;
    }
  }
  return std::nullopt;
}

// NCCL numbers calls as they come, and those of a group alike. Where members that called the same so far have
// different numbers at one place, or different many calls of one number, a line is missing; so it may be
// where lines were torn.
bool lacks_lines(const View& view, const Parts& parts, size_t until) {
  const auto& longest = longest_of(parts).calls;
  const auto alike = [](const std::vector<readers::nccl_log::Call>& calls, size_t from, uint32_t number) {
    size_t at = from;
    while (at < calls.size() && calls[at].number == number) ++at;
    return at - from;
  };
  for (const CommPart* part : parts) {
    const auto& state = view.model().states[part->first.file];
    if (state.torn > 0 || state.is_damaged()) return true;
    const auto& calls = part->calls;
    for (size_t at = 0; at <= until && at < calls.size(); ++at) {
      if (calls[at].number != longest[at].number) return true;
    }
    // A group may be cut by the log's end.
    const bool is_last = until < calls.size() && calls.back().number == calls[until].number;
    if (until < calls.size() && !is_last && longest.back().number != longest[until].number &&
        alike(calls, until, calls[until].number) != alike(longest, until, calls[until].number))
      return true;
  }
  return false;
}

// Counted from the begin of the communicator, where the log has that.
std::string call_number(const CommPart& part, size_t at) {
  return part.first_call == 0 ? "operation " + std::to_string(at)
                              : "the " + wording::ordinal(at + 1) + " operation that the log has";
}

Hit hit_of_call(const CommPart& part, size_t at) {
  Hit hit;
  hit.comm = part.group;
  if (part.first_call == 0) hit.op_index = at;  // else the log begins later than the communicator
  return hit;
}

}  // namespace

std::optional<Hit> calls_differ(const View& view) {
  for (const auto& [group, parts] : view.groups()) {
    const Parts members = callers(parts);
    const auto at = members.empty() ? std::nullopt : first_difference(members);
    if (!at || lacks_lines(view, members, *at)) continue;
    // Members whose log ends before that call have no say.
    std::map<uint32_t, Parts> by_shape;
    for (const CommPart* part : members) {
      if (*at < part->calls.size()) by_shape[part->calls[*at].shape].push_back(part);
    }
    const auto* const usual = largest_camp(by_shape);
    Hit hit = hit_of_call(*members.front(), *at);
    std::string calls;
    for (const auto& camp : by_shape) {
      const auto& [shape, who] = camp;
      std::vector<int32_t> ranks;
      for (const CommPart* part : who) {
        ranks.push_back(part->rank);
        if (&camp == usual) continue;
        hit.ranks.push_back(view.model().processes[part->process].rank);
      }
      calls += (calls.empty() ? "" : "; ") + wording::ranks(ranks) + ": " + view.model().call_shapes[shape];
      hit.evidence.push_back(call_line(view, *who.front(), *at));
    }
    hit.what = "ranks of communicator " + group + " made different calls as " +
               call_number(*members.front(), *at) + ": " + calls;
    hit.func = func_of(view, *by_shape.begin()->second.front(), *at);
    return hit;
  }
  return std::nullopt;
}

namespace {

// A log may simply end earlier than another one: that a rank stopped calling is known only where something
// else says that the job failed, and its log is whole.
bool has_failed(const View& view, const Parts& members) {
  return !view.torch().stalls().empty() ||
         std::any_of(members.begin(), members.end(), [](const CommPart* part) { return part->aborted; });
}

std::optional<Hit> calls_behind(const View& view, bool known) {
  for (const auto& [group, parts] : view.groups()) {
    const Parts members = callers(parts);
    if (members.empty()) continue;
    const auto fewer = [](const CommPart* a, const CommPart* b) { return a->calls.size() < b->calls.size(); };
    const auto [least, most] = std::minmax_element(members.begin(), members.end(), fewer);
    const size_t at = (*least)->calls.size();
    // A communicator that a member destroyed had no operation left: a shorter list is a shorter log.
    const bool is_over = std::any_of(members.begin(), members.end(),
                                     [](const CommPart* part) { return part->ended && !part->aborted; });
    const auto difference = first_difference(members);
    const bool lacks = lacks_lines(view, members, difference.value_or((*most)->calls.size()));
    // calls_differ() reports these.
    if (difference && !lacks) continue;
    if (!difference && !lacks && (at == (*most)->calls.size() || is_over)) continue;
    if (known != (has_failed(view, members) && !lacks && !view.model().states[(*least)->first.file].is_open))
      continue;
    if (lacks) {
      Hit hit;
      hit.comm = group;
      hit.evidence = {call_line(view, **least, at - 1), call_line(view, **most, (*most)->calls.size() - 1)};
      hit.what = "lines of calls on communicator " + group +
                 " are missing: Lockstep cannot tell whether its ranks called the same operations";
      return hit;
    }
    Hit hit = hit_of_call(**least, at);
    std::vector<int32_t> ranks;
    size_t others = 0;
    for (const CommPart* part : members) {
      if (part->calls.size() > at) {
        ++others;
        continue;
      }
      ranks.push_back(part->rank);
      if (known) hit.ranks.push_back(view.model().processes[part->process].rank);
    }
    hit.func = func_of(view, **most, at);
    hit.evidence = {call_line(view, **least, at - 1) + ", its last", call_line(view, **most, at)};
    hit.what = wording::ranks(ranks) + " of communicator " + group +
               (known ? " never called " : " did not call ") + call_number(**least, at) + " (" + hit.func +
               "), which " + wording::count(others, "other") + " did, as far as these logs go" +
               (known ? "" : ": it stopped there, or its log ends earlier");
    if (!known) hit.needed_evidence = "logs taken after everything stopped";
    return hit;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Hit> calls_missing(const View& view) { return calls_behind(view, true); }
std::optional<Hit> calls_apart(const View& view) { return calls_behind(view, false); }

}  // namespace lockstep::analysis::log_rules
