// SPDX-License-Identifier: Apache-2.0
// The comparison for a terminal: losses, verdict, gates, the rows that changed, notes. Losses come first
// because a run that lost its slow operations looks fast.
#include <algorithm>

#include "analysis/summary/across.h"
#include "base/text/units.h"
#include "base/text/wrap.h"
#include "cli/compare/report.h"
#include "cli/kit/table.h"
#include "input/losses.h"

namespace lockstep::cli::compare {
namespace {

using analysis::compare::Change;
using analysis::compare::Metric;
using analysis::compare::Row;

constexpr size_t kLossLines = 3;

std::string losses_text(const char* name, const ComparedRun& run, size_t width) {
  const std::vector<std::string> lines = input::loss_sentences(run.overview);
  std::string text;
  for (size_t i = 0; i < lines.size() && i < kLossLines; ++i)
    text += std::string(name) + " " + wrap(lines[i], 2, width) + "\n";
  if (lines.size() > kLossLines)
    text += std::string(name) + " ... and " + plural(lines.size() - kLossLines, "more kind") +
            " of loss: `lockstep info` shows them\n";
  return text;
}

std::string losses(const ComparedRuns& runs, size_t width) {
  std::string text = losses_text("A", runs.a, width) + losses_text("B", runs.b, width);
  if (text.empty()) return "Losses: none in either run.\n";
  if (runs.a.lost + runs.b.lost == 0) return text;
  return text +
         wrap("The figures lack what was lost: a run that lost more of its slow operations looks faster.", 0,
              width) +
         "\n";
}

std::string figure(const Row& row, double value) {
  // Several classes together have a ratio and no figure of their own: their sizes differ.
  if (!row.ratio || row.classes != 1) return "-";
  return row.metric == Metric::kBusbw ? format_rate(value) + " GB/s" : format_duration(value);
}

std::string change_text(Change change) {
  constexpr const char* kTexts[] = {"-", "better", "WORSE", "cannot tell"};
  return kTexts[static_cast<size_t>(change)];
}

std::string cost_text(const Row& row) {
  if (!row.ratio) return "-";
  return (row.cost_ns < 0 ? "-" : "+") + format_duration(std::abs(row.cost_ns));
}

std::string row_table(const ComparedRuns& runs, const Style& style, const TextOptions& options) {
  std::vector<const Row*> rows;
  size_t changed = 0, comparable = 0, all = 0;
  for (const Row& row : runs.comparison.rows) {
    // Not counted either: the total would count one change twice.
    if (repeats(row)) continue;
    const bool is_changed = row.change == Change::kWorse || row.change == Change::kBetter;
    ++all;
    comparable += row.ratio.has_value();
    changed += is_changed;
    if (is_changed || options.all) rows.push_back(&row);
  }
  const size_t limit = options.all ? rows.size() : options.limit;
  std::string text =
      "\n" + style.heading("Changed") + ": " + format_count(changed) + " of " + plural(comparable, "row");
  if (all > comparable) text += "; " + format_count(all - comparable) + " more are unclear";
  text += options.all || all == changed ? "\n" : "; --all shows all rows\n";
  // A column for remarks only if a shown row has one: it is wide.
  const bool remarks =
      std::any_of(rows.begin(), rows.begin() + static_cast<ptrdiff_t>(std::min(limit, rows.size())),
                  [](const Row* row) { return !row->reason.empty(); });
  std::vector<std::string> headings = {"<",     "<figure", "<of",   "~~A",      "~~B",
                                       "B / A", "~95 %",   "costs", "~~~<since"};
  if (remarks) headings.emplace_back("~~~<remark");
  Table table(std::move(headings));
  for (size_t i = 0; i < rows.size() && i < limit; ++i) {
    const Row& row = *rows[i];
    std::vector<std::string> cells = {
        change_text(row.change),
        std::string(metric_name(row.metric)),
        row_text(row),
        figure(row, row.a),
        figure(row, row.b),
        row.ratio ? format_decimal(row.ratio->ratio, 3) : "-",
        row.ratio ? format_decimal(row.ratio->low, 3) + " - " + format_decimal(row.ratio->high, 3) : "-",
        cost_text(row),
        row.since ? since_text(*row.since) : ""};
    if (remarks) cells.push_back(row.reason);
    table.add(std::move(cells));
  }
  if (!table.empty()) text += table.text();
  if (rows.size() > limit)
    text += "  ... and " + format_count(rows.size() - limit) + " more; -n shows more rows\n";
  return text;
}

std::string gates_text(const GateReport& gates, const Style& style) {
  std::string text;
  for (size_t i = 0; i < gates.gates.size(); ++i) {
    const GateResult& result = gates.results[i];
    const std::string word(state_text(result.state));
    text += "Gate " + gates.gates[i].text + ": " +
            (result.state == GateResult::State::kPass        ? style.good(word)
             : result.state == GateResult::State::kRegressed ? style.bad(word)
                                                             : style.warning(word)) +
            ": " + result.sentence + "\n";
  }
  return text;
}

}  // namespace

std::string report_text(const ComparedRuns& runs, const GateReport& gates, const Style& style,
                        TextOptions options) {
  const Verdict verdict = compare::verdict(runs);
  std::string headline = wrap(verdict.headline, 0, style.columns());
  if (verdict.state == Verdict::State::kSlower) headline = style.bad(headline);
  std::string text = losses(runs, style.columns()) + headline + "\n" + gates_text(gates, style);
  text += "  A: " + runs.a.path + " (" + runs.a.evidence + ")\n  B: " + runs.b.path + " (" + runs.b.evidence +
          ")\n";
  text += row_table(runs, style, options);
  for (const std::string& note : runs.comparison.notes)
    text += "  Note: " + wrap(note, 8, style.columns()) + "\n";
  return text;
}

}  // namespace lockstep::cli::compare
