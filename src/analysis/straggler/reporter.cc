// SPDX-License-Identifier: Apache-2.0
// Words the findings about late ranks. Ranks whose hosts are late share one finding and ranks whose GPUs are
// late another, because the advice differs. A cost that the uncertainty of the clocks may explain is reported
// as "cannot tell": it is not a smaller accusation.
#include "analysis/straggler/reporter.h"

#include <algorithm>
#include <array>
#include <optional>

#include "analysis/finding_hosts.h"
#include "analysis/operation_name.h"
#include "base/text/wording.h"

namespace lockstep::analysis::straggler {
namespace {

using Kind = Pattern::Kind;

constexpr std::array kKinds = {FindingClass::kHostLate, FindingClass::kGpuLate};
constexpr const char* kLookOnce =
    "Look for what happens once: a checkpoint, an evaluation, a reconnect, a page-in.";

std::string text(double ns) { return wording::duration(static_cast<int64_t>(ns)); }

Finding begin(FindingId id, double weight) {
  Finding finding(id);
  finding.weight = weight;
  return finding;
}

bool in_each_step(const Pattern& pattern) {
  return pattern.kind == Kind::kSince || pattern.kind == Kind::kWindow || pattern.kind == Kind::kGrowing;
}

// What a pattern's amount is of: in the steps between those that are late nothing is lost.
std::string each(const Pattern& pattern) { return in_each_step(pattern) ? " per step" : " each time"; }
std::string unit_of(const Pattern& pattern) { return in_each_step(pattern) ? "ns/step" : "ns/late step"; }

FindingId id_of(FindingClass kind, const Pattern& pattern) {
  const bool on_host = kind == FindingClass::kHostLate;
  switch (pattern.kind) {
    case Kind::kWindow:
      return on_host ? FindingId::kHostLateWindow : FindingId::kGpuLateWindow;
    case Kind::kGrowing:
      return on_host ? FindingId::kHostLateGrowing : FindingId::kGpuLateGrowing;
    case Kind::kPeriodic:
      return on_host ? FindingId::kHostLatePeriodic : FindingId::kGpuLatePeriodic;
    case Kind::kTail:
      return on_host ? FindingId::kHostLateTail : FindingId::kGpuLateTail;
    case Kind::kNone:
    case Kind::kSince:
      break;
  }
  return on_host ? FindingId::kHostLate : FindingId::kGpuLate;
}

// The row of the rank that surely costs a share that matters, and that is nearly all; or well more than each
// of the others, whichever steps are drawn. What own time alone shows is a bound, and no cost.
std::optional<size_t> leader(const Turns& turns, const DelayCost& costs) {
  if (turns.costliest.size() < 2) return std::nullopt;
  const uint32_t process = turns.costliest.front().first;
  const Interval& most = turns.costliest.front().second;
  const auto rank = std::find_if(costs.ranks.begin(), costs.ranks.end(),
                                 [&](const RankCost& of) { return of.process == process; });
  if (rank == costs.ranks.end() || most.middle * rank->sure_share < kShare * costs.span_ns)
    return std::nullopt;
  const bool leads =
      turns.one || std::all_of(turns.costliest.begin() + 1, turns.costliest.end(), [&](const auto& other) {
        return other.second.high < most.low && kStandOut * other.second.middle <= most.middle;
      });
  return leads ? std::optional(static_cast<size_t>(rank - costs.ranks.begin())) : std::nullopt;
}

}  // namespace

std::string Reporter::step_text(size_t step) const {
  const std::string number = std::to_string(costs_.steps.number[step]);
  return costs_.steps.source == Steps::Source::kSlices ? "part " + number : "step " + number;
}

// "step 7", "steps 7, 40 and 81"
std::string Reporter::steps_text(const std::vector<size_t>& steps) const {
  if (steps.size() == 1) return step_text(steps[0]);
  std::string out = costs_.steps.source == Steps::Source::kSlices ? "parts " : "steps ";
  for (size_t i = 0; i < steps.size(); ++i) {
    if (i > 0) out += i + 1 == steps.size() ? " and " : ", ";
    out += std::to_string(costs_.steps.number[steps[i]]);
  }
  return out;
}

std::string Reporter::steps_evidence() const {
  const Steps& steps = costs_.steps;
  if (steps.source == Steps::Source::kMarks) return "steps as the program marks them";
  if (steps.source == Steps::Source::kPeriod)
    return "steps are found from the operations, which repeat every " + std::to_string(steps.period) +
           "; step 0 includes everything before it";
  return "the operations do not repeat, so the run is split into " + std::to_string(steps.size()) +
         " equal parts of " + wording::count(static_cast<uint64_t>(steps.period), "operation");
}

Reporter::Account Reporter::account(size_t row, size_t first, size_t last) const {
  Account sum;
  const uint32_t process = process_of(row);
  size_t first_late = last + 1;
  for (const LateOp& late : lateness_.late[process]) {
    const size_t step = costs_.step_at(costs_.ranks[row], late.host_ns);
    if (step < first || step > last || !costs_others(late)) continue;
    const double blame = static_cast<double>(late.blame_ns);
    sum.total_ns += blame;
    sum.host_ns += static_cast<double>(late.host_part_ns);
    sum.sure_ns += std::max(blame - static_cast<double>(late.error_ns), 0.0);
    sum.timed = sum.timed || job_.processes[process].ops.is_placed(late.op);
    if (step < first_late || (step == first_late && late.blame_ns > sum.first->blame_ns)) sum.first = &late;
    first_late = std::min(first_late, step);
  }
  return sum;
}

void Reporter::name(Finding& finding, uint32_t process) const {
  const model::JobProcess& row = job_.processes[process];
  finding.who.push_back(job_.who(process));
  if (row.row.rank >= 0) finding.ranks.push_back(row.row.rank);
  add_host(finding, job_.text(job_.hosts[row.host].name));
}

std::string Reporter::who(uint32_t process) const { return job_.who(process).text(); }

void Reporter::show(Finding& finding, uint32_t process, const LateOp& late) const {
  analysis::name_operation(job_, process, late.op, finding);
  finding.since_ns = late.host_ns;
}

std::vector<Reporter::Accused> Reporter::accused_of(FindingClass kind,
                                                    const std::vector<Culprit>& culprits) const {
  std::vector<Accused> of_kind;
  for (const Culprit& culprit : culprits) {
    const Accused accused{&culprit, account(culprit.row, culprit.pattern.first, culprit.pattern.last)};
    const bool on_host = accused.sum.host_ns * 2 >= accused.sum.total_ns;
    if (on_host == (kind == FindingClass::kHostLate)) of_kind.push_back(accused);
  }
  return of_kind;
}

bool Reporter::is_any_proven(const std::vector<Culprit>& culprits) const {
  return std::any_of(kKinds.begin(), kKinds.end(), [&](FindingClass kind) {
    const std::vector<Accused> of_kind = accused_of(kind, culprits);
    return std::any_of(of_kind.begin(), of_kind.end(),
                       [&](const Accused& accused) { return is_proven(accused, of_kind); });
  });
}

void Reporter::report(const std::vector<Culprit>& culprits) {
  for (FindingClass kind : kKinds) {
    const std::vector<Accused> of_kind = accused_of(kind, culprits);
    std::vector<Accused> proven;
    for (const Accused& accused : of_kind) {
      if (is_proven(accused, of_kind))
        proven.push_back(accused);
      else
        cannot_tell(accused);
    }
    if (!proven.empty()) late(kind, proven);
  }
}

// What the clocks leave open of a rank, another one of its host may show: they have one clock.
bool Reporter::is_proven(const Accused& accused, const std::vector<Accused>& of_kind) const {
  if (accused.culprit->either) return false;
  const auto is_sure = [&](const Accused& of) { return of.sum.sure_ns >= kShare * costs_.span_ns; };
  const auto host_of = [&](const Accused& of) { return job_.processes[process_of(of.culprit->row)].host; };
  return is_sure(accused) || std::any_of(of_kind.begin(), of_kind.end(), [&](const Accused& other) {
           return is_sure(other) && host_of(other) == host_of(accused) &&
                  are_late_together(*accused.culprit, *other.culprit);
         });
}

void Reporter::late(FindingClass kind, const std::vector<Accused>& accused) {
  const Culprit& worst = *accused.front().culprit;
  Finding finding = begin(id_of(kind, worst.pattern), 0);
  for (const Accused& of : accused) {
    name(finding, process_of(of.culprit->row));
    finding.weight += of.sum.total_ns;
    finding.evidence.push_back(cost_evidence(of));
  }
  std::sort(finding.ranks.begin(), finding.ranks.end());
  const Account& sum = accused.front().sum;
  show(finding, process_of(worst.row), *sum.first);
  const double sure = worst.per_step_ns * sum.sure_ns / sum.total_ns;
  finding.effect = Effect{.value = worst.per_step_ns,
                          .unit = unit_of(worst.pattern),
                          .low = sure,
                          .high = worst.per_step_ns * 2 - sure};
  finding.statement = statement(kind, finding, accused.front());
  finding.evidence.push_back(
      std::string(sum.timed ? "arrivals from GPU times"
                            : "arrivals from the hosts' launches, as there are no GPU times") +
      "; only a rank's own time since its previous operation counts, beyond that of the other members; the costliest other rank cost " +
      text(worst.next.middle) + " in the same steps (at most " + text(worst.next.high) + ")");
  finding.evidence.push_back(steps_evidence());
  finding.advice = advice(kind, finding.ranks.size() < 2);
  if (!in_each_step(worst.pattern))
    finding.advice += " It does not happen in every step: look for what only this rank does now and then.";
  findings_.push_back(std::move(finding));
}

std::string Reporter::advice(FindingClass kind, bool one) {
  if (kind == FindingClass::kHostLate)
    return std::string(one ? "Check what this rank's host does" : "Check what the hosts of these ranks do") +
           " between operations: data loading, logging, garbage "
           "collection, a busy or throttled CPU, another process on its cores.";
  return std::string(one ? "Check why this rank's kernels take longer"
                         : "Check why the kernels of these ranks take longer") +
         ": GPU clocks and temperature, another process on "
         "the GPU, more or longer samples in its part of the batch.";
}

std::string Reporter::statement(FindingClass kind, const Finding& finding, const Accused& worst) const {
  const Pattern& pattern = worst.culprit->pattern;
  const bool one = finding.ranks.size() < 2;
  const std::string does = kind == FindingClass::kHostLate ? "slow to launch" : "slow on the GPU";
  const bool goes_on = pattern.kind == Kind::kSince || pattern.kind == Kind::kGrowing;
  std::string out = one ? who(process_of(worst.culprit->row)) : wording::ranks(finding.ranks);
  out += goes_on ? (one ? " has been " : " have been ") : (one ? " was " : " were ");
  out += (pattern.kind == Kind::kGrowing ? "slower and " + does.substr(0, 4) + "er" + does.substr(4) : does);
  out += " " + when_text(pattern) + (one ? ", " : ", the worst of them ") + "costing the other ranks about " +
         text(worst.culprit->per_step_ns) + each(pattern);
  return out + " (" + wording::percent(worst.sum.total_ns / costs_.span_ns) + " of the run); first in " +
         finding.operation;
}

std::string Reporter::when_text(const Pattern& pattern) const {
  const std::string first = step_text(pattern.first);
  const size_t steps = pattern.last - pattern.first + 1;
  switch (pattern.kind) {
    case Kind::kNone:
    case Kind::kSince:
    case Kind::kGrowing:
      return "since " + first;
    case Kind::kWindow:
      return "from " + first + " to " + step_text(pattern.last);
    case Kind::kPeriodic:
      return "in one step in " + std::to_string(pattern.period) + " since " + first;
    case Kind::kTail:
      break;
  }
  return "in " + std::to_string(pattern.late.size()) + " of " + std::to_string(steps) + " steps since " +
         first + ", at irregular intervals";
}

// The first figure is that of `lockstep summary`.
std::string Reporter::cost_evidence(const Accused& accused) const {
  const Culprit& culprit = *accused.culprit;
  const Pattern& pattern = culprit.pattern;
  const uint32_t process = process_of(culprit.row);
  return job_.process_name(process) + ": own lateness " + text(lateness_.processes[process].blamed_ns) +
         " in all, " + text(accused.sum.total_ns) + " of it from " + step_text(pattern.first) + " to " +
         step_text(pattern.last) + ", costing the others " + text(culprit.cost.low) + " to " +
         text(culprit.cost.high) + " beyond the next latest rank; " + text(culprit.per_step_ns) +
         " per late step (median), " + wording::percent(accused.sum.host_ns / accused.sum.total_ns) +
         " of it before the call reached the GPU's queue";
}

// Somebody is late for certain: it is not healthy, though nobody can be named.
void Reporter::one_of_two(const Accused& accused) {
  const Culprit& culprit = *accused.culprit;
  if (*culprit.either < culprit.row) return;  // said of the other
  Finding finding = begin(FindingId::kEvidenceMissingLateness, accused.sum.total_ns);
  finding.severity = Severity::kWarning;
  finding.statement = who(process_of(culprit.row)) + " or " + who(process_of(*culprit.either)) +
                      " has been slow to launch " + when_text(culprit.pattern) +
                      ", costing the other ranks about " + text(culprit.per_step_ns) + each(culprit.pattern) +
                      ": they exchange messages, so one may only have waited for the other, and their clocks "
                      "do not compare";
  finding.evidence.push_back(cost_evidence(accused));
  finding.evidence.push_back(steps_evidence());
  finding.needed_evidence = "files of more ranks, whose operations bound the hosts' clocks; GPU times";
  findings_.push_back(std::move(finding));
}

void Reporter::cannot_tell(const Accused& accused) {
  const Culprit& culprit = *accused.culprit;
  if (culprit.either) return one_of_two(accused);
  Finding finding = begin(FindingId::kEvidenceMissingLateness, accused.sum.total_ns);
  finding.statement = who(process_of(culprit.row)) + " may be late by " + text(culprit.per_step_ns) +
                      each(culprit.pattern) + " " + when_text(culprit.pattern) +
                      ", but the clocks are too uncertain to tell";
  finding.evidence.push_back(text(accused.sum.total_ns) + " in all, of which " + text(accused.sum.sure_ns) +
                             " exceed the uncertainty of the clocks");
  finding.needed_evidence =
      "a longer recording, so that more operations bound the hosts' clocks; another rank on the same host";
  findings_.push_back(std::move(finding));
}

void Reporter::report(const FewDelays& few) {
  const uint32_t process = process_of(few.row);
  Account sum;
  for (size_t step : few.steps) {
    const Account one = account(few.row, step, step);
    sum.total_ns += one.total_ns;
    sum.host_ns += one.host_ns;
    sum.sure_ns += one.sure_ns;
    if (sum.first == nullptr) sum.first = one.first;
  }
  const bool once = few.steps.size() == 1;
  Finding finding = begin(once ? FindingId::kImbalanceOnce : FindingId::kImbalanceFew, sum.total_ns);
  name(finding, process);
  show(finding, process, *sum.first);
  finding.statement = who(process) + " was late " +
                      (once ? "once" : wording::count(few.steps.size(), "time")) + ", in " +
                      steps_text(few.steps) + ": the others waited " + text(sum.total_ns);
  finding.effect =
      Effect{.value = sum.total_ns, .unit = "ns", .low = sum.sure_ns, .high = sum.total_ns * 2 - sum.sure_ns};
  finding.evidence.push_back("own lateness " + text(lateness_.processes[process].blamed_ns) + " in all, " +
                             text(sum.total_ns) + " of it there; " +
                             wording::percent(sum.host_ns / sum.total_ns) + " of that on the host");
  if (!once) finding.evidence.push_back("too few times to tell a pattern from chance");
  finding.evidence.push_back(steps_evidence());
  finding.advice = kLookOnce;
  findings_.push_back(std::move(finding));
}

void Reporter::report(const Turns& turns) {
  Finding finding = begin(FindingId::kImbalanceRotating, turns.total_ns);
  const std::string total =
      text(turns.total_ns) + " (" + wording::percent(turns.total_ns / costs_.span_ns) + " of the run)";
  const double on_host = host_share();
  finding.advice =
      on_host >= 0.5
          ? "The hosts hold up the GPUs in turn. Try fewer, longer kernels, CUDA graphs, processes pinned to their own cores, or host work of equal size."
          : "Balance the work: samples of equal length, the same number of tokens or experts per rank.";
  if (const std::optional<size_t> row = leader(turns, costs_)) {
    const Interval& cost = turns.costliest.front().second;
    const Account sum = account(*row, costs_.first, costs_.steps.size() - 1);
    finding.advice =
        advice(sum.host_ns * 2 >= sum.total_ns ? FindingClass::kHostLate : FindingClass::kGpuLate, true);
    finding.statement = who(process_of(*row)) + " cost the others most, " + text(cost.middle) + " (" +
                        wording::percent(cost.middle / costs_.span_ns) +
                        " of the run), too rarely to tell a habit from chance; waiting for the last rank, "
                        "whichever it is, costs " +
                        total;
    finding.needed_evidence = "a longer recording: it shows whether that rank is late again";
  } else {
    finding.statement =
        std::string(turns.one ? "no rank stands out: some are late now and then, too rarely to name one, "
                              : "no rank stands out: ranks take turns being late, ") +
        "and waiting for the last one costs " + total;
  }
  finding.effect =
      Effect{.value = turns.total_ns, .unit = "ns", .low = turns.total_ns, .high = turns.total_ns};
  finding.evidence.push_back(wording::count(turns.ranks, "rank") + (turns.ranks == 1 ? " was" : " were") +
                             " the latest of " + wording::count(turns.steps, "step"));
  for (const auto& [process, cost] : turns.costliest) {
    finding.evidence.push_back(job_.process_name(process) + " alone cost the others " + text(cost.middle) +
                               " (" + text(cost.low) + " to " + text(cost.high) + "), " +
                               wording::percent(cost.middle / costs_.span_ns) + " of the run");
  }
  finding.evidence.push_back(wording::percent(on_host) + " of all lateness arose on the hosts");
  finding.evidence.push_back(steps_evidence());
  findings_.push_back(std::move(finding));
}

void Reporter::report(const LongestOwn& longest) {
  const Pattern& pattern = longest.pattern;
  const bool once = pattern.kind == Kind::kNone;
  const FindingClass kind = longest.host_share >= 0.5 ? FindingClass::kHostLate : FindingClass::kGpuLate;
  const FindingId single = pattern.late.size() == 1 ? FindingId::kImbalanceOnce : FindingId::kImbalanceFew;
  Finding finding = begin(once ? single : id_of(kind, pattern), longest.lead.middle);
  for (uint32_t process : longest.processes) name(finding, process);
  std::sort(finding.ranks.begin(), finding.ranks.end());
  const bool one = longest.processes.size() == 1;
  analysis::name_operation(job_, longest.processes.front(), longest.op, finding);
  finding.since_ns = host_ns(job_.processes[longest.processes.front()].ops, longest.op);
  finding.statement = (one ? who(longest.processes.front()) : wording::ranks(finding.ranks)) + " worked " +
                      text(longest.per_step_ns) + (once ? "" : each(pattern)) +
                      " longer than any other rank between operations, " +
                      (once ? "in " + steps_text(pattern.late) : when_text(pattern)) +
                      ": the others waited for at most " +
                      wording::percent(longest.lead.middle / costs_.span_ns) + " of the run";
  const double steps = once ? 1 : static_cast<double>(pattern.late.size());
  finding.effect = Effect{.value = longest.per_step_ns,
                          .unit = once ? "ns" : unit_of(pattern),
                          .low = longest.lead.low / steps,
                          .high = longest.lead.high / steps};
  finding.evidence.push_back("time between operations by GPU times on each rank's own clock: " +
                             text(longest.lead.middle) + " more than any other rank in these steps (" +
                             text(longest.lead.low) + " to " + text(longest.lead.high) + "), " +
                             wording::percent(longest.host_share) + " of it on the host, between calls");
  finding.evidence.push_back(
      "the others lost no more than that, and less if their hosts ran ahead meanwhile; no single operation "
      "shows how long they waited, as sends, receives and operations of few ranks hide it");
  finding.evidence.push_back(steps_evidence());
  finding.advice = once ? kLookOnce : advice(kind, one);
  findings_.push_back(std::move(finding));
}

double Reporter::host_share() const {
  double host_ns = 0, total_ns = 0;
  for (const auto& late : lateness_.late) {
    for (const LateOp& of : late) {
      host_ns += static_cast<double>(of.host_part_ns);
      total_ns += static_cast<double>(of.blame_ns);
    }
  }
  return total_ns > 0 ? host_ns / total_ns : 0;
}

}  // namespace lockstep::analysis::straggler
