// SPDX-License-Identifier: Apache-2.0
// Compares communicators that should be equally fast: same function, size, number of ranks, algorithm and
// protocol. One is slow if its bandwidth is below 0.8 of the others' median, by more than the spread of both
// and the clocks explain. It takes three equals, since of two nobody can say which is the odd one. Operations
// outside the middle half are left out: first calls and stalls lie there.
#include <algorithm>
#include <map>
#include <tuple>

#include "analysis/analysis.h"
#include "analysis/bandwidth/rates.h"
#include "analysis/finding_hosts.h"
#include "base/text/wording.h"
#include "model/names/who.h"

namespace lockstep::analysis::bandwidth {
namespace {

using model::Job;

constexpr uint64_t kLeastOps = 8;   // of a kind, for its quartiles to mean something
constexpr size_t kLeastEquals = 3;  // communicators of one kind: of two, nobody can say which is the odd one
constexpr double kSlow = 0.8;       // of the others' median: a lane of an x16 link, or one link of five
constexpr double kShareOfRun = 0.01;  // what a user would care about

// Communicators that should be equally fast.
using Kind = std::tuple<model::StringId, int32_t, uint64_t, model::StringId, model::StringId>;
Kind kind_of(const Rate& rate) { return {rate.func, rate.ranks, rate.size_from, rate.algo, rate.proto}; }

double median(std::vector<double> values) {
  auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// A communicator's kinds of operations that are clearly slower than those of its equals.
struct Slow {
  const Rate* worst = nullptr;
  double usual_gbps = 0, lost_ns = 0;
  size_t equals = 0;
};

void compare(const std::vector<const Rate*>& equals, std::map<uint32_t, Slow>& slow) {
  if (equals.size() < kLeastEquals) return;
  for (const Rate* rate : equals) {
    std::vector<double> others, lows;
    for (const Rate* other : equals) {
      if (other == rate) continue;
      others.push_back(other->busbw.middle);
      lows.push_back(other->busbw.low);
    }
    const double usual = median(others);
    // Apart by more than the spread of both and the clocks.
    if (rate->busbw.middle > kSlow * usual || rate->busbw.high * (1 + rate->error) > median(lows)) continue;
    Slow& of = slow[rate->comm];
    of.lost_ns += rate->time_ns * (1 - rate->busbw.middle / usual);
    // Losses of all sizes add up; the statement is about the size that shows the link most clearly.
    if (of.worst != nullptr && of.worst->busbw.middle / of.usual_gbps <= rate->busbw.middle / usual) continue;
    of.worst = rate;
    of.usual_gbps = usual;
    of.equals = equals.size() - 1;
  }
}

// Those that are known.
std::vector<int32_t> global_ranks(const Job& job, uint32_t comm) {
  std::vector<int32_t> ranks;
  for (uint32_t row : job.comms[comm].members) {
    const int32_t rank = job.processes[job.members[row].process].row.rank;
    if (rank >= 0) ranks.push_back(rank);
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

// The ranks that all slow communicators share; those of the slowest if they share none.
std::vector<int32_t> common_ranks(const Job& job, const std::map<uint32_t, Slow>& slow, uint32_t slowest) {
  std::vector<int32_t> shared = global_ranks(job, slowest);
  for (const auto& [comm, of] : slow) {
    std::vector<int32_t> both, theirs = global_ranks(job, comm);
    std::set_intersection(shared.begin(), shared.end(), theirs.begin(), theirs.end(),
                          std::back_inserter(both));
    if (both.empty()) return global_ranks(job, slowest);
    shared = std::move(both);
  }
  return shared;
}

std::string who(const std::vector<int32_t>& ranks) {
  return ranks.empty() ? "processes of unknown rank" : wording::ranks(ranks);
}

std::string rate_text(double gbps) { return wording::rate(gbps * 1e9); }

Finding report(const Job& job, const std::map<uint32_t, Slow>& slow) {
  auto slowest = std::max_element(slow.begin(), slow.end(), [](const auto& a, const auto& b) {
    return a.second.lost_ns < b.second.lost_ns;
  });
  const Rate& rate = *slowest->second.worst;
  Finding finding(FindingId::kSlowLinkIntraHost);
  finding.ranks = common_ranks(job, slow, slowest->first);
  bool is_amd = false;
  for (uint32_t row : job.comms[slowest->first].members) {
    const model::JobProcess& process = job.processes[job.members[row].process];
    is_amd = is_amd || model::is_amd(process.row, job.strings);
    add_host(finding, job.text(job.hosts[process.host].name));
  }
  finding.comm = job.comm_name(slowest->first);
  finding.comm_row = slowest->first;
  finding.func = job.text(rate.func);
  finding.statement = "a link of " + who(finding.ranks) +
                      (finding.hosts.empty() ? "" : " (" + finding.hosts.front() + ')') +
                      " is slow: " + finding.func + " of communicator " + finding.comm + " moves " +
                      rate_text(rate.busbw.middle) + ", while " +
                      wording::count(slowest->second.equals, "similar communicator") + " reach" +
                      (slowest->second.equals == 1 ? "es " : " ") + rate_text(slowest->second.usual_gbps);
  finding.effect = Effect{.value = rate.busbw.middle,
                          .unit = "GB/s",
                          .low = rate.busbw.low * (1 - rate.error),
                          .high = rate.busbw.high * (1 + rate.error)};
  for (const auto& [comm, of] : slow) {
    finding.weight += of.lost_ns;
    finding.evidence.push_back(
        job.comm_name(comm) + " (" + who(global_ranks(job, comm)) + "): " + rate_text(of.worst->busbw.low) +
        " to " + rate_text(of.worst->busbw.high) + " in the middle half of " +
        wording::count(of.worst->ops, "operation") + " of " + wording::bytes(of.worst->size_from) +
        " and more, " + rate_text(of.usual_gbps) + " elsewhere; " +
        wording::duration(static_cast<int64_t>(of.lost_ns)) + " lost");
  }
  finding.evidence.push_back("bus bandwidth once all ranks had arrived, without waiting for late ranks");
  finding.advice = std::string("Check the ") +
                   (is_amd ? "xGMI or PCIe state of these GPUs (amd-smi xgmi"
                           : "NVLink or PCIe state of these GPUs (nvidia-smi nvlink -s") +
                   ", error counters, link width), and what else uses the link.";
  return finding;
}

void run(const Job& job, std::vector<Finding>& findings) {
  const Rates rates = measure(job);
  std::map<Kind, std::vector<const Rate*>> kinds;
  double moving_ns = 0;
  for (const Rate& rate : rates.rates) {
    // Between hosts it is the network's question.
    if (rate.hosts != 1 || rate.ops < kLeastOps) continue;
    kinds[kind_of(rate)].push_back(&rate);
    moving_ns += rate.time_ns;
  }
  std::map<uint32_t, Slow> slow;
  for (const auto& [kind, equals] : kinds) compare(equals, slow);
  // Held against all time in which data moved within hosts.
  std::erase_if(slow, [&](const auto& entry) { return entry.second.lost_ns < kShareOfRun * moving_ns; });
  if (!slow.empty()) findings.push_back(report(job, slow));
}

}  // namespace

extern const Analysis kAnalysis = {
    .name = "bandwidth", .question = "Which link or communicator moves less than it could?", .run = run};

}  // namespace lockstep::analysis::bandwidth
