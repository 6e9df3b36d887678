// SPDX-License-Identifier: Apache-2.0
// A diagnosis for people, in the order in which they ask: what is wrong, why, who, what to do, what else,
// what was seen and what was not, what was lost. Long lists are cut unless -v is given, as the first lines
// have to be read. Commands stay unbroken, so that they can be copied.
#include "cli/diagnose/report_text.h"

#include <algorithm>
#include <cctype>

#include "base/text/units.h"
#include "base/text/wording.h"
#include "base/text/wrap.h"
#include "input/losses.h"
#include "verdict/coverage.h"
#include "verdict/link_checks.h"
#include "verdict/link_evidence.h"

namespace lockstep::cli::diagnose {
namespace {

using analysis::Finding;
using analysis::Severity;

constexpr size_t kFew = 2;        // so many further findings are printed in full
constexpr size_t kLossLines = 3;  // of a report that is not verbose
constexpr size_t kFindingLines = 20;
constexpr size_t kWhoLines = 8;

std::string painted(const Finding& finding, const std::string& word, const Style& style) {
  if (finding.severity == Severity::kNote) return style.faint(word);
  // A verdict that cannot tell is no alarm, however severe the missing evidence is.
  return finding.severity == Severity::kCritical && !verdict::cannot_tell(finding) ? style.bad(word)
                                                                                   : style.warning(word);
}

// Whether the statement has told it, as it stands.
bool is_stated(const Finding& finding, std::string_view fact) {
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  const std::string_view statement = finding.statement;
  for (size_t at = statement.find(fact); at != std::string_view::npos; at = statement.find(fact, at + 1)) {
    const size_t end = at + fact.size();
    // "2.5 s" is not in "12.5 s", nor "5 s".
    if ((at == 0 || (!is_word(statement[at - 1]) && statement[at - 1] != '.')) &&
        (end == statement.size() || !is_word(statement[end])))
      return true;
  }
  return false;
}

class Report {
 public:
  Report(const verdict::DiagnosedRun& run, const Style& style, bool verbose)
      : run_(run), style_(style), verbose_(verbose) {
    for (const verdict::Evidence& evidence : run.evidence) {
      coverages_.push_back(evidence.job ? std::optional(verdict::cover(evidence)) : std::nullopt);
    }
  }

  std::string text() {
    if (const Finding* verdict = run_.verdict()) {
      finding(*verdict);
    } else {
      const std::string words(verdict::healthy_words(still_runs(), run_.asked_all()));
      paragraph(style_.good(words), words.size(), ": " + (several() ? kinds() : seen(0)) + ".");
    }
    others();
    // A healthy run of one kind has said it in its first sentence.
    if (run_.verdict() != nullptr || several()) {
      for (size_t i = 0; i < run_.evidence.size(); ++i) labelled("Seen", of(i) + seen(i) + ".");
    }
    // If they are the only evidence, they have a line already.
    if (!run_.link_samples.empty() && !run_.evidence.front().is_of_hosts)
      labelled("Seen", std::string(verdict::kLinkCounters) + ": " +
                           verdict::link_samples_sentence(run_.link_samples) + ".");
    if (!run_.link_checks.empty() && run_.evidence.front().source != verdict::kLinkChecks)
      labelled("Seen", std::string(verdict::kLinkChecks) + ": " +
                           verdict::link_checks_sentence(run_.link_checks) + ".");
    for (size_t i = 0; i < coverages_.size(); ++i) {
      if (!coverages_[i]) continue;
      if (std::string alive = verdict::alive_sentence(*coverages_[i]); !alive.empty())
        labelled("Now", alive + ".");
    }
    for (size_t i = 0; i < coverages_.size(); ++i) {
      if (!coverages_[i]) continue;
      for (const std::string& line : verdict::not_seen(*coverages_[i])) labelled("Not seen", of(i) + line);
    }
    for (const std::string& line : verdict::absent_from(run_)) labelled("Not seen", line);
    losses();
    return std::move(out_);
  }

 private:
  bool still_runs() const {
    return std::any_of(coverages_.begin(), coverages_.end(),
                       [](const auto& coverage) { return coverage && coverage->still_runs(); });
  }
  bool several() const { return run_.evidence.size() > 1; }
  // "capture files: " where there is more than one kind of evidence.
  std::string of(size_t evidence) const { return several() ? run_.evidence[evidence].source + ": " : ""; }
  std::string seen(size_t evidence) const {
    return coverages_[evidence] ? verdict::seen_sentence(*coverages_[evidence])
                                : run_.evidence[evidence].content;
  }
  // "capture files, Flight Recorder dumps and logs agree"
  std::string kinds() const {
    std::string text;
    for (size_t i = 0; i < run_.evidence.size(); ++i)
      text += (i == 0 ? "" : i + 1 == run_.evidence.size() ? " and " : ", ") + run_.evidence[i].source;
    return text + " show none";
  }

  // `head` takes `columns` of the first line.
  void paragraph(const std::string& head, size_t columns, const std::string& text) {
    // Colour codes have no width. So the head is measured by a stand-in of plain letters and put before the
    // rest.
    std::string body = wrap(std::string(columns, 'x') + text, 0, style_.columns());
    out_ += head + body.substr(columns) + '\n';
  }
  void labelled(const std::string& label, const std::string& text) {
    constexpr size_t kIndent = 10;
    // A label stands once, before the first of its lines.
    std::string shown = label == last_label_ ? "" : label;
    if (last_label_.empty()) out_ += '\n';
    last_label_ = label;
    out_ += style_.heading(shown) + std::string(kIndent - shown.size(), ' ') +
            wrap(text, kIndent, style_.columns()) + '\n';
  }
  void item(const std::string& text) { out_ += "  * " + wrap(text, 4, style_.columns()) + '\n'; }
  void heading(const std::string& text) { out_ += '\n' + style_.heading(text) + '\n'; }

  // Of what the finding rests on: other evidence may be of another run.
  int64_t newest_ns(const Finding& finding) const {
    int64_t newest = 0;
    for (size_t i = 0; i < coverages_.size(); ++i) {
      const bool is_of_it = std::find(finding.sources.begin(), finding.sources.end(),
                                      run_.evidence[i].source) != finding.sources.end();
      if (coverages_[i] && is_of_it) newest = std::max(newest, coverages_[i]->newest_ns);
    }
    return newest;
  }

  void finding(const Finding& finding) {
    const std::string word(verdict::word(finding));
    paragraph(painted(finding, word, style_), word.size(), ": " + finding.statement);
    std::string facts(id_text(finding.id));
    if (finding.ranks.size() > 1) facts += "; " + wording::ranks(finding.ranks);
    if (finding.since_ns) {
      facts += "; since " + format_time(*finding.since_ns);
      // The times of a finished run mean little by themselves; the distance to its end says how long it went
      // on. Of a wait that is the effect.
      const bool is_wait = finding.effect && finding.effect->unit == "ns" &&
                           analysis::facts(class_of(finding.id)).family != analysis::Family::kSlow;
      if (const int64_t newest = newest_ns(finding); !is_wait && *finding.since_ns < newest)
        facts += ", " + format_duration(static_cast<double>(newest - *finding.since_ns)) +
                 " before the newest record";
    }
    if (finding.effect) {
      if (const std::string effect = verdict::effect_text(*finding.effect); !is_stated(finding, effect))
        facts += "; effect " + effect;
    }
    out_ += style_.faint("  [" + wrap(facts, 3, style_.columns() - 1) + "]") + '\n';
    evidence_of(finding);
    who(finding);
    if (!finding.advice.empty() || !finding.next.empty()) heading("Do next");
    if (!finding.advice.empty()) out_ += "  " + wrap(finding.advice, 2, style_.columns()) + '\n';
    for (const std::string& command : finding.next)
      out_ += "    " + command + '\n';  // unbroken, to be copied
    if (!finding.needed_evidence.empty()) heading("What would decide it");
    if (!finding.needed_evidence.empty())
      out_ += "  " + wrap(finding.needed_evidence, 2, style_.columns()) + '\n';
  }

  // Where the statement has them as a list of ranks.
  void who(const Finding& finding) {
    if (finding.who.size() < 2) return;
    heading("Who");
    for (size_t i = 0; i < std::min(finding.who.size(), kWhoLines); ++i) item(finding.who[i].text());
    if (finding.who.size() > kWhoLines)
      item("... and " + format_count(finding.who.size() - kWhoLines) + " more; --json has all");
  }

  // What each kind of evidence says stands together, under its name. What the statement has told is not told
  // again; --json has all.
  void evidence_of(const Finding& finding) {
    std::string shown;
    bool any = false;
    for (const std::string& line : finding.evidence) {
      const auto source = std::find_if(
          finding.sources.begin(), finding.sources.end(),
          [&](const std::string& name) { return line.compare(0, name.size() + 2, name + ": ") == 0; });
      const std::string fact = source == finding.sources.end() ? line : line.substr(source->size() + 2);
      if (is_stated(finding, fact)) continue;
      if (!any) heading("Why");
      any = true;
      if (source != finding.sources.end() && shown != *source) {
        out_ += "  " + style_.faint("According to the " + *source) + '\n';
        shown = *source;
      }
      item(fact);
    }
  }

  void others() {
    const std::vector<Finding>& all = run_.diagnosis.findings;
    std::vector<const Finding*> others;
    for (const Finding& other : all) {
      if (&other != run_.verdict()) others.push_back(&other);
    }
    if (others.empty()) return;
    heading(run_.verdict() == nullptr ? "Worth knowing" : "Other findings");
    bool in_full = verbose_ || others.size() <= kFew;
    size_t shown = verbose_ ? others.size() : std::min(others.size(), kFindingLines);
    for (size_t i = 0; i < shown; ++i) other(*others[i], in_full);
    if (shown < others.size()) item("... and " + format_count(others.size() - shown) + " more; -v shows all");
  }

  void other(const Finding& finding, bool in_full) {
    const std::string word(verdict::word(finding));
    std::string text = wrap(word + ": " + finding.statement, 4, style_.columns());
    out_ += "  * " + painted(finding, word, style_) + text.substr(word.size()) + '\n';
    if (!in_full) return;
    for (const std::string& line : finding.evidence)
      if (!is_stated(finding, line)) out_ += "      - " + wrap(line, 8, style_.columns()) + '\n';
    if (!finding.advice.empty()) out_ += "      > " + wrap(finding.advice, 8, style_.columns()) + '\n';
    for (const std::string& command : finding.next) out_ += "        " + command + '\n';
  }

  void losses() {
    std::vector<std::string> lines;
    const auto add = [&](const input::RunOverview& run, const std::string& of) {
      for (const std::string& line : input::loss_sentences(run))
        // Without "lost: ", as the label says it.
        lines.push_back(of + line.substr(line.find(' ') + 1));
    };
    input::RunOverview whole;
    whole.losses = run_.troubles;
    add(whole, "");
    for (size_t i = 0; i < run_.evidence.size(); ++i) add(verdict::losses_of(run_.evidence[i]), of(i));
    if (lines.empty()) return labelled("Lost", "nothing.");
    size_t shown = verbose_ ? lines.size() : std::min(lines.size(), kLossLines);
    for (size_t i = 0; i < shown; ++i) labelled("Lost", lines[i]);
    if (shown < lines.size())
      labelled("Lost", "... and " + format_count(lines.size() - shown) + " more kinds; -v shows all");
  }

  const verdict::DiagnosedRun& run_;
  const Style& style_;
  const bool verbose_;
  std::vector<std::optional<verdict::Coverage>> coverages_;  // by evidence; none where it holds no job
  std::string out_, last_label_;
};

}  // namespace

std::string report_text(const verdict::DiagnosedRun& run, const Style& style, bool verbose) {
  return Report(run, style, verbose).text();
}

}  // namespace lockstep::cli::diagnose
