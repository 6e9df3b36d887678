// SPDX-License-Identifier: Apache-2.0
// Reads both runs and says in sentences what the comparison comes to. The runs are read one after the other,
// and only sums by step of A stay while B is read: two large jobs at once may not fit into memory. The
// verdict follows the step, as that is what a user waits for. The cause is the row that adds most to a step,
// of the kinds of row that blame a place.
#include "cli/compare/compared_runs.h"

#include <algorithm>
#include <cmath>

#include "analysis/summary/across.h"
#include "base/text/units.h"
#include "base/text/wording.h"
#include "input/input.h"
#include "job/clock/clock.h"
#include "job/gather/gather.h"
#include "job/match/match.h"

namespace lockstep::cli::compare {
namespace {

using analysis::compare::Change;
using analysis::compare::Level;
using analysis::compare::Metric;
using analysis::compare::Ratio;
using analysis::compare::Row;
using analysis::compare::Samples;

Result<Samples> read_samples(const std::string& path, ComparedRun& run,
                             const std::function<void(double)>& progress) {
  run.path = path;
  LOCKSTEP_ASSIGN(input::MixedInput input, input::open_mixed_input({path}));
  if (input.runs.empty())
    return Error{ErrorCode::kInvalidInput, "holds no operations, so there is nothing to compare", path};
  // Runs are in the order in which they are trusted; a mix of evidence is not added up.
  input::Input& first = input.runs.front();
  run.evidence = first.evidence;
  LOCKSTEP_ASSIGN(model::Job job, job::gather::gather(*first.source, {.threads = 0, .progress = progress}));
  run.overview = first.source->overview();
  run.overview.losses.insert(run.overview.losses.end(), input.troubles.begin(), input.troubles.end());
  for (const model::JobProcess& process : job.processes) run.lost += process.lost;
  std::vector<analysis::Finding> findings;  // `diagnose` reports them
  job::match::align(job);
  job::clock::align(job, findings);
  Samples samples = analysis::compare::take(job);
  run.steps_by = samples.steps_by;
  return samples;
}

std::string percent(double share) { return format_decimal(share * 100, share < 1 ? 1 : 0) + " %"; }

// "8.1 % slower" and what it rests on, of a row whose larger ratio is bad.
std::string more(const Ratio& of) { return "95 %: " + percent(of.low - 1) + " to " + percent(of.high - 1); }
std::string less(const Ratio& of) { return "95 %: " + percent(1 - of.high) + " to " + percent(1 - of.low); }

std::string step_sentence(const Row& row, Verdict::State& state) {
  const std::string times =
      "a step takes " + format_duration(row.b) + " instead of " + format_duration(row.a);
  if (row.change == Change::kWorse) {
    state = Verdict::State::kSlower;
    return "B is " + percent(row.ratio->ratio - 1) + " slower: " + times + " (" + more(*row.ratio) + ")";
  }
  if (row.change == Change::kBetter) {
    state = Verdict::State::kFaster;
    return "B is " + percent(1 - row.ratio->ratio) + " faster: " + times + " (" + less(*row.ratio) + ")";
  }
  if (row.change == Change::kNone) {
    state = Verdict::State::kSame;
    return "B is as fast as A, as far as the data shows: a step takes " +
           format_decimal(row.ratio->ratio, 3) +
           " times as long (95 %: " + format_decimal(row.ratio->low, 3) + " to " +
           format_decimal(row.ratio->high, 3) + ")";
  }
  return "Cannot tell whether B is slower: " + row.reason;
}

// What says where the time went, as against that it did.
// Durations hold the waiting for whoever else is slow, and steps hold everything: neither says where.
bool may_be_cause(const Row& row) {
  return row.change == Change::kWorse && row.cost_ns > 0 &&
         ((row.metric == Metric::kBusbw && row.level == Level::kComm) ||
          (row.metric == Metric::kLateness && row.level == Level::kRank));
}

std::string cause_sentence(const analysis::compare::Comparison& comparison, const Row& row) {
  std::string text;
  if (row.metric == Metric::kBusbw) {
    // If most communicators lost bandwidth at this size, the worst one alone is not the cause.
    size_t alike = 0, worse = 0;
    for (const Row& other : comparison.rows) {
      if (other.metric != row.metric || other.level != row.level || other.func != row.func ||
          other.size_from != row.size_from || !other.ratio)
        continue;
      ++alike;
      worse += other.change == Change::kWorse;
    }
    const bool all = worse > 1 && worse * 2 > alike;
    text = row.func + " of " + analysis::summary::size_range(row.size_from) +
           (all ? ", worst in " + row.comm + "," : " in " + row.comm) + " lost " +
           percent(1 - row.ratio->ratio) + " of its bandwidth (" + less(*row.ratio) + ")";
    if (all) text += ", as in " + std::to_string(worse) + " of " + wording::count(alike, "communicator");
  } else {
    text = "rank " + std::to_string(row.rank) + " costs the other ranks " + format_duration(row.b) +
           " per step on average (" + format_duration(row.a) + " in A)";
  }
  if (!row.since) return text;
  text += row.since->from_begin ? ", from the start" : ", since " + since_text(*row.since);
  if (row.since->ratio && !row.since->from_begin && row.metric == Metric::kBusbw)
    text += "; from there " + percent(1 - row.since->ratio->ratio);
  return text;
}

}  // namespace

Result<ComparedRuns> compare_runs(const std::string& a, const std::string& b,
                                  const std::function<void(double)>& progress) {
  ComparedRuns runs;
  LOCKSTEP_ASSIGN(const Samples of_a, read_samples(a, runs.a, [&](double done) { progress(done / 2); }));
  LOCKSTEP_ASSIGN(const Samples of_b,
                  read_samples(b, runs.b, [&](double done) { progress((1 + done) / 2); }));
  runs.comparison = analysis::compare::compare(of_a, of_b);
  return runs;
}

Verdict verdict(const ComparedRuns& runs) {
  Verdict out;
  const auto& rows = runs.comparison.rows;
  const Row* step = runs.comparison.find(Metric::kStep, Level::kJob, "", 0);
  if (step != nullptr) {
    out.headline = step_sentence(*step, out.state);
  } else {
    // Without steps on both sides the other rows decide, but how much slower B is stays open.
    const bool comparable =
        std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.ratio.has_value(); });
    const bool worse =
        std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.change == Change::kWorse; });
    if (comparable) out.state = worse ? Verdict::State::kSlower : Verdict::State::kSame;
    out.headline = !comparable ? "These two runs cannot be compared"
                   : worse     ? "Some of B is slower; step lengths do not compare"
                           : "Nothing in B is slower, as far as the data shows; step lengths do not compare";
  }
  double most = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!may_be_cause(rows[i]) || rows[i].cost_ns <= most) continue;
    most = rows[i].cost_ns;
    out.cause = i;
  }
  if (out.cause != SIZE_MAX)
    out.headline += (out.state == Verdict::State::kSame ? ". But " : ". The largest cost: ") +
                    cause_sentence(runs.comparison, rows[out.cause]);
  out.headline += ".";
  return out;
}

std::string_view state_text(Verdict::State state) {
  constexpr std::string_view kTexts[] = {"same", "faster", "slower", "cannot tell"};
  return kTexts[static_cast<size_t>(state)];
}

bool repeats(const Row& row) { return row.classes == 1 && !row.time.empty() && row.level < Level::kComm; }

std::string row_text(const Row& row) {
  switch (row.level) {
    case Level::kJob:
      if (row.metric == Metric::kStep) return "step";
      if (row.metric == Metric::kLateness) return "the latest rank";
      return row.metric == Metric::kExposed ? "all ranks" : "all operations";
    case Level::kFunc:
      return row.func;
    case Level::kSize:
      return row.func + " " + analysis::summary::size_range(row.size_from);
    case Level::kComm:
      return row.func + " " + analysis::summary::size_range(row.size_from) + " in " + row.comm;
    case Level::kRank:
      return "rank " + std::to_string(row.rank);
  }
  return "?";
}

std::string since_text(const analysis::compare::Since& since) {
  const std::string unit = since.by_operations ? "operation " : "step ";
  std::string text = since.from_begin ? "the start" : unit + std::to_string(since.step);
  if (since.until_step) text += " until " + unit + std::to_string(*since.until_step);
  return text;
}

}  // namespace lockstep::cli::compare
