// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include "analysis/analysis.h"
#include "analysis/network/slowness.h"
#include "analysis/wording/wording.h"

namespace lockstep::analysis::network {
namespace {

using model::kNoRow;
using model::NetTransport;

// What several pairs may have in common.
struct Place {
  enum class Kind { kHost, kRail, kRank } kind;
  int64_t number;
  auto operator<=>(const Place&) const = default;
};

Finding warning(const char* id, FindingClass finding_class) {
  Finding finding;
  finding.id = id;
  finding.finding_class = finding_class;
  finding.severity = Severity::kWarning;
  return finding;
}

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
    for (Place::Kind kind : {Place::Kind::kHost, Place::Kind::kRail, Place::Kind::kRank}) add_places(kind);
    for (const Comparison& of : comparisons_) {
      if (of.slow) add_slow_link(of);
    }
  }

 private:
  const model::Process& row(uint32_t process) const { return job_.processes[process].row; }
  std::string host_name(uint32_t process) const { return std::string(job_.text(row(process).host)); }

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
    Finding finding = warning("fallback.sockets", FindingClass::kFallback);
    uint64_t bytes = 0;
    for (const auto& [host, sockets] : by_host) {
      socket_hosts_.insert(host);
      finding.hosts.emplace_back(job_.text(job_.hosts[host].name));
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
    finding.statement = wording::ranks(finding.ranks) + " (" + finding.hosts.front() +
                        (finding.hosts.size() > 1 ? " and others" : "") +
                        ") move their data through sockets, where other hosts use InfiniBand or RoCE";
    finding.effect = Effect{.value = static_cast<double>(bytes),
                            .unit = "bytes",
                            .low = static_cast<double>(bytes),
                            .high = static_cast<double>(bytes)};
    finding.evidence.push_back(wording::bytes(bytes) + " through sockets, as the network plugin itself says");
    finding.advice =
        "look at NCCL_DEBUG=INFO of these hosts for why no InfiniBand device was taken: NCCL_IB_DISABLE, "
        "NCCL_NET, "
        "NCCL_SOCKET_IFNAME, a port that is down, or a missing plugin";
    out_.push_back(std::move(finding));
  }

  bool falls_back(const Link& pair) const {
    auto is = [this](uint32_t process) {
      return process != kNoRow && socket_hosts_.contains(job_.processes[process].host);
    };
    return is(pair.source_process) || is(pair.target_process);
  }

  int64_t number_of(Place::Kind kind, uint32_t process) const {
    switch (kind) {
      case Place::Kind::kHost:
        return job_.processes[process].host;
      case Place::Kind::kRail:
        return row(process).local_rank;
      case Place::Kind::kRank:
        break;
    }
    return row(process).rank;
  }

  std::vector<Place> places(const Link& pair, Place::Kind kind) const {
    std::vector<Place> at;
    for (uint32_t process : {pair.source_process, pair.target_process}) {
      if (process == kNoRow) continue;
      int64_t number = number_of(kind, process);
      if (number >= 0 && (at.empty() || at.front().number != number)) at.push_back({kind, number});
    }
    return at;
  }

  // A place is to blame if everything that goes through it is slow, in both directions, and that is not all there is.
  void add_places(Place::Kind kind) {
    std::map<Place, std::vector<size_t>> through;
    for (size_t i = 0; i < comparisons_.size(); ++i) {
      for (const Place& place : places(comparisons_[i].pair, kind)) through[place].push_back(i);
    }
    for (const auto& [place, pairs] : through) {
      if (pairs.size() < 2 || pairs.size() == comparisons_.size()) continue;
      bool all_slow =
          std::all_of(pairs.begin(), pairs.end(), [this](size_t i) { return comparisons_[i].slow; });
      if (!all_slow || !several_ranks(kind, place, pairs)) continue;
      add_slow_nic(place, pairs);
      for (size_t i : pairs) comparisons_[i].slow = false;
    }
  }

  // One rank's card is no host and no rail.
  bool several_ranks(Place::Kind kind, const Place& place, const std::vector<size_t>& pairs) const {
    return kind == Place::Kind::kRank || ranks_at(place, pairs).size() > 1;
  }

  std::set<int32_t> ranks_at(const Place& place, const std::vector<size_t>& pairs) const {
    std::set<int32_t> ranks;
    for (size_t i : pairs) {
      const Link& pair = comparisons_[i].pair;
      for (uint32_t process : {pair.source_process, pair.target_process}) {
        if (process == kNoRow) continue;
        if (number_of(place.kind, process) == place.number) ranks.insert(row(process).rank);
      }
    }
    return ranks;
  }

  void add_slow_nic(const Place& place, const std::vector<size_t>& pairs) {
    const char* id = place.kind == Place::Kind::kHost   ? "slow-nic.host"
                     : place.kind == Place::Kind::kRail ? "slow-nic.rail"
                                                        : "slow-nic";
    Finding finding = warning(id, FindingClass::kSlowNic);
    std::set<int32_t> ranks = ranks_at(place, pairs);
    finding.ranks.assign(ranks.begin(), ranks.end());
    std::set<std::string> hosts;
    for (const model::JobProcess& process : job_.processes) {
      if (ranks.contains(process.row.rank)) hosts.emplace(job_.text(process.row.host));
    }
    finding.hosts.assign(hosts.begin(), hosts.end());
    const Comparison* slowest = &comparisons_[pairs.front()];
    for (size_t i : pairs) {
      finding.weight += comparisons_[i].lost_ns();
      if (comparisons_[i].pair.rate() < slowest->pair.rate()) slowest = &comparisons_[i];
      finding.evidence.push_back(text(comparisons_[i]));
    }
    std::string what =
        place.kind == Place::Kind::kHost ? "the network of " + finding.hosts.front()
        : place.kind == Place::Kind::kRail
            ? "rail " + std::to_string(place.number) + " (" + wording::ranks(finding.ranks) + ")"
            : "the network card of " + wording::ranks(finding.ranks) + " (" + finding.hosts.front() + ")";
    finding.statement = what + " moves " + wording::rate(slowest->pair.rate()) +
                        " a channel, where other pairs move " + wording::rate(slowest->usual_rate) +
                        ": all of its " + std::to_string(pairs.size()) + " pairs are slow";
    set_rate(slowest->pair, finding);
    finding.advice =
        "compare the port's state, rate and error counters with its neighbours' "
        "(/sys/class/infiniband/*/ports/*), its "
        "PCIe width and speed, and which card NCCL chose for the GPU";
    out_.push_back(std::move(finding));
  }

  void add_slow_link(const Comparison& of) {
    Finding finding = warning("slow-link", FindingClass::kSlowLink);
    finding.weight = of.lost_ns();
    finding.ranks = {of.pair.source, of.pair.target};
    std::sort(finding.ranks.begin(), finding.ranks.end());
    for (uint32_t process : {of.pair.source_process, of.pair.target_process}) {
      if (process == kNoRow) continue;
      std::string host = host_name(process);
      if (std::find(finding.hosts.begin(), finding.hosts.end(), host) == finding.hosts.end())
        finding.hosts.push_back(host);
    }
    finding.comm = job_.comm_name(of.pair.comm);
    finding.statement = "what rank " + std::to_string(of.pair.source) + " sends to rank " +
                        std::to_string(of.pair.target) + " moves at " + wording::rate(of.pair.rate()) +
                        " a channel, where " + std::to_string(of.others) + " other pairs like it move at " +
                        wording::rate(of.usual_rate);
    finding.evidence.push_back(text(of));
    set_rate(of.pair, finding);
    finding.advice =
        "look at the way between the two: cables and switch ports, error counters of both cards, and whether "
        "other "
        "traffic takes the same route";
    out_.push_back(std::move(finding));
  }

  static void set_rate(const Link& pair, Finding& finding) {
    double rate = pair.rate() / 1e9, error = 2 * pair.relative_error();
    finding.effect =
        Effect{.value = rate, .unit = "GB/s", .low = rate / (1 + error), .high = rate * (1 + error)};
  }

  std::string text(const Comparison& of) const {
    const Link& pair = of.pair;
    return "rank " + std::to_string(pair.source) + " to rank " + std::to_string(pair.target) + ": " +
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
};

void run(const model::Job& job, std::vector<Finding>& findings) { NetworkFindings(job, findings).add(); }

}  // namespace

extern const Analysis kAnalysis = {
    .name = "network", .question = "Which pair, NIC or rail holds the transfers up?", .run = run};

}  // namespace lockstep::analysis::network
