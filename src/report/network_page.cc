// SPDX-License-Identifier: Apache-2.0
// Adds up transfers into a matrix of sender and receiver. Waits of both sides stand beside the rate, which
// alone does not tell a slow link from a late peer. Above 128 ranks a matrix cannot be read, so hosts take
// the place of ranks.
#include <algorithm>
#include <map>
#include <numeric>

#include "analysis/network/links.h"
#include "report/named_links.h"
#include "report/pages.h"

namespace lockstep::report {
namespace {

namespace network = analysis::network;
using model::Job;

// A full matrix of 64 ends; of more pairs those with the fewest bytes are left out.
constexpr size_t kPairsMost = 4096;
constexpr size_t kRanksOfAxis = 128;

// An end of a pair: a process, a rank that left no file, or a host.
struct Place {
  uint32_t process = model::kNoRow;
  int32_t rank = -1;
  std::string host;
  auto operator<=>(const Place&) const = default;
};

class Axis {
 public:
  Axis(const Job& job, const std::vector<network::Link>& links) : job_(job) {
    std::set<Place> places;
    for (const network::Link& link : links) {
      places.insert(rank_place(link.source_process, link.source));
      places.insert(rank_place(link.target_process, link.target));
    }
    // Decided over all ends, so that sender and receiver are drawn on one scale.
    by_host_ = places.size() > kRanksOfAxis;
    for (const Place& place : places) ++members_[by_host_ ? host_place(place) : place];
    std::vector<Place> order;
    for (const auto& [place, count] : members_) order.push_back(place);
    std::stable_sort(order.begin(), order.end(), [](const Place& a, const Place& b) {
      return std::tie(a.rank, a.host, a.process) < std::tie(b.rank, b.host, b.process);
    });
    for (const Place& place : order) {
      position_[place] = json_.size();
      json_.push_back({{"label", label(place)},
                       {"who", place.process == model::kNoRow ? Json(nullptr) : Json(place.process)},
                       {"of", members_[place]}});
    }
  }
  bool by_host() const { return by_host_; }
  const Json& json() const { return json_; }
  size_t at(uint32_t process, int32_t rank) const {
    const Place place = rank_place(process, rank);
    return position_.at(by_host_ ? host_place(place) : place);
  }

 private:
  Place rank_place(uint32_t process, int32_t rank) const {
    if (process == model::kNoRow) return {process, rank, {}};
    const model::Process& row = job_.processes[process].row;
    // The process' own rank, as people know it; the link's where the process does not know it.
    return {process, row.rank >= 0 ? row.rank : rank, {}};
  }
  Place host_place(const Place& place) const {
    // A rank without a file has no known host, so all such ranks share one place.
    if (place.process == model::kNoRow) return {model::kNoRow, -1, "(left no file)"};
    return {model::kNoRow, -1, std::string(job_.text(job_.hosts[job_.processes[place.process].host].name))};
  }
  std::string label(const Place& place) const {
    if (!place.host.empty() || by_host_) return shown(place.host);
    if (place.process != model::kNoRow) return shown(job_.process_name(place.process));
    return place.rank >= 0 ? "rank " + std::to_string(place.rank) : "?";
  }

  const Job& job_;
  bool by_host_ = false;
  std::map<Place, size_t> members_, position_;
  Json json_ = Json::array();
};

// Pairs of one cell of the matrix.
struct Cell {
  network::Link sum;
  bool several_comms = false;
  std::optional<size_t> finding;  // about any of them, the first
};

void add(Cell& cell, const network::Link& link, bool first) {
  if (first) {
    cell.sum = link;
    return;
  }
  network::Link& sum = cell.sum;
  cell.several_comms = cell.several_comms || sum.comm != link.comm;
  // A cell that mixes transports has none: naming one would hide that the other is in use.
  if (sum.transport != link.transport) sum.transport = model::NetTransport::kUnknown;
  sum.add(link);
}

Json transport_json(model::NetTransport transport) {
  switch (transport) {
    case model::NetTransport::kIb:
      return "IB";
    case model::NetTransport::kSocket:
      return "sockets";
    case model::NetTransport::kUnknown:
      break;
  }
  return nullptr;
}

Json positive(double value) { return value > 0 ? Json(value) : Json(nullptr); }
Json positive_ns(double value) { return value > 0 ? whole_ns(value) : Json(nullptr); }

}  // namespace

Json network_page(const ReportContext& context) {
  const Job& job = context.job();
  const std::vector<network::Link> lanes = network::links(job), links = network::pairs(lanes);
  if (links.empty()) {
    // No transfers is a fault of the recording only if a communicator spans hosts; else there were none.
    const bool expected =
        std::any_of(job.comms.begin(), job.comms.end(), [](const auto& comm) { return comm.nodes > 1; });
    return missing(
        expected
            ? "No transfers over the network were recorded, though a communicator spans hosts: run in deep "
              "mode (`lockstep trace -m deep`), or sample it."
            : "No transfers over the network were recorded: no communicator is known to span hosts.");
  }
  const Axis axis(job, links);
  const NamedLinks named(context, lanes);
  std::map<std::tuple<size_t, size_t, uint32_t>, Cell> cells;
  for (const network::Link& link : links) {
    const auto [at, first] = cells.try_emplace({axis.at(link.source_process, link.source),
                                                axis.at(link.target_process, link.target),
                                                axis.by_host() ? model::kNoRow : link.comm});
    add(at->second, link, first);
    const auto finding = named.finding(link.comm, link.source_process, link.target_process);
    // The lowest number is the most important finding.
    if (finding) at->second.finding = std::min(*finding, at->second.finding.value_or(*finding));
  }
  std::vector<std::pair<std::tuple<size_t, size_t, uint32_t>, const Cell*>> order;
  for (const auto& [key, cell] : cells) order.emplace_back(key, &cell);
  const size_t omitted = order.size() > kPairsMost ? order.size() - kPairsMost : 0;
  if (omitted > 0) {
    std::stable_sort(order.begin(), order.end(),
                     [](const auto& a, const auto& b) { return a.second->sum.bytes > b.second->sum.bytes; });
    order.resize(kPairsMost);
    // Back in the order of places: the choice was by bytes, the page is by rank.
    std::sort(order.begin(), order.end());
  }
  Json pairs = Json::array();
  for (const auto& [key, cell] : order) {
    const network::Link& sum = cell->sum;
    pairs.push_back(
        {{"source", std::get<0>(key)},
         {"target", std::get<1>(key)},
         {"comm", cell->several_comms || sum.comm == model::kNoRow ? Json(nullptr) : Json(sum.comm)},
         {"transfers", sum.steps},
         {"bytes", sum.bytes},
         {"gpu_wait_ns", whole_ns(static_cast<double>(sum.gpu_wait_ns))},
         {"peer_wait_ns", whole_ns(static_cast<double>(sum.peer_wait_ns))},
         {"send_wait_ns", whole_ns(static_cast<double>(sum.send_wait_ns))},
         {"receive_wait_ns", whole_ns(static_cast<double>(sum.receive_wait_ns))},
         {"flush_wait_ns", whole_ns(static_cast<double>(sum.flush_wait_ns))},
         {"rate_gbps", positive(sum.rate() * 1e-9)},
         {"sending_p50_ns", positive_ns(sum.sending.quantile(0.5))},
         {"sending_p99_ns", positive_ns(sum.sending.quantile(0.99))},
         {"transport", transport_json(sum.transport)},
         {"finding", or_null(cell->finding)}});
  }
  Json notes = Json::array();
  if (axis.by_host()) notes.push_back("Ranks of a host are added up.");
  return {{"axis", axis.json()},
          {"pairs", std::move(pairs)},
          {"by", axis.by_host() ? "host" : "rank"},
          {"omitted", omitted},
          {"notes", std::move(notes)}};
}

}  // namespace lockstep::report
