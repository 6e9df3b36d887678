// SPDX-License-Identifier: Apache-2.0
// The first page: one sentence, the findings as cards, and the losses that limit them. A card links to rows,
// communicators and operations of the other pages only where the finding names them. No finding is not yet
// health: the headline says what was looked at, so that nobody takes an empty recording for a healthy run.
#include <algorithm>

#include "input/losses.h"
#include "input/run_json.h"
#include "report/pages.h"
#include "verdict/coverage.h"
#include "verdict/findings_page.h"
#include "verdict/outcome.h"

namespace lockstep::report {
namespace {

using analysis::Finding;

constexpr size_t kLossProcesses = 64;

// "never-joined" -> "Never joined"; what follows a point is a kind of it.
std::string title_of(const Finding& finding) {
  std::string title(class_text(class_of(finding.id)));
  std::replace(title.begin(), title.end(), '-', ' ');
  title[0] = static_cast<char>(title[0] - 'a' + 'A');
  return title;
}

// The first paragraph of what `lockstep explain` says; of what stands in a table, what the finding means.
Json explained(const Finding& finding) {
  for (const verdict::Entry& entry : verdict::entries()) {
    if (entry.id != id_text(finding.id)) continue;
    if (!entry.columns.empty()) return shown(analysis::facts(finding.id).meaning);
    std::string text = verdict::text(entry, Style(false));
    const size_t body = text.find("\n\n");
    if (body == std::string::npos) return nullptr;
    // The first paragraph is the heading; npos minus a position still means up to the end.
    text = text.substr(body + 2, text.find("\n\n", body + 2) - body - 2);
    std::replace(text.begin(), text.end(), '\n', ' ');
    return shown(text);
  }
  return nullptr;
}

Json card_json(const ReportContext& context, size_t i, const std::vector<Row>& rows,
               const OperationPlaces& places) {
  const Finding& finding = context.run().diagnosis.findings[i];
  const auto comm = context.comm_of(i);
  const auto operation = context.operation_of(i);
  Json row_list = Json::array();
  const std::vector<uint32_t>& named = context.processes_of(i);
  for (size_t row = 0; row < rows.size(); ++row) {
    if (!rows[row].is_group && std::binary_search(named.begin(), named.end(), rows[row].processes[0]))
      row_list.push_back(row);
  }
  Json waiting = Json::array();
  for (const int32_t rank : finding.waiting) {
    if (const uint32_t process = context.process_of_rank(rank); process != model::kNoRow)
      waiting.push_back(process);
  }
  return {{"title", title_of(finding)},
          {"what", explained(finding)},
          {"class", class_text(class_of(finding.id))},
          {"effect", finding.effect ? Json(verdict::effect_text(*finding.effect)) : Json(nullptr)},
          {"comm", or_null(comm)},
          {"operation", operation ? place_of(places, *operation) : Json(nullptr)},
          {"who", named},
          {"waiting", std::move(waiting)},
          {"rows", std::move(row_list)},
          {"at_ns", context.since_begin_of(i)}};
}

// Of each kind of evidence, what was lost and by whom.
Json losses_json(const ReportContext& context, uint64_t& events) {
  Json list = Json::array();
  const auto add = [&](const input::RunOverview& run, const Json& source, bool is_main) {
    for (const input::FoldedLoss& loss : input::fold_losses(run)) {
      // Of all losses, also of those that the bounded list leaves out.
      events += loss.count;
      if (list.size() == kLossesMost) continue;
      Json who = Json::array();
      for (int64_t process : loss.processes) {
        // Positions of processes are those of the main evidence.
        if (is_main && who.size() < kLossProcesses) who.push_back(process);
      }
      list.push_back({{"text", shown(input::loss_words(loss))},
                      {"count", loss.count},
                      {"stage", shown(loss.stage)},
                      {"kind", shown(loss.kind)},
                      {"source", source},
                      {"who", std::move(who)}});
    }
  };
  input::RunOverview whole;
  whole.losses = context.run().troubles;
  add(whole, nullptr, false);
  for (const verdict::Evidence& evidence : context.run().evidence)
    add(verdict::losses_of(evidence), shown(evidence.source), &evidence == context.main());
  return list;
}

std::string headline(const verdict::DiagnosedRun& run) {
  if (const Finding* verdict = run.verdict()) return verdict->statement;
  std::string seen;
  bool still_runs = false;
  for (const verdict::Evidence& evidence : run.evidence) {
    seen += seen.empty() ? "" : "; ";
    const auto coverage = evidence.job ? std::optional(verdict::cover(evidence)) : std::nullopt;
    still_runs = still_runs || (coverage && coverage->still_runs());
    seen += coverage ? seen_sentence(*coverage) : evidence.source + ": " + evidence.content;
  }
  return std::string(verdict::healthy_words(still_runs, run.asked_all())) + ": " + seen + ".";
}

}  // namespace

Json verdict_page(const ReportContext& context, const std::vector<Row>& rows, const OperationPlaces& places) {
  const verdict::DiagnosedRun& run = context.run();
  Json cards = Json::array();
  for (size_t i = 0; i < run.diagnosis.findings.size(); ++i)
    cards.push_back(card_json(context, i, rows, places));
  const Finding* verdict = run.verdict();
  uint64_t events = 0;
  Json losses = losses_json(context, events);
  return {{"state", verdict == nullptr               ? "healthy"
                    : verdict::cannot_tell(*verdict) ? "cannot tell"
                                                     : "problem"},
          {"headline", shown(headline(run))},
          {"finding", or_null(run.diagnosis.verdict)},
          {"cards", std::move(cards)},
          {"losses", std::move(losses)},
          {"lost_events", events}};
}

}  // namespace lockstep::report
