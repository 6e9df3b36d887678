// SPDX-License-Identifier: Apache-2.0
// A run with everything that a report about it says.
#pragma once
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/analysis.h"
#include "base/result.h"
#include "input/run_overview.h"
#include "job/match/match.h"
#include "links/judge/facts.h"
#include "links/judge/samples.h"
#include "model/job.h"
#include "readers/nccl_log/log_model.h"
#include "readers/reader.h"
#include "verdict/join/join.h"
#include "verdict/link_series.h"
#include "verdict/outcome.h"

namespace lockstep::verdict {

// One kind of evidence of the run.
struct Evidence {
  std::string source;                          // as people call it: "capture files"
  std::vector<std::string> paths;              // what names it alone on a command line; empty: nothing does
  std::optional<model::Job> job;               // none: it holds no operations
  std::vector<job::match::CommMatch> matches;  // by row of the job's comms
  join::TimeSpan span;
  std::map<int32_t, std::string> hosts;  // of the ranks that it mentions; a name may be empty
  std::string content;                   // what it holds, where that is no job: "8 files, 1,234 lines"
  std::shared_ptr<const readers::nccl_log::LogModel> logs;  // what logs say; else null
  bool is_of_now = false;                                   // it was asked who is stuck, and nothing else
  bool is_of_hosts = false;  // it is about hosts, and neither about ranks nor operations
  bool is_empty = false;     // snapshots without a communicator
};

// What a tool found out about a host's links, at a time that is not known.
struct LinkCheck {
  std::string tool;  // "ibstat", "lockstep links"
  std::string file;  // its name without folders
  links::LinkFacts facts;
  std::vector<analysis::Finding> findings;  // of links::judge
};

struct DiagnosedRun {
  std::vector<Evidence> evidence;              // the most trusted first; at least one
  std::vector<input::LossLine> troubles;       // of the input as a whole
  analysis::Diagnosis diagnosis;               // of all evidence together
  std::vector<verdict::join::CommLink> links;  // between kinds of evidence
  std::vector<lockstep::links::HostSamples>
      link_samples;          // counters of hosts' links; evidence of its own only if it is all there is
  PickedSeries link_series;  // of the same counters
  std::vector<LinkCheck> link_checks;  // likewise

  bool asked_all() const {
    return std::none_of(evidence.begin(), evidence.end(), [](const Evidence& of) { return of.is_of_now; });
  }
  const analysis::Finding* verdict() const {
    return diagnosis.verdict ? &diagnosis.findings[*diagnosis.verdict] : nullptr;
  }
};

// Reads what users name as input, looks whether its processes still run, asks every analysis of each kind of
// evidence, and joins what they say. `progress` gets the part of the runs that has been read, from 0 to 1.
// What cannot be read beside what can is one of the troubles.
Result<DiagnosedRun> diagnose(const std::vector<std::string>& paths,
                              const std::function<void(double)>& progress);

// statements.cc: evidence about a job without operations, judged; nothing for formats that hold
// operations.
struct Statement {
  Evidence evidence;
  std::vector<analysis::Finding> findings;
};
// Logs of sampled link counters, which judge_statements leaves out. Those that cannot be read are troubles.
std::vector<links::HostSamples> read_link_samples(const readers::FormatFiles& files, LinkSeriesPicker& picker,
                                                  std::vector<Error>& troubles);
// Likewise.
std::vector<LinkCheck> read_link_checks(const readers::Inputs& inputs, const readers::FormatFiles& files,
                                        std::vector<Error>& troubles);
Result<std::optional<Statement>> judge_statements(const readers::Inputs& inputs,
                                                  const readers::FormatFiles& files);

// The losses of one kind of evidence as reports show them.
input::RunOverview losses_of(const Evidence& evidence);

}  // namespace lockstep::verdict
