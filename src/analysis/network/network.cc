// SPDX-License-Identifier: Apache-2.0
// Decides what a slow transfer is to be blamed on: the largest place through which everything is slow. Rails
// and hosts come before single cards, and these before paths between two hosts or ranks. What a larger cause
// explains is not reported again. Hosts on sockets beside hosts on InfiniBand are reported as that, and their
// slow links are not. What was held only against communicators of which ranks are missing is no accusation.
#include <algorithm>
#include <map>
#include <set>

#include "analysis/analysis.h"
#include "analysis/finding_hosts.h"
#include "analysis/network/slowness.h"
#include "base/text/wording.h"

namespace lockstep::analysis::network {
namespace {

using model::kNoRow;
using model::NetTransport;

class NetworkFindings {
 public:
  NetworkFindings(const model::Job& job, std::vector<Finding>& out)
      : job_(job), out_(out), links_(links(job)) {}

  void add() {
    add_fallback();
    for (Comparison& of : compare(job_, links_)) {
      if (of.slow && falls_back(of.pair)) continue;
      comparisons_.push_back(of);
    }
    for (Place::Kind kind : kPlaceKinds) add_places(kind);
    for (Place::Kind kind : {Place::Kind::kHost, Place::Kind::kRank}) add_paths(kind);
    for (size_t i = 0; i < comparisons_.size(); ++i) {
      if (comparisons_[i].slow && !may_be_of_larger(comparisons_[i].pair)) add_slow_link({i});
    }
  }

 private:
  const model::Process& row(uint32_t process) const { return job_.processes[process].row; }
  // " (node1)"; nothing of hosts without a name.
  static std::string first_host(const Finding& finding, std::string_view more = {}) {
    if (finding.hosts.empty()) return {};
    return " (" + finding.hosts.front() + std::string(more) + ')';
  }

  // Some processes' network plugin names sockets, where others' names InfiniBand or RoCE.
  void add_fallback() {
    std::map<uint32_t, bool> by_host;  // all sockets
    bool some_ib = false;
    for (const Link& link : links_) {
      if (link.source_process == kNoRow || link.transport == NetTransport::kUnknown) continue;
      bool socket = link.transport == NetTransport::kSocket;
      some_ib = some_ib || !socket;
      bool& all = by_host.try_emplace(job_.processes[link.source_process].host, true).first->second;
      all = all && socket;
    }
    std::erase_if(by_host, [](const auto& host) { return !host.second; });
    if (!some_ib || by_host.empty()) return;
    Finding finding(FindingId::kFallbackSockets);
    uint64_t bytes = 0;
    for (const auto& [host, sockets] : by_host) {
      socket_hosts_.insert(host);
      add_host(finding, job_.text(job_.hosts[host].name));
    }
    for (const model::JobProcess& process : job_.processes) {
      if (socket_hosts_.contains(process.host) && process.row.rank >= 0)
        finding.ranks.push_back(process.row.rank);
    }
    std::sort(finding.ranks.begin(), finding.ranks.end());
    int64_t busy = 0;
    for (const Link& link : links_) {
      if (link.transport != NetTransport::kSocket) continue;
      bytes += link.bytes;
      busy += link.busy_ns;
    }
    finding.weight = static_cast<double>(busy);
    finding.statement = wording::ranks(finding.ranks) +
                        first_host(finding, finding.hosts.size() > 1 ? " and others" : "") +
                        " send through sockets, while other hosts use InfiniBand or RoCE";
    finding.effect = Effect{.value = static_cast<double>(bytes),
                            .unit = "bytes",
                            .low = static_cast<double>(bytes),
                            .high = static_cast<double>(bytes)};
    finding.evidence.push_back(wording::bytes(bytes) +
                               " sent through sockets, according to the network plugin");
    finding.advice =
        "The NCCL_DEBUG=INFO log of these hosts says why no InfiniBand device was used: NCCL_IB_DISABLE, "
        "NCCL_NET, NCCL_SOCKET_IFNAME, a port that is down, or a missing plugin.";
    out_.push_back(std::move(finding));
  }

  // Who left no file may be on such a host.
  bool falls_back(const Link& pair) const {
    auto is = [this](uint32_t process) {
      return process == kNoRow ? !socket_hosts_.empty()
                               : socket_hosts_.contains(job_.processes[process].host);
    };
    return is(pair.source_process) || is(pair.target_process);
  }

  // A place is to blame if everything that goes through it is slow, whoever is at the other end, and that is
  // not all there is.
  void add_places(Place::Kind kind) {
    std::map<Place, std::vector<size_t>> through;
    for (size_t i = 0; i < comparisons_.size(); ++i) {
      for (const Place& place : places(job_, comparisons_[i].pair, kind)) through[place].push_back(i);
    }
    for (const auto& [place, pairs] : through) {
      if (pairs.size() == comparisons_.size() || !all_slow(pairs)) continue;
      if (!has_several_ends(place, pairs) || !has_several_ranks(place, pairs)) continue;
      add_slow_nic(place, pairs);
      names_larger_ = names_larger_ || kind != Place::Kind::kRank;
      for (size_t i : pairs) comparisons_[i].slow = false;
    }
  }

  bool all_slow(const std::vector<size_t>& pairs) const {
    return std::all_of(pairs.begin(), pairs.end(), [this](size_t i) { return comparisons_[i].slow; });
  }

  // Who left no file may be on the host, or the rail, that has been named.
  bool may_be_of_larger(const Link& pair) const { return names_larger_ && pair.target_process == kNoRow; }

  // With one other end only, it may be that one, or the way between. All of a rail is within it: there it may
  // be the card that its pairs have in common.
  bool has_several_ends(const Place& place, const std::vector<size_t>& pairs) const {
    return place.kind == Place::Kind::kRail ? !have_common_rank(pairs) : count_ends(place.kind, pairs) > 2;
  }

  bool have_common_rank(const std::vector<size_t>& pairs) const {
    const auto ends_of = [this](size_t i) {
      const Link& pair = comparisons_[i].pair;
      return std::set<End>{{.rank = pair.source}, target_of(pair)};
    };
    const std::set<End> first = ends_of(pairs.front());
    return std::any_of(first.begin(), first.end(), [&](const End& end) {
      return std::all_of(pairs.begin(), pairs.end(), [&](size_t i) { return ends_of(i).contains(end); });
    });
  }

  // Of ranks that left no file, those of one communicator differ, and may be on any host.
  size_t count_ends(Place::Kind kind, const std::vector<size_t>& pairs) const {
    std::set<int64_t> ends;
    std::map<uint32_t, std::set<int32_t>> missing;  // by communicator
    for (size_t i : pairs) {
      const Link& pair = comparisons_[i].pair;
      for (const Place& end : places(job_, pair, kind)) ends.insert(end.number);
      if (kind != Place::Kind::kRank || pair.target_process != kNoRow) continue;
      if (pair.target >= 0)
        ends.insert(pair.target);
      else
        missing[pair.comm].insert(pair.to);
    }
    size_t most = 0;
    for (const auto& [comm, ranks] : missing) most = std::max(most, ranks.size());
    return ends.size() + most;
  }

  // One rank's card is no host and no rail.
  bool has_several_ranks(const Place& place, const std::vector<size_t>& pairs) const {
    const size_t least = place.kind == Place::Kind::kRank ? 1 : place.kind == Place::Kind::kHost ? 2 : 3;
    return ranks_at(place, pairs).size() >= least;
  }

  // All that two hosts, or two ranks, send to each other is slow: the way between them, or either.
  void add_paths(Place::Kind kind) {
    std::map<std::pair<int64_t, int64_t>, std::vector<size_t>> between;
    for (size_t i = 0; i < comparisons_.size(); ++i) {
      const std::vector<Place> ends = places(job_, comparisons_[i].pair, kind);
      if (ends.size() == 2) between[std::minmax(ends[0].number, ends[1].number)].push_back(i);
    }
    for (const auto& [ends, pairs] : between) {
      if (pairs.size() < 2 || !all_slow(pairs)) continue;
      add_slow_link(pairs);
      names_larger_ = names_larger_ || kind == Place::Kind::kHost;
      for (size_t i : pairs) comparisons_[i].slow = false;
    }
  }

  std::set<int32_t> ranks_at(const Place& place, const std::vector<size_t>& pairs) const {
    std::set<int32_t> ranks;
    for (size_t i : pairs) {
      const Link& pair = comparisons_[i].pair;
      for (uint32_t process : {pair.source_process, pair.target_process}) {
        if (process == kNoRow) continue;
        if (place_number(job_, place.kind, process) == place.number) ranks.insert(row(process).rank);
      }
    }
    return ranks;
  }

  void add_slow_nic(const Place& place, const std::vector<size_t>& pairs) {
    Finding finding(place.kind == Place::Kind::kHost   ? FindingId::kSlowNicHost
                    : place.kind == Place::Kind::kRail ? FindingId::kSlowNicRail
                                                       : FindingId::kSlowNic);
    std::set<int32_t> ranks = ranks_at(place, pairs);
    finding.ranks.assign(ranks.begin(), ranks.end());
    std::set<std::string_view> hosts;
    for (const model::JobProcess& process : job_.processes) {
      if (ranks.contains(process.row.rank)) hosts.emplace(job_.text(process.row.host));
    }
    for (const std::string_view host : hosts) add_host(finding, host);
    for (size_t i : pairs) {
      finding.weight += comparisons_[i].lost_ns();
      finding.evidence.push_back(text(comparisons_[i]));
    }
    const Comparison& slowest = slowest_of(pairs);
    std::string what =
        place.kind == Place::Kind::kHost
            ? "the network of " + (finding.hosts.empty() ? "the host of " + wording::ranks(finding.ranks)
                                                         : finding.hosts.front())
        : place.kind == Place::Kind::kRail
            ? "rail " + std::to_string(place.number) + " (" + wording::ranks(finding.ranks) + ")"
            : "the network card of " + wording::ranks(finding.ranks) + first_host(finding);
    finding.statement = what + " carries " + wording::rate(slowest.pair.rate()) + " per channel" +
                        kind_of_transfers(slowest.pair) + ", while other pairs carry " +
                        wording::rate(slowest.usual_rate) + ": all of its " + std::to_string(pairs.size()) +
                        " pairs are slow";
    set_rate(slowest.pair, finding);
    finding.advice =
        "Compare the port's state, rate and error counters with its neighbours' "
        "(/sys/class/infiniband/*/ports/*), its "
        "PCIe width and speed, and which card NCCL chose for the GPU.";
    push(std::move(finding), pairs);
  }

  // What is slow beside flows that may go well only because of a rank that is not in the run may be the
  // usual.
  void push(Finding finding, const std::vector<size_t>& pairs) {
    if (!std::all_of(pairs.begin(), pairs.end(), [this](size_t i) { return comparisons_[i].sure; })) {
      finding.id = FindingId::kEvidenceMissingPairs;
      finding.weight = 0;
      finding.ranks.clear();
      finding.hosts.clear();
      finding.statement += "; but those are of other communicators, of which ranks left no file";
      finding.needed_evidence = "the files of all ranks of these communicators";
      finding.advice = "Copy the files of these ranks into the run directory.";
    }
    out_.push_back(std::move(finding));
  }

  void add_slow_link(const std::vector<size_t>& pairs) {
    std::set<int32_t> ranks;
    Finding finding(FindingId::kSlowLink);
    for (size_t i : pairs) {
      const Link& pair = comparisons_[i].pair;
      for (const int32_t rank : {pair.source, pair.target}) {
        if (rank >= 0) ranks.insert(rank);
      }
      for (uint32_t process : {pair.source_process, pair.target_process}) {
        if (process != kNoRow) add_host(finding, job_.text(row(process).host));
      }
      finding.weight += comparisons_[i].lost_ns();
      finding.evidence.push_back(text(comparisons_[i]));
    }
    const Comparison& slowest = slowest_of(pairs);
    if (ranks.size() > 2) finding.id = FindingId::kSlowLinkHosts;
    finding.ranks.assign(ranks.begin(), ranks.end());
    finding.comm = job_.comm_name(slowest.pair.comm);
    finding.comm_row = slowest.pair.comm;
    finding.statement = path_between(pairs, finding) + " carries " + wording::rate(slowest.pair.rate()) +
                        " per channel" + kind_of_transfers(slowest.pair) + ", while " +
                        wording::count(slowest.others, "similar pair") +
                        (slowest.others == 1 ? " carries " : " carry ") + wording::rate(slowest.usual_rate);
    set_rate(slowest.pair, finding);
    finding.advice =
        "Check the path between the two: cables, switch ports, error counters of both cards, and other traffic on the same route.";
    push(std::move(finding), pairs);
  }

  std::string path_between(const std::vector<size_t>& pairs, const Finding& finding) const {
    const Link& pair = comparisons_[pairs.front()].pair;
    if (pairs.size() == 1)
      return "the path from rank " + std::to_string(pair.source) + " to " + target_text(pair) +
             (pair.target < 0 ? ", who left no file," : "");
    if (finding.ranks.size() == 2) return "the path between " + wording::ranks(finding.ranks);
    return "the path between " +
           (finding.hosts.size() == 2 ? finding.hosts.front() + " and " + finding.hosts.back()
                                      : "the hosts of " + wording::ranks(finding.ranks)) +
           " (" + wording::count(pairs.size(), "pair") + " of ranks)";
  }

  const Comparison& slowest_of(const std::vector<size_t>& pairs) const {
    return comparisons_[*std::min_element(pairs.begin(), pairs.end(), [this](size_t a, size_t b) {
      return comparisons_[a].pair.rate() < comparisons_[b].pair.rate();
    })];
  }

  // " in AllReduce transfers of about 512.0 KiB": of a pair that carries others, too, whose rate over all of
  // them is another one (`lockstep summary` has it). Else empty.
  std::string kind_of_transfers(const Link& flow) const {
    uint64_t bytes = 0;
    for (const Link& link : links_) {
      if (link.comm == flow.comm && link.from == flow.from && link.to == flow.to) bytes += link.bytes;
    }
    if (bytes == flow.bytes) return {};
    const std::string_view func = job_.text(flow.traffic.func);
    return " in " + std::string(func) + (func.empty() ? "" : " ") + "transfers of about " +
           wording::bytes(static_cast<uint64_t>(flow.bytes_each()));
  }

  static void set_rate(const Link& pair, Finding& finding) {
    double rate = pair.rate() / 1e9, error = 2 * pair.relative_error();
    finding.effect =
        Effect{.value = rate, .unit = "GB/s", .low = rate / (1 + error), .high = rate * (1 + error)};
  }

  std::string target_text(const Link& pair) const {
    return pair.target >= 0 ? "rank " + std::to_string(pair.target)
                            : "rank " + std::to_string(pair.to) + " of " + job_.comm_name(pair.comm);
  }

  std::string text(const Comparison& of) const {
    const Link& pair = of.pair;
    return "rank " + std::to_string(pair.source) + " to " + target_text(pair) + ": " +
           wording::bytes(pair.bytes) + " in " + wording::count(pair.steps, "transfer") + ", " +
           wording::rate(pair.rate()) + " +- " + wording::percent(2 * pair.relative_error()) +
           " while sending (usual: " + wording::rate(of.usual_rate) + "); waits: GPU " +
           wording::duration(pair.gpu_wait_ns) + ", peer " + wording::duration(pair.peer_wait_ns) +
           ", send " + wording::duration(pair.send_wait_ns) + ", flush " +
           wording::duration(pair.flush_wait_ns);
  }

  const model::Job& job_;
  std::vector<Finding>& out_;
  std::vector<Link> links_;
  std::vector<Comparison> comparisons_;
  std::set<uint32_t> socket_hosts_;
  bool names_larger_ = false;  // a host, a rail, or the way between two hosts
};

void run(const model::Job& job, std::vector<Finding>& findings) { NetworkFindings(job, findings).add(); }

}  // namespace

extern const Analysis kAnalysis = {
    .name = "network", .question = "Which pair, NIC or rail holds the transfers up?", .run = run};

}  // namespace lockstep::analysis::network
