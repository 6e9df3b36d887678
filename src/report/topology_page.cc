// SPDX-License-Identifier: Apache-2.0
// Draws who is connected to whom. NCCL's logs say how rings, trees and connections were set up. Recorded
// transfers say what really went over the network. Sends say who talked to whom where nothing else does. An
// edge says which of the three it comes from, since a connection that was set up need not have carried a
// byte. Logs and records are joined by the communicator's id in hex.
#include <algorithm>
#include <map>
#include <numeric>

#include "analysis/log_figures/log_figures.h"
#include "analysis/log_figures/topology.h"
#include "analysis/network/links.h"
#include "base/text/units.h"
#include "report/named_links.h"
#include "report/pages.h"

namespace lockstep::report {
namespace {

using model::Job;
using model::kNoRow;
using readers::nccl_log::kNobody;
using readers::nccl_log::LogModel;

// Of all communicators together; of 4,096 ranks each is a member of five or so.
constexpr size_t kMembersMost = 65536;
constexpr size_t kWiredCommsMost = 64, kEdgesMost = 4096, kWiringsMost = 32;

constexpr const char* kNoRings =
    "Only NCCL's logs show rings and trees, and none given here cover all ranks: NCCL_DEBUG=INFO "
    "NCCL_DEBUG_SUBSYS=INIT,GRAPH NCCL_DEBUG_FILE=/shared/job/nccl.%h.%p.log, then name the logs beside "
    "the run.";

const LogModel* logs_of(const ReportContext& context) {
  for (const verdict::Evidence& evidence : context.run().evidence) {
    if (evidence.logs) return evidence.logs.get();
  }
  return nullptr;
}

// Rows of the job's comms by how logs name them: the id, in hex.
std::map<std::string, uint32_t> comms_by_id(const Job& job) {
  std::map<std::string, uint32_t> comms;
  for (uint32_t comm = 0; comm < job.comms.size(); ++comm) {
    if (const Json id = id_json(job.comms[comm].comm_id); !id.is_null()) comms.emplace(id, comm);
  }
  return comms;
}

Json wirings_json(const std::vector<analysis::log_figures::Wiring>& wirings, const char* key) {
  Json list = Json::array();
  for (const analysis::log_figures::Wiring& wiring : wirings) {
    if (list.size() == kWiringsMost) break;
    Json ranks = Json::array();
    for (int32_t rank : wiring.ranks) ranks.push_back(known(rank));
    list.push_back({{"channels", wiring.channels}, {key, std::move(ranks)}});
  }
  return list;
}

// The largest communicators, with what logs say of their rings and trees.
Json comms_json(const ReportContext& context, const LogModel* model, bool& any_rings) {
  const Job& job = context.job();
  std::map<uint32_t, analysis::log_figures::CommWiring> wired;
  if (model != nullptr) {
    const auto by_id = comms_by_id(job);
    for (analysis::log_figures::CommWiring& wiring :
         analysis::log_figures::comm_wirings(*model, kWiredCommsMost)) {
      if (const auto at = by_id.find(wiring.name); at != by_id.end())
        wired.emplace(at->second, std::move(wiring));
    }
  }
  std::vector<uint32_t> order(job.comms.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return job.comms[a].members.size() > job.comms[b].members.size();
  });
  Json list = Json::array();
  size_t listed_members = 0;
  for (uint32_t comm : order) {
    listed_members += job.comms[comm].members.size();
    if (listed_members > kMembersMost && !list.empty()) break;
    Json members = Json::array();
    for (uint32_t row : job.comms[comm].members)
      members.push_back(row == kNoRow ? Json(nullptr) : Json(job.members[row].process));
    const auto at = wired.find(comm);
    const bool listed = at != wired.end();
    any_rings = any_rings || (listed && !(at->second.rings.empty() && at->second.trees.empty()));
    list.push_back({{"comm", comm},
                    {"name", shown(job.comm_name(comm))},
                    {"nodes", known(job.comms[comm].nodes)},
                    {"members", std::move(members)},
                    {"rings", listed ? wirings_json(at->second.rings, "order") : Json::array()},
                    {"trees", listed ? wirings_json(at->second.trees, "up") : Json::array()}});
  }
  return list;
}

struct Edge {
  std::string transport, via;
  bool gdr = false, from_logs = false, from_transfers = false;
  uint64_t channels = 0, bytes = 0;
  int64_t busy_ns = 0, wait_ns = 0;
};
using EdgeKey = std::tuple<uint32_t, uint32_t, uint32_t>;  // processes, row of Job::comms or kNoRow

class Edges {
 public:
  explicit Edges(const ReportContext& context)
      : context_(context),
        job_(context.job()),
        links_(analysis::network::links(job_)),
        named_(context, links_) {}

  void add_logs(const LogModel& model) {
    const auto by_id = comms_by_id(job_);
    std::map<std::pair<std::string, int32_t>, uint32_t> process_of;  // by communicator and rank in it
    for (const auto& part : model.comms) {
      if (part.process >= model.processes.size()) continue;
      const uint32_t process = context_.process_of_rank(model.processes[part.process].rank);
      if (process != kNoRow) process_of[{part.group, part.rank}] = process;
    }
    for (const auto& row : model.connections) {
      // Both ends log a connection: the sender's line stands for it.
      if (row.comm == kNobody || row.is_receive) continue;
      const std::string& group = model.comms[row.comm].group;
      // Connections name ranks of the communicator, not of the job.
      const auto from = process_of.find({group, row.from}), to = process_of.find({group, row.to});
      if (from == process_of.end() || to == process_of.end()) continue;
      const auto comm = by_id.find(group);
      Edge& edge = edges_[{from->second, to->second, comm == by_id.end() ? kNoRow : comm->second}];
      edge.from_logs = true;
      edge.transport = transport_text(row.transport);
      edge.via = analysis::log_figures::without_card(row);
      edge.gdr = edge.gdr || row.gdr;
      edge.channels += row.channels;
    }
  }

  void add_transfers() {
    for (const auto& link : analysis::network::pairs(links_)) {
      if (link.source_process == kNoRow || link.target_process == kNoRow) continue;
      Edge& edge = edges_[{link.source_process, link.target_process, link.comm}];
      edge.from_transfers = true;
      edge.transport = "NET";
      if (edge.via.empty() && link.transport != model::NetTransport::kUnknown)
        edge.via = link.transport == model::NetTransport::kIb ? "NET/IB" : "NET/Socket";
      edge.channels = std::max<uint64_t>(edge.channels, link.lanes);
      edge.bytes += link.bytes;
      edge.busy_ns += link.busy_ns;
      edge.wait_ns += link.send_wait_ns;
    }
  }

  void add_sends() {
    for (const model::Member& member : job_.members) {
      const auto& peers = job_.comms[member.comm].members;
      for (const model::Lane& lane : member.lanes) {
        if (!lane.is_send || lane.peer < 0 || static_cast<size_t>(lane.peer) >= peers.size()) continue;
        const uint32_t row = peers[static_cast<size_t>(lane.peer)];
        if (row == kNoRow) continue;
        Edge& edge = edges_[{member.process, job_.members[row].process, member.comm}];
        // What went over the network is counted there already.
        if (edge.from_transfers) continue;
        const model::JobOps& ops = job_.ops(member);
        for (uint32_t op = lane.first; op < lane.first + lane.ops; ++op)
          edge.bytes += job_.signatures[ops.signature[op]].bytes;
      }
    }
  }

  size_t size() const { return edges_.size(); }

  Json json() const {
    std::vector<std::pair<EdgeKey, const Edge*>> order;
    for (const auto& [key, edge] : edges_) order.emplace_back(key, &edge);
    if (order.size() > kEdgesMost) {
      std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
        return std::pair(a.second->bytes, a.second->channels) >
               std::pair(b.second->bytes, b.second->channels);
      });
      order.resize(kEdgesMost);
      std::sort(order.begin(), order.end());
    }
    Json list = Json::array();
    for (const auto& [key, edge] : order) {
      const auto& [from, to, comm] = key;
      list.push_back(
          {{"from", from},
           {"to", to},
           {"comm", comm == kNoRow ? Json(nullptr) : Json(comm)},
           {"transport", shown_or_null(edge->transport)},
           {"via", shown_or_null(edge->via)},
           // Transfers do not show GPUDirect.
           {"gdr", edge->from_logs ? Json(edge->gdr) : Json(nullptr)},
           {"channels", edge->channels == 0 ? Json(nullptr) : Json(edge->channels)},
           {"bytes", edge->bytes == 0 ? Json(nullptr) : Json(edge->bytes)},
           {"rate_gbps", edge->busy_ns <= 0
                             ? Json(nullptr)
                             : Json(static_cast<double>(edge->bytes) / static_cast<double>(edge->busy_ns))},
           {"wait_ns", edge->from_transfers ? whole_ns(static_cast<double>(edge->wait_ns)) : Json(nullptr)},
           {"slow", or_null(named_.finding(comm, from, to))},
           {"source", edge->from_logs        ? edge->from_transfers ? "logs and transfers" : "logs"
                      : edge->from_transfers ? "transfers"
                                             : "sends"}});
    }
    return list;
  }

 private:
  const ReportContext& context_;
  const Job& job_;
  const std::vector<analysis::network::Link> links_;
  const NamedLinks named_;
  std::map<EdgeKey, Edge> edges_;
};

}  // namespace

Json topology_page(const ReportContext& context) {
  const LogModel* model = logs_of(context);
  Edges edges(context);
  if (model != nullptr) edges.add_logs(*model);
  // Logs first and sends last: each only adds what those before it left open.
  edges.add_transfers();
  edges.add_sends();
  bool any_rings = false;
  Json comms = comms_json(context, model, any_rings), list = edges.json();
  Json notes = Json::array();
  if (comms.size() < context.job().comms.size())
    notes.push_back("The " + format_count(comms.size()) + " largest of " +
                    format_count(context.job().comms.size()) + " communicators.");
  if (edges.size() == 0)
    notes.push_back("No connections recorded. They come from logs, network transfers (deep mode) and sends.");
  const size_t omitted = edges.size() - list.size();
  return {{"comms", std::move(comms)},
          {"edges", std::move(list)},
          {"rings_missing", any_rings ? Json(nullptr) : Json(kNoRings)},
          {"omitted", omitted},
          {"notes", std::move(notes)}};
}

}  // namespace lockstep::report
