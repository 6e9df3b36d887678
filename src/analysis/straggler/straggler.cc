// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "analysis/analysis.h"
#include "analysis/straggler/lateness.h"
#include "analysis/straggler/losses.h"
#include "analysis/wording/wording.h"

namespace lockstep::analysis::straggler {
namespace {

using model::Job;

// Below these, lateness that nobody is to blame for alone is what every job has.
constexpr double kRotatingShare = 0.05;
constexpr double kOnceShare = 0.8;  // of all that was lost beyond the usual, in one step

std::string text(double ns) { return wording::duration(static_cast<int64_t>(ns)); }

std::string step_text(const Losses& losses, size_t step) {
  const std::string number = std::to_string(losses.steps.number[step]);
  return losses.steps.source == Steps::Source::kSlices ? "part " + number : "step " + number;
}

std::string steps_evidence(const Losses& losses) {
  const Steps& steps = losses.steps;
  if (steps.source == Steps::Source::kMarks) return "steps as the program marks them";
  if (steps.source == Steps::Source::kPeriod)
    return "steps are counted by the operations, which repeat every " + std::to_string(steps.period) +
           "; step 0 is the first, with all that came before";
  return "the operations do not repeat, so the run is looked at in " + std::to_string(steps.size()) +
         " equal parts of " + std::to_string(steps.period) + " operations";
}

Finding begin(const char* id, FindingClass finding_class, Severity severity, double weight) {
  Finding finding;
  finding.id = id;
  finding.finding_class = finding_class;
  finding.severity = severity;
  finding.weight = weight;
  return finding;
}

// What one rank did in the steps in question.
struct Account {
  double total_ns = 0, host_ns = 0, sure_ns = 0;  // sure: without what the clocks leave open
  const LateOp* first = nullptr;                  // the worst of the first step
  bool timed = false;
};

class Reporter {
 public:
  Reporter(const Job& job, const Lateness& lateness, const Losses& losses, std::vector<Finding>& findings)
      : job_(job), lateness_(lateness), losses_(losses), findings_(findings) {}

  void report_persistent(const std::vector<Persistent>& culprits) {
    for (FindingClass kind : {FindingClass::kHostLate, FindingClass::kGpuLate}) {
      std::vector<Persistent> of_kind;
      for (const Persistent& run : culprits) {
        const Account sum = account(run.loss, run.first, run.last);
        const bool on_host = sum.host_ns * 2 >= sum.total_ns;
        if (on_host != (kind == FindingClass::kHostLate)) continue;
        if (sum.sure_ns < kShare * losses_.span_ns)
          cannot_tell(run, sum);
        else
          of_kind.push_back(run);
      }
      if (!of_kind.empty()) late(kind, of_kind);
    }
  }

  void report_scattered(const Scattered& lost) {
    const bool once = lost.worst_ns - lost.usual_loss_ns >= kOnceShare * lost.peaks_ns &&
                      lost.worst_ns >= std::max(kShare * losses_.span_ns, lost.usual_step_ns);
    if (!once &&
        (lost.ranks < 2 || lost.steps < kLeastSteps || lost.total_ns < kRotatingShare * losses_.span_ns))
      return;
    Finding finding = once ? hiccup(lost) : rotating(lost);
    finding.evidence.push_back(steps_evidence(losses_));
    findings_.push_back(std::move(finding));
  }

 private:
  uint32_t process_of(size_t loss) const { return losses_.ranks[loss].process; }

  Account account(size_t loss, size_t first, size_t last) const {
    Account sum;
    const uint32_t process = process_of(loss);
    for (const LateOp& late : lateness_.late[process]) {
      const size_t step = losses_.step_at(losses_.ranks[loss], late.host_ns);
      if (step < first || step > last) continue;
      const double blame = static_cast<double>(late.blame_ns);
      sum.total_ns += blame;
      sum.host_ns += static_cast<double>(late.host_part_ns);
      sum.sure_ns += std::max(blame - static_cast<double>(late.error_ns), 0.0);
      sum.timed = sum.timed || job_.processes[process].ops.is_placed(late.op);
      if (step == first && (sum.first == nullptr || late.blame_ns > sum.first->blame_ns)) sum.first = &late;
    }
    return sum;
  }

  void name(Finding& finding, uint32_t process) const {
    const model::JobProcess& row = job_.processes[process];
    if (row.row.rank >= 0) finding.ranks.push_back(row.row.rank);
    std::string host(job_.text(job_.hosts[row.host].name));
    if (!host.empty() && std::find(finding.hosts.begin(), finding.hosts.end(), host) == finding.hosts.end())
      finding.hosts.push_back(std::move(host));
  }

  std::string who(uint32_t process) const {
    const model::JobProcess& row = job_.processes[process];
    const std::string host(job_.text(job_.hosts[row.host].name));
    std::string place = row.row.gpu < 0 ? host : "GPU " + std::to_string(row.row.gpu);
    if (row.row.gpu >= 0 && !host.empty()) place += " of " + host;
    return job_.process_name(process) + (place.empty() ? "" : " (" + place + ")");
  }

  void show(Finding& finding, uint32_t process, const LateOp& late) const {
    const model::JobOps& ops = job_.processes[process].ops;
    finding.comm = job_.comm_name(job_.members[late.member].comm);
    finding.comm_row = job_.members[late.member].comm;
    finding.func = job_.text(job_.signatures[ops.signature[late.op]].func);
    finding.op_index = ops.index[late.op];
    finding.since_ns = late.host_ns;
  }

  void late(FindingClass kind, std::vector<Persistent>& runs) {
    const bool on_host = kind == FindingClass::kHostLate;
    const Persistent& worst = runs.front();
    Finding finding = begin(on_host ? "host-late" : "gpu-late", kind, Severity::kWarning, 0);
    size_t first = worst.first;
    std::vector<uint32_t> processes;
    for (const Persistent& run : runs) {
      const Account sum = account(run.loss, run.first, run.last);
      processes.push_back(process_of(run.loss));
      name(finding, processes.back());
      finding.weight += sum.total_ns;
      first = std::min(first, run.first);
      finding.evidence.push_back(
          job_.process_name(processes.back()) + ": " + text(run.per_step_ns) + " a step (median), " +
          text(sum.total_ns) + " in all, in " + wording::percent(run.share) + " of the steps from " +
          step_text(losses_, run.first) + " to " + step_text(losses_, run.last) + "; " +
          wording::percent(sum.host_ns / sum.total_ns) + " of it before the call reached the GPU's queue");
    }
    std::sort(finding.ranks.begin(), finding.ranks.end());
    const Account sum = account(worst.loss, worst.first, worst.last);
    show(finding, processes[0], *sum.first);
    const double sure = worst.per_step_ns * sum.sure_ns / sum.total_ns;
    finding.effect = Effect{
        .value = worst.per_step_ns, .unit = "ns/step", .low = sure, .high = worst.per_step_ns * 2 - sure};
    const std::string ranks = processes.size() == 1 ? who(processes[0]) : wording::ranks(finding.ranks);
    finding.statement =
        ranks + (on_host ? " call" : " reach") + (processes.size() == 1 ? on_host ? "s" : "es" : "") +
        (on_host ? " late on the host" : " communication late on the GPU") + " from " +
        step_text(losses_, first) + " on: about " + text(worst.per_step_ns) +
        " a step that the others wait; first in " + finding.func + " of communicator " + finding.comm;
    finding.evidence.push_back(own_evidence(worst, sum));
    finding.evidence.push_back(steps_evidence(losses_));
    finding.advice =
        on_host ? "See what this rank's host does between its operations: data loading, logging, garbage "
                  "collection, a busy or throttled CPU, another process on its cores."
                : "See why this rank's kernels take longer: GPU clocks and temperature, another process on "
                  "the GPU, more or longer samples in its part of the batch.";
    findings_.push_back(std::move(finding));
  }

  std::string own_evidence(const Persistent& run, const Account& sum) const {
    double next = 0;
    for (size_t i = 0; i < losses_.ranks.size(); ++i) {
      if (i == run.loss) continue;
      double total = 0;
      for (size_t step = run.first; step <= run.last; ++step)
        total += static_cast<double>(losses_.ranks[i].by_step[step]);
      next = std::max(next, total);
    }
    return std::string(sum.timed ? "arrivals by GPU times"
                                 : "arrivals by the hosts' launches: GPU times are not known") +
           "; counted is time of its own since it left its previous operation, beyond that of the other "
           "members; "
           "the next latest rank costs " +
           text(next) + " in the same steps";
  }

  void cannot_tell(const Persistent& run, const Account& sum) {
    Finding finding =
        begin("evidence-missing.lateness", FindingClass::kEvidenceMissing, Severity::kNote, sum.total_ns);
    const uint32_t process = process_of(run.loss);
    finding.statement = who(process) + " may be late by " + text(run.per_step_ns) + " a step from " +
                        step_text(losses_, run.first) + " on, but the clocks leave it open";
    finding.evidence.push_back(text(sum.total_ns) + " in all, of which " + text(sum.sure_ns) +
                               " exceed the uncertainty of the clocks");
    finding.settle =
        "a longer record, so that more operations bound the hosts' clocks; another rank on the same host";
    findings_.push_back(std::move(finding));
  }

  Finding hiccup(const Scattered& lost) const {
    const uint32_t process = process_of(lost.loss);
    const Account sum = account(lost.loss, lost.step, lost.step);
    Finding finding = begin("imbalance.once", FindingClass::kImbalance, Severity::kWarning, lost.worst_ns);
    name(finding, process);
    show(finding, process, *sum.first);
    finding.statement = who(process) + " was late once, in " + step_text(losses_, lost.step) +
                        ": the others waited " + text(lost.worst_ns);
    finding.effect = Effect{
        .value = lost.worst_ns, .unit = "ns", .low = sum.sure_ns, .high = lost.worst_ns * 2 - sum.sure_ns};
    finding.evidence.push_back(text(lost.worst_ns) + " of " + text(lost.total_ns) +
                               " that all late arrivals cost; " +
                               wording::percent(sum.host_ns / sum.total_ns) + " of it on the host");
    finding.advice = "Look for what happens once: a checkpoint, an evaluation, a reconnect, a page-in.";
    return finding;
  }

  Finding rotating(const Scattered& lost) const {
    Finding finding =
        begin("imbalance.rotating", FindingClass::kImbalance, Severity::kWarning, lost.total_ns);
    finding.statement = "Ranks take turns in being late: " + text(lost.total_ns) + " of the run (" +
                        wording::percent(lost.total_ns / losses_.span_ns) + ") wait for whoever is the last";
    finding.effect =
        Effect{.value = lost.total_ns, .unit = "ns", .low = lost.total_ns, .high = lost.total_ns};
    finding.evidence.push_back(wording::count(lost.ranks, "rank") +
                               " were the latest of a step; none stands out");
    const double on_host = host_share();
    finding.evidence.push_back(wording::percent(on_host) + " of all lateness came about on the hosts");
    finding.advice =
        on_host >= 0.5
            ? "The hosts hold the GPUs up in turn: longer or fewer kernels, CUDA graphs, processes "
              "pinned to cores of their own, or work of equal size where the hosts prepare it."
            : "Balance the work: samples of equal length, the same number of tokens or experts a "
              "rank.";
    return finding;
  }

  double host_share() const {
    double host_ns = 0, total_ns = 0;
    for (const auto& late : lateness_.late) {
      for (const LateOp& of : late) {
        host_ns += static_cast<double>(of.host_part_ns);
        total_ns += static_cast<double>(of.blame_ns);
      }
    }
    return total_ns > 0 ? host_ns / total_ns : 0;
  }

  const Job& job_;
  const Lateness& lateness_;
  const Losses& losses_;
  std::vector<Finding>& findings_;
};

void run(const Job& job, std::vector<Finding>& findings) {
  const Lateness lateness = measure(job);
  const std::optional<Losses> losses = sum_losses(job, lateness);
  if (!losses || losses->span_ns <= 0) return;
  Reporter reporter(job, lateness, *losses, findings);
  const std::vector<Persistent> culprits = persistent(*losses);
  if (!culprits.empty())
    reporter.report_persistent(culprits);
  else if (auto lost = scattered(*losses))
    reporter.report_scattered(*lost);
}

}  // namespace

extern const Analysis kAnalysis = {
    .name = "straggler", .question = "Which rank is late, and since when?", .run = run};

}  // namespace lockstep::analysis::straggler
