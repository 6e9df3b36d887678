// SPDX-License-Identifier: Apache-2.0
// Asks the analyses for figures and judges nothing. The same numbers stand behind verdicts, so that `summary`
// and `diagnose` cannot tell different ones.
#include "analysis/summary/across.h"

#include <algorithm>
#include <map>

#include "analysis/bandwidth/rates.h"
#include "analysis/network/links.h"
#include "analysis/overlap/overlap.h"
#include "analysis/straggler/lateness/lateness.h"
#include "analysis/straggler/lateness/steps.h"
#include "base/text/units.h"
#include "model/intervals.h"

namespace lockstep::analysis::summary {
namespace {

namespace bandwidth = analysis::bandwidth;
namespace straggler = analysis::straggler;
using model::Job;

void add_rates(const Job& job, AcrossFigures& out) {
  bandwidth::Rates rates = bandwidth::measure(job);
  out.matched = rates.ops;
  out.untimed = rates.untimed;
  // Sends are held against the best send, as each collective is against its own function.
  rates.rates.insert(rates.rates.end(), rates.pairs.begin(), rates.pairs.end());
  std::map<model::StringId, double> best;
  for (const bandwidth::Rate& rate : rates.rates)
    // By function, as a broadcast and an all-reduce have no common best.
    best[rate.func] = std::max(best[rate.func], rate.busbw.middle);
  std::stable_sort(rates.rates.begin(), rates.rates.end(),
                   [](const auto& a, const auto& b) { return a.time_ns > b.time_ns; });
  for (const bandwidth::Rate& rate : rates.rates) {
    RateFigures row;
    row.func = job.text(rate.func);
    row.comm = job.comm_name(rate.comm);
    row.comm_id = job.comms[rate.comm].comm_id;
    row.algo = job.text(rate.algo);
    row.proto = job.text(rate.proto);
    row.ranks = rate.ranks;
    row.hosts = rate.hosts;
    row.size_from = rate.size_from;
    row.size_to = rate.size_to;
    row.ops = rate.ops;
    row.uncertain = rate.uncertain;
    row.algbw = rate.algbw.middle;
    row.busbw = rate.busbw.middle;
    row.busbw_low = rate.busbw.low;
    row.busbw_high = rate.busbw.high;
    row.of_best = best[rate.func] > 0 ? rate.busbw.middle / best[rate.func] : 0;
    if (rate.ceiling) {
      row.ceiling = rate.ceiling->gbps;
      row.link = rate.ceiling->link;
    }
    row.error = rate.error;
    out.rates.push_back(std::move(row));
  }
  for (const bandwidth::Fit& fit : rates.fits) {
    out.fits.push_back({std::string(job.text(fit.func)), job.comm_name(fit.comm), job.comms[fit.comm].comm_id,
                        fit.sizes, fit.alpha_ns, fit.alpha_error_ns, fit.beta_gbps, fit.beta_low_gbps,
                        fit.beta_high_gbps});
  }
}

WaitFigures wait_figures(const straggler::Waits& waits) {
  WaitFigures row;
  row.ops = waits.ops;
  row.timed = waits.timed;
  row.waiting_ns = waits.waiting_ns;
  row.moving_ns = waits.moving_ns;
  row.blamed_ns = waits.blamed_ns;
  row.late_p50_ns = waits.lateness.quantile(0.5);
  row.late_p99_ns = waits.lateness.quantile(0.99);
  return row;
}

void add_waits(const Job& job, AcrossFigures& out) {
  const straggler::Lateness lateness = straggler::measure(job);
  for (uint32_t comm = 0; comm < job.comms.size(); ++comm) {
    if (lateness.comms[comm].ops == 0) continue;
    WaitFigures row = wait_figures(lateness.comms[comm]);
    row.comm = job.comm_name(comm);
    row.comm_id = job.comms[comm].comm_id;
    out.comms.push_back(std::move(row));
  }
  std::stable_sort(out.comms.begin(), out.comms.end(), [](const WaitFigures& a, const WaitFigures& b) {
    return a.waiting_ns + a.moving_ns > b.waiting_ns + b.moving_ns;
  });
  for (uint32_t process = 0; process < job.processes.size(); ++process) {
    if (lateness.processes[process].ops == 0) continue;
    WaitFigures row = wait_figures(lateness.processes[process]);
    const model::Process& of = job.processes[process].row;
    row.rank = of.rank;
    row.pid = of.pid;
    row.host = job.text(of.host);
    out.ranks.push_back(std::move(row));
  }
  std::stable_sort(out.ranks.begin(), out.ranks.end(),
                   [](const WaitFigures& a, const WaitFigures& b) { return a.rank < b.rank; });
}

// Appends for each whole step how long the process had communication on its GPU; nothing where that is not
// known.
void add_on_gpu(const Job& job, uint32_t process, const std::vector<int64_t>& begins,
                std::vector<int64_t>& out) {
  const model::JobOps& ops = job.processes[process].ops;
  model::Intervals busy;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (ops.gpu_start_ns[i] == 0 || ops.gpu_end_ns[i] == 0) continue;
    auto start = job.common_ns(process, ops.gpu_start_ns[i]);
    // Without this host's clock nothing says in which step an operation was.
    if (!start) return;
    busy.push_back({start->ns, start->ns + ops.gpu_end_ns[i] - ops.gpu_start_ns[i]});
  }
  if (busy.empty()) return;
  // Operations of several communicators overlap on one GPU: their union counts, and not their sum.
  for (int64_t covered : model::covered_between(model::union_of(std::move(busy)), begins))
    out.push_back(covered);
}

void add_overlap(const Job& job, AcrossFigures& out) {
  for (const overlap::RankOverlap& of : overlap::measure(job)) {
    const model::JobProcess& process = job.processes[of.process];
    out.overlap.push_back({.host = std::string(job.text(process.row.host)),
                           .rank = process.row.rank,
                           .pid = process.row.pid,
                           .steps = of.are_steps ? of.steps : 0,
                           .whole = of.are_whole,
                           .length_ns = of.length_ns,
                           .computing_ns = of.computing_ns,
                           .hidden_ns = of.hidden_ns(),
                           .exposed_ns = of.exposed_ns,
                           .copying_ns = of.copying_ns,
                           .idle_ns = of.idle_ns});
  }
}

void add_links(const Job& job, AcrossFigures& out) {
  // By pair of ranks: what its channels did is added up.
  for (const network::Link& link : network::pairs(network::links(job))) {
    LinkFigures row;
    if (link.comm != model::kNoRow) {
      row.comm = job.comm_name(link.comm);
      row.comm_id = job.comms[link.comm].comm_id;
    }
    row.source = link.source;
    row.target = link.target;
    row.steps = link.steps;
    row.bytes = link.bytes;
    row.gpu_wait_ns = static_cast<double>(link.gpu_wait_ns);
    row.peer_wait_ns = static_cast<double>(link.peer_wait_ns);
    row.send_wait_ns = static_cast<double>(link.send_wait_ns);
    row.receive_wait_ns = static_cast<double>(link.receive_wait_ns);
    row.flush_wait_ns = static_cast<double>(link.flush_wait_ns);
    row.rate = link.rate();
    row.sending_p50_ns = link.sending.quantile(0.5);
    row.sending_p99_ns = link.sending.quantile(0.99);
    out.links.push_back(std::move(row));
  }
}

}  // namespace

StepFigures step_figures(const Job& job) {
  StepFigures out;
  std::vector<int64_t> exposed;
  for (const model::JobProcess& process : job.processes) {
    for (const model::GpuStep& step : process.gpu_steps) {
      // Times of a step are sums over the devices of its process.
      if (step.is_whole) exposed.push_back(step.exposed_ns / step.devices);
    }
  }
  out.exposed = summarize(exposed);
  const straggler::Steps steps = straggler::find_steps(job);
  // Slices hold equal numbers of operations. They are no steps of the program, so their length says nothing.
  if (steps.source == straggler::Steps::Source::kSlices) return out;
  out.source = steps.source == straggler::Steps::Source::kMarks ? "marks" : "period";
  out.period_ops = steps.period;
  std::vector<int64_t> lengths;
  for (size_t i = 1; i < steps.size(); ++i) lengths.push_back(steps.begin_ns[i] - steps.begin_ns[i - 1]);
  out.length = summarize(lengths);
  std::vector<int64_t> on_gpu;
  for (uint32_t process = 0; process < job.processes.size(); ++process)
    add_on_gpu(job, process, steps.begin_ns, on_gpu);
  out.exposed_at_most = summarize(on_gpu);
  return out;
}

AcrossFigures across(const Job& job) {
  AcrossFigures out;
  if (job.processes.empty()) return out;
  out.is_amd = job.has_amd_gpus();
  add_rates(job, out);
  add_waits(job, out);
  out.steps = step_figures(job);
  add_overlap(job, out);
  add_links(job, out);
  return out;
}

std::string size_range(uint64_t size_from) { return size_from == 0 ? "0 B" : format_bytes(size_from) + "+"; }

}  // namespace lockstep::analysis::summary
