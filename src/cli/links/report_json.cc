// SPDX-License-Identifier: Apache-2.0
// What `links` found as data: every sample, also of pairs that are well, so that others can judge by their
// own rules.
#include "cli/links/report.h"
#include "links/counters.h"
#include "links/gpu_fields.h"
#include "links/judge/siblings.h"
#include "report/diagnosis_json.h"
#include "verdict/outcome.h"

namespace lockstep::cli::links {
using namespace lockstep::links;

Json report_json(const LinksRecord& record, const analysis::Diagnosis& diagnosis) {
  const Machine machine = machine_of(record.before.files, record.before.gpus);
  Json document = {{"schema", "lockstep.links.v1"},
                   {"version", 1},
                   {"host", machine.host.name},
                   {"boot_id", machine.host.boot_id},
                   {"time_ns", record.before.time_ns}};
  document["verdict"] =
      diagnosis.verdict ? Json(id_text(diagnosis.findings[*diagnosis.verdict].id)) : Json(nullptr);
  document["exit_code"] = verdict::exit_code(diagnosis);
  Json& findings = document["findings"] = Json::array();
  for (const analysis::Finding& finding : diagnosis.findings)
    findings.push_back(report::finding_json(finding));
  Json& gpus = document["gpus"] = Json::array();
  for (const Gpu& gpu : machine.gpus)
    gpus.push_back({{"index", gpu.index},
                    {"pci", gpu.pci},
                    {"name", gpu.name},
                    {"uuid", gpu.uuid},
                    {"links", gpu.links.size()}});
  Json& nics = document["nics"] = Json::array();
  for (const Nic& nic : machine.nics)
    nics.push_back({{"name", nic.name}, {"pci", nic.pci}, {"type", nic.type}, {"firmware", nic.firmware}});
  Json& cells = document["measurements"] = Json::array();
  if (record.traffic)
    for (const Cell& cell : record.traffic->cells)
      cells.push_back({{"kind", std::string(kind_text(cell.kind))},
                       {"unit", is_latency(cell.kind) ? "ns" : "GB/s"},
                       {"from", cell.from},
                       {"to", cell.to},
                       {"path", path_words(cell, machine)},
                       {"bytes", cell.bytes},
                       {"round", cell.round < 0 ? Json(nullptr) : Json(cell.round)},
                       {"value", cell.value()},
                       {"samples", cell.samples},
                       {"again", cell.again}});
  document["measurements_absent"] =
      record.traffic_absent.empty() ? Json(nullptr) : Json(record.traffic_absent);
  Json& counters = document["counters"] = Json::array();
  for (const auto& [key, value] : counters_of(machine))
    counters.push_back({{"device", key.device}, {"name", key.name}, {"value", value}});
  return document;
}

}  // namespace lockstep::cli::links
