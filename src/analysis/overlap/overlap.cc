// SPDX-License-Identifier: Apache-2.0
// Says how much of a step communication stands alone on the GPU. It is a note and blames nobody: exposed time
// may be what the program needs, and whether it could be hidden is for its author to say.
#include "analysis/overlap/overlap.h"

#include <algorithm>
#include <map>

#include "analysis/analysis.h"
#include "base/text/wording.h"

namespace lockstep::analysis::overlap {
namespace {

// Communication that stands alone for so much of a step, on every rank, is worth a word.
constexpr double kWorthAWord = 0.2;
constexpr size_t kMostParts = 4;

int64_t whole(double ns) { return static_cast<int64_t>(ns); }

// "61 % AllReduce on dp0 (group 5)": of the exposed kernels of these ranks.
std::vector<std::string> parts(const model::Job& job, const std::vector<RankOverlap>& ranks) {
  struct Sum {
    int64_t communicating = 0, exposed = 0;
  };
  std::map<std::pair<std::string, model::StringId>, Sum> sums;
  int64_t all = 0;
  for (const RankOverlap& rank : ranks) {
    for (const model::ExposedFunc& of : job.processes[rank.process].exposed) {
      // Kernels that belong to no known operation have no communicator to be named by.
      if (of.member == model::kNoRow) continue;
      Sum& sum = sums[{job.comm_name(job.members[of.member].comm), of.func}];
      sum.communicating += of.communicating_ns;
      sum.exposed += of.exposed_ns;
      all += of.exposed_ns;
    }
  }
  std::vector<std::pair<int64_t, std::string>> sorted;
  for (const auto& [key, sum] : sums) {
    if (sum.exposed == 0) continue;
    sorted.emplace_back(
        sum.exposed,
        wording::percent(static_cast<double>(sum.exposed) / static_cast<double>(all)) + " of it is " +
            std::string(job.text(key.second)) + " on " + key.first + ", of whose own time " +
            wording::percent(static_cast<double>(sum.exposed) / static_cast<double>(sum.communicating)) +
            " is exposed");
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> out;
  for (size_t i = 0; i < sorted.size() && i < kMostParts; ++i) out.push_back(std::move(sorted[i].second));
  return out;
}

void run(const model::Job& job, std::vector<Finding>& findings) {
  const std::vector<RankOverlap> ranks = measure(job);
  // One rank alone may only have waited for another.
  if (ranks.size() < 2) return;
  // Waiting for a late rank looks like exposed communication, and the rank that the others wait for has the
  // least. What even that one has is not waiting.
  const auto least = std::min_element(
      ranks.begin(), ranks.end(),
      [](const RankOverlap& a, const RankOverlap& b) { return a.exposed_share() < b.exposed_share(); });
  if (least->exposed_share() < kWorthAWord) return;
  const auto most = std::max_element(
      ranks.begin(), ranks.end(),
      [](const RankOverlap& a, const RankOverlap& b) { return a.exposed_share() < b.exposed_share(); });
  Finding finding(FindingId::kExposedCommunication);
  finding.weight = least->exposed_ns * static_cast<double>(least->steps);
  const std::string time = least->are_steps ? "a step" : "the trace";
  finding.statement = "every rank spends " + wording::percent(least->exposed_share()) + " or more of " +
                      time +
                      " communicating without computing: " + wording::duration(whole(least->exposed_ns)) +
                      " of " + wording::duration(whole(least->length_ns)) + " on " +
                      job.process_name(least->process) + ", the best rank";
  finding.effect = Effect{.value = least->exposed_ns,
                          .unit = "ns",
                          .low = least->exposed_ns,
                          .high = std::max(least->exposed_ns, most->exposed_ns)};
  finding.evidence.push_back(job.process_name(least->process) + ", average of " +
                             wording::count(least->steps, least->are_steps ? "step" : "trace") +
                             ": computing " + wording::duration(whole(least->computing_ns)) +
                             ", communicating " + wording::duration(whole(least->communicating_ns)) +
                             " (hidden " + wording::duration(whole(least->hidden_ns())) + ", exposed " +
                             wording::duration(whole(least->exposed_ns)) + "), copying alone " +
                             wording::duration(whole(least->copying_ns)) + ", idle " +
                             wording::duration(whole(least->idle_ns)));
  for (std::string& part : parts(job, ranks)) finding.evidence.push_back(std::move(part));
  finding.advice =
      "If the program allows it, start communication earlier or in smaller pieces, so that independent computation runs beside it. What a rank spends above the best rank is waiting for others: see `lockstep summary`.";
  findings.push_back(std::move(finding));
}

}  // namespace

extern const Analysis kAnalysis = {
    .name = "overlap", .question = "How much of communication does no computation hide?", .run = run};

}  // namespace lockstep::analysis::overlap
