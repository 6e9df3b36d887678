// SPDX-License-Identifier: Apache-2.0
#include <mutex>

#include "analysis/summary/summary.h"
#include "base/text/json_text.h"
#include "base/text/units.h"
#include "base/text/wording.h"
#include "cli/command.h"
#include "cli/kit/console.h"
#include "cli/kit/loss_report.h"
#include "cli/kit/memory_limit.h"
#include "cli/kit/progress.h"
#include "cli/kit/table.h"
#include "cli/summary/across_report.h"
#include "input/input.h"
#include "input/run_json.h"
#include "job/clock/clock.h"
#include "job/gather/gather.h"
#include "job/match/match.h"

namespace lockstep::cli {
namespace {

constexpr Option kOptions[] = {
    {'n', "limit", "N", "rows of a table", "20"},
    {0, "json", "", "print one JSON object, with all rows"},
    kMemoryOption,
};

std::string or_dash(const analysis::summary::Durations& durations, double value) {
  return durations.count == 0 ? "-" : format_duration(value);
}

std::string op_table(const analysis::summary::SummaryFigures& figures, size_t limit) {
  if (figures.ops.empty()) return "\nOperations: none.\n";
  bool timed = false;
  Table table({"<operation", "<type", "<communicator", "ranks", "size", "ops", "bytes", "enqueue", "GPU min",
               "avg", "p50", "p99", "max", "algbw*", "busbw*"});
  for (size_t i = 0; i < figures.ops.size() && i < limit; ++i) {
    const analysis::summary::OpFigures& op = figures.ops[i];
    timed = timed || op.gpu.count > 0;
    table.add({op.func, op.datatype, op.comm, op.ranks < 0 ? "-" : std::to_string(op.ranks),
               analysis::summary::size_range(op.size_from), format_count(op.ops), format_bytes(op.bytes),
               or_dash(op.enqueue, op.enqueue.avg_ns), or_dash(op.gpu, op.gpu.min_ns),
               or_dash(op.gpu, op.gpu.avg_ns), or_dash(op.gpu, op.gpu.p50_ns), or_dash(op.gpu, op.gpu.p99_ns),
               or_dash(op.gpu, op.gpu.max_ns), format_rate(op.algbw), format_rate(op.busbw)});
  }
  std::string text =
      "\nOperations (an operation counts once per rank; bandwidth in GB/s, as nccl-tests defines it; *: including the wait for other ranks)\n" +
      table.text() + more_rows(figures.ops.size(), limit);
  if (!timed)
    text += "  This trace has no GPU times. To get them: " + std::string(wording::kGpuTimesSetting) + ".\n";
  return text;
}

std::string rank_table(const analysis::summary::SummaryFigures& figures, size_t limit) {
  Table table(
      {"rank", "<host", "pid", "GPU", "ops", "bytes", "span", "GPU busy", "steps", "step avg", "p99"});
  for (size_t i = 0; i < figures.ranks.size() && i < limit; ++i) {
    const analysis::summary::RankFigures& rank = figures.ranks[i];
    table.add({rank.rank < 0 ? "-" : std::to_string(rank.rank), rank.host,
               rank.pid < 0 ? "-" : std::to_string(rank.pid),
               rank.device < 0 ? "-" : std::to_string(rank.device), format_count(rank.ops),
               format_bytes(rank.bytes), format_duration(rank.seconds * 1e9), format_percent(rank.busy),
               rank.steps == 0 ? "-" : format_count(rank.steps), or_dash(rank.step, rank.step.avg_ns),
               or_dash(rank.step, rank.step.p99_ns)});
  }
  return table.empty() ? "" : "\nRanks\n" + table.text() + more_rows(figures.ranks.size(), limit);
}

std::string missing_members(const std::vector<input::CommMember>& members) {
  int32_t ranks = members.front().ranks;
  if (members.front().comm_id == 0 || ranks < 0) return "?";
  std::vector<bool> present(static_cast<size_t>(std::min(ranks, 1 << 20)));
  for (const input::CommMember& member : members) {
    if (member.rank >= 0 && static_cast<size_t>(member.rank) < present.size())
      present[static_cast<size_t>(member.rank)] = true;
  }
  std::string text;
  size_t missing = 0;
  for (size_t rank = 0; rank < present.size(); ++rank) {
    if (present[rank]) continue;
    if (++missing <= 8) text += (text.empty() ? "" : " ") + std::to_string(rank);
  }
  if (missing > 8) text += " ... (" + std::to_string(missing) + ")";
  return text.empty() ? "none" : text;
}

std::string comm_table(const input::RunOverview& run, size_t limit) {
  Table table({"<communicator", "<name", "ranks", "present", "<missing"});
  for (size_t i = 0; i < run.comms.size() && i < limit; ++i) {
    const auto& members = run.comms[i];
    Json id = id_json(members.front().comm_id);
    table.add({id.is_null() ? "?" : id.get<std::string>(),
               members.front().name.empty() ? "-" : members.front().name,
               members.front().ranks < 0 ? "-" : std::to_string(members.front().ranks),
               std::to_string(members.size()), missing_members(members)});
  }
  return table.empty() ? "" : "\nCommunicators\n" + table.text() + more_rows(run.comms.size(), limit);
}

std::string ring_table(const analysis::summary::SummaryFigures& figures, size_t limit) {
  Table table({"<operation", "<type", "size up to", "ops", "bytes", "timed", "min", "avg", "max"});
  for (size_t i = 0; i < figures.ring.size() && i < limit; ++i) {
    const analysis::summary::RingFigures& ring = figures.ring[i];
    table.add({ring.func, ring.datatype, format_bytes(ring.size_to), format_count(ring.ops),
               format_bytes(ring.bytes), format_count(ring.timed), format_duration(ring.min_ns),
               format_duration(ring.avg_ns), format_duration(ring.max_ns)});
  }
  if (table.empty()) return {};
  return "\nSince the processes started (ring retention; times per channel)\n" + table.text() +
         more_rows(figures.ring.size(), limit);
}

Json durations_json(const analysis::summary::Durations& durations) {
  if (durations.count == 0) return nullptr;
  return {{"count", durations.count},   {"min_ns", durations.min_ns}, {"avg_ns", durations.avg_ns},
          {"p50_ns", durations.p50_ns}, {"p99_ns", durations.p99_ns}, {"max_ns", durations.max_ns}};
}

Json optional_json(double value, bool is_known) { return is_known ? Json(value) : Json(nullptr); }

Json op_json(const analysis::summary::OpFigures& op) {
  return {{"func", op.func},
          {"datatype", op.datatype},
          {"comm", op.comm},
          {"comm_id", id_json(op.comm_id)},
          {"ranks", known(op.ranks)},
          {"size_from", op.size_from},
          {"size_to", op.size_to},
          {"ops", op.ops},
          {"bytes", op.bytes},
          {"enqueue", durations_json(op.enqueue)},
          {"gpu", durations_json(op.gpu)},
          {"algbw_with_waiting_gbps", optional_json(op.algbw, op.algbw > 0)},
          {"busbw_with_waiting_gbps", optional_json(op.busbw, op.busbw > 0)}};
}

Json rank_json(const analysis::summary::RankFigures& rank) {
  return {{"rank", known(rank.rank)},
          {"host", rank.host},
          {"pid", known(rank.pid)},
          {"device", known(rank.device)},
          {"ops", rank.ops},
          {"bytes", rank.bytes},
          {"seconds", rank.seconds},
          {"gpu_busy", optional_json(rank.busy, rank.busy >= 0)},
          {"steps", rank.steps == 0 ? Json(nullptr) : Json(rank.steps)},
          {"step", durations_json(rank.step)}};
}

Json ring_json(const analysis::summary::RingFigures& ring) {
  return {{"func", ring.func},
          {"datatype", ring.datatype},
          {"size_to", ring.size_to},
          {"ops", ring.ops},
          {"bytes", ring.bytes},
          {"timed", ring.timed},
          {"min_ns", optional_json(ring.min_ns, ring.timed > 0)},
          {"avg_ns", optional_json(ring.avg_ns, ring.timed > 0)},
          {"max_ns", optional_json(ring.max_ns, ring.timed > 0)}};
}

Json summary_json(const input::RunOverview& run, const analysis::summary::SummaryFigures& figures) {
  Json document = {{"schema", "lockstep.summary.v1"},
                   {"losses", input::losses_json(run)},
                   {"ops", run.ops},
                   {"processes", run.processes.size()},
                   {"comms", run.comms.size()}};
  for (const char* list : {"op_list", "rank_list", "comm_list", "ring_list"}) document[list] = Json::array();
  for (const analysis::summary::OpFigures& op : figures.ops) document["op_list"].push_back(op_json(op));
  for (const analysis::summary::RankFigures& rank : figures.ranks)
    document["rank_list"].push_back(rank_json(rank));
  for (const auto& members : run.comms) {
    document["comm_list"].push_back({{"id", id_json(members.front().comm_id)},
                                     {"name", members.front().name},
                                     {"ranks", known(members.front().ranks)},
                                     {"present", members.size()},
                                     {"missing", missing_members(members)}});
  }
  for (const analysis::summary::RingFigures& ring : figures.ring)
    document["ring_list"].push_back(ring_json(ring));
  return document;
}

// Lets a Summary see every process that goes by.
class SummedSource : public model::TraceSource {
 public:
  SummedSource(input::ObservedSource& source, analysis::summary::Summary& summary)
      : source_(source), summary_(summary) {}
  size_t processes() const override { return source_.processes(); }
  Result<void> load(size_t i, model::Trace& trace) override {
    LOCKSTEP_TRY(source_.load(i, trace));
    std::lock_guard lock(mutex_);
    summary_.add(trace);
    return {};
  }
  void run_losses(model::Trace& trace) override { source_.run_losses(trace); }
  std::string name() const override { return source_.name(); }

 private:
  input::ObservedSource& source_;
  analysis::summary::Summary& summary_;
  std::mutex mutex_;
};

int run(const Arguments& arguments) {
  auto limit = arguments.number("limit");
  if (!limit) return fail(limit.error());
  if (auto limited = limit_memory(arguments); !limited) return fail(limited.error());
  auto input = input::open_input(arguments.operands());
  if (!input) return fail(input.error());
  analysis::summary::Summary summary;
  analysis::summary::AcrossFigures together;
  {
    Progress progress("reading");
    SummedSource source(*input->source, summary);
    if (auto job = job::gather::gather(source, {.threads = 0, .progress = progress.callback()})) {
      std::vector<analysis::Finding> findings;  // `diagnose` tells them
      job::match::align(*job);
      job::clock::align(*job, findings);
      together = analysis::summary::across(*job);
    }
  }
  input::RunOverview overview = input->source->overview();
  if (overview.processes.empty())
    return fail(overview.losses.empty() ? "no process in it" : overview.losses[0].detail);
  analysis::summary::SummaryFigures figures = summary.figures();
  if (arguments.has("json")) {
    Json document = summary_json(overview, figures);
    add_across_json(together, document);
    return print(json_text(document), exit_of_losses(overview));
  }
  return print(loss_report(overview) + op_table(figures, *limit) + rank_table(figures, *limit) +
                   comm_table(overview, *limit) + input::kernels_text(overview) +
                   across_text(together, *limit) + ring_table(figures, *limit),
               exit_of_losses(overview));
}

}  // namespace

const Command summary_command = {
    .name = "summary",
    .summary = "sum up a run: operations, bandwidth, time per rank and communicator",
    .description =
        "Shows what a run did: losses first; then operations by function, type, size and communicator with "
        "their times and bandwidths; what each rank did and how busy its GPU was with communication; and "
        "which "
        "members of each communicator are in the trace. A GPU time there is that of one rank, from the start "
        "of its "
        "kernel to its end, so it includes waiting for the others.\n\n"
        "Then follows what needs all ranks: steps, and how much communication is exposed, or an upper bound if the trace lacks kernels; bandwidth once all ranks had arrived, compared with what the GPUs' links carry, and start-up time and bandwidth fitted over sizes; how long ranks waited for the last one, and how long data moved; how late each rank was, and how much of that is its own lateness; network transfers by pair of ranks.",
    .operands = {.name = "RUN|TRACE.DB|FILE",
                 .help = "run directories, trace.dbs and process files, or other tools' files of one format",
                 .least = 1,
                 .most = SIZE_MAX},
    .options = kOptions,
    .run = run,
};

}  // namespace lockstep::cli
