// SPDX-License-Identifier: Apache-2.0
// Makes the whole document, page by page, from one diagnosed run. The diagnosis in it is word for word that
// of `lockstep diagnose --json`, so that the two never differ. Nothing is read again: what a page needs of
// single operations is chosen first and kept during the one pass that WaitTable makes.
#include "report/report_data.h"

#include <algorithm>
#include <filesystem>

#include "analysis/operation_name.h"
#include "report/diagnosis_json.h"
#include "report/pages.h"
#include "verdict/coverage.h"
#include "verdict/link_checks.h"
#include "verdict/link_evidence.h"
#include "verdict/next_steps.h"

namespace lockstep::report {
namespace {

using model::Job;

constexpr const char* kPages[] = {"lateness", "operations", "bandwidth", "topology", "network", "steps"};
constexpr const char* kNoJob =
    "No input holds operations: capture with `lockstep trace`, or give Flight Recorder "
    "dumps, traces of PyTorch's profiler or Inspector's logs.";

// The last part of the path, as people call the run.
std::string title_of(const std::vector<std::string>& paths) {
  if (paths.empty()) return "run";
  std::filesystem::path path = std::filesystem::path(paths[0]).lexically_normal();
  // A path that ends in a slash has an empty last part.
  if (path.filename().empty()) path = path.parent_path();
  std::string title = path.filename().string();
  if (title.empty() || title == ".") {
    std::error_code error;
    title = std::filesystem::absolute(paths[0], error).lexically_normal().parent_path().filename().string();
  }
  return shown(title.empty() ? paths[0] : title);
}

Json evidence_json(const ReportContext& context) {
  Json list = Json::array();
  for (const verdict::Evidence& evidence : context.run().evidence) {
    const bool has_job = evidence.job.has_value();
    const auto coverage = has_job ? std::optional(verdict::cover(evidence)) : std::nullopt;
    const auto time = [&](int64_t ns) {
      // Evidence spans several hosts: without one clock its first and last time do not compare.
      return ns == 0 || evidence.span.zone_ns != 0 || !context.has_one_clock() ? Json(nullptr)
                                                                               : context.since_begin(ns);
    };
    list.push_back({{"source", shown(evidence.source)},
                    {"sentence", shown(coverage ? seen_sentence(*coverage) : evidence.content)},
                    {"processes", coverage ? Json(coverage->processes) : Json(nullptr)},
                    {"ops", coverage ? Json(coverage->ops) : Json(nullptr)},
                    {"first_ns", time(evidence.span.first_ns)},
                    {"last_ns", time(evidence.span.last_ns)}});
  }
  return list;
}

Json run_json(const ReportContext& context, const DataRequest& request) {
  Json paths = Json::array(), seen = Json::array(), not_seen = Json::array();
  for (const std::string& path : request.paths) paths.push_back(shown(path));
  std::string alive;
  Json main = nullptr;
  const bool several = context.run().evidence.size() > 1;
  for (size_t i = 0; i < context.run().evidence.size(); ++i) {
    const verdict::Evidence& evidence = context.run().evidence[i];
    if (&evidence == context.main()) main = i;
    const std::string of = several ? evidence.source + ": " : "";
    if (!evidence.job) {
      seen.push_back(shown(of + evidence.content + "."));
      continue;
    }
    const verdict::Coverage coverage = verdict::cover(evidence);
    seen.push_back(shown(of + seen_sentence(coverage) + "."));
    for (const std::string& line : verdict::not_seen(coverage)) not_seen.push_back(shown(of + line));
    // Of the most trusted evidence that can tell.
    if (alive.empty()) alive = alive_sentence(coverage);
  }
  if (const auto& samples = context.run().link_samples; !samples.empty() && !main.is_null())
    seen.push_back(
        shown(std::string(verdict::kLinkCounters) + ": " + verdict::link_samples_sentence(samples) + "."));
  if (const auto& checks = context.run().link_checks; !checks.empty() && !main.is_null())
    seen.push_back(
        shown(std::string(verdict::kLinkChecks) + ": " + verdict::link_checks_sentence(checks) + "."));
  for (const std::string& line : verdict::absent_from(context.run())) not_seen.push_back(shown(line));
  const auto begin = context.begin_ns();
  return {{"title", title_of(request.paths)},
          {"paths", std::move(paths)},
          {"begin", begin ? Json(iso_time(*begin)) : Json(nullptr)},
          // As text: ns since the epoch are above 2^53, which JavaScript cannot hold exactly.
          {"begin_ns", begin ? Json(std::to_string(*begin)) : Json(nullptr)},
          {"length_ns", begin && context.has_one_clock() ? Json(context.length_ns()) : Json(nullptr)},
          {"least_length_ns", begin ? Json(context.length_ns()) : Json(nullptr)},
          {"made", iso_time(request.made_ns)},
          {"evidence", evidence_json(context)},
          {"main", std::move(main)},
          {"seen", std::move(seen)},
          {"not_seen", std::move(not_seen)},
          {"alive", shown(alive)}};
}

Json who_json(const ReportContext& context) {
  Json out = Json::object();
  for (const char* name : {"rank", "host", "pid", "device", "name", "text"}) out[name] = Json::array();
  if (context.main() == nullptr) return out;
  for (uint32_t i = 0; i < context.job().processes.size(); ++i) {
    const model::JobProcess& process = context.job().processes[i];
    out["rank"].push_back(known(process.row.rank));
    out["host"].push_back(process.host);
    out["pid"].push_back(process.row.pid);
    const model::Who who = context.job().who(i);
    out["device"].push_back(known(who.device));
    out["name"].push_back(shown(who.name()));
    out["text"].push_back(shown(who.text()));
  }
  return out;
}

Json hosts_json(const ReportContext& context) {
  Json list = Json::array();
  if (context.main() == nullptr) return list;
  const Job& job = context.job();
  std::vector<std::vector<uint32_t>> processes(job.hosts.size());
  std::vector<int64_t> newest(job.hosts.size());
  for (uint32_t i = 0; i < job.processes.size(); ++i) {
    processes[job.processes[i].host].push_back(i);
    // An offset changes over a run; the page shows the one at the host's last record.
    newest[job.processes[i].host] = std::max(newest[job.processes[i].host], job.processes[i].row.last_ns);
  }
  for (size_t i = 0; i < job.hosts.size(); ++i) {
    const model::JobHost& host = job.hosts[i];
    const auto offset = host.clock.offset(newest[i]);
    list.push_back(
        {{"name", shown(job.text(host.name))},
         {"boot_id", shown_or_null(job.text(host.boot_id))},
         {"who", processes[i]},
         {"reference", i == 0},
         {"aligned", host.clock.known()},
         {"offset_ns", offset ? whole_ns(static_cast<double>(offset->ns)) : Json(nullptr)},
         {"half_width_ns", offset ? whole_ns(static_cast<double>(offset->half_width_ns)) : Json(nullptr)},
         {"contradictions", host.contradictions}});
  }
  return list;
}

uint64_t ops_of(const Job& job, const model::JobComm& comm) {
  uint64_t ops = 0;
  for (const auto* rows : {&comm.members, &comm.unranked}) {
    for (uint32_t row : *rows) {
      if (row == model::kNoRow) continue;
      ops += job.members[row].ops;
      for (const model::Lane& lane : job.members[row].lanes) ops += lane.ops;
    }
  }
  return ops;
}

Json comms_json(const ReportContext& context, const WaitTable& waits) {
  const Job& job = context.job();
  Json list = Json::array();
  for (uint32_t i = 0; i < job.comms.size(); ++i) {
    const model::JobComm& comm = job.comms[i];
    const auto present = std::count_if(comm.members.begin(), comm.members.end(),
                                       [](uint32_t row) { return row != model::kNoRow; });
    const auto& matched = context.main()->matches[i];
    Json unmatched = Json::object();
    for (size_t reason = 0; reason < job::match::kReasons; ++reason) {
      if (matched.unmatched[reason] > 0)
        unmatched[std::string(reason_text(static_cast<job::match::Reason>(reason)))] =
            matched.unmatched[reason];
    }
    const analysis::straggler::Waits& of = waits.lateness().comms[i];
    const auto compared = [&](bool is_known, double ns) { return is_known ? whole_ns(ns) : Json(nullptr); };
    list.push_back({{"name", shown(job.comm_name(i))},
                    {"text", shown(analysis::comm_text(job, i))},
                    {"show", shown_or_null(verdict::show_command(*context.main(), i).value_or(""))},
                    {"id", id_json(comm.comm_id)},
                    {"ranks", known(comm.ranks)},
                    {"nodes", known(comm.nodes)},
                    {"present", static_cast<size_t>(present) + comm.unranked.size()},
                    {"matched", matched.matched},
                    {"unmatched", std::move(unmatched)},
                    {"ops", ops_of(job, comm)},
                    {"declared", comm.declared},
                    {"waiting_ns", compared(of.ops > 0, of.waiting_ns)},
                    {"moving_ns", compared(of.timed > 0, of.moving_ns)},
                    {"blamed_ns", compared(of.ops > 0, of.blamed_ns)}});
  }
  return list;
}

void add_pages(const ReportContext& context, Json& document) {
  std::vector<Row> rows;
  OperationPlaces places;
  if (context.main() == nullptr) {
    document["comms"] = Json::array();
    document["verdict"] = verdict_page(context, rows, places);
    for (const char* page : kPages) document[page] = missing(kNoJob);
    document["processes"] = processes_page(context);
    return;
  }
  // The order matters. WaitTable keeps single operations only if it knows them before its pass, and other
  // pages link to places that operations_page() fills in.
  const std::set<OperationKey> wanted = wanted_operations(context);
  const WaitTable waits(context, wanted, worst_operations_wanted(wanted));
  if (waits.lateness().compared > 0) rows = lateness_rows(context, waits);
  Json operations = operations_page(context, waits, places);
  document["comms"] = comms_json(context, waits);
  document["verdict"] = verdict_page(context, rows, places);
  document["lateness"] = lateness_page(context, waits, rows, places);
  document["operations"] = std::move(operations);
  document["bandwidth"] = bandwidth_page(context, places);
  document["topology"] = topology_page(context);
  document["network"] = network_page(context);
  document["steps"] = steps_page(context, waits);
  document["processes"] = processes_page(context);
}

Json begin_document(bool live, const DataRequest& request) {
  return {{"schema", "lockstep.report.v" + std::to_string(kDataVersion)},
          {"version", kDataVersion},
          {"tool", {{"name", "lockstep"}, {"version", LOCKSTEP_VERSION}}},
          {"live", live},
          {"refresh_ns", live ? Json(*request.refresh_ns) : Json(nullptr)}};
}

}  // namespace

bool may_go_on(const verdict::DiagnosedRun& run, int64_t now_ns) {
  // The keeper refreshes the heartbeat about once a second: after a minute without one it is gone or frozen.
  constexpr int64_t kSilenceNs = 60'000'000'000;
  const auto goes_on = [now_ns](const model::JobProcess& process) {
    if (process.row.closed != 0) return false;
    if (process.liveness == model::Liveness::kUnknown)
      return difference(now_ns, process.row.heartbeat_ns) < kSilenceNs;
    return process.liveness != model::Liveness::kGone;
  };
  return std::any_of(run.evidence.begin(), run.evidence.end(), [&](const verdict::Evidence& evidence) {
    return evidence.job &&
           std::any_of(evidence.job->processes.begin(), evidence.job->processes.end(), goes_on);
  });
}

Json report_data(const verdict::DiagnosedRun& run, const DataRequest& request) {
  const ReportContext context(run);
  Json document = begin_document(request.refresh_ns && may_go_on(run, request.made_ns), request);
  document["run"] = run_json(context, request);
  document["diagnosis"] = diagnosis_json(run);
  document["who"] = who_json(context);
  document["hosts"] = hosts_json(context);
  add_pages(context, document);
  return document;
}

Json waiting_data(const std::string& why, const DataRequest& request) {
  const verdict::DiagnosedRun nothing;
  Json document = begin_document(request.refresh_ns.has_value(), request);
  const ReportContext context(nothing);
  document["run"] = run_json(context, request);
  document["diagnosis"] = nullptr;
  document["who"] = who_json(context);
  document["hosts"] = hosts_json(context);
  add_pages(context, document);
  // add_pages() has said that nothing holds operations, which is not the reason here.
  for (const char* page : kPages) document[page] = missing(shown(why));
  document["verdict"]["state"] = "cannot tell";
  document["verdict"]["headline"] = shown(why);
  return document;
}

}  // namespace lockstep::report
