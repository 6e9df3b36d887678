// SPDX-License-Identifier: Apache-2.0
// Figures that need all ranks, as tables and JSON from one list of columns. Bandwidth counts from the last
// arrival, so a late rank does not look like a slow link. Below a table stands what its figures lack, for
// instance operations without GPU times.
#include <map>

#include "base/text/units.h"
#include "base/text/wording.h"
#include "cli/summary/across_report.h"

namespace lockstep::cli {
namespace {

Json above_zero(double value) { return value > 0 ? Json(value) : Json(nullptr); }

// Several kinds of link may be in one run; each is named with its own ceiling.
std::string ceiling_line(const analysis::summary::AcrossFigures& figures) {
  std::map<std::string, double> links;
  for (const analysis::summary::RateFigures& row : figures.rates) {
    if (row.ceiling > 0) links.emplace(row.link, row.ceiling);
  }
  if (links.empty())
    return "  of ceiling: unknown: no communicator lies within one host of GPUs with known links\n";
  std::string text;
  for (const auto& [link, gbps] : links)
    text += (text.empty() ? "" : ", ") + link + " " + format_rate(gbps) + " GB/s per GPU and direction";
  return "  of ceiling: busbw as a share of the nominal bandwidth of a GPU's links: " + text +
         "; NVLS reduces in the switch and may exceed it\n";
}

void show_rate(const analysis::summary::RateFigures& row, Columns& out) {
  const bool known = row.ops > 0, has_ceiling = row.ceiling > 0 && row.busbw > 0;
  out.name("func", "<operation", row.func);
  out.name("comm", "<communicator", row.comm);
  out.add_json("comm_id", id_json(row.comm_id));
  out.add("ranks", "~~ranks", std::to_string(row.ranks), row.ranks);
  out.add("hosts", "~~~hosts", std::to_string(row.hosts), row.hosts);
  out.add("size_from", "size", analysis::summary::size_range(row.size_from), row.size_from);
  out.add_json("size_to", row.size_to);
  out.add("algo", "~<algorithm", row.algo + (row.proto.empty() ? "" : " " + row.proto), row.algo);
  out.add_json("proto", row.proto);
  out.count("ops", "ops", row.ops);
  out.add_json("uncertain_ops", row.uncertain);
  out.rate("algbw_gbps", "~~~algbw", row.algbw);
  out.rate("busbw_gbps", "busbw", row.busbw);
  out.add("busbw_low_gbps", "~~middle half",
          known ? format_rate(row.busbw_low) + " - " + format_rate(row.busbw_high) : "-",
          above_zero(row.busbw_low));
  out.add_json("busbw_high_gbps", above_zero(row.busbw_high));
  out.add("of_best", "of best", known ? format_percent(row.of_best) : "-", above_zero(row.of_best));
  out.add_json("ceiling_gbps", above_zero(row.ceiling));
  out.add_json("ceiling_link", row.link.empty() ? Json(nullptr) : Json(row.link));
  out.add("of_ceiling", "of ceiling",
          known && row.ceiling > 0 ? format_percent(row.busbw / row.ceiling) : "-",
          has_ceiling ? Json(row.busbw / row.ceiling) : Json(nullptr));
  out.add_text("~~uncertain", format_count(row.uncertain));
  out.add_json("relative_error", row.error);
}

std::string rate_table(const analysis::summary::AcrossFigures& figures, size_t limit) {
  // A run of one rank matches nothing, and gets no heading without rows.
  if (figures.matched == 0 && figures.rates.empty()) return "";
  std::string text =
      "\nBandwidth of matched operations (GB/s; from the last arrival to the last end, so without waiting for late ranks)\n";
  if (figures.rates.empty())
    return text + "  none: no operation has GPU times on all of its ranks. To get them: " +
           std::string(wording::gpu_times_setting(figures.is_amd)) + ".\n";
  text += rows_text(figures.rates, limit, show_rate);
  text += "  of best: busbw as a share of the run's best for this operation\n" + ceiling_line(figures);
  if (figures.untimed > 0)
    text += "  " + plural(figures.untimed, "operation") + " without GPU times left out\n";
  return text;
}

void show_fit(const analysis::summary::FitFigures& row, Columns& out) {
  out.name("func", "<operation", row.func);
  out.name("comm", "<communicator", row.comm);
  out.add_json("comm_id", id_json(row.comm_id));
  out.add("sizes", "~~sizes", std::to_string(row.sizes), row.sizes);
  out.duration("alpha_ns", "latency", row.alpha_ns);
  out.duration("alpha_error_ns", "+-", row.alpha_error_ns);
  out.add("beta_gbps", "bandwidth", format_rate(row.beta), row.beta);
  out.add("beta_low_gbps", "~95 %",
          format_rate(row.beta_low) + " - " + (row.beta_high > 0 ? format_rate(row.beta_high) : "?"),
          row.beta_low);
  out.add_json("beta_high_gbps", above_zero(row.beta_high));
}

std::string fit_table(const analysis::summary::AcrossFigures& figures, size_t limit) {
  if (figures.fits.empty()) return "";
  return "\nTime = latency + size / bandwidth (algbw, GB/s)\n" + rows_text(figures.fits, limit, show_fit);
}

// The own lateness stands last in tables.
void show_wait(const analysis::summary::WaitFigures& row, Columns& out) {
  out.count("ops", "ops", row.ops);
  out.add_json("timed_ops", row.timed);
  out.duration("waiting_ns", "waiting", row.waiting_ns);
  out.duration("moving_ns", "moving", row.moving_ns, row.timed != 0);
  out.add_json("blamed_ns", row.blamed_ns);
}

void show_comm_wait(const analysis::summary::WaitFigures& row, Columns& out) {
  out.name("comm", "<communicator", row.comm);
  out.add_json("comm_id", id_json(row.comm_id));
  show_wait(row, out);
  out.add_text("own lateness", format_duration(row.blamed_ns));
}

void show_rank_wait(const analysis::summary::WaitFigures& row, Columns& out) {
  out.number("rank", "rank", row.rank);
  out.name("host", "<host", row.host);
  out.add_json("pid", row.pid);
  show_wait(row, out);
  out.duration("late_p50_ns", "late p50", row.late_p50_ns);
  out.duration("late_p99_ns", "late p99", row.late_p99_ns);
  out.add_text("own lateness", format_duration(row.blamed_ns));
}

std::string wait_tables(const analysis::summary::AcrossFigures& figures, size_t limit) {
  if (figures.comms.empty()) return "";
  return "\nWaiting for the last rank, and moving data (sums over ranks)\n" +
         rows_text(figures.comms, limit, show_comm_wait) +
         "\nLateness of ranks (after the median arrival)\n" + rows_text(figures.ranks, limit, show_rank_wait);
}

void show_link(const analysis::summary::LinkFigures& row, Columns& out) {
  out.number("source", "from", row.source);
  out.number("target", "to", row.target);
  out.name("comm", "<communicator", row.comm);
  out.add_json("comm_id", id_json(row.comm_id));
  out.count("transfers", "~~transfers", row.steps);
  out.bytes("bytes", "bytes", row.bytes);
  out.add("bytes_per_second", "GB/s", format_rate(row.rate * 1e-9), above_zero(row.rate));
  out.duration("gpu_wait_ns", "~GPU wait", row.gpu_wait_ns);
  out.duration("peer_wait_ns", "peer wait", row.peer_wait_ns);
  out.duration("send_wait_ns", "sending", row.send_wait_ns);
  out.duration("sending_p50_ns", "~~sending p50", row.sending_p50_ns, row.sending_p50_ns > 0);
  out.duration("sending_p99_ns", "sending p99", row.sending_p99_ns, row.sending_p99_ns > 0);
  out.duration("receive_wait_ns", "~~receiving", row.receive_wait_ns);
  out.duration("flush_wait_ns", "~~flushing", row.flush_wait_ns);
}

std::string link_table(const analysis::summary::AcrossFigures& figures, size_t limit) {
  if (figures.links.empty()) return "";
  return "\nNetwork, by pair of ranks (GB/s per channel while sending, over all transfers; waits are their sums)\n" +
         rows_text(figures.links, limit, show_link);
}

std::string exposed_line(const analysis::summary::StepFigures& steps) {
  // Exposed communication needs all kernels; without them only its upper bound is known.
  if (steps.exposed.count > 0) {
    return "  exposed communication per rank and step: " + format_duration(steps.exposed.p50_ns) +
           " (median; p99 " + format_duration(steps.exposed.p99_ns) + "), with no computation beside it\n";
  }
  const analysis::summary::Durations& at_most = steps.exposed_at_most;
  if (at_most.count == 0) return "";
  return "  exposed communication per rank and step: at most " + format_duration(at_most.p50_ns) +
         " (median; p99 " + format_duration(at_most.p99_ns) +
         "): the time that its GPU communicates; the trace does not show how much of it computation hides\n";
}

std::string steps_line(const analysis::summary::StepFigures& steps) {
  if (steps.source.empty() || steps.length.count == 0) return "";
  // Lengths lie between the starts of steps, so there is one step more.
  return "\nSteps: " + format_count(steps.length.count + 1) +
         (steps.source == "marks"
              ? " marked by the program"
              : " found from the period of " + plural(steps.period_ops, "operation") + " per rank") +
         "; median " + format_duration(steps.length.p50_ns) + ", p99 " +
         format_duration(steps.length.p99_ns) + "\n" + exposed_line(steps);
}

void show_overlap(const analysis::summary::OverlapFigures& row, Columns& out) {
  const bool has_steps = row.steps != 0;
  out.number("rank", "rank", row.rank);
  out.name("host", "<host", row.host);
  out.number("pid", "~~pid", row.pid);
  out.add("steps", "~~steps", has_steps ? std::to_string(row.steps) : "-",
          has_steps ? Json(row.steps) : Json(nullptr));
  out.add_json("whole_steps", row.whole);
  out.duration("length_ns", "length", row.length_ns);
  out.duration("computing_ns", "computing", row.computing_ns);
  out.duration("hidden_ns", "hidden", row.hidden_ns);
  out.duration("exposed_ns", "exposed", row.exposed_ns);
  out.duration("copying_ns", "~copying", row.copying_ns);
  out.duration("idle_ns", "~idle", row.idle_ns);
  out.add_text("exposed of it", row.length_ns > 0 ? format_percent(row.exposed_ns / row.length_ns) : "-");
}

std::string overlap_table(const analysis::summary::AcrossFigures& figures, size_t limit) {
  if (figures.overlap.empty()) return "";
  bool all_whole = true, all_steps = true;
  for (const analysis::summary::OverlapFigures& row : figures.overlap) {
    all_whole = all_whole && row.whole;
    all_steps = all_steps && row.steps > 0;
  }
  std::string text =
      "\nGPU time of an average step (communication is hidden beside computation, or exposed)\n" +
      rows_text(figures.overlap, limit, show_overlap);
  if (!all_steps)
    text += "  steps -: the trace has no steps, so all of its time counts as one\n";
  else if (!all_whole)
    text += "  the end of the only step is unknown; taken to be the end of the GPU's work\n";
  return text;
}

Json known_time(const analysis::summary::Durations& of, double ns) {
  return of.count > 0 ? Json(ns) : Json(nullptr);
}

Json steps_json(const analysis::summary::StepFigures& steps) {
  if (steps.source.empty()) return nullptr;
  return {{"source", steps.source},
          {"operations", steps.period_ops == 0 ? Json(nullptr) : Json(steps.period_ops)},
          {"count", steps.length.count + 1},
          {"p50_ns", steps.length.p50_ns},
          {"p99_ns", steps.length.p99_ns},
          {"exposed_p50_ns", known_time(steps.exposed, steps.exposed.p50_ns)},
          {"exposed_p99_ns", known_time(steps.exposed, steps.exposed.p99_ns)},
          {"exposed_at_most_p50_ns", known_time(steps.exposed_at_most, steps.exposed_at_most.p50_ns)},
          {"exposed_at_most_p99_ns", known_time(steps.exposed_at_most, steps.exposed_at_most.p99_ns)}};
}

}  // namespace

std::string more_rows(size_t rows, size_t limit) {
  return rows > limit ? "  ... and " + format_count(rows - limit) + " more; -n shows more rows, --json all\n"
                      : "";
}

std::string across_text(const analysis::summary::AcrossFigures& figures, size_t limit) {
  return steps_line(figures.steps) + overlap_table(figures, limit) + rate_table(figures, limit) +
         fit_table(figures, limit) + wait_tables(figures, limit) + link_table(figures, limit);
}

void add_across_json(const analysis::summary::AcrossFigures& figures, Json& document) {
  document["matched_ops"] = figures.matched;
  document["matched_ops_without_gpu_times"] = figures.untimed;
  document["bandwidth_list"] = json_rows(figures.rates, show_rate);
  document["fit_list"] = json_rows(figures.fits, show_fit);
  document["comm_wait_list"] = json_rows(figures.comms, show_comm_wait);
  document["rank_wait_list"] = json_rows(figures.ranks, show_rank_wait);
  document["link_list"] = json_rows(figures.links, show_link);
  document["overlap_list"] = json_rows(figures.overlap, show_overlap);
  document["steps"] = steps_json(figures.steps);
}

}  // namespace lockstep::cli
