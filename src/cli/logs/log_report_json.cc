// SPDX-License-Identifier: Apache-2.0
// What logs say, as data: all rows, and the first line of every kind that was not understood, whatever -v
// says. Tables and JSON share the columns of log_columns.h.
#include "analysis/log_figures/topology.h"
#include "cli/logs/log_columns.h"
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
  Json document = {
      {"schema", "lockstep.logs.v1"}, {"findings", Json::array()},   {"hosts", Json::array()},
      {"comms", Json::array()},       {"transports", Json::array()}, {"algorithms", Json::array()},
      {"settings", Json::array()},    {"unknown", Json::array()},    {"hardware", Json::array()},
      {"wiring", Json::array()},      {"losses", Json::array()}};
  for (const analysis::Finding& finding : report.findings)
    document["findings"].push_back(report::finding_json(finding));
  document["hosts"] = json_rows(analysis::log_figures::host_rows(report.model), show_host);
  document["comms"] = json_rows(analysis::log_figures::comm_rows(report.model), show_comm);
  for (const analysis::log_figures::HostHardware& host : analysis::log_figures::host_hardware(report.model))
    document["hardware"].push_back({{"host", host.host}, {"text", host.text}});
  for (const analysis::log_figures::CommWiring& comm :
       analysis::log_figures::comm_wirings(report.model, SIZE_MAX))
    document["wiring"].push_back(wiring_json(comm));
  document["transports"] = json_rows(analysis::log_figures::transport_rows(report.model), show_transport);
  document["algorithms"] = json_rows(report.model.algorithms, show_algorithm);
  document["settings"] = json_rows(analysis::log_figures::setting_rows(report.model), show_setting);
  for (const auto& [shape, seen] : report.model.unknown)
    document["unknown"].push_back({{"shape", shape},
                                   {"count", seen.count},
                                   {"warning", seen.is_warning},
                                   {"file", report.model.files[seen.first.file]},
                                   {"line", seen.first.line},
                                   {"text", seen.first.text}});
  document["coverage"] = coverage_json(report.model.coverage);
  for (const Error& trouble : report.troubles) document["losses"].push_back(trouble.message());
  return document;
}

}  // namespace lockstep::cli::logs
