// SPDX-License-Identifier: Apache-2.0
// The comparison as data, for --json and for the page of `report`. The page takes a bounded number of rows;
// --json has all. Words that programs match are here and not taken from the text, which may be reworded.
#include <algorithm>
#include <cmath>

#include "cli/compare/report.h"
#include "input/losses.h"

namespace lockstep::cli::compare {
namespace {

using analysis::compare::Change;
using analysis::compare::Level;
using analysis::compare::Metric;
using analysis::compare::Ratio;
using analysis::compare::Row;
using analysis::compare::Samples;

std::string_view level_text(Level level) {
  constexpr std::string_view kTexts[] = {"job", "func", "size", "comm", "rank"};
  return kTexts[static_cast<size_t>(level)];
}
std::string_view change_word(Change change) {
  constexpr std::string_view kTexts[] = {"none", "better", "worse", "cannot tell"};
  return kTexts[static_cast<size_t>(change)];
}
std::string_view steps_text(Samples::Steps steps) {
  constexpr std::string_view kTexts[] = {"none", "marks", "period", "operations"};
  return kTexts[static_cast<size_t>(steps)];
}

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }
Json whole(double ns) {
  // JSON has no infinity.
  return std::isfinite(ns) ? Json(static_cast<int64_t>(std::llround(ns))) : Json(nullptr);
}

void put_ratio(const std::optional<Ratio>& of, Json& into) {
  into["ratio"] = of ? Json(of->ratio) : Json(nullptr);
  into["low"] = of ? Json(of->low) : Json(nullptr);
  into["high"] = of ? Json(of->high) : Json(nullptr);
}

Json run_json(const ComparedRun& run) {
  constexpr size_t kMostLosses = 64;
  std::vector<std::string> losses = input::loss_sentences(run.overview);
  losses.resize(std::min(losses.size(), kMostLosses));
  return {{"path", run.path},
          {"evidence", run.evidence},
          {"processes", run.overview.processes.size()},
          {"steps_by", steps_text(run.steps_by)},
          {"lost_events", run.lost},
          {"losses", losses}};
}

Json since_json(const Row& row, int64_t begin_ns) {
  if (!row.since) return nullptr;
  const auto at = [&](int64_t ns) {
    // Times count from B's first record; an unknown one gives null and not a negative number.
    return ns >= begin_ns && begin_ns > 0 ? Json(ns - begin_ns) : Json(nullptr);
  };
  Json since = {
      {"from_begin", row.since->from_begin}, {"step", row.since->step}, {"at_ns", at(row.since->begin_ns)}};
  since["until_step"] = row.since->until_step ? Json(*row.since->until_step) : Json(nullptr);
  since["until_ns"] = row.since->until_ns ? at(*row.since->until_ns) : Json(nullptr);
  put_ratio(row.since->ratio, since);
  return since;
}

Json row_json(const Row& row, const ComparedRuns& runs) {
  const bool sized = row.level == Level::kSize || row.level == Level::kComm;
  const bool figures = row.ratio && row.classes == 1;
  const bool rate = row.metric == Metric::kBusbw;
  Json json = {{"metric", metric_name(row.metric)},
               {"level", level_text(row.level)},
               {"label", row_text(row)},
               {"func", text_or_null(row.func)},
               {"size_from_bytes", sized ? Json(row.size_from) : Json(nullptr)},
               {"size_to_bytes", sized ? Json(row.size_to) : Json(nullptr)},
               {"comm", text_or_null(row.comm)},
               {"rank", known(row.rank)},
               {"time", text_or_null(row.time)},
               {"classes", row.classes},
               {"repeats", repeats(row)},
               {"ops_a", row.ops_a},
               {"ops_b", row.ops_b},
               {"steps_a", row.steps_a},
               {"steps_b", row.steps_b},
               {"a_gbps", figures && rate ? Json(row.a) : Json(nullptr)},
               {"b_gbps", figures && rate ? Json(row.b) : Json(nullptr)},
               {"a_ns", figures && !rate ? whole(row.a) : Json(nullptr)},
               {"b_ns", figures && !rate ? whole(row.b) : Json(nullptr)}};
  put_ratio(row.ratio, json);
  json["p"] = row.ratio ? Json(row.ratio->p) : Json(nullptr);
  json["change"] = change_word(row.change);
  json["cost_ns"] = row.ratio ? whole(row.cost_ns) : Json(nullptr);
  json["since"] = since_json(row, runs.comparison.begin_ns_b);
  json["reason"] = text_or_null(row.reason);
  return json;
}

}  // namespace

Json comparison_json(const ComparedRuns& runs, size_t limit) {
  const auto& rows = runs.comparison.rows;
  const Verdict verdict = compare::verdict(runs);
  Json list = Json::array();
  for (size_t i = 0; i < rows.size() && i < limit; ++i) list.push_back(row_json(rows[i], runs));
  return {{"a", run_json(runs.a)},
          {"b", run_json(runs.b)},
          {"verdict",
           {{"state", state_text(verdict.state)},
            {"headline", verdict.headline},
            // A row beyond the limit is not in the list, so nothing may point to it.
            {"cause", verdict.cause < limit ? Json(verdict.cause) : Json(nullptr)}}},
          {"step_ns", runs.comparison.step_ns > 0 ? whole(runs.comparison.step_ns) : Json(nullptr)},
          {"tested", runs.comparison.tested},
          {"false_share", analysis::compare::kFalseShare},
          {"least_change", analysis::compare::kWorthAWord},
          {"least_steps", analysis::compare::kLeastSteps},
          {"rows", std::move(list)},
          {"omitted", rows.size() > limit ? rows.size() - limit : 0},
          {"notes", runs.comparison.notes}};
}

Json report_json(const ComparedRuns& runs, const GateReport& gates) {
  Json list = Json::array();
  for (size_t i = 0; i < gates.gates.size(); ++i) {
    const GateResult& result = gates.results[i];
    Json gate = {{"gate", gates.gates[i].text},
                 {"state", state_text(result.state)},
                 {"bound", gates.gates[i].bound},
                 {"sentence", result.sentence}};
    put_ratio(result.ratio, gate);
    list.push_back(std::move(gate));
  }
  return {{"schema", "lockstep.compare.v1"},
          {"comparison", comparison_json(runs, SIZE_MAX)},
          {"gates", std::move(list)}};
}

}  // namespace lockstep::cli::compare
