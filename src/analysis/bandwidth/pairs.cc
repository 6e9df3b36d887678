// SPDX-License-Identifier: Apache-2.0
// Measures sends and receives pair by pair. The n-th send is the n-th receive only if neither record lacks
// its beginning, so other pairs are left out. The shorter of the two durations is the time in which both ends
// were there.
#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <tuple>

#include "analysis/bandwidth/rate_sums.h"
#include "job/match/match.h"

namespace lockstep::analysis::bandwidth {
namespace {

using model::JobOps;
using model::kNoRow;
using model::Lane;
using model::Member;

class PairMeter {
 public:
  PairMeter(const model::Job& job, uint32_t comm, const std::function<void(const Moved&)>& each, Rates& out)
      : job_(job), comm_(comm), each_(each), out_(out) {}

  void run() {
    for (uint32_t row : job_.comms[comm_].members) {
      if (row == kNoRow) continue;
      const Member& sender = job_.members[row];
      for (const Lane& lane : sender.lanes) {
        if (!lane.is_send) continue;
        const Member* receiver = nullptr;
        const Lane* there = job::match::counterpart(job_, sender, lane, &receiver);
        if (there != nullptr && comparable(sender, *receiver)) meet(row, lane, *receiver, *there);
      }
    }
    for (auto& [kind, sums] : kinds_) add(kind, sums);
  }

 private:
  using Kind = std::tuple<model::StringId, bool, int>;  // func, within one host, log2 of the size, rounded up
  struct Sums {
    RateSums rates;
    std::set<uint32_t> processes;
  };

  // The n-th of one end is the n-th of the other only if nothing is missing.
  bool comparable(const Member& a, const Member& b) const {
    return a.process != b.process && a.alignment == Member::Alignment::kFromStart &&
           b.alignment == Member::Alignment::kFromStart && job::match::pairs_comparable(job_, a, b);
  }

  void meet(uint32_t sender_row, const Lane& sends, const Member& receiver, const Lane& receives) {
    const Member& sender = job_.members[sender_row];
    const bool one_host = job_.processes[sender.process].host == job_.processes[receiver.process].host;
    const JobOps &from = job_.ops(sender), &to = job_.ops(receiver);
    for (uint32_t i = 0; i < std::min(sends.ops, receives.ops); ++i) {
      const uint32_t a = sends.first + i, b = receives.first + i;
      const model::Signature &sent = job_.signatures[from.signature[a]],
                             &got = job_.signatures[to.signature[b]];
      // Sizes that differ show that these two are not one transfer.
      if (sent.bytes != got.bytes || sent.bytes == 0) continue;
      if (from.gpu_start_ns[a] == 0 || from.gpu_end_ns[a] == 0 || to.gpu_start_ns[b] == 0 ||
          to.gpu_end_ns[b] == 0)
        continue;
      Sums& sums = kinds_[{sent.func, one_host, std::bit_width(sent.bytes)}];
      const int64_t moving =
          std::min(from.gpu_end_ns[a] - from.gpu_start_ns[a], to.gpu_end_ns[b] - to.gpu_start_ns[b]);
      sums.rates.add(sent.bytes, static_cast<double>(moving), 0);
      sums.processes.insert({sender.process, receiver.process});
      if (each_ && moving > 0)
        each_({comm_, sent.func, 2, sent.bytes, static_cast<double>(moving), 1, sender_row, a});
    }
  }

  void add(const Kind& kind, Sums& sums) {
    const auto& [func, one_host, bucket] = kind;
    Rate rate;
    rate.comm = comm_;
    rate.func = func;
    rate.ranks = 2;
    rate.hosts = one_host ? 1 : 2;
    rate.set_bucket(bucket);
    sums.rates.fill(1, rate);
    if (one_host && job_.comms[comm_].nodes <= 1) rate.ceiling = lowest_ceiling(job_, sums.processes);
    out_.pairs.push_back(rate);
  }

  const model::Job& job_;
  const uint32_t comm_;
  const std::function<void(const Moved&)>& each_;
  Rates& out_;
  std::map<Kind, Sums> kinds_;
};

}  // namespace

void measure_pairs(const model::Job& job, uint32_t comm, const std::function<void(const Moved&)>& each,
                   Rates& out) {
  PairMeter(job, comm, each, out).run();
}

}  // namespace lockstep::analysis::bandwidth
