// SPDX-License-Identifier: Apache-2.0
// A verdict is worth as much as what could be seen. This counts it by the same rules as the analyses use
// (matches, clocks, replaced ranks), so that the report's limits are those of the diagnosis.
#include "verdict/coverage.h"

#include <algorithm>
#include <set>

#include "base/text/units.h"
#include "base/text/wording.h"
#include "model/restarts.h"

namespace lockstep::verdict {
namespace {

using job::match::Reason;
using model::Liveness;

void cover_ranks(const model::Job& job, Coverage& coverage) {
  std::set<int32_t> ranks;
  for (const model::JobProcess& process : job.processes) {
    // A restarted rank has several processes and counts once.
    if (process.row.rank >= 0) ranks.insert(process.row.rank);
  }
  coverage.ranks.assign(ranks.begin(), ranks.end());
  for (int32_t rank = 0; rank < job.expected_ranks; ++rank) {
    if (!ranks.contains(rank)) coverage.missing_ranks.push_back(rank);
  }
}

void cover_process(const model::Job& job, const model::JobProcess& process, bool replaced,
                   Coverage& coverage) {
  coverage.ops += process.ops.size();
  for (size_t i = 0; i < process.ops.size(); ++i)
    coverage.gpu_timed += process.ops.gpu_start_ns[i] != 0 && process.ops.gpu_end_ns[i] != 0;
  coverage.network_seen = coverage.network_seen || !process.net_pairs.empty() || !process.open_steps.empty();
  // A process that is stuck records nothing more, but its heartbeat goes on.
  coverage.newest_ns = std::max({coverage.newest_ns, process.row.last_ns, process.row.heartbeat_ns});
  // A process that closed its file is accounted for; a file that names no host cannot be asked for on one.
  if (process.row.closed != 0 || process.row.host == 0) return;
  if (replaced && process.liveness != Liveness::kStopped && process.liveness != Liveness::kRunning) {
    ++coverage.replaced;
    return;
  }
  if (process.beats) {
    ++coverage.beating;
    return;
  }
  ++coverage.alive[static_cast<size_t>(process.liveness)];
  std::string host(job.text(process.row.host));
  auto& unseen = coverage.unseen_hosts;
  // Only who looks from a process's own host can see whether it lives.
  if (process.liveness == Liveness::kUnknown && std::find(unseen.begin(), unseen.end(), host) == unseen.end())
    unseen.push_back(host);
}

void cover_clocks(const model::Job& job, Coverage& coverage) {
  std::set<std::string_view> clocks, unaligned;
  for (const model::JobHost& host : job.hosts) {
    // Hosts of one boot share a clock, however many there seem to be. One without a boot has its own.
    const std::string_view boot = job.text(host.boot_id), clock = boot.empty() ? job.text(host.name) : boot;
    clocks.insert(clock);
    coverage.clock_contradictions += host.contradictions;
    // An offset widens with the distance from its proofs; at the newest record it says what a verdict of now
    // rests on.
    auto offset = host.clock.offset(coverage.newest_ns);
    if (offset)
      coverage.clock_half_width_ns = std::max(coverage.clock_half_width_ns, offset->half_width_ns);
    else
      unaligned.insert(clock);
  }
  coverage.clocks = clocks.size();
  coverage.unaligned_clocks = unaligned.size();
}

std::string listed(const std::vector<std::string>& words) {
  constexpr size_t kMost = 4;
  std::string out;
  for (size_t i = 0; i < words.size() && i < kMost; ++i) out += (i == 0 ? "" : ", ") + words[i];
  return words.size() > kMost ? out + " and " + format_count(words.size() - kMost) + " more" : out;
}

std::string unmatched_sentence(const Coverage& coverage) {
  uint64_t total = 0;
  std::string reasons;
  for (size_t i = 0; i < coverage.unmatched.size(); ++i) {
    if (coverage.unmatched[i] == 0) continue;
    total += coverage.unmatched[i];
    reasons += (reasons.empty() ? "" : ", ") + std::string(reason_text(static_cast<Reason>(i))) + " (" +
               format_count(coverage.unmatched[i]) + ")";
  }
  return total == 0 ? "" : plural(total, "operation") + " not matched on every rank: " + reasons + ".";
}

// A trace.db, whatever it is called, holds what was captured.
const readers::Format* format_of(const Evidence& evidence) {
  for (const readers::Format* format : readers::all()) {
    if (evidence.source == format->summary) return format;
  }
  return readers::all().front();
}

}  // namespace

Coverage cover(const Evidence& evidence) {
  const model::Job& job = *evidence.job;
  Coverage coverage;
  coverage.processes = job.processes.size();
  std::set<model::StringId> hosts;
  for (const model::JobHost& host : job.hosts) hosts.insert(host.name);
  hosts.erase(0);
  coverage.hosts = hosts.size();
  coverage.is_amd = job.has_amd_gpus();
  cover_ranks(job, coverage);
  const std::vector<bool> replaced = model::replaced_processes(job);
  for (size_t i = 0; i < job.processes.size(); ++i)
    cover_process(job, job.processes[i], replaced[i], coverage);
  for (const model::JobComm& comm : job.comms)
    coverage.network_expected = coverage.network_expected || comm.nodes > 1;
  for (const auto& match : evidence.matches) {
    coverage.matched += match.matched;
    for (size_t i = 0; i < match.unmatched.size(); ++i) coverage.unmatched[i] += match.unmatched[i];
  }
  cover_clocks(job, coverage);
  return coverage;
}

std::string seen_sentence(const Coverage& coverage) {
  std::string who =
      coverage.ranks.empty() ? plural(coverage.processes, "process") : plural(coverage.ranks.size(), "rank");
  std::string text = who + (coverage.hosts == 0 ? "" : " on " + plural(coverage.hosts, "host")) + ", " +
                     plural(coverage.matched, "operation") + " matched across ranks";
  // Processes of one boot compare exactly.
  if (coverage.clocks < 2) return text + ", one clock";
  if (coverage.unaligned_clocks > 0) return text + ", clocks not aligned";
  return text + ", clocks within +-" + format_duration(static_cast<double>(coverage.clock_half_width_ns));
}

std::string alive_sentence(const Coverage& coverage) {
  std::string text;
  auto add = [&](size_t count, const char* what) {
    if (count > 0) text += (text.empty() ? "" : ", ") + format_count(count) + ' ' + what;
  };
  auto alive = [&](Liveness liveness) { return coverage.alive[static_cast<size_t>(liveness)]; };
  add(alive(Liveness::kRunning), "running");
  add(coverage.beating, "with a current heartbeat on other hosts");
  add(alive(Liveness::kStopped), "stopped");
  add(alive(Liveness::kGone), "gone without closing their files");
  add(coverage.replaced, "replaced by newer processes of their ranks");
  return text.empty() ? text : "processes: " + text;
}

std::vector<std::string> not_seen(const Coverage& coverage) {
  std::vector<std::string> lines;
  if (!coverage.missing_ranks.empty()) {
    std::string who = wording::ranks(coverage.missing_ranks);
    who[0] = 'R';
    lines.push_back(who + " of " + format_count(coverage.ranks.size() + coverage.missing_ranks.size()) +
                    " left no file.");
  }
  if (coverage.ops == 0) lines.push_back("No operation was recorded.");
  if (coverage.ops > 0 && coverage.gpu_timed == 0) {
    lines.push_back("No GPU times: lateness that begins on a GPU was not checked. To get them: " +
                    std::string(wording::gpu_times_setting(coverage.is_amd)) + ".");
  }
  // Within one node there are no steps of the network to be missed.
  if (coverage.network_expected && !coverage.network_seen) {
    lines.push_back(
        "No network steps: links and network devices were not checked (`lockstep trace -m deep` records "
        "them).");
  }
  if (coverage.unaligned_clocks > 0) {
    lines.push_back(plural(coverage.unaligned_clocks, "clock") +
                    " could not be aligned: times were compared only within each clock.");
  }
  if (coverage.clock_contradictions > 0) {
    lines.push_back(plural(coverage.clock_contradictions, "operation") +
                    (coverage.clock_contradictions == 1 ? " contradicts" : " contradict") +
                    " the clocks' alignment.");
  }
  if (std::string unmatched = unmatched_sentence(coverage); !unmatched.empty()) lines.push_back(unmatched);
  if (size_t unknown = coverage.alive[static_cast<size_t>(Liveness::kUnknown)]; unknown > 0) {
    lines.push_back("Lockstep cannot see from here whether " + plural(unknown, "process") + " on " +
                    listed(coverage.unseen_hosts) + " still run" + (unknown == 1 ? "s" : "") +
                    "; run `lockstep diagnose` there.");
  }
  return lines;
}

std::vector<std::string> absent_from(const DiagnosedRun& run) {
  // Ranks that any kind of evidence knows: what a kind lacks is counted against these and not against the
  // launcher's number, which may be unknown.
  std::vector<std::string> lines;
  for (const Evidence& evidence : run.evidence) {
    std::set<int32_t> all;
    for (const Evidence& other : run.evidence) {
      // Another run may have had more ranks.
      if (!join::same_time(evidence.span, other.span)) continue;
      for (const auto& [rank, host] : other.hosts) all.insert(rank);
    }
    std::vector<int32_t> absent;
    for (const int32_t rank : all) {
      if (!evidence.hosts.contains(rank)) absent.push_back(rank);
    }
    // Evidence that mentions no rank at all is not about ranks.
    if (absent.empty() || evidence.hosts.empty()) continue;
    std::string line = evidence.source + ": none of " + wording::ranks(absent) + '.';
    if (const readers::Format* format = format_of(evidence); !format->setting.empty())
      line += " To get them: " + std::string(format->setting);
    lines.push_back(std::move(line));
  }
  // Further kinds are asked for only where they are needed: a verdict that stands wants no more evidence.
  if (run.verdict() == nullptr || !cannot_tell(*run.verdict())) return lines;
  for (const readers::Format* format : readers::all()) {
    const bool given = std::any_of(run.evidence.begin(), run.evidence.end(),
                                   [&](const Evidence& evidence) { return format_of(evidence) == format; });
    if (!given && format->reports_hangs)
      lines.push_back("No " + std::string(format->summary) +
                      "; they might show the cause. To get them: " + std::string(format->setting));
  }
  return lines;
}

}  // namespace lockstep::verdict
