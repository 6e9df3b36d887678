// SPDX-License-Identifier: Apache-2.0
// Turns the samples of two runs into rows with a ratio each, and decides which of them are changes. Among
// hundreds of ratios some look changed by chance, so the smallest p-values are accepted only as far as the
// false discovery rate allows (Benjamini and Hochberg). A row without enough steps says why it has no ratio
// instead of giving a poor one.
#include "analysis/compare/comparison.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>

#include "analysis/compare/class_pairs.h"
#include "analysis/compare/comm_pairs.h"
#include "analysis/compare/segments.h"
#include "base/parallel.h"
#include "base/text/wording.h"
#include "model/names/op_names.h"

namespace lockstep::analysis::compare {
namespace {

// Not the same seed: equal draws of both runs would move together and make their ratio look too sure.
constexpr uint64_t kSeedA = 1, kSeedB = 2;
constexpr size_t kMostNames = 4;

// A figure by step, with the block that each value is of.
struct Values {
  std::vector<float> values;
  std::vector<uint32_t> blocks;
  void add(double value, size_t block) {
    values.push_back(static_cast<float>(value));
    blocks.push_back(static_cast<uint32_t>(block));
  }
};

Values values_of(const Series& series, double plus) {
  Values out;
  for (size_t i = 0; i < series.sums.size(); ++i) {
    if (series.units[i] > 0) out.add(series.sums[i] / series.units[i] + plus, i);
  }
  return out;
}

double median(std::vector<float> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return static_cast<double>(*middle);
}

// A class in both runs.
struct ClassPair {
  const ClassKey* key = nullptr;  // of a
  const ClassSamples *a = nullptr, *b = nullptr;
  double reference = 0;  // a's typical time of a unit
  uint32_t comm_b = 0;
  double ranks = 1;  // of b, that are in it
  double summed =
      1;  // of these, those whose times are in the sums: a bandwidth's time is that of all at once
};

// Time of all ranks against what run a takes for the same operations: classes of any size add up.
Values index_of(const std::vector<const ClassPair*>& classes, const ClassSamples* ClassPair::*side) {
  size_t blocks = 0;
  for (const ClassPair* of : classes) blocks = std::max(blocks, (of->*side)->series.sums.size());
  std::vector<double> took(blocks), expected(blocks);
  for (const ClassPair* of : classes) {
    const Series& series = (of->*side)->series;
    for (size_t i = 0; i < series.sums.size(); ++i) {
      took[i] += series.sums[i] * of->ranks / of->summed;
      expected[i] += of->reference * series.units[i] * of->ranks / of->summed;
    }
  }
  Values out;
  for (size_t i = 0; i < blocks; ++i) {
    if (expected[i] > 0) out.add(took[i] / expected[i], i);
  }
  return out;
}

double total(const Column<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

// One row to be made, of times: how they become the row's figures follows from its metric.
struct PendingRow {
  Row row;
  std::function<Values()> a, b;
  double plus = 0;          // what values have on top
  double scale = 1;         // of a figure: busbw is scale / value, all else (value - plus) * scale
  double units_a_step = 1;  // of b, that one rank goes through
};

// A ratio of times, as one of the row's figures.
Ratio as_figure(const Ratio& of, bool more_is_better) {
  return more_is_better ? Ratio{1 / of.ratio, 1 / of.high, 1 / of.low, of.p} : of;
}

// Where what got worse began. Of several levels in b, those count that are more than half as bad as the
// worst.
std::optional<Since> since_of(const Values& of_b, const Estimate& typical_a, bool more_is_better,
                              const Samples& b) {
  const std::vector<Part> levels = parts(of_b.values);
  double worst = 0;
  for (const Part& part : levels) worst = std::max(worst, part.mean - typical_a.value);
  const auto is_bad = [&](const Part& part) { return part.mean - typical_a.value > worst / 2; };
  const auto first = std::find_if(levels.begin(), levels.end(), is_bad);
  if (first == levels.end() || b.blocks.empty()) return std::nullopt;
  std::vector<float> bad;
  for (auto part = first; part != levels.end(); ++part) {
    if (is_bad(*part))
      bad.insert(bad.end(), of_b.values.begin() + static_cast<ptrdiff_t>(part->begin),
                 of_b.values.begin() + static_cast<ptrdiff_t>(part->end));
  }
  const auto block_at = [&](size_t value) -> const Samples::Block& {
    return b.blocks[std::min<size_t>(of_b.blocks[value], b.blocks.size() - 1)];
  };
  Since since;
  since.by_operations = b.steps_by == Samples::Steps::kOperations;
  since.from_begin = first->begin == 0;
  since.step = block_at(first->begin).number;
  since.begin_ns = block_at(first->begin).begin_ns;
  const auto last = std::find_if(levels.rbegin(), levels.rend(), is_bad);
  if (last->end < of_b.values.size()) {
    since.until_step = block_at(last->end).number;
    since.until_ns = block_at(last->end).begin_ns;
  }
  if (const auto then = estimate(bad, kSeedB))
    since.ratio = as_figure(ratio(typical_a, *then), more_is_better);
  return since;
}

void fill(PendingRow& pending, const Samples& b) {
  Row& row = pending.row;
  const Values of_a = pending.a(), of_b = pending.b();
  row.steps_a = of_a.values.size();
  row.steps_b = of_b.values.size();
  const auto typical_a = estimate(of_a.values, kSeedA), typical_b = estimate(of_b.values, kSeedB);
  if (!typical_a || !typical_b) {
    // estimate() has no value for two reasons, and the row says which.
    const size_t fewest = std::min(row.steps_a, row.steps_b);
    row.reason = fewest < kLeastSteps ? "only " + wording::count(fewest, "step") + " in " +
                                            (row.steps_a <= row.steps_b ? "A" : "B") + "; at least " +
                                            std::to_string(kLeastSteps) + " are needed"
                                      : "its times are 0";
    return;
  }
  const Ratio times = ratio(*typical_a, *typical_b);
  const double excess_ns = typical_b->value - typical_a->value;
  row.cost_ns = excess_ns * pending.units_a_step;
  row.ratio = as_figure(times, row.more_is_better());
  row.change = Change::kNone;
  if (row.classes == 1) {
    const auto figure = [&](double value) {
      return row.more_is_better() ? pending.scale / value
                                  : std::max(value - pending.plus, 0.0) * pending.scale;
    };
    row.a = figure(typical_a->value);
    row.b = figure(typical_b->value);
  }
  // judge() needs all rows first. Most rows are not worse, so the search is spared them.
  if (times.ratio >= 1 + kWorthAWord) row.since = since_of(of_b, *typical_a, row.more_is_better(), b);
}

std::string some(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size() && i < kMostNames; ++i) text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kMostNames) text += " and " + std::to_string(names.size() - kMostNames) + " more";
  return text;
}

class Comparer {
 public:
  Comparer(const Samples& a, const Samples& b) : a_(a), b_(b), pairs_(pair_comms(a.comms, b.comms)) {}

  Comparison run() {
    out_.steps_by_a = a_.steps_by;
    out_.steps_by_b = b_.steps_by;
    out_.begin_ns_b = b_.begin_ns;
    out_.steps_in_block_b = b_.steps_in_block;
    note_ranks();
    note_comms();
    out_.step_ns = median(values_of(a_.step, 0).values);
    plus_ = out_.step_ns;
    add_steps();
    add_classes(Metric::kBusbw, a_.moving, b_.moving);
    add_classes(Metric::kDuration, a_.durations, b_.durations);
    add_communicating();
    add_ranks(Metric::kLateness, a_.late, b_.late);
    add_ranks(Metric::kExposed, a_.exposed, b_.exposed);
    // Rows are independent. Estimates have fixed seeds, so the number of threads does not change the answer.
    for_each_parallel(pending_.size(), parallel_threads(), [&](size_t i) { fill(pending_[i], b_); });
    for (PendingRow& pending : pending_) out_.rows.push_back(std::move(pending.row));
    judge();
    return std::move(out_);
  }

 private:
  void note(std::string text) { out_.notes.push_back(std::move(text)); }

  void note_ranks() {
    if (a_.processes != b_.processes)
      note("A has " + wording::count(a_.processes, "process") + ", B " + std::to_string(b_.processes) +
           ": ranks are compared only if both runs have them");
    if (a_.unranked + b_.unranked > 0)
      note("some processes do not know their ranks, so they are not compared by rank");
    if (a_.steps_by != b_.steps_by)
      note("the steps of the two runs were found in different ways, so their lengths are not compared");
    if (a_.steps_by == Samples::Steps::kNone || b_.steps_by == Samples::Steps::kNone)
      note("too few operations to find steps: nothing can be compared");
    else if (a_.steps_by == Samples::Steps::kOperations || b_.steps_by == Samples::Steps::kOperations)
      note(
          "nothing marks steps and operations do not repeat: each operation of a class counts as a step, and only classes are compared");
    if (a_.left_out + b_.left_out > 0)
      note(std::to_string(a_.left_out + b_.left_out) +
           " operations of too many different kinds were left out");
  }

  void note_comms() {
    std::vector<bool> in_b(b_.comms.size());
    std::vector<std::string> resized, only_a, only_b;
    std::vector<bool> in_a(a_.comms.size());
    for (const CommPair& pair : pairs_) {
      in_a[pair.a] = in_b[pair.b] = true;
      const CommSamples &of_a = a_.comms[pair.a], &of_b = b_.comms[pair.b];
      if (pair.resized)
        resized.push_back(of_a.label + " (" + std::to_string(of_a.ranks) + " and " +
                          std::to_string(of_b.ranks) + " ranks)");
    }
    for (size_t i = 0; i < in_a.size(); ++i) {
      if (!in_a[i]) only_a.push_back(a_.comms[i].label);
    }
    for (size_t i = 0; i < in_b.size(); ++i) {
      if (!in_b[i]) only_b.push_back(b_.comms[i].label);
    }
    if (!resized.empty()) note("different sizes, so only bandwidths compare: " + some(resized));
    if (!only_a.empty()) note("communicators only in A: " + some(only_a));
    if (!only_b.empty()) note("communicators only in B: " + some(only_b));
  }

  void add_steps() {
    if (a_.step.sums.empty() || b_.step.sums.empty() || a_.steps_by != b_.steps_by) return;
    add_series({.metric = Metric::kStep}, a_.step, b_.step, 0);
  }

  void add_series(Row row, const Series& a, const Series& b, double plus) {
    pending_.push_back({.row = std::move(row),
                        .a = [&a, plus] { return values_of(a, plus); },
                        .b = [&b, plus] { return values_of(b, plus); },
                        .plus = plus});
  }

  // The ranks that both runs have as one: of lateness the latest of each step, as the others wait for that
  // one.
  static Series together(Metric metric, const std::map<int32_t, Series>& of,
                         const std::map<int32_t, Series>& other) {
    Series all;
    for (const auto& [rank, series] : of) {
      if (!other.contains(rank)) continue;
      for (size_t i = 0; i < series.sums.size(); ++i) {
        if (series.units[i] <= 0) continue;
        if (metric == Metric::kLateness) {
          all.add(i, 0, 0);
          const bool first = all.units[i] <= 0;
          // Compared crosswise: a block may hold several steps, and the sums are of unequal numbers of them.
          if (!first && all.sums[i] * series.units[i] >= series.sums[i] * all.units[i]) continue;
          all.sums[i] = series.sums[i];
          all.units[i] = series.units[i];
        } else {
          all.add(i, series.sums[i], series.units[i]);
        }
      }
    }
    return all;
  }

  void add_ranks(Metric metric, const std::map<int32_t, Series>& a, const std::map<int32_t, Series>& b) {
    if (a.empty() != b.empty() && a_.steps_by == b_.steps_by)
      note(std::string(metric_name(metric)) + " is known for " + (b.empty() ? "A" : "B") + " alone");
    if (a.empty() || b.empty()) return;
    sums_.push_back(
        std::make_unique<std::pair<Series, Series>>(together(metric, a, b), together(metric, b, a)));
    add_series({.metric = metric}, sums_.back()->first, sums_.back()->second, plus_);
    for (const auto& [rank, series] : a) {
      const auto other = b.find(rank);
      if (other != b.end())
        add_series({.metric = metric, .level = Level::kRank, .rank = rank}, series, other->second, plus_);
    }
  }

  void add_communicating() {
    for (const auto& [key, series] : a_.communicating) {
      const auto other = b_.communicating.find(key);
      if (other == b_.communicating.end()) continue;
      add_series({.metric = Metric::kDuration,
                  .level = Level::kRank,
                  .rank = key.first,
                  .time = std::string(time_text(key.second))},
                 series, other->second, 0);
    }
  }

  void add_classes(Metric metric, const Classes& a, const Classes& b) {
    // Times of communicators of different sizes do not compare.
    const ClassPairs of = pair_classes(a, b, pairs_, metric == Metric::kBusbw);
    auto& pairs = *class_pairs_.emplace_back(std::make_unique<std::vector<ClassPair>>());
    for (const auto& [in_a, in_b] : of.same) {
      const auto& [key, of_a] = *a.find(in_a);
      const double ranks = std::max(static_cast<double>(b_.comms[in_b.comm].processes.size()), 1.0);
      pairs.push_back({&key, &of_a, &b.at(in_b), median(values_of(of_a.series, 0).values), in_b.comm, ranks,
                       metric == Metric::kBusbw ? 1 : ranks});
    }
    const std::string what = std::string(metric_name(metric)) + ": ";
    std::vector<std::string> clocks;
    for (const auto& [in_a, in_b] : of.other_clock)
      clocks.push_back(class_text(in_a, a_) + " (" + std::string(time_text(in_a.source)) + " and " +
                       std::string(time_text(in_b.source)) + ")");
    if (!clocks.empty())
      note(what + "times were taken in different ways and do not compare: " + some(clocks));
    if (!a.empty() && !b.empty()) {
      note_lacking(what + "B lacks ", of.only_a, a_);
      note_lacking(what + "A lacks ", of.only_b, b_);
    }
    if (a.empty() || b.empty())
      note(what +
           (a.empty() && b.empty() ? "neither run has"
            : a.empty()            ? "A does not have"
                                   : "B does not have") +
           " operations with GPU times" + (metric == Metric::kBusbw ? " on all of their ranks" : "") +
           ". To get them: " + std::string(wording::gpu_times_setting((a.empty() ? a_ : b_).is_amd)));
    // Rows refer to elements of the list, so it must not grow any more.
    for (const ClassPair& pair : pairs) add_class(metric, pair);
    for (Level level : {Level::kJob, Level::kFunc, Level::kSize}) add_sums(metric, level, pairs);
  }

  void note_lacking(const std::string& who, const std::vector<ClassKey>& keys, const Samples& of) {
    std::vector<std::string> classes;
    for (const ClassKey& key : keys) classes.push_back(class_text(key, of));
    if (!classes.empty()) note(who + some(classes));
  }

  static std::string class_text(const ClassKey& key, const Samples& of) {
    return wording::name(key.func) + " of " + wording::bytes(size_from(key.bucket)) + " or more in " +
           of.comms[key.comm].label;
  }
  static uint64_t size_from(int bucket) { return bucket == 0 ? 0 : uint64_t{1} << (bucket - 1); }
  static uint64_t size_to(int bucket) { return bucket >= 64 ? UINT64_MAX : uint64_t{1} << bucket; }

  // Units of a class that one rank goes through in a step.
  double units_a_step(Metric metric, const ClassPair& pair) const {
    double steps = 0;
    for (double units : pair.b->series.units) steps += units > 0 ? static_cast<double>(b_.steps_in_block) : 0;
    // An operation is one bandwidth, but as many durations as it has members.
    const double members = metric == Metric::kBusbw ? 1 : std::max(a_.comms[pair.key->comm].ranks, 1);
    return steps > 0 ? total(pair.b->series.units) / steps / members : 0;
  }

  void add_class(Metric metric, const ClassPair& pair) {
    Row row{.metric = metric,
            .level = Level::kComm,
            .func = wording::name(pair.key->func),
            .size_from = size_from(pair.key->bucket),
            .size_to = size_to(pair.key->bucket),
            .comm = a_.comms[pair.key->comm].label,
            .time = std::string(time_text(pair.key->source)),
            .ops_a = pair.a->ops,
            .ops_b = pair.b->ops};
    if (pair.a->algorithms != pair.b->algorithms)
      row.reason = "A used " + some({pair.a->algorithms.begin(), pair.a->algorithms.end()}) + ", B " +
                   some({pair.b->algorithms.begin(), pair.b->algorithms.end()});
    const double size_a = pair.a->bytes / static_cast<double>(pair.a->ops);
    const double size_b = pair.b->bytes / static_cast<double>(pair.b->ops);
    if (metric == Metric::kDuration && std::abs(size_b - size_a) > kWorthAWord * size_a)
      row.reason += (row.reason.empty() ? "" : "; ") + std::string("their mean size is ") +
                    wording::bytes(static_cast<uint64_t>(size_a)) + " in A and " +
                    wording::bytes(static_cast<uint64_t>(size_b)) + " in B";
    pending_.push_back({.row = std::move(row),
                        .a = [&pair] { return values_of(pair.a->series, 0); },
                        .b = [&pair] { return values_of(pair.b->series, 0); },
                        .scale = metric == Metric::kBusbw ? pair.b->factor : 1,
                        .units_a_step = units_a_step(metric, pair)});
  }

  void add_sums(Metric metric, Level level, const std::vector<ClassPair>& pairs) {
    std::map<std::tuple<std::string, int, uint8_t>, std::vector<const ClassPair*>> groups;
    for (const ClassPair& pair : pairs) {
      groups[{level == Level::kJob ? "" : pair.key->func, level == Level::kSize ? pair.key->bucket : 0,
              pair.key->source}]
          .push_back(&pair);
    }
    for (const auto& [key, group] : groups) {
      const std::vector<const ClassPair*>& of = group;
      const auto& [func, bucket, source] = key;
      Row row{.metric = metric,
              .level = level,
              .func = wording::name(func),
              .time = std::string(time_text(source)),
              .classes = of.size()};
      if (level == Level::kSize) {
        row.size_from = size_from(bucket);
        row.size_to = size_to(bucket);
      }
      double expected = 0;
      std::set<uint32_t> comms, ranks;
      for (const ClassPair* pair : of) {
        row.ops_a += pair->a->ops;
        row.ops_b += pair->b->ops;
        expected += pair->reference * units_a_step(metric, *pair) * pair->ranks;
        const std::set<uint32_t>& members = b_.comms[pair->comm_b].processes;
        if (comms.insert(pair->comm_b).second) ranks.insert(members.begin(), members.end());
      }
      pending_.push_back({.row = std::move(row),
                          .a = [of] { return index_of(of, &ClassPair::a); },
                          .b = [of] { return index_of(of, &ClassPair::b); },
                          .scale = metric == Metric::kBusbw ? of.front()->b->factor / of.front()->reference
                                                            : of.front()->reference,
                          .units_a_step = expected / std::max(static_cast<double>(ranks.size()), 1.0)});
    }
  }

  void judge() {
    std::vector<double> p;
    for (const Row& row : out_.rows) {
      if (row.ratio && !repeats(row)) p.push_back(row.ratio->p);
    }
    out_.tested = p.size();
    const double stands = largest_discovery(std::move(p), kFalseShare);
    for (Row& row : out_.rows) {
      if (row.ratio && row.ratio->p <= stands && std::abs(row.ratio->ratio - 1) >= kWorthAWord)
        row.change = (row.ratio->ratio > 1) == row.more_is_better() ? Change::kBetter : Change::kWorse;
      if (row.change != Change::kWorse) row.since.reset();
    }
    const auto weight = [](const Row& row) {
      const int group = row.change == Change::kCannotTell ? 2 : row.change == Change::kNone ? 1 : 0;
      const int metric = row.metric == Metric::kStep ? 0 : row.metric == Metric::kDuration ? 2 : 1;
      const bool is_part = row.level == Level::kComm || row.level == Level::kRank;
      return std::tuple(group, metric, is_part, -std::abs(row.cost_ns));
    };
    std::stable_sort(out_.rows.begin(), out_.rows.end(),
                     [&](const Row& x, const Row& y) { return weight(x) < weight(y); });
  }

  // A sum of a single class has that class's p value. Counted twice it would distort the share of chance.
  static bool repeats(const Row& row) {
    return row.classes == 1 && !row.func.empty() && row.level != Level::kComm;
  }

  const Samples &a_, &b_;
  const std::vector<CommPair> pairs_;
  double plus_ = 0;
  std::vector<PendingRow> pending_;
  // What drafts refer to stays where it is.
  std::vector<std::unique_ptr<std::vector<ClassPair>>> class_pairs_;
  std::vector<std::unique_ptr<std::pair<Series, Series>>> sums_;
  Comparison out_;
};

}  // namespace

std::string_view metric_name(Metric metric) {
  constexpr std::string_view kNames[kMetrics] = {"step", "busbw", "duration", "lateness", "exposed"};
  return kNames[static_cast<size_t>(metric)];
}

std::string plain_func(std::string_view func) {
  std::string out;
  for (char c : func) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c != '_' && c != '-') out += c;
  }
  return out;
}

const Row* Comparison::find(Metric metric, Level level, std::string_view func, uint64_t size) const {
  const Row* best = nullptr;
  for (const Row& row : rows) {
    if (row.metric != metric || row.level != level) continue;
    if (level != Level::kJob && plain_func(row.func) != plain_func(func)) continue;
    if (level == Level::kSize && (size < row.size_from || size >= row.size_to)) continue;
    // Times taken in different ways are rows of their own; the one with the most operations counts.
    if (best == nullptr || row.ops_b > best->ops_b) best = &row;
  }
  return best;
}

Comparison compare(const Samples& a, const Samples& b) { return Comparer(a, b).run(); }

}  // namespace lockstep::analysis::compare
