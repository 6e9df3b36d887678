// SPDX-License-Identifier: Apache-2.0
// Aligns the hosts' clocks by what operations prove, and reports clocks that contradict themselves. Hosts
// with one boot id share a clock; there the same proofs must allow an offset of zero, which checks the
// matching and the GPU times.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>

#include "base/text/wording.h"
#include "job/clock/clock.h"
#include "job/clock/proofs.h"

namespace lockstep::job::clock {
namespace {

using model::JobHost;

// Hosts by clock: those of one boot, in order of first sight. A host without a boot id is alone.
std::vector<std::vector<uint32_t>> hosts_by_clock(const model::Job& job) {
  std::vector<std::vector<uint32_t>> clocks;
  std::map<std::string_view, size_t> by_boot;
  for (uint32_t host = 0; host < job.hosts.size(); ++host) {
    std::string_view boot = job.text(job.hosts[host].boot_id);
    auto [at, is_new] = by_boot.try_emplace(boot, clocks.size());
    if (is_new || boot.empty()) {
      clocks.push_back({host});
    } else {
      clocks[at->second].push_back(host);
    }
  }
  return clocks;
}

// Two passes: one proves offsets between clocks, the other holds hosts that share a clock against each other,
// where the answer is known and a wrong match or a wrong GPU time shows.
class Aligner {
 public:
  Aligner(model::Job& job, std::vector<analysis::Finding>& findings)
      : job_(job), findings_(findings), clocks_(hosts_by_clock(job)) {}

  void align() {
    std::vector<uint32_t> unit_of_host(job_.hosts.size());
    for (uint32_t clock = 0; clock < clocks_.size(); ++clock) {
      for (uint32_t host : clocks_[clock]) unit_of_host[host] = clock;
    }
    std::vector<ClockUnit> units = prove(job_, unit_of_host, static_cast<uint32_t>(clocks_.size()));
    for (uint32_t clock = 0; clock < clocks_.size(); ++clock) {
      for (uint32_t host : clocks_[clock]) {
        job_.hosts[host].clock = units[clock].clock;
        job_.hosts[host].contradictions = static_cast<uint32_t>(units[clock].contradictions.size());
      }
      report(clocks_[clock].front(), job_.hosts.front(), units[clock].contradictions);
    }
  }

  // Hosts of one boot have one clock, so what the operations prove about them must hold 0.
  void check() {
    for (const std::vector<uint32_t>& hosts : clocks_) {
      if (hosts.size() < 2) continue;
      std::vector<uint32_t> unit_of_host(job_.hosts.size(), kNoClock);
      for (uint32_t unit = 0; unit < hosts.size(); ++unit) unit_of_host[hosts[unit]] = unit;
      std::vector<ClockUnit> units = prove(job_, unit_of_host, static_cast<uint32_t>(hosts.size()));
      for (uint32_t unit = 1; unit < hosts.size(); ++unit) {
        JobHost& host = job_.hosts[hosts[unit]];
        host.measured = std::move(units[unit].clock);
        std::vector<OffsetFit::Contradiction>& wrong = units[unit].contradictions;
        for (const model::HostClock::Knot& knot : host.measured.knots()) {
          // The proof excludes zero, which is the truth on one clock. One such place is enough to say so.
          if (knot.low <= 0 && knot.high >= 0) continue;
          wrong.push_back({knot.at_ns, knot.at_ns, knot.low + (knot.high - knot.low) / 2,
                           (knot.high - knot.low + 1) / 2});
          break;
        }
        host.contradictions += static_cast<uint32_t>(wrong.size());
        report(hosts[unit], job_.hosts[hosts.front()], wrong);
      }
    }
  }

 private:
  void report(uint32_t row, const JobHost& reference,
              const std::vector<OffsetFit::Contradiction>& contradictions) {
    if (contradictions.empty()) return;
    auto largest = std::max_element(contradictions.begin(), contradictions.end(),
                                    [](const auto& a, const auto& b) { return size(a) < size(b); });
    const JobHost& host = job_.hosts[row];
    // Files of other tools may name no host.
    const auto called = [&](const JobHost& row) {
      return row.name == 0 ? std::string("a host without a name")
                           : "host " + std::string(job_.text(row.name));
    };
    analysis::Finding finding(analysis::FindingId::kClockStepped);
    finding.weight = static_cast<double>(size(*largest));
    if (host.name != 0) finding.hosts.emplace_back(job_.text(host.name));
    // By how much a clock moved; between hosts that share one, that they seem to differ at all is what is
    // wrong.
    if (std::abs(largest->moved_ns) > largest->half_width_ns)
      finding.effect = analysis::Effect{static_cast<double>(largest->moved_ns), "ns",
                                        static_cast<double>(largest->moved_ns - largest->half_width_ns),
                                        static_cast<double>(largest->moved_ns + largest->half_width_ns)};
    // Times of findings are on the reference's clock.
    auto offset = host.clock.offset(contradictions.front().from_ns);
    finding.since_ns = contradictions.front().from_ns - (offset ? offset->ns : 0);
    if (host.clock.is_same()) {
      finding.statement =
          "Operations of " + called(host) + " and " + called(reference) +
          ", which share a clock, prove that their clocks differ: they were matched wrongly, or GPU "
          "times are wrong.";
    } else {
      finding.statement = "The clock of " + called(host) + " against " + called(reference) +
                          " contradicts itself: it stepped, or operations were matched wrongly.";
    }
    for (const OffsetFit::Contradiction& c : contradictions) {
      if (finding.evidence.size() == kEvidence) break;
      finding.evidence.push_back("between " + std::to_string(c.from_ns) + " and " +
                                 std::to_string(c.until_ns) + " ns of its clock: by " +
                                 wording::duration(c.moved_ns) + " +- " + wording::duration(c.half_width_ns));
    }
    if (contradictions.size() > kEvidence)
      finding.evidence.push_back(std::to_string(contradictions.size() - kEvidence) + " more");
    finding.advice =
        "Times of this host compare with other hosts' only within the wider interval around these times. "
        "Look for a suspended or migrated machine, or a time service that steps the clock.";
    findings_.push_back(std::move(finding));
  }

  static int64_t size(const OffsetFit::Contradiction& c) {
    return std::max(c.moved_ns < 0 ? -c.moved_ns : c.moved_ns, c.half_width_ns);
  }

  static constexpr size_t kEvidence = 8;
  model::Job& job_;
  std::vector<analysis::Finding>& findings_;
  std::vector<std::vector<uint32_t>> clocks_;
};

}  // namespace

void align(model::Job& job, std::vector<analysis::Finding>& findings) {
  if (job.hosts.empty()) return;
  Aligner aligner(job, findings);
  aligner.align();
  aligner.check();
}

}  // namespace lockstep::job::clock
