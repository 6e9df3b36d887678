// SPDX-License-Identifier: Apache-2.0
#include "cli/logs/log_columns.h"

#include "base/text/wording.h"

namespace lockstep::cli::logs {

std::string rank_list(const std::vector<int32_t>& ranks) {
  const std::string words = ranks.empty() ? "- -" : wording::ranks(ranks, 4);
  return words.substr(words.find(' ') + 1);
}

void show_host(const analysis::log_figures::HostRow& row, Columns& out) {
  out.name("host", "<host", row.host);
  out.add("processes", "processes", std::to_string(row.processes), row.processes);
  out.add("ranks", "<ranks", rank_list(row.ranks), row.ranks);
  out.name_if_any("version", "<NCCL", row.version);
  out.name_if_any("driver_cuda", "~<driver CUDA", row.driver);
  out.name_if_any("network", "<network", row.network);
  out.name_if_any("cards", "<cards", row.cards);
  out.add("warnings", "warnings", std::to_string(row.warnings), row.warnings);
}

void show_comm(const analysis::log_figures::CommRow& row, Columns& out) {
  out.name("name", "<communicator", row.name);
  out.number("ranks", "ranks", row.ranks);
  out.add_text("<job ranks", rank_list({row.members.begin(), row.members.end()}));
  out.add("present", "seen", std::to_string(row.present.size()), row.present.size());
  out.add("complete", "complete", std::to_string(row.completed.size()), row.completed.size());
  out.number("nodes", "~nodes", row.nodes);
  out.number("coll_channels", "~channels", row.coll_channels);
  out.number("rings", "~rings", row.rings);
  out.number("trees", "~trees", row.trees);
  const bool known = row.init_seconds >= 0;
  out.add("init_seconds", "created in", known ? format_duration(row.init_seconds * 1e9) : "-",
          known ? Json(row.init_seconds) : Json(nullptr));
}

void show_transport(const analysis::log_figures::TransportRow& row, Columns& out) {
  out.name("via", "<transport", row.via);
  out.add("gdr", "<GPUDirect", row.via.starts_with("NET/") ? (row.gdr ? "yes" : "no") : "-", row.gdr);
  out.count("pairs", "pairs", row.pairs);
  out.count("channels", "channels", row.channels);
}

void show_algorithm(const std::pair<const std::string, readers::nccl_log::AlgorithmUse>& row, Columns& out) {
  out.name("use", "<function, algorithm, protocol", row.first);
  out.count("calls", "calls", row.second.count);
  out.bytes("least_bytes", "bytes", row.second.least_bytes);
  out.bytes("most_bytes", "to", row.second.most_bytes);
}

void show_setting(const analysis::log_figures::SettingRow& row, Columns& out) {
  out.name("name", "<setting", row.name);
  out.name("value", "<value", row.value);
  out.count("processes", "processes", row.processes);
}

}  // namespace lockstep::cli::logs
