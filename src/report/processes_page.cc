// SPDX-License-Identifier: Apache-2.0
// Lists who was recorded and what is missing of it, so that a reader can judge how far the other pages can be
// trusted. With more than 256 processes it keeps those that matter: named by findings, dead without closing
// their file, or with losses. It says so if any of those had to be left out.
#include <algorithm>

#include "base/text/units.h"
#include "input/losses.h"
#include "input/run_json.h"
#include "input/run_overview.h"
#include "model/event_kind.h"
#include "model/torch/process_group.h"
#include "report/pages.h"
#include "run/liveness.h"

namespace lockstep::report {
namespace {

using model::Job;
using model::JobProcess;

// What a process was in the middle of for the longest time when its record ends.
Json open_text(const ReportContext& context, const JobProcess& process) {
  const Job& job = context.job();
  const model::OpenCall* oldest = nullptr;
  for (const model::OpenCall& call : process.open_calls) {
    // Calls nest: the oldest open one is what the program called.
    if (oldest == nullptr || call.start_ns < oldest->start_ns) oldest = &call;
  }
  if (oldest == nullptr) return nullptr;
  std::string text(oldest->func != 0 ? job.text(oldest->func) : model::event_name(oldest->kind));
  if (oldest->member < job.members.size()) text += " on " + job.comm_name(job.members[oldest->member].comm);
  // The heartbeat goes on while the process is stuck, so the call lasts until then at least.
  const int64_t newest = std::max(process.row.last_ns, process.row.heartbeat_ns);
  if (oldest->start_ns > 0 && newest > oldest->start_ns)
    text += ", for " + format_duration(static_cast<double>(newest - oldest->start_ns));
  return shown(text);
}

Json process_json(const ReportContext& context, uint32_t i) {
  const Job& job = context.job();
  const JobProcess& process = job.processes[i];
  const model::Process& row = process.row;
  const model::Who who = job.who(i);
  const auto number = [](int64_t value) { return known(value); };
  return {{"who", i},
          {"rank", number(row.rank)},
          {"host", process.host},
          {"pid", row.pid},
          {"gpu_model", shown_or_null(job.text(row.gpu_model))},
          {"pci", shown_or_null(who.pci)},
          {"device", number(who.device)},
          {"nccl", row.nccl_version == 0 ? Json(nullptr) : Json(model::nccl_version_text(row.nccl_version))},
          {"captured", job.files.empty()},
          {"mode", input::recorded_mode(row.mode, std::string(job.text(row.modes)))},
          {"state", row.closed != 0 ? "closed" : "not closed"},
          {"liveness", run::liveness_text(process.liveness)},
          {"first_ns", context.since_begin(i, row.first_ns)},
          {"last_ns", context.since_begin(i, row.last_ns)},
          {"heartbeat_ns", context.since_begin(i, row.heartbeat_ns)},
          {"ops", process.ops.size()},
          {"lost", process.lost},
          {"comms", process.members.size()},
          {"open", open_text(context, process)},
          {"named", context.is_named(i)},
          {"argv", shown_or_null(job.text(row.argv))}};
}

Json losses_json(const ReportContext& context, Json& notes) {
  Json list = Json::array();
  size_t omitted = 0;
  const auto add = [&](const input::LossLine& loss, Json who, Json source) {
    if (list.size() == kLossesMost) {
      ++omitted;
      return;
    }
    list.push_back({{"who", std::move(who)},
                    {"stage", shown(loss.stage)},
                    {"kind", shown(loss.kind)},
                    {"count", loss.count},
                    {"detail", shown(loss.detail)},
                    {"source", std::move(source)}});
  };
  for (const input::LossLine& loss : context.run().troubles) add(loss, nullptr, nullptr);
  for (const verdict::Evidence& evidence : context.run().evidence) {
    for (const input::LossLine& loss : verdict::losses_of(evidence).losses)
      // Positions of processes mean something in the evidence that the pages are drawn from, and nowhere
      // else.
      add(loss, &evidence == context.main() ? known(loss.process) : Json(nullptr), shown(evidence.source));
  }
  if (omitted > 0) notes.push_back(plural(omitted, "loss line") + " more: lockstep info lists all.");
  return list;
}

}  // namespace

Json processes_page(const ReportContext& context) {
  Json notes = Json::array();
  Json losses = losses_json(context, notes);
  if (context.main() == nullptr) {
    notes.push_back("No process: no input holds operations.");
    return {
        {"rows", Json::array()}, {"omitted", 0}, {"losses", std::move(losses)}, {"notes", std::move(notes)}};
  }
  const Job& job = context.job();
  std::vector<uint32_t> order(job.processes.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  // Sorted first, so that among equally important ones the lowest ranks stay.
  sort_by_rank(job, order);
  const size_t omitted = order.size() > kRowsMost ? order.size() - kRowsMost : 0;
  bool some_matter = false;  // of those left out
  if (omitted > 0) {
    const auto importance = [&](uint32_t i) {
      const JobProcess& process = job.processes[i];
      return std::tuple(context.is_named(i),
                        // Gone without closing its file: it crashed or was killed.
                        process.liveness == model::Liveness::kGone && process.row.closed == 0, process.lost);
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](uint32_t a, uint32_t b) { return importance(a) > importance(b); });
    some_matter = importance(order[kRowsMost]) > std::tuple(false, false, uint64_t{0});
    order.resize(kRowsMost);
    sort_by_rank(job, order);
  }
  Json rows = Json::array();
  for (uint32_t i : order) rows.push_back(process_json(context, i));
  if (omitted > 0)
    notes.push_back(plural(omitted, "process") +
                    (some_matter ? ", the least important, left out."
                                 : " that no finding names and that lost nothing left out."));
  return {{"rows", std::move(rows)},
          {"omitted", omitted},
          {"losses", std::move(losses)},
          {"notes", std::move(notes)}};
}

}  // namespace lockstep::report
