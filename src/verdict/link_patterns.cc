// SPDX-License-Identifier: Apache-2.0
// A finding here says that something was not used, so it needs three things: that the job's record proves
// that there was much to carry, that a counter proves that it went elsewhere, and that counters of this host
// show the job's traffic at all. What could make one of them unsure, as PXN or sockets do, makes it silent.
// Rails are known by the name of their cards alone: no counter tells which switch a port is connected to.
#include "verdict/link_patterns.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "base/text/units.h"
#include "base/text/wording.h"
#include "links/judge/siblings.h"
#include "model/names/operation_size.h"
#include "model/recording_modes.h"
#include "verdict/device_evidence.h"
#include "verdict/link_evidence.h"
#include "verdict/transfers.h"

namespace lockstep::verdict {
namespace {

using analysis::Finding;
using analysis::FindingId;
using analysis::Severity;
using links::HostSamples;
using links::LinkTrouble;

constexpr size_t kFewestHosts = 3, kFewestCards = 2, kMostCited = 4;
constexpr double kMuch = 1e9, kVeryMuch = 1e10;  // bytes
// Of what a record says: less is next to nothing; as much shows that the counters saw the job.
constexpr double kNextToNothing = 0.01, kSeen = 0.5;

std::string bytes_text(double bytes) { return wording::bytes(static_cast<uint64_t>(bytes)); }

// --- one card of every host

std::string card_of(const std::string& port) { return port.substr(0, port.rfind('/')); }

// Another card that carried as much: its silence says something.
bool has_other_busy_card(const HostSamples& host, const std::string& card) {
  const auto sent = host.sent.find(card);
  return sent != host.sent.end() && std::any_of(host.sent.begin(), host.sent.end(), [&](const auto& other) {
           return other.first != card &&
                  static_cast<double>(other.second) >= kSeen * static_cast<double>(sent->second);
         });
}

std::optional<Finding> rail_finding(const HostsOfRun& hosts, FindingId id,
                                    std::set<const LinkTrouble*>& taken) {
  std::vector<std::pair<const HostSamples*, const LinkTrouble*>> troubled;
  std::string device;
  for (const HostSamples* const host : hosts)
    for (const LinkTrouble& trouble : host->troubles) {
      if (trouble.id != id || trouble.severity == Severity::kNote || trouble.moved_data == false) continue;
      if (!device.empty() && trouble.device != device) return std::nullopt;
      device = trouble.device;
      troubled.emplace_back(host, &trouble);
    }
  if (troubled.size() < kFewestHosts) return std::nullopt;
  for (const HostSamples* const host : hosts) {
    const bool is_troubled =
        std::any_of(troubled.begin(), troubled.end(), [&](const auto& of) { return of.first == host; });
    if (host->cards.contains(card_of(device)) != is_troubled) return std::nullopt;
    if (is_troubled && !has_other_busy_card(*host, card_of(device))) return std::nullopt;
  }
  Finding finding(FindingId::kTransportErrorRail);
  finding.statement = wording::name(device) + " of all " + std::to_string(troubled.size()) +
                      " hosts: " + troubled.front().second->says +
                      " while the job ran, and no other card of theirs has that: a possible cause of delays";
  finding.advice =
      "Look at what these ports share: the switch of this rail and its uplinks, or one host to which all of "
      "them send.";
  finding.sources = {std::string(kLinkCounters)};
  for (const auto& [host, trouble] : troubled) {
    finding.hosts.push_back(host->host);
    taken.insert(trouble);
    if (finding.evidence.size() < kMostCited && !trouble->evidence.empty())
      finding.evidence.push_back(wording::name(host->host) + ", " + trouble->evidence.front());
  }
  finding.evidence.emplace_back("which switch a port is connected to is not in the counters");
  return finding;
}

// --- cards that are left aside

struct CardUse {
  double recorded = 0;  // bytes that the ranks nearest to it sent
  std::vector<int32_t> ranks;
};

// Bytes that a process sent through network cards; nothing if sockets carried some, or others' are among
// them.
std::optional<double> sent_by(const model::Job& job, const model::JobProcess& process) {
  double bytes = 0;
  std::set<uint32_t> comms;
  for (const uint32_t member : process.members)
    // Two ranks of one communicator are two GPUs.
    if (!comms.insert(job.members[member].comm).second) return std::nullopt;
  if (process.drives_others) return std::nullopt;
  for (const model::NetPair& pair : process.net_pairs) {
    if (!pair.is_send) continue;
    if (pair.transport == model::NetTransport::kSocket) return std::nullopt;
    bytes += static_cast<double>(pair.bytes);
  }
  return bytes;
}

// By name; empty: what ranks of this host sent, and where it should have gone, is not known for all.
std::map<std::string, CardUse> use_of_cards(const HostSamples& host, const std::vector<Evidence>& evidence) {
  std::map<std::string, CardUse> cards;
  for (const ProcessOfRun& of : processes_on(host.host, evidence)) {
    const model::JobProcess& process = of.job->processes[of.index];
    const auto gpu = host.gpus.find(of.pci());
    const auto bytes = sent_by(*of.job, process);
    if (gpu == host.gpus.end() || !bytes || process.row.rank < 0) return {};
    const std::set<std::string> nearest = nearest_cards(gpu->second, host);
    // With several cards equally near it is NCCL's choice which one carries the data.
    if (nearest.size() != 1) return {};
    const auto card = std::find_if(host.sent.begin(), host.sent.end(), [&](const auto& sent) {
      const auto path = host.cards.find(sent.first);
      return path != host.cards.end() && path->second == *nearest.begin();
    });
    if (card == host.sent.end()) return {};
    CardUse& use = cards[card->first];
    use.recorded += *bytes;
    use.ranks.push_back(process.row.rank);
  }
  return cards;
}

void add_unused_cards(const HostSamples& host, const std::vector<Evidence>& evidence,
                      std::vector<Finding>& findings) {
  const std::map<std::string, CardUse> cards = use_of_cards(host, evidence);
  std::vector<double> recorded;
  for (const auto& [card, use] : cards) recorded.push_back(use.recorded);
  if (cards.size() < kFewestCards) return;
  const double usual = links::median(recorded);
  if (usual < kMuch) return;
  const auto sent = [&host](const std::string& card) { return static_cast<double>(host.sent.at(card)); };
  const bool is_seen = std::any_of(cards.begin(), cards.end(), [&](const auto& card) {
    return card.second.recorded >= kMuch && sent(card.first) >= kSeen * card.second.recorded;
  });
  if (!is_seen) return;
  for (const auto& [card, use] : cards) {
    if (use.recorded < kSeen * usual || sent(card) > kNextToNothing * use.recorded) continue;
    Finding finding(FindingId::kSlowNicUnused);
    finding.ranks = use.ranks;
    std::sort(finding.ranks.begin(), finding.ranks.end());
    finding.hosts = {host.host};
    finding.statement =
        wording::name(card) + " of " + wording::name(host.host) + " sent " + bytes_text(sent(card)) +
        " while the job ran, though it is the nearest card to the GPU of " + wording::ranks(finding.ranks) +
        ", which sent " + bytes_text(use.recorded) + ": the data goes over another card";
    finding.evidence.push_back(
        "link counters: the cards nearest to this host's GPUs: " + wording::count(cards.size(), "card") +
        "; the median of what their ranks sent is " + bytes_text(usual));
    finding.advice =
        "Check NCCL_IB_HCA, the state of this card's port, and the NICs that NCCL's log names for these ranks "
        "(NCCL_DEBUG=INFO).";
    finding.sources = {std::string(kLinkCounters)};
    if (!evidence.empty()) finding.sources.push_back(evidence.front().source);
    findings.push_back(std::move(finding));
  }
}

// --- NVLinks that are left aside

// The least that all GPUs of a host must send each other for one member's collectives on a communicator, of
// which `local` members are here.
double least_within_host(const model::Job& job, const model::Member& member, double local,
                         const HostSamples& host) {
  const model::JobOps& ops = job.ops(member);
  const model::JobComm& comm = job.comms[member.comm];
  double bytes = 0;
  for (uint32_t i = member.first; i < member.first + member.ops; ++i) {
    const model::Signature& signature = job.signatures[ops.signature[i]];
    const std::string_view func = job.text(signature.func);
    const int64_t at = ops.launched_ns[i] != 0 ? ops.launched_ns[i] : ops.called_ns[i];
    if (at < host.first_ns || at > host.last_ns) continue;
    if (func != "AllReduce" && func != "AllGather" && func != "ReduceScatter") continue;
    bytes += static_cast<double>(model::operation_size(func, signature.bytes, comm.ranks, comm.declared));
  }
  // Each GPU but one receives half of it at least from others of its host, whichever algorithm: a ring twice
  // that or more.
  return bytes * (local - 1) / 2;
}

// The processes of the host that are members, if their GPUs are all that have NVLinks here.
std::optional<uint32_t> member_of_all(const model::Job& job, const model::JobComm& comm,
                                      const HostSamples& host) {
  std::set<std::string> gpus;
  std::optional<uint32_t> first;
  for (const uint32_t row : comm.members) {
    if (row == model::kNoRow) continue;
    const uint32_t process = job.members[row].process;
    if (job.text(job.processes[process].row.host) != host.host) continue;
    gpus.insert(ProcessOfRun{&job, process}.pci());
    if (!first) first = row;
  }
  if (gpus.size() < 2 || gpus.size() != host.nvlink_moved.size()) return std::nullopt;
  for (const std::string& gpu : gpus)
    if (!host.nvlink_moved.contains(gpu)) return std::nullopt;
  return first;
}

void add_unused_nvlinks(const HostSamples& host, const std::vector<Evidence>& evidence,
                        std::vector<Finding>& findings) {
  if (host.nvlink_moved.size() < 2) return;
  double moved = 0;
  for (const auto& [gpu, bytes] : host.nvlink_moved) moved += static_cast<double>(bytes);
  for (const Evidence& of : evidence) {
    if (!of.job) continue;
    double least = 0;
    for (const model::JobComm& comm : of.job->comms) {
      if (comm.declared) continue;
      if (const auto member = member_of_all(*of.job, comm, host))
        least += least_within_host(*of.job, of.job->members[*member],
                                   static_cast<double>(host.nvlink_moved.size()), host);
    }
    if (least < kVeryMuch || moved > kNextToNothing * least) continue;
    Finding finding(FindingId::kFallbackNvlinkUnused);
    finding.hosts = {host.host};
    finding.statement = "the NVLinks of " + wording::name(host.host) + " moved " + bytes_text(moved) +
                        " while its " + std::to_string(host.nvlink_moved.size()) + " GPUs had to exchange " +
                        bytes_text(least) + " or more: the data goes over PCIe or the host's memory";
    finding.evidence.push_back("link counters: NVLinks of " +
                               wording::count(host.nvlink_moved.size(), "GPU") + ", from " +
                               format_time(host.first_ns) + " to " + format_time(host.last_ns));
    finding.advice =
        "Check NCCL_P2P_DISABLE and NCCL_P2P_LEVEL, whether containers see each other's GPUs, and NCCL's log "
        "for `via SHM` (NCCL_DEBUG=INFO); `lockstep links` measures the links.";
    finding.sources = {std::string(kLinkCounters), of.source};
    findings.push_back(std::move(finding));
    return;
  }
}

// --- NVLinks that carry others' data

// Of an operation's size, what a GPU sends and receives together at most: three parts each way in the middle
// of a tree, and as many flags as data (LL). A send or a receive goes one way.
constexpr double kMostOfCollective = 12, kMostOfTransfer = 2;
constexpr double kFarMore = 2;
constexpr size_t kMostGpusNamed = 4;

// What all operations that a process recorded can have moved over its GPU's NVLinks; nothing where some may
// not be in the record.
std::optional<double> most_moved(const model::Job& job, uint32_t process) {
  const model::JobProcess& of = job.processes[process];
  // Of a window, or while capture was off, counters saw what the record has not.
  if (of.lost > 0 || of.members.empty() || of.row.window != 0 || model::was_off(job.text(of.row.modes)))
    return std::nullopt;
  for (size_t i = 0; i < of.ops.size(); ++i) {
    // A graph that was captured may run without a word.
    if ((of.ops.flags[i] & model::kFlagGraphCaptured) != 0 && !of.ops.is_replay(i)) return std::nullopt;
    if (job.signatures[of.ops.signature[i]].bytes == 0) return std::nullopt;
  }
  double bytes = 0;
  for (const uint32_t row : of.members) {
    const model::Member& member = job.members[row];
    const model::JobComm& comm = job.comms[member.comm];
    if (comm.declared) continue;
    const auto signature = [&](uint32_t op) { return job.signatures[of.ops.signature[op]]; };
    for (uint32_t op = member.first; op < member.first + member.ops; ++op)
      bytes += kMostOfCollective * static_cast<double>(model::operation_size(
                                       job.text(signature(op).func), signature(op).bytes, comm.ranks, false));
    for (const model::Lane& lane : member.lanes)
      for (uint32_t op = lane.first; op < lane.first + lane.ops; ++op)
        bytes += kMostOfTransfer * static_cast<double>(signature(op).bytes);
  }
  return bytes;
}

struct OthersOnGpu {
  std::string gpu;
  double moved = 0, explained = 0;
  std::set<int32_t> ranks;
  std::string host;
  std::string text() const {
    return "the NVLinks of " + wording::name(gpu) + " of " + wording::name(host) + " moved " +
           bytes_text(moved) + ", of which the operations of this run explain " + bytes_text(explained) +
           " at most";
  }
};

std::vector<OthersOnGpu> others_on(const HostSamples& host, const std::vector<Evidence>& evidence) {
  std::map<std::string, OthersOnGpu> by_gpu;
  std::set<std::string> unsure;
  for (const ProcessOfRun& process : processes_on(host.host, evidence)) {
    const std::string gpu = process.pci();
    const auto moved = host.nvlink_moved.find(gpu);
    if (moved == host.nvlink_moved.end()) continue;
    const auto most = most_moved(*process.job, process.index);
    if (!most) unsure.insert(gpu);
    OthersOnGpu& others = by_gpu[gpu];
    others.gpu = gpu;
    others.host = host.host;
    others.moved = static_cast<double>(moved->second);
    others.explained += most.value_or(0);
    others.ranks.insert(process.job->processes[process.index].row.rank);
  }
  std::vector<OthersOnGpu> found;
  for (auto& [gpu, others] : by_gpu)
    if (!unsure.contains(gpu) && others.moved > kFarMore * others.explained + kVeryMuch)
      found.push_back(std::move(others));
  return found;
}

bool is_about_slow_gpus(const Finding& finding) {
  using enum analysis::FindingClass;
  const analysis::FindingClass of = class_of(finding.id);
  return finding.severity > Severity::kNote && finding.id != FindingId::kSlowLinkPageable &&
         (of == kGpuLate || of == kSlowLink || of == kImbalance);
}

}  // namespace

std::vector<Finding> rail_findings(const HostsOfRun& hosts, std::set<const LinkTrouble*>& taken) {
  std::vector<Finding> findings;
  for (const FindingId id : {FindingId::kTransportErrorLoss, FindingId::kTransportErrorDiscards})
    if (auto finding = rail_finding(hosts, id, taken)) findings.push_back(*std::move(finding));
  return findings;
}

std::vector<Finding> left_aside_findings(const HostsOfRun& hosts, const std::vector<Evidence>& evidence) {
  std::vector<Finding> findings;
  for (const HostSamples* const host : hosts) {
    add_unused_cards(*host, evidence, findings);
    add_unused_nvlinks(*host, evidence, findings);
  }
  return findings;
}

void add_others_traffic(const HostsOfRun& hosts, const std::vector<Evidence>& evidence,
                        std::vector<Finding>& findings) {
  constexpr std::string_view kAdvice =
      "See who else uses these GPUs (`nvidia-smi`). Copies between GPUs that the program makes without NCCL "
      "count as well.";
  // Notes are added behind them.
  std::vector<Finding> notes;
  std::map<const Finding*, size_t> cited;
  for (const HostSamples* const host : hosts) {
    const std::vector<OthersOnGpu> others = others_on(*host, evidence);
    if (others.empty()) continue;
    for (Finding& finding : findings) {
      if (!is_about_slow_gpus(finding)) continue;
      for (const OthersOnGpu& of : others) {
        const bool is_named = std::any_of(finding.ranks.begin(), finding.ranks.end(),
                                          [&of](int32_t rank) { return of.ranks.contains(rank); });
        if (!is_named && !(finding.ranks.empty() && is_on(finding, host->host))) continue;
        if (++cited[&finding] > kMostGpusNamed) continue;
        finding.evidence.push_back(std::string(kLinkCounters) + ": possible: " + of.text());
        add_source(kLinkCounters, finding);
        add_advice(std::string(kAdvice), finding);
      }
    }
    const auto most = std::max_element(others.begin(), others.end(), [](const auto& a, const auto& b) {
      return a.moved - a.explained < b.moved - b.explained;
    });
    Finding finding(FindingId::kSlowLinkNvlinkOthers);
    finding.hosts = {host->host};
    finding.statement = "more than the recorded operations went over NVLinks: " + most->text();
    for (const OthersOnGpu& of : others)
      if (finding.evidence.size() < kMostGpusNamed)
        finding.evidence.push_back(std::string(kLinkCounters) + ": " + of.text());
    finding.advice = kAdvice;
    finding.sources = {std::string(kLinkCounters), evidence.front().source};
    notes.push_back(std::move(finding));
  }
  for (Finding& note : notes) findings.push_back(std::move(note));
}

}  // namespace lockstep::verdict
