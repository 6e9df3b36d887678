// SPDX-License-Identifier: Apache-2.0
// A LogModel as rows of tables. Rows are keyed by everything that they show: a thousand equal processes are
// one row, and one that differs stands out in a row of its own. Nothing is judged, so what a log does not say
// is an empty cell and no finding.
#include "analysis/log_figures/log_figures.h"

#include <algorithm>
#include <tuple>

namespace lockstep::analysis::log_figures {

using readers::nccl_log::CommPart;
using readers::nccl_log::Connection;
using readers::nccl_log::Fact;
using readers::nccl_log::kNobody;
using readers::nccl_log::LineKind;
using readers::nccl_log::LogModel;
using readers::nccl_log::Transport;

namespace {

// The first remark of a kind by each process.
std::vector<std::string> first_values(const LogModel& model, LineKind kind, std::vector<std::string> values) {
  for (const uint32_t row : model.of(kind)) {
    const Fact& fact = model.facts[row];
    // A process may say it for each communicator; it does not change in its life.
    if (fact.process != kNobody && values[fact.process].empty()) values[fact.process] = fact.value(0);
  }
  return values;
}

// CUDA writes 12.4 as 12040. Six digits are more than any release has, and fit into an int.
std::string driver_text(const std::string& thousands) {
  const size_t number = std::min<size_t>(thousands.size(), 6);
  if (number < 4) return thousands;
  const int value = std::stoi(thousands.substr(0, number));
  return std::to_string(value / 1000) + '.' + std::to_string(value % 1000 / 10);
}

// "mlx5_0:1/IB mlx5_1:1/IB" of a list with indices; [RO] is no card.
std::string card_names(const std::string& list) {
  std::string names;
  for (size_t at = 0; at < list.size();) {
    size_t end = std::min(list.find(' ', at), list.size());
    std::string word = list.substr(at, end - at);
    const size_t close = word.find(']');
    if (word.starts_with('[') && close != std::string::npos && close + 1 < word.size())
      names += (names.empty() ? "" : " ") + word.substr(close + 1);
    at = end + 1;
  }
  return names;
}

}  // namespace

std::string without_card(const Connection& row) {
  if (row.transport != Transport::kNet) return row.via;
  const size_t network = row.via.find('/');
  return row.via.substr(0, row.via.find('/', network + 1));
}

std::vector<HostRow> host_rows(const LogModel& model) {
  const std::vector<std::string> none(model.processes.size());
  // RCCL also prints the version of the NCCL that it was made from; its own comes first.
  const auto versions =
      first_values(model, LineKind::kVersion, first_values(model, LineKind::kRcclVersion, none));
  const auto drivers = first_values(model, LineKind::kDriverVersion, none);
  const auto networks = first_values(model, LineKind::kNetworkUsed, none);
  const auto ib_cards = first_values(model, LineKind::kIbCards, none);
  const auto socket_cards = first_values(model, LineKind::kSocketCards, none);
  std::map<std::tuple<std::string, std::string, std::string, std::string, std::string>, HostRow> rows;
  for (size_t i = 0; i < model.processes.size(); ++i) {
    const auto& process = model.processes[i];
    const std::string ib = card_names(ib_cards[i]);
    const std::string cards = ib.empty() ? card_names(socket_cards[i]) : ib;
    HostRow& row = rows[{process.host, versions[i], drivers[i], networks[i], cards}];
    row.host = process.host;
    row.version = versions[i];
    row.driver = driver_text(drivers[i]);
    row.network = networks[i];
    row.cards = cards;
    // Several processes may say that they are one rank, as those of several jobs do.
    if (process.rank >= 0) row.ranks.push_back(process.rank);
    ++row.processes;
    row.warnings += process.warnings;
  }
  std::vector<HostRow> list;
  for (auto& [key, row] : rows) {
    std::sort(row.ranks.begin(), row.ranks.end());
    row.ranks.erase(std::unique(row.ranks.begin(), row.ranks.end()), row.ranks.end());
    list.push_back(std::move(row));
  }
  return list;
}

std::vector<CommRow> comm_rows(const LogModel& model) {
  std::map<std::string, CommRow> rows;
  for (const CommPart& part : model.comms) {
    // Parts that do not say their communicator are kept apart by size alone, which may join several.
    const std::string name = part.group.empty() ? "? of " + std::to_string(part.ranks) : part.group;
    CommRow& row = rows[name];
    row.name = part.group.empty() ? "?" : part.group;
    row.ranks = std::max(row.ranks, part.ranks);
    row.nodes = std::max(row.nodes, part.nodes);
    row.coll_channels = std::max(row.coll_channels, part.coll_channels);
    row.rings = std::max(row.rings, part.rings);
    row.trees = std::max(row.trees, part.trees);
    row.init_seconds = std::max(row.init_seconds, part.init_seconds);
    row.present.insert(part.rank);
    if (model.processes[part.process].rank >= 0) row.members.insert(model.processes[part.process].rank);
    if (part.completed) row.completed.insert(part.rank);
  }
  std::vector<CommRow> list;
  for (auto& [name, row] : rows) list.push_back(std::move(row));
  std::stable_sort(list.begin(), list.end(),
                   [](const CommRow& a, const CommRow& b) { return a.ranks > b.ranks; });
  return list;
}

std::vector<TransportRow> transport_rows(const LogModel& model) {
  std::map<std::pair<std::string, bool>, TransportRow> rows;
  std::map<std::pair<std::string, bool>, std::set<std::tuple<uint32_t, int32_t, int32_t, std::string>>> pairs;
  for (const Connection& row : model.connections) {
    if (row.is_receive) continue;  // the sender reports it too
    const auto key = std::pair(without_card(row), row.gdr);
    TransportRow& figures = rows[key];
    figures.via = key.first;
    figures.gdr = row.gdr;
    figures.channels += row.channels;
    pairs[key].emplace(row.process, row.from, row.to, row.to_device);
  }
  std::vector<TransportRow> list;
  for (auto& [key, row] : rows) {
    row.pairs = pairs[key].size();
    list.push_back(std::move(row));
  }
  return list;
}

std::vector<SettingRow> setting_rows(const LogModel& model) {
  std::map<std::pair<std::string, std::string>, std::set<uint32_t>> rows;
  for (const uint32_t row : model.of(LineKind::kEnvironment)) {
    const Fact& fact = model.facts[row];
    rows[{readers::nccl_log::variable_name(fact.value(0)), fact.value(1)}].insert(fact.process);
  }
  std::vector<SettingRow> list;
  for (const auto& [key, processes] : rows) list.push_back({key.first, key.second, processes.size()});
  return list;
}

}  // namespace lockstep::analysis::log_figures
