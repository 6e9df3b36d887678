// SPDX-License-Identifier: Apache-2.0
// Shows what analysis/bandwidth measured: a row for each communicator, function and size, largest share of
// the run's time first, since only that is worth somebody's effort. The best row of the same function is the
// yardstick, as a link's ceiling is known within one host alone. Operations without GPU times are counted and
// never estimated: host times measure launches, not transfers.
#include <algorithm>
#include <map>

#include "analysis/bandwidth/rates.h"
#include "base/text/units.h"
#include "base/text/wording.h"
#include "report/pages.h"

namespace lockstep::report {
namespace {

namespace bandwidth = analysis::bandwidth;
using model::Job;

// A page of more rows is no longer read; what is left out took the least time.
constexpr size_t kRatesMost = 2000;

Json above_zero(double value) { return value > 0 ? Json(value) : Json(nullptr); }

// When the first rank called it.
Json called_at(const ReportContext& context, uint32_t comm, uint32_t index) {
  const Job& job = context.job();
  std::optional<int64_t> first;
  for (uint32_t row : job.comms[comm].members) {
    if (row == model::kNoRow) continue;
    const auto op = job.op_at(job.members[row], index);
    const int64_t ns = op ? job.ops(job.members[row]).entered_ns(*op) : 0;
    // A member that lost the time of its call says nothing about when the others called.
    if (ns == 0) continue;
    const int64_t at = context.placed_ns(job.members[row].process, ns);
    first = first ? std::min(*first, at) : at;
  }
  return first ? context.since_begin(*first) : Json(nullptr);
}

Json slowest_json(const ReportContext& context, const bandwidth::Rate& rate, const OperationPlaces& places) {
  if (!rate.slowest) return nullptr;
  return {{"op_index", rate.slowest->index},
          {"busbw_gbps", rate.slowest->busbw},
          {"at_ns", called_at(context, rate.comm, rate.slowest->index)},
          {"operation", place_of(places, {rate.comm, rate.slowest->index})}};
}

// A finding that calls this communicator slow.
Json finding_of(const ReportContext& context, const bandwidth::Rate& rate) {
  const auto& findings = context.run().diagnosis.findings;
  for (size_t i = 0; i < findings.size(); ++i) {
    // Findings come in the order of their importance, so the first that fits is the one to show.
    const bool slow = class_of(findings[i].id) == analysis::FindingClass::kSlowLink ||
                      class_of(findings[i].id) == analysis::FindingClass::kSlowNic;
    if (slow && context.comm_of(i) == rate.comm) return i;
  }
  return nullptr;
}

Json fit_json(const bandwidth::Fit& fit, const Job& job) {
  return {{"comm", fit.comm},
          {"func", shown(job.text(fit.func))},
          {"sizes", fit.sizes},
          {"alpha_ns", fit.alpha_ns},
          {"alpha_error_ns", fit.alpha_error_ns},
          {"beta_gbps", fit.beta_gbps},
          {"beta_low_gbps", fit.beta_low_gbps},
          {"beta_high_gbps", above_zero(fit.beta_high_gbps)}};
}

}  // namespace

Json bandwidth_page(const ReportContext& context, const OperationPlaces& places) {
  const Job& job = context.job();
  bandwidth::Rates rates = bandwidth::measure(job);
  const size_t collectives = rates.rates.size();
  // Pointers, since both lists stay as they are while the page is made.
  std::vector<std::pair<const bandwidth::Rate*, bool>> order;  // whether of pairs
  std::map<model::StringId, double> best;
  for (const auto* list : {&rates.rates, &rates.pairs}) {
    for (const bandwidth::Rate& rate : *list) {
      order.emplace_back(&rate, list == &rates.pairs);
      // Bus bandwidth compares between numbers of ranks and hosts; the plain rate of an algorithm does not.
      best[rate.func] = std::max(best[rate.func], rate.busbw.middle);
    }
  }
  const auto& matches = context.main()->matches;
  // The two reasons have different remedies: more ranks' records, or a mode that records GPU times.
  const bool has_matched =
      std::any_of(matches.begin(), matches.end(), [](const auto& match) { return match.matched > 0; });
  if (order.empty())
    return missing(
        !has_matched
            ? "No operation was matched on all ranks of its communicator, so none has a bandwidth."
            : "No operation has GPU times on all of its ranks, so none has a bandwidth. To get them: " +
                  std::string(wording::gpu_times_setting(context.main()->job->has_amd_gpus())) + ".");
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first->time_ns > b.first->time_ns; });
  Json list = Json::array();
  for (const auto& [rate, pairs] : order) {
    if (list.size() == kRatesMost) break;
    list.push_back({{"comm", rate->comm},
                    {"func", shown(job.text(rate->func))},
                    {"algo", shown_or_null(job.text(rate->algo))},
                    {"proto", shown_or_null(job.text(rate->proto))},
                    {"ranks", rate->ranks},
                    {"hosts", rate->hosts},
                    {"pairs", pairs},
                    {"size_from_bytes", rate->size_from},
                    {"size_to_bytes", rate->size_to},
                    {"ops", rate->ops},
                    {"uncertain", rate->uncertain},
                    {"algbw_gbps", above_zero(rate->algbw.middle)},
                    {"busbw_gbps", above_zero(rate->busbw.middle)},
                    {"busbw_low_gbps", above_zero(rate->busbw.low)},
                    {"busbw_high_gbps", above_zero(rate->busbw.high)},
                    {"of_best", best[rate->func] > 0 ? above_zero(rate->busbw.middle / best[rate->func])
                                                     : Json(nullptr)},
                    {"ceiling_gbps", rate->ceiling ? Json(rate->ceiling->gbps) : Json(nullptr)},
                    {"link", rate->ceiling ? Json(rate->ceiling->link) : Json(nullptr)},
                    {"error", rate->error},
                    {"finding", finding_of(context, *rate)},
                    {"slowest", slowest_json(context, *rate, places)}});
  }
  Json fits = Json::array(), notes = Json::array();
  for (const bandwidth::Fit& fit : rates.fits) {
    // A fit needs three sizes, so there are fewer of them than rates; the bound is for damaged files.
    if (fits.size() < kRatesMost) fits.push_back(fit_json(fit, job));
  }
  if (rates.untimed > 0) notes.push_back(plural(rates.untimed, "operation") + " without GPU times left out.");
  const bool ceiling =
      std::any_of(order.begin(), order.end(), [](const auto& of) { return of.first->ceiling.has_value(); });
  if (collectives > 0 && !ceiling)
    notes.push_back("No ceiling: no communicator lies within one host of GPUs whose links are known.");
  const size_t omitted = order.size() - list.size();
  return {{"rates", std::move(list)}, {"fits", std::move(fits)}, {"matched", rates.ops},
          {"untimed", rates.untimed}, {"omitted", omitted},      {"notes", std::move(notes)}};
}

}  // namespace lockstep::report
