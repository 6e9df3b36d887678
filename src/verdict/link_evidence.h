// SPDX-License-Identifier: Apache-2.0
// What sampled counters of links add to a diagnosis. A trouble of a card on the path of a transfer that is
// slow or stuck, in the time in question, is its likely cause, and a confirmed one where NCCL's log mentions
// that port as well: it stands in that finding. Any other trouble is a finding of its own, and only possible.
// A finding about a slow or stuck transfer whose counters are quiet says so.
#pragma once
#include <string>
#include <vector>

#include "links/judge/samples.h"
#include "verdict/diagnosed_run.h"

namespace lockstep::verdict {

// How its kind of evidence is called.
inline constexpr std::string_view kLinkCounters = "link counters";

void add_link_evidence(const std::vector<links::HostSamples>& hosts, const std::vector<Evidence>& evidence,
                       std::vector<analysis::Finding>& findings);

// "2 hosts, 18 devices, from ... to ...: none shows an error"
std::string link_samples_sentence(const std::vector<links::HostSamples>& hosts);

}  // namespace lockstep::verdict
