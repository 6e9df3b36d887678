// SPDX-License-Identifier: Apache-2.0
// Two pictures of a step. What it lost to late ranks: of each step the cost of the rank that cost most, since
// ranks that are late together delay the others once. And how a rank spent it: computing, communicating
// hidden or exposed, copying, idle. Long runs are folded into at most 300 entries of neighbouring steps; the
// means are over the steps of an entry.
#include <algorithm>
#include <array>
#include <numeric>

#include "analysis/overlap/overlap.h"
#include "analysis/straggler/cost/delay_cost.h"
#include "analysis/summary/across.h"
#include "report/pages.h"

namespace lockstep::report {
namespace {

namespace straggler = analysis::straggler;
using model::GpuStep;

constexpr size_t kEntriesMost = 300;
// A bound on the page's size: with many rows each has fewer entries.
constexpr size_t kEntriesOfAllRows = 20'000;

std::string_view source_text(straggler::Steps::Source source) {
  switch (source) {
    case straggler::Steps::Source::kMarks:
      return "marks";
    case straggler::Steps::Source::kPeriod:
      return "period";
    case straggler::Steps::Source::kSlices:
      break;
  }
  return "parts";
}

// Step i of `steps` belongs to entry i * entries / steps.
size_t first_of(size_t entry, size_t steps, size_t entries) {
  return (entry * steps + entries - 1) / entries;
}

Json list_json(const ReportContext& context, const straggler::Steps& steps,
               const straggler::DelayCost* losses) {
  Json out = Json::object();
  for (const char* name : {"number", "steps", "begin_ns", "length_ns", "lost_ns", "worst"})
    out[name] = Json::array();
  const size_t entries = std::min(steps.size(), kEntriesMost);
  for (size_t entry = 0; entry < entries; ++entry) {
    const size_t from = first_of(entry, steps.size(), entries),
                 until = first_of(entry + 1, steps.size(), entries);
    double lost_ns = 0;
    std::pair<float, uint32_t> worst{0.0f, model::kNoRow};
    for (size_t step = from; step < until && losses != nullptr; ++step) {
      float most = 0;
      // The maximum and not the sum: two ranks that are late at once hold the others up at the same time.
      for (const straggler::RankCost& rank : losses->ranks) {
        most = std::max(most, rank.by_step[step]);
        if (rank.by_step[step] > worst.first) worst = {rank.by_step[step], rank.process};
      }
      lost_ns += static_cast<double>(most);
    }
    const auto count = static_cast<double>(until - from);
    // Where the last one ends is not known.
    const size_t end = std::min(until, steps.size() - 1);
    out["number"].push_back(steps.number[from]);
    out["steps"].push_back(until - from);
    out["begin_ns"].push_back(
        context.since_begin(context.placed_common_ns(steps.process, steps.begin_ns[from])));
    out["length_ns"].push_back(
        end == from ? Json(nullptr)
                    : whole_ns(static_cast<double>(difference(steps.begin_ns[end], steps.begin_ns[from])) /
                               static_cast<double>(end - from)));
    out["lost_ns"].push_back(whole_ns(lost_ns / count));
    out["worst"].push_back(worst.second == model::kNoRow ? Json(nullptr) : Json(worst.second));
  }
  return out;
}

// An average step, per device.
struct Split {
  int64_t number = -1;
  size_t steps = 0;
  int64_t begin_ns = 0;  // as ReportContext places it
  std::array<double, 6> parts{};
};
constexpr std::array<const char*, 6> kParts = {"length_ns",  "computing_ns", "hidden_ns",
                                               "exposed_ns", "copying_ns",   "idle_ns"};

std::array<double, 6> parts_of(const GpuStep& step) {
  // Times of a process with several GPUs are sums over them; its length is not.
  const double devices = step.devices;
  const auto part = [devices](int64_t ns) { return static_cast<double>(ns) / devices; };
  return {static_cast<double>(step.length_ns()),
          part(step.computing_ns),
          part(step.communicating_ns - step.exposed_ns),
          part(step.exposed_ns),
          part(step.copying_ns),
          part(step.idle_ns())};
}

std::vector<Split> splits_of(const ReportContext& context, uint32_t process, size_t most) {
  const std::vector<GpuStep>& steps = context.job().processes[process].gpu_steps;
  const size_t entries = std::min(steps.size(), most);
  std::vector<Split> out(entries);
  for (size_t entry = 0; entry < entries; ++entry) {
    Split& split = out[entry];
    const size_t from = first_of(entry, steps.size(), entries),
                 until = first_of(entry + 1, steps.size(), entries);
    split.number = steps[from].number;
    split.steps = until - from;
    split.begin_ns = context.placed_ns(process, steps[from].begin_ns);
    for (size_t step = from; step < until; ++step) {
      const std::array<double, 6> parts = parts_of(steps[step]);
      for (size_t i = 0; i < parts.size(); ++i)
        split.parts[i] += parts[i] / static_cast<double>(until - from);
    }
  }
  return out;
}

// Of each entry and part the lower median; as many entries as all have.
std::vector<Split> median_of(std::vector<std::vector<Split>> all) {
  size_t entries = SIZE_MAX;
  // Ranks of a group need not have gone through equally many steps.
  for (const auto& one : all) entries = std::min(entries, one.size());
  std::vector<Split> out(all.front().begin(), all.front().begin() + static_cast<ptrdiff_t>(entries));
  std::vector<double> values(all.size());
  for (size_t entry = 0; entry < entries; ++entry) {
    for (size_t part = 0; part < kParts.size(); ++part) {
      for (size_t i = 0; i < all.size(); ++i) values[i] = all[i][entry].parts[part];
      const auto middle = values.begin() + static_cast<ptrdiff_t>((values.size() - 1) / 2);
      std::nth_element(values.begin(), middle, values.end());
      // Each part by itself: the parts of an entry need not add up to its length.
      out[entry].parts[part] = *middle;
    }
  }
  return out;
}

Json entries_json(const ReportContext& context, const std::vector<Split>& splits) {
  Json out = Json::object();
  for (const char* name : {"number", "steps", "begin_ns"}) out[name] = Json::array();
  for (const char* name : kParts) out[name] = Json::array();
  for (const Split& split : splits) {
    out["number"].push_back(split.number);
    out["steps"].push_back(split.steps);
    out["begin_ns"].push_back(context.since_begin(split.begin_ns));
    for (size_t i = 0; i < kParts.size(); ++i) out[kParts[i]].push_back(whole_ns(split.parts[i]));
  }
  return out;
}

Json split_json(const ReportContext& context) {
  const std::vector<analysis::overlap::RankOverlap> ranks = analysis::overlap::measure(context.job());
  if (ranks.empty())
    return missing(
        "How much of a step computes and how much communicates is not known, as no kernels were recorded: "
        "run in default mode with the CUDA library, or give traces of PyTorch's profiler.");
  std::vector<uint32_t> processes;
  std::vector<double> exposed(context.job().processes.size());
  for (const analysis::overlap::RankOverlap& rank : ranks) {
    if (context.job().processes[rank.process].gpu_steps.empty()) continue;
    processes.push_back(rank.process);
    exposed[rank.process] = rank.exposed_ns;
  }
  const std::vector<Row> rows = choose_rows(context, std::move(processes), exposed);
  const size_t most =
      std::clamp<size_t>(kEntriesOfAllRows / std::max<size_t>(rows.size(), 1), 16, kEntriesMost);
  Json list = Json::array(), average = Json::array();
  for (const Row& row : rows) {
    std::vector<std::vector<Split>> all;
    for (uint32_t process : row.processes) all.push_back(splits_of(context, process, most));
    Json one = row_json(context, row);
    one["entries"] = entries_json(context, median_of(std::move(all)));
    list.push_back(std::move(one));
  }
  for (const analysis::overlap::RankOverlap& rank : ranks) {
    if (average.size() == kRowsMost) break;
    average.push_back({{"who", rank.process},
                       {"steps", rank.are_steps ? Json(rank.steps) : Json(nullptr)},
                       {"whole", rank.are_whole},
                       {"length_ns", whole_ns(rank.length_ns)},
                       {"computing_ns", whole_ns(rank.computing_ns)},
                       {"hidden_ns", whole_ns(rank.hidden_ns())},
                       {"exposed_ns", whole_ns(rank.exposed_ns)},
                       {"copying_ns", whole_ns(rank.copying_ns)},
                       {"idle_ns", whole_ns(rank.idle_ns)}});
  }
  const size_t omitted = ranks.size() - average.size();
  return {{"rows", std::move(list)}, {"average", std::move(average)}, {"omitted", omitted}};
}

// As `steps` of `lockstep summary --json` has them.
Json figures_json(const model::Job& job) {
  const analysis::summary::StepFigures figures = analysis::summary::step_figures(job);
  Json out = Json::object();
  const auto put = [&](const std::string& name, const analysis::summary::Durations& of) {
    out[name + "p50_ns"] = of.count == 0 ? Json(nullptr) : whole_ns(of.p50_ns);
    out[name + "p99_ns"] = of.count == 0 ? Json(nullptr) : whole_ns(of.p99_ns);
  };
  put("", figures.length);
  put("exposed_", figures.exposed);
  put("exposed_at_most_", figures.exposed_at_most);
  return out;
}

}  // namespace

Json steps_page(const ReportContext& context, const WaitTable& waits) {
  const auto losses = straggler::sum_delay_cost(context.job(), waits.lateness());
  // Costs are counted in the steps of their analysis: list and costs must use the same ones.
  const bool are_of_blamed = losses && !losses->ranks.empty() && losses->steps.size() > 0;
  const straggler::Steps steps = are_of_blamed ? losses->steps : straggler::find_steps(context.job());
  Json split = split_json(context);
  if (steps.size() == 0 && split.contains("missing"))
    return missing("No steps: no operation has a host time, and no kernels were recorded.");
  Json notes = Json::array();
  if (steps.source == straggler::Steps::Source::kPeriod)
    notes.push_back(
        "Steps are counted by the operations, which repeat; `lockstep_step()` of lockstep.h marks real "
        "ones.");
  if (steps.source == straggler::Steps::Source::kSlices)
    notes.push_back(
        "Operations do not repeat and the program marks fewer than three steps: these are equal parts of the run.");
  return {{"source", source_text(steps.source)},
          {"period_ops", steps.period == 0 ? Json(nullptr) : Json(steps.period)},
          {"figures", figures_json(context.job())},
          {"list", list_json(context, steps, are_of_blamed ? &*losses : nullptr)},
          {"split", std::move(split)},
          {"notes", std::move(notes)}};
}

}  // namespace lockstep::report
