// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "base/text/units.h"
#include "base/text/wording.h"
#include "cli/kit/table.h"
#include "cli/summary/across_report.h"

namespace lockstep::cli {
namespace {

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

std::string rate_table(const analysis::summary::AcrossFigures& figures, size_t limit) {
  if (figures.matched == 0 && figures.rates.empty()) return "";
  std::string text =
      "\nBandwidth of matched operations (GB/s; from the last arrival to the last end, so without waiting for late ranks)\n";
  if (figures.rates.empty())
    return text + "  none: no operation has GPU times on all of its ranks. To get them: " +
           std::string(wording::kGpuTimesSetting) + ".\n";
  Table table({"<operation", "<communicator", "ranks", "hosts", "size", "<algorithm", "ops", "algbw", "busbw",
               "<middle half", "of best", "of ceiling", "uncertain"});
  for (size_t i = 0; i < figures.rates.size() && i < limit; ++i) {
    const analysis::summary::RateFigures& row = figures.rates[i];
    const bool known = row.ops > 0;
    table.add({row.func, row.comm, std::to_string(row.ranks), std::to_string(row.hosts),
               analysis::summary::size_range(row.size_from),
               row.algo + (row.proto.empty() ? "" : " " + row.proto), format_count(row.ops),
               format_rate(row.algbw), format_rate(row.busbw),
               known ? format_rate(row.busbw_low) + " - " + format_rate(row.busbw_high) : "-",
               known ? format_percent(row.of_best) : "-",
               known && row.ceiling > 0 ? format_percent(row.busbw / row.ceiling) : "-",
               format_count(row.uncertain)});
  }
  text += table.text() + more_rows(figures.rates.size(), limit);
  text += "  of best: busbw as a share of the run's best for this operation\n" + ceiling_line(figures);
  if (figures.untimed > 0)
    text += "  " + plural(figures.untimed, "operation") + " without GPU times left out\n";
  return text;
}

std::string fit_table(const analysis::summary::AcrossFigures& figures, size_t limit) {
  if (figures.fits.empty()) return "";
  Table table({"<operation", "<communicator", "sizes", "start-up", "<+-", "bandwidth", "<95 %"});
  for (size_t i = 0; i < figures.fits.size() && i < limit; ++i) {
    const analysis::summary::FitFigures& row = figures.fits[i];
    table.add({row.func, row.comm, std::to_string(row.sizes), format_duration(row.alpha_ns),
               format_duration(row.alpha_error_ns), format_rate(row.beta),
               format_rate(row.beta_low) + " - " + (row.beta_high > 0 ? format_rate(row.beta_high) : "?")});
  }
  return "\nTime = start-up + size / bandwidth (algbw, GB/s)\n" + table.text() +
         more_rows(figures.fits.size(), limit);
}

std::string moving(const analysis::summary::WaitFigures& row) {
  return row.timed == 0 ? "-" : format_duration(row.moving_ns);
}

std::string wait_tables(const analysis::summary::AcrossFigures& figures, size_t limit) {
  if (figures.comms.empty()) return "";
  Table comms({"<communicator", "ops", "waiting", "moving", "own lateness"});
  for (size_t i = 0; i < figures.comms.size() && i < limit; ++i) {
    const analysis::summary::WaitFigures& row = figures.comms[i];
    comms.add({row.comm, format_count(row.ops), format_duration(row.waiting_ns), moving(row),
               format_duration(row.blamed_ns)});
  }
  Table ranks({"rank", "<host", "ops", "waiting", "moving", "late p50", "p99", "own lateness"});
  for (size_t i = 0; i < figures.ranks.size() && i < limit; ++i) {
    const analysis::summary::WaitFigures& row = figures.ranks[i];
    ranks.add({row.rank < 0 ? "-" : std::to_string(row.rank), row.host, format_count(row.ops),
               format_duration(row.waiting_ns), moving(row), format_duration(row.late_p50_ns),
               format_duration(row.late_p99_ns), format_duration(row.blamed_ns)});
  }
  return "\nWaiting for the last rank, and moving data (sums over ranks)\n" + comms.text() +
         more_rows(figures.comms.size(), limit) + "\nLateness of ranks (after the median arrival)\n" +
         ranks.text() + more_rows(figures.ranks.size(), limit);
}

std::string time_or_dash(double ns) { return ns > 0 ? format_duration(ns) : "-"; }

std::string link_table(const analysis::summary::AcrossFigures& figures, size_t limit) {
  if (figures.links.empty()) return "";
  Table table({"from", "to", "<communicator", "transfers", "bytes", "GB/s", "GPU wait", "peer wait",
               "sending", "p50", "p99", "receiving", "flushing"});
  for (size_t i = 0; i < figures.links.size() && i < limit; ++i) {
    const analysis::summary::LinkFigures& row = figures.links[i];
    table.add({row.source < 0 ? "-" : std::to_string(row.source),
               row.target < 0 ? "-" : std::to_string(row.target), row.comm, format_count(row.steps),
               format_bytes(row.bytes), format_rate(row.rate * 1e-9), format_duration(row.gpu_wait_ns),
               format_duration(row.peer_wait_ns), format_duration(row.send_wait_ns),
               time_or_dash(row.sending_p50_ns), time_or_dash(row.sending_p99_ns),
               format_duration(row.receive_wait_ns), format_duration(row.flush_wait_ns)});
  }
  return "\nNetwork, by pair of ranks (waits are sums over transfers)\n" + table.text() +
         more_rows(figures.links.size(), limit);
}

std::string exposed_line(const analysis::summary::StepFigures& steps) {
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
  return "\nSteps: " + format_count(steps.length.count + 1) +
         (steps.source == "marks"
              ? " marked by the program"
              : " found from the period of " + plural(steps.period_ops, "operation") + " per rank") +
         "; median " + format_duration(steps.length.p50_ns) + ", p99 " +
         format_duration(steps.length.p99_ns) + "\n" + exposed_line(steps);
}

std::string overlap_table(const analysis::summary::AcrossFigures& figures, size_t limit) {
  if (figures.overlap.empty()) return "";
  bool all_whole = true, all_steps = true;
  Table table({"rank", "<host", "pid", "steps", "length", "computing", "hidden", "exposed", "copying", "idle",
               "exposed of it"});
  for (size_t i = 0; i < figures.overlap.size(); ++i) {
    const analysis::summary::OverlapFigures& row = figures.overlap[i];
    all_whole = all_whole && row.whole;
    all_steps = all_steps && row.steps > 0;
    if (i >= limit) continue;
    table.add({row.rank < 0 ? "-" : std::to_string(row.rank), row.host,
               row.pid < 0 ? "-" : std::to_string(row.pid), row.steps == 0 ? "-" : std::to_string(row.steps),
               format_duration(row.length_ns), format_duration(row.computing_ns),
               format_duration(row.hidden_ns), format_duration(row.exposed_ns),
               format_duration(row.copying_ns), format_duration(row.idle_ns),
               format_percent(row.length_ns > 0 ? row.exposed_ns / row.length_ns : -1)});
  }
  std::string text =
      "\nGPU time of an average step (communication is hidden beside computation, or exposed)\n" +
      table.text() + more_rows(figures.overlap.size(), limit);
  if (!all_steps)
    text += "  steps -: the trace has no steps, so all of its time counts as one\n";
  else if (!all_whole)
    text += "  the end of the only step is unknown; taken to be the end of the GPU's work\n";
  return text;
}

Json above_zero(double value) { return value > 0 ? Json(value) : Json(nullptr); }

Json known_time(const analysis::summary::Durations& of, double ns) {
  return of.count > 0 ? Json(ns) : Json(nullptr);
}

Json wait_json(const analysis::summary::WaitFigures& row) {
  return {{"ops", row.ops},
          {"timed_ops", row.timed},
          {"waiting_ns", row.waiting_ns},
          {"moving_ns", row.timed == 0 ? Json(nullptr) : Json(row.moving_ns)},
          {"blamed_ns", row.blamed_ns}};
}

Json rate_json(const analysis::summary::RateFigures& row) {
  return {{"func", row.func},
          {"comm", row.comm},
          {"comm_id", id_json(row.comm_id)},
          {"ranks", row.ranks},
          {"hosts", row.hosts},
          {"size_from", row.size_from},
          {"size_to", row.size_to},
          {"algo", row.algo},
          {"proto", row.proto},
          {"ops", row.ops},
          {"uncertain_ops", row.uncertain},
          {"algbw_gbps", above_zero(row.algbw)},
          {"busbw_gbps", above_zero(row.busbw)},
          {"busbw_low_gbps", above_zero(row.busbw_low)},
          {"busbw_high_gbps", above_zero(row.busbw_high)},
          {"of_best", above_zero(row.of_best)},
          {"ceiling_gbps", above_zero(row.ceiling)},
          {"ceiling_link", row.link.empty() ? Json(nullptr) : Json(row.link)},
          {"of_ceiling", row.ceiling > 0 && row.busbw > 0 ? Json(row.busbw / row.ceiling) : Json(nullptr)},
          {"relative_error", row.error}};
}

Json fit_json(const analysis::summary::FitFigures& row) {
  return {{"func", row.func},
          {"comm", row.comm},
          {"comm_id", id_json(row.comm_id)},
          {"sizes", row.sizes},
          {"alpha_ns", row.alpha_ns},
          {"alpha_error_ns", row.alpha_error_ns},
          {"beta_gbps", row.beta},
          {"beta_low_gbps", row.beta_low},
          {"beta_high_gbps", above_zero(row.beta_high)}};
}

Json comm_json(const analysis::summary::WaitFigures& row) {
  Json comm = {{"comm", row.comm}, {"comm_id", id_json(row.comm_id)}};
  comm.update(wait_json(row));
  return comm;
}

Json rank_json(const analysis::summary::WaitFigures& row) {
  Json rank = {{"rank", known(row.rank)}, {"host", row.host}, {"pid", row.pid}};
  rank.update(wait_json(row));
  rank["late_p50_ns"] = row.late_p50_ns;
  rank["late_p99_ns"] = row.late_p99_ns;
  return rank;
}

Json link_json(const analysis::summary::LinkFigures& row) {
  return {{"source", known(row.source)},
          {"target", known(row.target)},
          {"comm", row.comm},
          {"comm_id", id_json(row.comm_id)},
          {"transfers", row.steps},
          {"bytes", row.bytes},
          {"bytes_per_second", above_zero(row.rate)},
          {"gpu_wait_ns", row.gpu_wait_ns},
          {"peer_wait_ns", row.peer_wait_ns},
          {"send_wait_ns", row.send_wait_ns},
          {"sending_p50_ns", above_zero(row.sending_p50_ns)},
          {"sending_p99_ns", above_zero(row.sending_p99_ns)},
          {"receive_wait_ns", row.receive_wait_ns},
          {"flush_wait_ns", row.flush_wait_ns}};
}

Json overlap_json(const analysis::summary::OverlapFigures& row) {
  return {{"rank", known(row.rank)},
          {"host", row.host},
          {"pid", known(row.pid)},
          {"steps", row.steps == 0 ? Json(nullptr) : Json(row.steps)},
          {"whole_steps", row.whole},
          {"length_ns", row.length_ns},
          {"computing_ns", row.computing_ns},
          {"hidden_ns", row.hidden_ns},
          {"exposed_ns", row.exposed_ns},
          {"copying_ns", row.copying_ns},
          {"idle_ns", row.idle_ns}};
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

template <class Row>
Json list_of(const std::vector<Row>& rows, Json (*json_of)(const Row&)) {
  Json list = Json::array();
  for (const Row& row : rows) list.push_back(json_of(row));
  return list;
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
  document["bandwidth_list"] = list_of(figures.rates, rate_json);
  document["fit_list"] = list_of(figures.fits, fit_json);
  document["comm_wait_list"] = list_of(figures.comms, comm_json);
  document["rank_wait_list"] = list_of(figures.ranks, rank_json);
  document["link_list"] = list_of(figures.links, link_json);
  document["overlap_list"] = list_of(figures.overlap, overlap_json);
  document["steps"] = steps_json(figures.steps);
}

}  // namespace lockstep::cli
