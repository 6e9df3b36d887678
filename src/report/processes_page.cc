// SPDX-License-Identifier: Apache-2.0
// Lists who was recorded and what is missing of it, so that a reader can judge how far the other pages can be
// trusted. Nobody is left out: a process costs some 70 bytes, as columns say each text once.
#include <algorithm>
#include <map>

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

// What a process was in the middle of for the longest time when its record ends; null if nothing.
const model::OpenCall* oldest_open(const JobProcess& process) {
  // Calls nest: the oldest open one is what the program called.
  const auto oldest = std::min_element(process.open_calls.begin(), process.open_calls.end(),
                                       [](const auto& a, const auto& b) { return a.start_ns < b.start_ns; });
  return oldest == process.open_calls.end() ? nullptr : &*oldest;
}

std::string open_text(const Job& job, const model::OpenCall& call) {
  std::string text(call.func != 0 ? job.text(call.func) : model::event_name(call.kind));
  if (call.member < job.members.size()) text += " on " + job.comm_name(job.members[call.member].comm);
  return text;
}

Json open_ns(const JobProcess& process) {
  const model::OpenCall* open = oldest_open(process);
  // The heartbeat goes on while the process is stuck, so the call lasts until then at least.
  const int64_t newest = std::max(process.row.last_ns, process.row.heartbeat_ns);
  if (open == nullptr || open->start_ns <= 0 || newest <= open->start_ns) return nullptr;
  return whole_ns(static_cast<double>(newest - open->start_ns));
}

// Texts that many processes share, each once.
class Texts {
 public:
  // Its place; null of an empty one.
  Json place(std::string_view text) {
    if (text.empty()) return nullptr;
    const auto [at, is_new] = places_.try_emplace(shown(text), places_.size());
    if (is_new) list_.push_back(at->first);
    return at->second;
  }
  Json list() && { return std::move(list_); }

 private:
  std::map<std::string, size_t> places_;
  Json list_ = Json::array();
};

// A value of each process, by column.
Json process_columns(const ReportContext& context, Texts& texts) {
  const Job& job = context.job();
  const auto column = [&](auto value) {
    Json list = Json::array();
    for (uint32_t i = 0; i < job.processes.size(); ++i) list.push_back(value(i, job.processes[i]));
    return list;
  };
  const auto of_row = [&](auto value) {
    return column([&](uint32_t, const JobProcess& process) { return Json(value(process.row)); });
  };
  const auto time = [&](int64_t model::Process::*ns) {
    return column(
        [&](uint32_t i, const JobProcess& process) { return context.since_begin(i, process.row.*ns); });
  };
  using Row = model::Process;
  return {
      {"gpu_model", of_row([&](const Row& row) { return texts.place(job.text(row.gpu_model)); })},
      {"pci", column([&](uint32_t i, const JobProcess&) { return texts.place(job.who(i).pci); })},
      {"nccl", of_row([&](const Row& row) {
         return texts.place(row.nccl_version == 0 ? "" : model::nccl_version_text(row.nccl_version));
       })},
      {"mode", of_row([&](const Row& row) {
         return texts.place(input::recorded_mode(row.mode, std::string(job.text(row.modes))));
       })},
      {"argv", of_row([&](const Row& row) { return texts.place(job.text(row.argv)); })},
      {"liveness", column([&](uint32_t, const JobProcess& process) {
         return texts.place(run::liveness_text(process.liveness));
       })},
      {"closed", of_row([](const Row& row) { return row.closed != 0 ? 1 : 0; })},
      {"first_ns", time(&Row::first_ns)},
      {"last_ns", time(&Row::last_ns)},
      {"heartbeat_ns", time(&Row::heartbeat_ns)},
      {"open", column([&](uint32_t, const JobProcess& process) {
         const model::OpenCall* open = oldest_open(process);
         return open != nullptr ? texts.place(open_text(job, *open)) : Json(nullptr);
       })},
      {"open_ns", column([](uint32_t, const JobProcess& process) { return open_ns(process); })},
      {"ops", column([](uint32_t, const JobProcess& process) { return Json(process.ops.size()); })},
      {"lost", column([](uint32_t, const JobProcess& process) { return Json(process.lost); })},
      {"comms", column([](uint32_t, const JobProcess& process) { return Json(process.members.size()); })},
      {"named", column([&](uint32_t i, const JobProcess&) { return Json(context.is_named(i) ? 1 : 0); })}};
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
  Texts texts;
  const bool has_job = context.main() != nullptr;
  Json list = has_job ? process_columns(context, texts) : Json(nullptr);
  if (!has_job) notes.push_back("No process: no input holds operations.");
  return {{"captured", has_job && context.job().files.empty()},
          {"list", std::move(list)},
          {"texts", std::move(texts).list()},
          {"losses", std::move(losses)},
          {"notes", std::move(notes)}};
}

}  // namespace lockstep::report
