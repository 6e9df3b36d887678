// SPDX-License-Identifier: Apache-2.0
// Parses gates and judges them by the whole interval and not by the ratio: a gate that passes by chance is
// worth nothing in CI. If an interval lies across the bound, the gate cannot tell, and the sentence says how
// many steps would. Gates come from command lines and scripts, so their length and number are bounded.
#include "cli/compare/gate.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text/units.h"
#include "base/text/wording.h"

namespace lockstep::cli::compare {
namespace {

using analysis::compare::Level;
using analysis::compare::Metric;
using analysis::compare::Ratio;
using analysis::compare::Row;
using State = GateResult::State;

constexpr size_t kMostCharacters = 4096, kMostGates = 64, kMostShown = 24;
// A larger bound is a slip, such as a missing decimal point.
constexpr double kLargestRatio = 1000;
constexpr double kMostLonger = 100;  // runs so much longer are no advice

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
         c == '.';
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<std::vector<Gate>> parse() {
    std::vector<Gate> gates;
    if (text_.size() > kMostCharacters)
      return error("is longer than " + std::to_string(kMostCharacters) + " characters");
    do {
      if (gates.size() == kMostGates) return error("has more than " + std::to_string(kMostGates) + " gates");
      LOCKSTEP_ASSIGN(Gate gate, parse_gate());
      gates.push_back(std::move(gate));
    } while (take(","));
    if (at_ != text_.size()) return expected("',' or the end");
    return gates;
  }

 private:
  Result<Gate> parse_gate() {
    Gate gate;
    skip_blanks();
    const size_t begin = at_;
    const std::string_view metric = word();
    if (!find_metric(metric, gate.metric)) {
      at_ = begin;
      return expected("step, busbw, duration, lateness or exposed");
    }
    gate.text = metric;
    LOCKSTEP_TRY(parse_class(gate));
    gate.at_least = take(">=");
    if (!gate.at_least && !take("<=")) return expected("'>=' or '<='");
    skip_blanks();
    const char* first = text_.data() + at_;
    const auto [end, failed] =
        // No locale, so a gate means the same on every machine. It also reads `inf` and `nan`, which are
        // refused below.
        std::from_chars(first, text_.data() + text_.size(), gate.bound, std::chars_format::fixed);
    if (failed != std::errc() || !(gate.bound > 0) || gate.bound > kLargestRatio)
      return expected("a ratio above 0, like 0.97");
    gate.text += (gate.at_least ? ">=" : "<=") + std::string(first, end);
    at_ += static_cast<size_t>(end - first);
    return gate;
  }

  Result<void> parse_class(Gate& gate) {
    if (!take(":")) return {};
    if (gate.metric != Metric::kBusbw && gate.metric != Metric::kDuration) {
      // Back to the colon, where the error is.
      --at_;
      return expected("'>=' or '<=' (only busbw and duration take a function)");
    }
    skip_blanks();
    gate.func = word();
    if (gate.func.empty()) return expected("a function, like allreduce");
    gate.level = Level::kFunc;
    gate.text += ":" + gate.func;
    if (!take(":")) return {};
    skip_blanks();
    const size_t begin = at_;
    const std::string_view size = word();
    const auto bytes = parse_bytes(size);
    if (!bytes) {
      at_ = begin;
      return expected("a size, like 64M");
    }
    gate.level = Level::kSize;
    gate.size = *bytes;
    gate.text += ":" + std::string(size);
    return {};
  }

  static bool find_metric(std::string_view name, Metric& out) {
    for (size_t i = 0; i < analysis::compare::kMetrics; ++i) {
      if (metric_name(static_cast<Metric>(i)) != name) continue;
      out = static_cast<Metric>(i);
      return true;
    }
    return false;
  }

  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  bool take(std::string_view what) {
    skip_blanks();
    if (text_.substr(at_, what.size()) != what) return false;
    at_ += what.size();
    return true;
  }
  std::string_view word() {
    const size_t begin = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  Error error(const std::string& text) const { return usage_error("--gate " + text); }
  Error expected(const std::string& what) {
    skip_blanks();
    if (at_ == text_.size()) return error("ends too early: expected " + what);
    // What stands there may be anything.
    std::string shown;
    for (char c : text_.substr(at_, kMostShown)) shown += c >= ' ' && c <= '~' ? c : '?';
    return error("is wrong at character " + std::to_string(at_ + 1) + ", before '" + shown + "': expected " +
                 what);
  }

  std::string_view text_;
  size_t at_ = 0;
};

std::string of_text(const Gate& gate) {
  std::string text(metric_name(gate.metric));
  if (gate.level != Level::kJob) text += " of " + gate.func;
  if (gate.level == Level::kSize) text += " at " + wording::bytes(gate.size);
  return text;
}

// How many times the steps would bring the interval's end to the bound, if its middle stays.
std::string advice(const Row& row, const Ratio& of, double bound) {
  const double distance = std::abs(std::log(of.ratio / bound));
  // Of the interval's two ends the one towards the bound. Its distance shrinks with the root of the number of
  // steps.
  const double reach = std::abs(std::log((of.ratio > bound ? of.low : of.high) / of.ratio));
  const double longer = distance > 0 ? reach * reach / (distance * distance) : kMostLonger + 1;
  if (longer > kMostLonger) return "; it is too close to the bound for any longer run to tell";
  const auto steps = static_cast<double>(std::min(row.steps_a, row.steps_b));
  return "; about " + format_count(static_cast<uint64_t>(std::ceil(longer * steps))) +
         " steps of each run would tell";
}

}  // namespace

Result<std::vector<Gate>> parse_gates(std::string_view text) { return Parser(text).parse(); }

GateResult judge(const Gate& gate, const analysis::compare::Comparison& comparison) {
  GateResult result;
  const Row* found = comparison.find(gate.metric, gate.level, gate.func, gate.size);
  if (found == nullptr) {
    result.sentence = "there is no " + of_text(gate) + " that both runs have";
    return result;
  }
  const Row& row = *found;
  if (!row.ratio) {
    result.sentence = row.reason;
    return result;
  }
  // What got worse within B and stays so would be diluted by the good steps before it.
  const bool lasts = row.since && !row.since->from_begin && !row.since->until_step && row.since->ratio;
  const Ratio of = lasts ? *row.since->ratio : *row.ratio;
  result.ratio = of;
  const double low = of.low, high = of.high;
  result.sentence = format_decimal(of.ratio, 3) + " (95 %: " + format_decimal(low, 3) + " to " +
                    format_decimal(high, 3) + ")";
  if (lasts)
    result.sentence += std::string(" since ") + (row.since->by_operations ? "operation " : "step ") +
                       std::to_string(row.since->step) + ", " + format_decimal(row.ratio->ratio, 3) +
                       " over all steps";
  // The bound itself passes, on either side.
  const bool all_above = low >= gate.bound, all_below = high <= gate.bound;
  if (gate.at_least ? all_above : all_below) {
    result.state = State::kPass;
  } else if (gate.at_least ? high < gate.bound : low > gate.bound) {
    result.state = State::kRegressed;
  } else {
    result.sentence += advice(row, of, gate.bound);
  }
  return result;
}

State worst(const std::vector<GateResult>& results) {
  const auto any = [&](State state) {
    return std::any_of(results.begin(), results.end(),
                       [&](const GateResult& of) { return of.state == state; });
  };
  return any(State::kRegressed)    ? State::kRegressed
         : any(State::kCannotTell) ? State::kCannotTell
                                   : State::kPass;
}

std::string_view state_text(State state) {
  constexpr std::string_view kTexts[] = {"pass", "regressed", "cannot tell"};
  return kTexts[static_cast<size_t>(state)];
}

}  // namespace lockstep::cli::compare
