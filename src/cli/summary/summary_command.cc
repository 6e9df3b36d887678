// SPDX-License-Identifier: Apache-2.0
// `summary` gives the figures of a run without judging it. Each process is read once: its own figures are
// added up as it goes by, and the job is gathered from the same reading for what needs all ranks. Losses come
// first. Exit code 3 says that something that was named is left out of the figures.
#include <algorithm>
#include <mutex>

#include "analysis/summary/summary.h"
#include "base/text/json_text.h"
#include "base/text/style.h"
#include "base/text/units.h"
#include "base/text/wording.h"
#include "base/text/wrap.h"
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

constexpr Option kSummaryOptions[] = {
    {'n', "limit", "N", "rows of a table", "20"},
    {0, "json", "", "print one JSON object, with all rows"},
    kMemoryOption,
};

Json durations_json(const analysis::summary::Durations& durations) {
  if (durations.count == 0) return nullptr;
  return {{"count", durations.count},   {"min_ns", durations.min_ns}, {"avg_ns", durations.avg_ns},
          {"p50_ns", durations.p50_ns}, {"p99_ns", durations.p99_ns}, {"max_ns", durations.max_ns}};
}

void add_duration(Columns& out, std::string_view heading, const analysis::summary::Durations& of, double ns) {
  out.add_text(heading, of.count == 0 ? "-" : format_duration(ns));
}

void show_op(const analysis::summary::OpFigures& op, Columns& out) {
  out.name("func", "<operation", op.func);
  out.name("datatype", "~~<type", op.datatype);
  out.name("comm", "<communicator", op.comm);
  out.add_json("comm_id", id_json(op.comm_id));
  out.number("ranks", "~ranks", op.ranks);
  out.add("size_from", "size", analysis::summary::size_range(op.size_from), op.size_from);
  out.add_json("size_to", op.size_to);
  out.count("ops", "ops", op.ops);
  out.bytes("bytes", "~~~bytes", op.bytes);
  out.add_json("enqueue", durations_json(op.enqueue));
  add_duration(out, "~~~enqueue", op.enqueue, op.enqueue.avg_ns);
  out.add_json("gpu", durations_json(op.gpu));
  add_duration(out, "~~GPU min", op.gpu, op.gpu.min_ns);
  add_duration(out, "~~GPU avg", op.gpu, op.gpu.avg_ns);
  add_duration(out, "GPU p50", op.gpu, op.gpu.p50_ns);
  add_duration(out, "~GPU p99", op.gpu, op.gpu.p99_ns);
  add_duration(out, "GPU max", op.gpu, op.gpu.max_ns);
  out.rate("algbw_with_waiting_gbps", "~~~algbw*", op.algbw);
  out.rate("busbw_with_waiting_gbps", "busbw*", op.busbw);
}

std::string op_table(const analysis::summary::SummaryFigures& figures, size_t limit) {
  if (figures.ops.empty()) return "\nOperations: none.\n";
  // Of all rows, whether they are shown or not.
  const bool timed =
      std::any_of(figures.ops.begin(), figures.ops.end(), [](const auto& op) { return op.gpu.count > 0; });
  std::string text =
      "\nOperations (an operation counts once per rank; bandwidth in GB/s, as nccl-tests defines it; *: including the wait for other ranks)\n" +
      rows_text(figures.ops, limit, show_op);
  if (!timed)
    text += "  This trace has no GPU times. To get them: " +
            std::string(wording::gpu_times_setting(figures.is_amd)) + ".\n";
  return text;
}

void show_rank(const analysis::summary::RankFigures& rank, Columns& out) {
  const bool has_steps = rank.steps != 0;
  out.number("rank", "rank", rank.rank);
  out.name("host", "<host", rank.host);
  out.number("pid", "~~pid", rank.pid);
  out.number("device", "~GPU", rank.device);
  out.count("ops", "ops", rank.ops);
  out.bytes("bytes", "~~bytes", rank.bytes);
  out.add("seconds", "~span", format_duration(rank.seconds * 1e9), rank.seconds);
  out.add("gpu_busy", "GPU busy", rank.busy < 0 ? "-" : format_percent(rank.busy),
          rank.busy < 0 ? Json(nullptr) : Json(rank.busy));
  out.add("steps", "marked steps", has_steps ? format_count(rank.steps) : "-",
          has_steps ? Json(rank.steps) : Json(nullptr));
  out.add_json("step", durations_json(rank.step));
  add_duration(out, "step avg", rank.step, rank.step.avg_ns);
  add_duration(out, "step p99", rank.step, rank.step.p99_ns);
}

std::string missing_members(const std::vector<input::CommMember>& members) {
  int32_t ranks = members.front().ranks;
  if (members.front().comm_id == 0 || ranks < 0) return "?";
  // The number of ranks comes from a file, so it is bounded before memory is taken for it.
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

void show_comm_of(const std::vector<input::CommMember>& members, Columns& out) {
  const input::CommMember& first = members.front();
  const Json id = id_json(first.comm_id);
  const std::string missing = missing_members(members);
  out.add("id", "~<communicator", id.is_null() ? "?" : id.get<std::string>(), id);
  out.add("name", "<name", first.name.empty() ? "-" : first.name, first.name);
  out.number("ranks", "ranks", first.ranks);
  out.add("present", "present", std::to_string(members.size()), members.size());
  out.name("missing", "<missing", missing);
}

void show_ring(const analysis::summary::RingFigures& ring, Columns& out) {
  out.name("func", "<operation", ring.func);
  out.name("datatype", "~<type", ring.datatype);
  out.bytes("size_to", "size up to", ring.size_to);
  out.count("ops", "ops", ring.ops);
  out.bytes("bytes", "~~bytes", ring.bytes);
  out.count("timed", "timed", ring.timed);
  out.duration("min_ns", "min", ring.min_ns, ring.timed > 0);
  out.duration("avg_ns", "avg", ring.avg_ns, ring.timed > 0);
  out.duration("max_ns", "max", ring.max_ns, ring.timed > 0);
}

// Behind its heading; nothing where there are no rows.
template <class Rows, class Show>
std::string section(std::string_view heading, const Rows& rows, size_t limit, const Show& show) {
  if (rows.empty() || limit == 0) return {};
  return '\n' + std::string(heading) + '\n' + rows_text(rows, limit, show);
}

Json summary_json(const input::RunOverview& run, const analysis::summary::SummaryFigures& figures) {
  Json document = {{"schema", "lockstep.summary.v1"},
                   {"losses", input::losses_json(run)},
                   {"ops", run.ops},
                   {"processes", run.processes.size()},
                   {"comms", run.comms.size()}};
  document["op_list"] = json_rows(figures.ops, show_op);
  document["rank_list"] = json_rows(figures.ranks, show_rank);
  document["comm_list"] = json_rows(run.comms, show_comm_of);
  document["ring_list"] = json_rows(figures.ring, show_ring);
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
    // gather loads several processes at once.
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

int run_summary(const Arguments& arguments) {
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
    // A run that cannot be gathered still has the figures of each process.
    if (auto job = job::gather::gather(source, {.threads = 0, .progress = progress.callback()})) {
      std::vector<analysis::Finding> findings;  // `diagnose` reports them
      job::match::align(*job);
      job::clock::align(*job, findings);
      together = analysis::summary::across(*job);
    }
  }
  input::RunOverview overview = input->source->overview();
  // Only now: which processes can be read shows while they are read.
  if (overview.processes.empty())
    return fail(overview.losses.empty() ? "no process in it" : overview.losses[0].detail);
  analysis::summary::SummaryFigures figures = summary.figures();
  if (arguments.has("json")) {
    Json document = summary_json(overview, figures);
    add_across_json(together, document);
    return print(json_text(document), exit_of_losses(overview));
  }
  const std::string text = loss_report(overview) + op_table(figures, *limit) +
                           section("Ranks", figures.ranks, *limit, show_rank) +
                           section("Communicators", overview.comms, *limit, show_comm_of) +
                           input::kernels_text(overview) + across_text(together, *limit) +
                           section("Since the processes started (ring retention; times per channel)",
                                   figures.ring, *limit, show_ring);
  return print(within(text, Style::of_stdout().room()), exit_of_losses(overview));
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
        "Then follows what needs all ranks: steps, and how much communication is exposed, or an upper bound if the trace lacks kernels; bandwidth once all ranks had arrived, compared with what the GPUs' links carry, and latency and bandwidth fitted over sizes; how long ranks waited for the last one, and how long data moved; how late each rank was, and how much of that is its own lateness; network transfers by pair of ranks.",
    .operands = {.name = "RUN|TRACE.DB|FILE",
                 .help = "run directories, trace.dbs and process files, or other tools' files of one format",
                 .least = 1,
                 .most = SIZE_MAX},
    .options = kSummaryOptions,
    .run = run_summary,
};

}  // namespace lockstep::cli
