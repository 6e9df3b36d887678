// SPDX-License-Identifier: Apache-2.0
// What communicators came to, and what the logs lack. A log may be cut, copied while the job ran, or printed
// at a low level. So a communicator is called stuck only when more than the end of one log says so. Any other
// gap is reported together with the logs that would decide it.
#include <algorithm>

#include "analysis/log_rules/rules.h"
#include "base/text/wording.h"

namespace lockstep::analysis::log_rules {
namespace {

// Sizes of communicators are text of a log: a changed digit must not cost gigabytes.
constexpr int32_t kRanksMost = 1 << 20;

std::vector<int32_t> missing_ranks(const std::vector<const CommPart*>& parts) {
  const int32_t ranks = std::min(parts.front()->ranks, kRanksMost);
  std::vector<bool> present(static_cast<size_t>(std::max(ranks, 0)));
  for (const CommPart* part : parts) {
    if (part->rank >= 0 && part->rank < ranks) present[static_cast<size_t>(part->rank)] = true;
  }
  std::vector<int32_t> missing;
  for (int32_t rank = 0; rank < ranks; ++rank) {
    if (!present[static_cast<size_t>(rank)]) missing.push_back(rank);
  }
  return missing;
}

// It began, and nothing says or shows that it came to an end.
bool is_open(const CommPart* part) {
  return part->started && !part->completed && !part->aborted && !part->ended && !part->is_used;
}

// Something that the file says behind a line shows that time went by, and the file with it: a warning, a
// watchdog, an end.
bool goes_on_behind(const View& view, const Evidence& line) {
  const auto is_behind = [&](const Evidence& other) {
    return other.file == line.file && other.line > line.line;
  };
  const LogModel& model = view.model();
  return std::any_of(model.torch.begin(), model.torch.end(),
                     [&](const TorchLine& torch) { return is_behind(torch.first); }) ||
         std::any_of(model.facts.begin(), model.facts.end(),
                     [&](const Fact& fact) { return fact.is_warning && is_behind(fact.first); });
}

// A log that ends where a communicator is being created was cut there, taken there, or is of a job that stood
// there. The last it was for sure if the logs of several processes end so, or if the log goes on with
// trouble, and no member completed it.
bool is_proven(const View& view, const std::vector<const CommPart*>& parts) {
  if (!std::all_of(parts.begin(), parts.end(), is_open)) return false;
  std::set<uint32_t> files;
  for (const CommPart* part : parts) {
    const auto& state = view.model().states[part->first.file];
    // The line that says it was completed may be in the damaged part.
    if (state.is_damaged()) continue;
    if (goes_on_behind(view, part->first)) return true;
    if (!state.is_open) files.insert(part->first.file);
  }
  return files.size() > 1;
}

std::optional<Hit> creations(const View& view, bool proven) {
  Hit hit;
  for (const auto& [group, parts] : view.groups()) {
    std::vector<int32_t> open;
    if (is_proven(view, parts) != proven) continue;
    for (const CommPart* part : parts) {
      if (!is_open(part)) continue;
      open.push_back(part->rank);
      hit.processes.insert(part->process);
      prove(view, part->first, hit);
    }
    // The sentence is about one communicator; the lines of all others stand below it as evidence.
    if (open.empty() || !hit.what.empty()) continue;
    std::sort(open.begin(), open.end());
    const std::vector<int32_t> missing = missing_ranks(parts);
    hit.what = wording::ranks(open) + " began to create communicator " + group + " of " +
               wording::count(static_cast<uint64_t>(std::max(parts.front()->ranks, 0)), "rank") + " and " +
               (proven ? "did not complete it" : "the logs end before it is complete");
    if (!missing.empty())
      hit.what +=
          "; " + wording::ranks(missing) + (missing.size() == 1 ? " does" : " do") + " not mention it";
  }
  if (hit.what.empty()) return std::nullopt;
  if (!proven)
    hit.needed_evidence =
        "the logs of all ranks up to the job's end: if they stop there, the job hangs in that creation";
  return hit;
}

}  // namespace

std::optional<Hit> init_stuck(const View& view) { return creations(view, true); }
std::optional<Hit> creation_open(const View& view) { return creations(view, false); }

std::optional<Hit> slow_init(const View& view) {
  constexpr double kSlowSeconds = 60;
  Hit hit;
  double slowest = 0;
  for (const CommPart& part : view.model().comms) {
    if (part.init_seconds < kSlowSeconds) continue;
    slowest = std::max(slowest, part.init_seconds);
    hit.processes.insert(part.process);
    prove(view, part.time, hit);
    if (const Fact* bootstrap = view.first(LineKind::kBootstrapTime, part.process))
      prove(view, bootstrap->first, hit);
  }
  if (hit.evidence.empty()) return std::nullopt;
  // The seconds are text of a log: more than int64_t holds must not reach the cast.
  hit.what = wording::duration(static_cast<int64_t>(std::min(slowest, 1e6) * 1e9));
  hit.effect = Effect{.value = slowest * 1e9, .unit = "ns", .low = slowest * 1e9, .high = slowest * 1e9};
  return hit;
}

std::optional<Hit> aborted(const View& view) {
  Hit hit;
  std::set<std::string> groups;
  for (const CommPart& part : view.model().comms) {
    if (!part.aborted) continue;
    groups.insert(part.group);
    hit.processes.insert(part.process);
    prove(view, part.abort, hit);
  }
  if (hit.evidence.empty()) return std::nullopt;
  hit.what = wording::count(groups.size(), "communicator");
  return hit;
}

// Ranks leave these together, so whoever was in one for longer came earlier.
std::optional<Hit> latencies_apart(const View& view) {
  constexpr uint64_t kFew = 10;
  uint64_t count = 0, uneven = 0;
  const readers::nccl_log::LatencySpread* widest = nullptr;
  std::string_view func;
  for (const std::string_view name : {"AllReduce", "AllGather", "ReduceScatter"}) {
    const auto found = view.model().latencies.find(std::string(name));
    if (found == view.model().latencies.end()) continue;
    const auto& spread = found->second;
    count += spread.count;
    uneven += spread.uneven;
    if (widest != nullptr && widest->most_us - widest->least_us >= spread.most_us - spread.least_us) continue;
    widest = &spread;
    func = name;
  }
  if (count < kFew || uneven * 2 < count) return std::nullopt;
  const auto duration = [](double us) {
    return wording::duration(static_cast<int64_t>(std::min(us, 1e12) * 1e3));
  };
  Hit hit;
  hit.what = "RCCL's latency profiler: in " + std::to_string(uneven) + " of " + std::to_string(count) +
             " operations, ranks of one host waited much longer than others (" + std::string(func) + ": " +
             duration(widest->least_us) + " to " + duration(widest->most_us) +
             "), so some began them late; these lines do not say which";
  prove(view, widest->widest, hit);
  return hit;
}

std::optional<Hit> torn_lines(const View& view) {
  constexpr double kBearable = 0.01;
  const auto& coverage = view.model().coverage;
  const auto torn = static_cast<double>(coverage.torn);
  const auto all = static_cast<double>(coverage.headed + coverage.torn);
  if (torn <= all * kBearable) return std::nullopt;
  Hit hit;
  hit.what = wording::percent(torn / all);
  hit.evidence.push_back(wording::count(coverage.torn, "line") +
                         " without a complete header, or with more than one");
  return hit;
}

// Of files without a line that reports an error, either.
std::optional<Hit> nothing_understood(const View& view) {
  const LogModel& model = view.model();
  Hit hit;
  uint64_t files = 0;
  for (size_t file = 0; file < model.states.size(); ++file) {
    const auto& state = model.states[file];
    if (state.is_understood || state.errors > 0 || state.symptom) continue;
    ++files;
    if (hit.evidence.size() < Hit::kEvidenceMost) hit.evidence.push_back(model.files[file]);
  }
  if (files == 0) return std::nullopt;
  hit.more = files - hit.evidence.size();
  hit.what = wording::count(files, "file");
  if (!model.is_silent()) hit.severity = Severity::kNote;  // of ranks that had nothing to say, as a rule
  return hit;
}

// Of files in which nothing is understood: what lacks a name here may have one for the reader.
std::optional<Hit> unknown_errors(const View& view) {
  const LogModel& model = view.model();
  Hit hit;
  uint64_t errors = 0;
  for (const auto& state : model.states) {
    if (state.is_understood || state.errors == 0) continue;
    errors += state.errors;
    for (const Evidence& line : state.first_errors) {
      if (hit.what.empty()) hit.what = line.text;
      prove(view, line, hit);
    }
  }
  if (errors == 0) return std::nullopt;
  hit.more = errors - std::min<uint64_t>(errors, hit.evidence.size());
  hit.what = wording::count(errors, "line") + " may report an error in words that Lockstep does not know" +
             (errors == 1 ? ": " : ", first: ") + hit.what;
  if (!model.is_silent()) hit.severity = Severity::kNote;
  return hit;
}

std::optional<Hit> damaged_files(const View& view) {
  Hit hit;
  uint64_t files = 0;
  for (uint32_t file = 0; file < view.model().states.size(); ++file) {
    const auto& state = view.model().states[file];
    if (state.damaged_lines == 0) continue;
    ++files;
    if (hit.evidence.size() >= Hit::kEvidenceMost) {
      ++hit.more;
      continue;
    }
    hit.evidence.push_back(view.model().files[file] + ':' + std::to_string(state.first_damaged) +
                           ": bytes that are not text; " + wording::count(state.damaged_lines, "such line"));
  }
  if (files == 0) return std::nullopt;
  hit.what = wording::count(files, "log file") + (files == 1 ? " is" : " are");
  return hit;
}

std::optional<Hit> repeated_lines(const View& view) {
  if (view.model().coverage.repeated == 0) return std::nullopt;
  Hit hit;
  hit.what = wording::count(view.model().coverage.repeated, "line");
  hit.evidence.push_back("lines end in `[repeated ...x across cluster]`");
  return hit;
}

std::optional<Hit> ranks_without_log(const View& view) {
  const std::vector<const CommPart*>* largest = nullptr;
  std::string name;
  for (const auto& [group, parts] : view.groups()) {
    if (largest != nullptr && parts.front()->ranks <= largest->front()->ranks) continue;
    largest = &parts;
    name = group;
  }
  // The largest communicator stands for the job: each rank is in it. While it is open, the findings about its
  // creation name the missing ranks.
  if (largest == nullptr || std::any_of(largest->begin(), largest->end(), is_open)) return std::nullopt;
  const std::vector<int32_t> missing = missing_ranks(*largest);
  if (missing.empty()) return std::nullopt;
  Hit hit;
  hit.ranks = missing;
  hit.what = "no log of " + wording::ranks(missing) + " of communicator " + name;
  prove(view, largest->front()->first, hit);
  return hit;
}

}  // namespace lockstep::analysis::log_rules
