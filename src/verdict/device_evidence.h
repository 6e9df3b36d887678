// SPDX-License-Identifier: Apache-2.0
// What all do that set trouble of a host's devices beside findings (link_evidence, gpu_evidence,
// link_checks): which processes a finding is about, how trouble is cited in it, and how trouble that fits
// none is put.
#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "links/judge/samples.h"
#include "verdict/diagnosed_run.h"

namespace lockstep::verdict {

struct ProcessOfRun {
  const model::Job* job = nullptr;
  uint32_t index = 0;        // into its processes
  std::string pci() const;   // its GPU as kernels write it, "0000:1b:00.0"; empty unknown
  std::string uuid() const;  // its GPU's as the job has it; empty unknown
};
// Those on a host, or of them those whose ranks a finding names. They live as long as the evidence.
std::vector<ProcessOfRun> processes_on(const std::string& host, const std::vector<Evidence>& evidence);
std::vector<ProcessOfRun> processes_on(const std::string& host, const std::vector<Evidence>& evidence,
                                       const analysis::Finding& finding);

// NCCL prefers the cards that share most of the PCI tree with a GPU. Their paths, as the GPU's; empty: none
// is below one root port with it, and which it takes is not known.
std::set<std::string> nearest_cards(std::string_view gpu, const links::HostSamples& host);

// Whether a trouble may have begun what the finding is about. What rose or ended long before did not; what
// rose after may follow from it, and is cited.
bool is_in_time(const links::LinkTrouble& trouble, const analysis::Finding& finding);

// Each once. `kind` is how the evidence is called.
void add_source(std::string_view kind, analysis::Finding& finding);
void add_advice(const std::string& advice, analysis::Finding& finding);

// "<kind>: <word>: <device> of <host>: <what it says>", and its lines.
void cite(std::string_view kind, std::string_view word, const links::LinkTrouble& trouble,
          const std::string& host, analysis::Finding& finding);

// A trouble that fits no finding.
struct TroubleAlone {
  const links::HostSamples* host = nullptr;
  const links::LinkTrouble* trouble = nullptr;
  bool is_note = false;
  std::string_view remark;  // the last line of evidence: why it is no more than that; empty: none
};
// One finding for all devices with one trouble, in the order of the ids as people read them: a switch that
// restarts, or a rack that grows hot, takes many along. The statements are "<what> <device> of <host>, ...:
// ...".
std::vector<analysis::Finding> findings_of(std::string_view kind, std::string_view what,
                                           const std::vector<TroubleAlone>& troubles);

}  // namespace lockstep::verdict
