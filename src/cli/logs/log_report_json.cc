// SPDX-License-Identifier: Apache-2.0
#include "cli/diagnose/report_json.h"
#include "cli/logs/log_figures.h"
#include "cli/logs/log_report.h"

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
          {"beyond_limits", coverage.beyond}};
}

}  // namespace

Json report_json(const LogReport& report) {
  Json document = {{"findings", Json::array()},   {"hosts", Json::array()},      {"comms", Json::array()},
                   {"transports", Json::array()}, {"algorithms", Json::array()}, {"settings", Json::array()},
                   {"unknown", Json::array()}};
  for (const analysis::Finding& finding : report.findings)
    document["findings"].push_back(diagnose::finding_json(finding));
  for (const HostRow& row : host_rows(report.model))
    document["hosts"].push_back({{"host", row.host},
                                 {"processes", row.processes},
                                 {"ranks", row.ranks},
                                 {"version", text_json(row.version)},
                                 {"driver_cuda", text_json(row.driver)},
                                 {"network", text_json(row.network)},
                                 {"cards", text_json(row.cards)},
                                 {"warnings", row.warnings}});
  for (const CommRow& row : comm_rows(report.model))
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
  for (const TransportRow& row : transport_rows(report.model))
    document["transports"].push_back(
        {{"via", row.via}, {"gdr", row.gdr}, {"pairs", row.pairs}, {"channels", row.channels}});
  for (const auto& [use, figures] : report.model.algorithms)
    document["algorithms"].push_back({{"use", use},
                                      {"calls", figures.count},
                                      {"least_bytes", figures.least_bytes},
                                      {"most_bytes", figures.most_bytes}});
  for (const SettingRow& row : setting_rows(report.model))
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
