// SPDX-License-Identifier: Apache-2.0
#include "analysis/log_figures/log_figures.h"
#include "analysis/log_figures/topology.h"
#include "cli/logs/log_report.h"
#include "report/diagnosis_json.h"

namespace lockstep::cli::logs {
namespace {

Json text_json(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json coverage_json(const readers::nccl_log::LogCoverage& coverage) {
  return {{"bytes", coverage.bytes},
          {"lines", coverage.lines},
          {"nccl_lines", coverage.headed},
          {"torn_lines", coverage.torn},
          {"cut_lines", coverage.cut_lines},
          {"cut_bytes", coverage.cut_bytes},
          {"repeated_lines", coverage.repeated},
          {"beyond_limits", coverage.beyond},
          {"hole_bytes", coverage.zero_bytes}};
}

Json wires_json(const std::vector<analysis::log_figures::Wiring>& list) {
  Json wires = Json::array();
  for (const analysis::log_figures::Wiring& one : list)
    wires.push_back({{"channels", one.channels}, {"text", one.text}});
  return wires;
}

Json wiring_json(const analysis::log_figures::CommWiring& comm) {
  Json pairs = Json::array();
  for (const analysis::log_figures::PairGroup& group : comm.pairs) {
    for (const auto& [from, to] : group.pairs)
      pairs.push_back({{"from", from}, {"to", to}, {"via", group.via}, {"gdr", group.gdr}});
  }
  return {{"comm", comm.name},
          {"members", comm.members},
          {"rings", wires_json(comm.rings)},
          {"trees", wires_json(comm.trees)},
          {"nvls", text_json(comm.nvls)},
          {"pairs", std::move(pairs)}};
}

}  // namespace

Json report_json(const LogReport& report) {
  Json document = {{"schema", "lockstep.logs.v1"}, {"findings", Json::array()},
                   {"hosts", Json::array()},       {"comms", Json::array()},
                   {"transports", Json::array()},  {"algorithms", Json::array()},
                   {"settings", Json::array()},    {"unknown", Json::array()},
                   {"hardware", Json::array()},    {"wiring", Json::array()}};
  for (const analysis::Finding& finding : report.findings)
    document["findings"].push_back(report::finding_json(finding));
  for (const analysis::log_figures::HostRow& row : analysis::log_figures::host_rows(report.model))
    document["hosts"].push_back({{"host", row.host},
                                 {"processes", row.processes},
                                 {"ranks", row.ranks},
                                 {"version", text_json(row.version)},
                                 {"driver_cuda", text_json(row.driver)},
                                 {"network", text_json(row.network)},
                                 {"cards", text_json(row.cards)},
                                 {"warnings", row.warnings}});
  for (const analysis::log_figures::CommRow& row : analysis::log_figures::comm_rows(report.model))
    document["comms"].push_back(
        {{"name", row.name},
         {"ranks", known(row.ranks)},
         {"present", row.present.size()},
         {"complete", row.completed.size()},
         {"nodes", known(row.nodes)},
         {"coll_channels", known(row.coll_channels)},
         {"rings", known(row.rings)},
         {"trees", known(row.trees)},
         {"init_seconds", row.init_seconds < 0 ? Json(nullptr) : Json(row.init_seconds)}});
  for (const analysis::log_figures::HostHardware& host : analysis::log_figures::host_hardware(report.model))
    document["hardware"].push_back({{"host", host.host}, {"text", host.text}});
  for (const analysis::log_figures::CommWiring& comm :
       analysis::log_figures::comm_wirings(report.model, SIZE_MAX))
    document["wiring"].push_back(wiring_json(comm));
  for (const analysis::log_figures::TransportRow& row : analysis::log_figures::transport_rows(report.model))
    document["transports"].push_back(
        {{"via", row.via}, {"gdr", row.gdr}, {"pairs", row.pairs}, {"channels", row.channels}});
  for (const auto& [use, figures] : report.model.algorithms)
    document["algorithms"].push_back({{"use", use},
                                      {"calls", figures.count},
                                      {"least_bytes", figures.least_bytes},
                                      {"most_bytes", figures.most_bytes}});
  for (const analysis::log_figures::SettingRow& row : analysis::log_figures::setting_rows(report.model))
    document["settings"].push_back({{"name", row.name}, {"value", row.value}, {"processes", row.processes}});
  for (const auto& [shape, seen] : report.model.unknown)
    document["unknown"].push_back({{"shape", shape},
                                   {"count", seen.count},
                                   {"warning", seen.is_warning},
                                   {"file", report.model.files[seen.first.file]},
                                   {"line", seen.first.line},
                                   {"text", seen.first.text}});
  document["coverage"] = coverage_json(report.model.coverage);
  return document;
}

}  // namespace lockstep::cli::logs
