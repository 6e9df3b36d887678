// SPDX-License-Identifier: Apache-2.0
// `lockstep explain ID` prints docs/findings.md, which is built into the program, instead of texts of its
// own: there is one place to mend. The rules of logs are the exception: they are in rules.def.
#include "verdict/findings_page.h"

#include <algorithm>

#include "analysis/finding_id.h"
#include "base/ascii.h"
#include "base/text/wrap.h"

namespace lockstep::verdict {
namespace {

constexpr std::string_view kBlanks = " \n";

bool begins(std::string_view text, std::string_view with) { return text.substr(0, with.size()) == with; }

// Calls visit(line, its place in the page).
template <class Visit>
void for_lines(std::string_view page, const Visit& visit) {
  for (size_t at = 0; at < page.size();) {
    const size_t end = std::min(page.find('\n', at), page.size());
    visit(page.substr(at, end - at), at);
    at = end + 1;
  }
}

std::vector<std::string_view> cells(std::string_view row) {
  std::vector<std::string_view> list;
  row = trimmed(row, kBlanks);
  if (begins(row, "|")) row.remove_prefix(1);
  while (!row.empty()) {
    const size_t end = std::min(row.find('|'), row.size());
    list.push_back(trimmed(row.substr(0, end), kBlanks));
    row.remove_prefix(std::min(end + 1, row.size()));
  }
  return list;
}

// The page's form is the interface: a section with an id as its title is one entry, and so is each row of a
// table outside sections whose first cell is code.
std::vector<Entry> parse(std::string_view page) {
  std::vector<Entry> list;
  std::string_view chapter, columns, previous;
  size_t section = 0;  // begin of its body; 0 none
  const auto close = [&](size_t end) {
    // No row is added within a section, so the last entry is the section's.
    if (section != 0) list.back().body = trimmed(page.substr(section, end - section), kBlanks);
    section = 0;
  };
  for_lines(page, [&](std::string_view line, size_t at) {
    if (begins(line, "## ") || begins(line, "### ")) close(at);
    const bool is_id = begins(line, "### ") && line.size() > 4 && line[4] >= 'a' && line[4] <= 'z';
    if (begins(line, "## ") || (begins(line, "### ") && !is_id)) {
      chapter = trimmed(line.substr(3), kBlanks);
    } else if (is_id) {
      list.push_back({line.substr(4), chapter, {}, {}});
      section = at + line.size() + 1;
    } else if (begins(line, "|--")) {
      columns = previous;
    } else if (section == 0 && begins(line, "| `")) {
      const auto row = cells(line);
      list.push_back({row[0].substr(1, row[0].size() - 2), chapter, line, columns});
    }
    previous = line;
  });
  close(page.size());
  return list;
}

// What logs can show has one source, rules.def.
struct RuleText {
  analysis::FindingId id;
  std::string_view says, advice;
};

constexpr RuleText kLogRules[] = {
#define RULE(function, id, says, advice) {analysis::FindingId::k##id, says, advice},
#define RULES(...) RULE(__VA_ARGS__)
#define MESSAGE(kind, when, ...) RULE(kind, __VA_ARGS__)
#define UNMATCHED(...) RULE(none, __VA_ARGS__)
#include "analysis/log_rules/rules.def"
#undef UNMATCHED
#undef MESSAGE
#undef RULES
#undef RULE
};

constexpr RuleText kAmdAdvice[] = {
#define ADVICE(id, advice) {analysis::FindingId::k##id, {}, advice},
#include "analysis/log_rules/amd_advice.def"
#undef ADVICE
};

std::string remedy_of(const RuleText& rule) {
  for (const RuleText& of : kAmdAdvice)
    if (of.id == rule.id) return std::string(rule.advice) + " AMD: " + std::string(of.advice);
  return std::string(rule.advice);
}

constexpr std::string_view kRuleChapter = "What logs show";
constexpr std::string_view kRuleColumns = "| Id | Severity | Says | Remedy |";

// Without what the lines alone fill: "failed (...)" and "(......)" say no more than "failed".
std::string without_gaps(std::string text) {
  for (size_t at = text.find(" (..."); at != std::string::npos; at = text.find(" (...", at + 1)) {
    const size_t end = text.find_first_not_of('.', at + 2);
    if (end != std::string::npos && text[end] == ')') text.erase(at, end + 1 - at);
  }
  return text;
}

// "{who}: card {1} failed ({2})" -> "RANKS: card ... failed"
std::string sentence_of(const RuleText& rule) {
  std::string out;
  for (size_t at = 0; at < rule.says.size(); ++at) {
    const size_t close = rule.says[at] == '{' ? rule.says.find('}', at) : std::string_view::npos;
    if (close == std::string_view::npos) {
      out += rule.says[at];
      continue;
    }
    out += rule.says.substr(at, close + 1 - at) == "{who}" ? "RANKS" : "...";
    at = close;
  }
  // Of a sentence whose subject the lines make, or all of it, what it means.
  return begins(out, "...") || out == "RANKS: ..." ? std::string(facts(rule.id).meaning) : without_gaps(out);
}

const std::vector<std::string>& rule_rows() {
  // Made once and kept: entries are views into these texts.
  static const std::vector<std::string> rows = [] {
    std::vector<std::string> list;
    for (const RuleText& rule : kLogRules) {
      list.push_back("| `" + std::string(id_text(rule.id)) + "` | " +
                     std::string(severity_text(facts(rule.id).severity)) + " | " + sentence_of(rule) + " | " +
                     remedy_of(rule) + " |");
    }
    return list;
  }();
  return rows;
}

std::vector<Entry> all_entries() {
  std::vector<Entry> list = parse(kFindingsPage);
  const size_t written = list.size();
  for (size_t i = 0; i < std::size(kLogRules); ++i) {
    const std::string_view id = id_text(kLogRules[i].id);
    const auto page_end = list.begin() + static_cast<std::ptrdiff_t>(written);
    // What the page explains at length wins over the rule's own words.
    if (std::none_of(list.begin(), page_end, [&](const Entry& entry) { return entry.id == id; }))
      list.push_back({id, kRuleChapter, rule_rows()[i], kRuleColumns});
  }
  return list;
}

// Links lose where they lead to.
std::string plain(std::string_view markdown) {
  std::string out;
  for (size_t at = 0; at < markdown.size(); ++at) {
    const size_t close = markdown[at] == '[' ? markdown.find("](", at) : std::string_view::npos;
    const size_t end = close == std::string_view::npos ? close : markdown.find(')', close);
    if (end == std::string_view::npos) {
      out += markdown[at];
      continue;
    }
    out += markdown.substr(at + 1, close - at - 1);
    at = end;
  }
  return out;
}

std::string section_text(std::string_view body, size_t width) {
  std::string out, paragraph;
  bool is_code = false;
  const auto flush = [&] {
    if (!paragraph.empty()) out += wrap(plain(paragraph), 0, width) + '\n';
    paragraph.clear();
  };
  for_lines(body, [&](std::string_view line, size_t) {
    if (begins(line, "```")) {
      flush();
      is_code = !is_code;
    } else if (is_code) {
      out += "    " + wrap(line, 4, width) + '\n';
    } else if (line.empty()) {
      flush();
      out += '\n';
    } else if (begins(line, "|") || begins(line, "* ")) {
      flush();
      if (!begins(line, "|--")) out += wrap(plain(line), 2, width) + '\n';
    } else {
      paragraph += (paragraph.empty() ? "" : " ") + std::string(line);
    }
  });
  flush();
  return out;
}

std::string row_text(const Entry& entry, const Style& style) {
  const auto names = cells(entry.columns), values = cells(entry.body);
  std::string out;
  for (size_t i = 1; i < std::min(names.size(), values.size()); ++i) {
    const std::string name(names[i]);
    out += style.heading(name) + std::string(name.size() < 12 ? 12 - name.size() : 1, ' ') +
           wrap(plain(values[i]), 12, style.columns()) + '\n';
  }
  return out;
}

}  // namespace

const std::vector<Entry>& entries() {
  static const std::vector<Entry> all = all_entries();
  return all;
}

std::string list(const Style& style, size_t width) {
  constexpr size_t kMeaningColumn = 36;
  std::string text;
  for (const analysis::FindingFacts& finding : analysis::kFindings) {
    const size_t blanks = std::max(kMeaningColumn, finding.id.size() + 2) - finding.id.size();
    text += style.heading(finding.id) + std::string(blanks, ' ') +
            wrap(finding.meaning, finding.id.size() + blanks, width) + '\n';
  }
  return text;
}

std::string alike(std::string_view id) {
  const std::string_view word = id.substr(0, id.find('.'));
  std::string text;
  for (const analysis::FindingFacts& finding : analysis::kFindings) {
    // Part of a class, so that `slow` finds `slow-link` and `slow-nic`.
    if (class_text(finding.finding_class).find(word) != std::string_view::npos)
      text += ' ' + std::string(finding.id);
  }
  return text;
}

std::string text(const Entry& entry, const Style& style) {
  return style.heading(entry.id) + "  " + style.faint("(" + std::string(entry.chapter) + ")") + "\n\n" +
         (entry.columns.empty() ? section_text(entry.body, style.columns()) : row_text(entry, style));
}

}  // namespace lockstep::verdict
