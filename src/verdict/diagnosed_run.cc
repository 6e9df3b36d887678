// SPDX-License-Identifier: Apache-2.0
// The way from paths to one diagnosis: each kind of evidence is read and judged by itself, then joined, and
// last the input as a whole is doubted, because such a doubt may take the place of every verdict.
#include "verdict/diagnosed_run.h"

#include <algorithm>
#include <set>

#include "input/input.h"
#include "job/gather/gather.h"
#include "readers/link_samples/link_samples.h"
#include "readers/native/native.h"
#include "readers/printed_links/printed_links.h"
#include "run/liveness.h"
#include "run/process_info.h"
#include "verdict/doubts.h"
#include "verdict/link_checks.h"
#include "verdict/link_evidence.h"
#include "verdict/next_steps.h"
#include "verdict/wanted_checks.h"

namespace lockstep::verdict {

using analysis::Finding;

namespace {

std::map<int32_t, std::string> hosts_of(const model::Job& job) {
  std::map<int32_t, std::string> hosts;
  for (const model::JobProcess& process : job.processes) {
    if (process.row.rank >= 0) hosts.emplace(process.row.rank, job.text(process.row.host));
  }
  return hosts;
}

// Of its records; 0 where they are not on a clock that counts from 1970.
void set_span(Evidence& evidence) {
  // Files without Unix time count from a boot or a program's begin, which lie below this.
  constexpr int64_t kYear2000Ns = 946'684'800'000'000'000;
  for (const model::JobProcess& process : evidence.job->processes) {
    if (process.row.first_ns < kYear2000Ns) continue;
    join::TimeSpan& span = evidence.span;
    span.first_ns = span.first_ns == 0 ? process.row.first_ns : std::min(span.first_ns, process.row.first_ns);
    span.last_ns = std::max({span.last_ns, process.row.last_ns, process.row.heartbeat_ns});
  }
}

// What cannot be read is a loss of the whole, as long as something can.
class Reading {
 public:
  Reading(const std::vector<std::string>& paths, input::MixedInput& input) : paths_(paths), input_(input) {
    run_.troubles = std::move(input.troubles);
  }

  void add_runs(const std::function<void(double)>& progress) {
    for (size_t i = 0; i < input_.runs.size(); ++i) {
      const auto part = [&](double done) {
        progress((static_cast<double>(i) + done) / static_cast<double>(input_.runs.size()));
      };
      auto job = job::gather::gather(*input_.runs[i].source, {.threads = 0, .progress = part});
      if (!job) {
        lose(job.error());
        continue;
      }
      Evidence evidence;
      evidence.source = input_.runs[i].evidence;
      evidence.paths = std::move(input_.runs[i].paths);
      evidence.job = *std::move(job);
      if (const readers::Format* format = input_.runs[i].format;
          format != nullptr && format != &readers::native::kFormat) {
        // Advice names the files that the user has, and how to get more of these
        // (analysis/hang/file_words.cc).
        evidence.job->files = format->summary;
        evidence.job->setting = format->setting;
      }
      // Before the questions: whether a process lives decides what its silence means.
      run::set_liveness(paths_, *evidence.job);
      evidence.is_of_now = input_.runs[i].is_of_now;
      findings_.push_back(analysis::diagnose(*evidence.job, evidence.is_of_now).findings);
      evidence.matches = job::match::count_matches(*evidence.job);
      evidence.hosts = hosts_of(*evidence.job);
      set_span(evidence);
      run_.evidence.push_back(std::move(evidence));
    }
  }

  void add_statements() {
    const readers::FormatFiles* samples = nullptr;
    for (const readers::FormatFiles& files : input_.files.formats) {
      if (files.format == &readers::link_samples::kFormat) {
        samples = &files;
        continue;
      }
      if (files.format == &readers::printed_links::kFormat) {
        add_link_checks_of(files);
        continue;
      }
      auto statement = judge_statements(input_.files, files);
      if (!statement) {
        lose(statement.error());
      } else if (*statement) {
        run_.evidence.push_back(std::move((*statement)->evidence));
        findings_.push_back(std::move((*statement)->findings));
        // A job that has just begun is creating its communicators: logs that show it halfway are no trouble
        // yet.
        std::erase_if(findings_.back(),
                      [this](const Finding& finding) { return is_in_progress(finding, run_); });
      }
    }
    // Last, as findings decide which hosts' traffic is kept.
    if (samples != nullptr) add_link_samples(*samples);
  }

  Result<DiagnosedRun> take() {
    if (run_.evidence.empty() && !run_.link_samples.empty())
      add_alone(kLinkCounters, link_samples_sentence(run_.link_samples));
    if (run_.evidence.empty() && !run_.link_checks.empty())
      add_alone(kLinkChecks, link_checks_sentence(run_.link_checks));
    if (run_.evidence.empty())
      return first_error_
                 ? *first_error_
                 : Error{ErrorCode::kInvalidInput, "holds no samples", paths_.empty() ? "" : paths_.front()};
    std::vector<verdict::join::EvidenceSource> sources;
    for (size_t i = 0; i < run_.evidence.size(); ++i) {
      const Evidence& evidence = run_.evidence[i];
      // Counters of links know no ranks; they join the findings afterwards.
      if (evidence.is_of_hosts) continue;
      sources.push_back({evidence.source, evidence.job ? &*evidence.job : nullptr, evidence.hosts,
                         evidence.span, std::move(findings_[i])});
    }
    auto joined = verdict::join::join(std::move(sources));
    run_.diagnosis = std::move(joined.diagnosis);
    run_.links = std::move(joined.links);
    add_doubts();
    return std::move(run_);
  }

 private:
  void add_link_samples(const readers::FormatFiles& files) {
    std::set<std::string> named;
    for (const std::vector<Finding>& findings : findings_)
      for (const Finding& finding : findings)
        if (finding.severity != analysis::Severity::kNote)
          named.insert(finding.hosts.begin(), finding.hosts.end());
    std::vector<Error> troubles;
    LinkSeriesPicker picker(std::move(named));
    run_.link_samples = read_link_samples(files, picker, troubles);
    run_.link_series = picker.take();
    for (Error& error : troubles) lose(std::move(error));
  }

  void add_link_checks_of(const readers::FormatFiles& files) {
    std::vector<Error> troubles;
    run_.link_checks = read_link_checks(input_.files, files, troubles);
    for (Error& error : troubles) lose(std::move(error));
  }

  void add_alone(std::string_view source, std::string content) {
    Evidence evidence;
    evidence.source = source;
    evidence.content = std::move(content);
    evidence.is_of_hosts = true;
    run_.evidence.push_back(std::move(evidence));
  }

  void add_doubts() {
    std::vector<Finding> findings = std::move(run_.diagnosis.findings);
    if (auto several = several_jobs(run_, sightings(paths_))) findings.push_back(*std::move(several));
    if (!run_.link_samples.empty()) add_link_evidence(run_.link_samples, run_.evidence, findings);
    add_link_checks(run_.link_checks, run_.evidence, findings);
    // Behind both: it leaves alone what counters or checks have reported.
    add_wanted_checks(run_.evidence, findings);
    if (auto unread = unread_inputs(run_)) findings.push_back(*std::move(unread));
    // That there is too little to call the job healthy is asked last: any other verdict makes it pointless.
    run_.diagnosis = analysis::in_order(std::move(findings));
    if (run_.diagnosis.verdict) return;
    if (auto little = too_little(run_)) {
      run_.diagnosis.findings.push_back(*std::move(little));
      run_.diagnosis = analysis::in_order(std::move(run_.diagnosis.findings));
    }
  }

  void lose(Error error) {
    if (input_.files.unpacker) error.where = input_.files.unpacker->shown(std::move(error.where));
    // One bad file must not hide what the others say. It is an error only if nothing else is left.
    run_.troubles.push_back({-1, "read", "unreadable_file", error.message(), 1});
    if (!first_error_) first_error_ = std::move(error);
  }

  const std::vector<std::string>& paths_;
  input::MixedInput& input_;
  DiagnosedRun run_;
  std::vector<std::vector<Finding>> findings_;
  std::optional<Error> first_error_;
};

}  // namespace

Result<DiagnosedRun> diagnose(const std::vector<std::string>& paths,
                              const std::function<void(double)>& progress) {
  LOCKSTEP_ASSIGN(input::MixedInput input, input::open_mixed_input(paths));
  Reading reading(paths, input);
  // Runs first: whether a log's open communicator is of a live job is asked of them.
  reading.add_runs(progress);
  reading.add_statements();
  LOCKSTEP_ASSIGN(DiagnosedRun run, reading.take());
  add_next_steps(paths, run::own_identity().boot_id, run);
  return run;
}

input::RunOverview losses_of(const Evidence& evidence) {
  input::RunOverview run;
  if (!evidence.job) return run;
  const model::Job& job = *evidence.job;
  for (const model::JobProcess& process : job.processes) {
    input::ProcessOverview& seen = run.processes.emplace_back();
    seen.host = job.text(process.row.host);
    seen.pid = process.row.pid;
    seen.rank = process.row.rank;
  }
  for (size_t i = 0; i < job.losses.size(); ++i) {
    model::Loss loss = job.losses.row(i);
    run.losses.push_back({.process = loss.process < job.processes.size() ? int64_t{loss.process} : -1,
                          .stage = std::string(job.text(loss.stage)),
                          .kind = std::string(job.text(loss.kind)),
                          .detail = std::string(job.text(loss.detail)),
                          .count = loss.count});
  }
  return run;
}

}  // namespace lockstep::verdict
