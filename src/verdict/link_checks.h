// SPDX-License-Identifier: Apache-2.0
// What checks of hosts' links add to a diagnosis: what other tools printed, and records of `lockstep links`.
// Their time is unknown and may not be the job's, so they support a finding about a slow or stuck transfer,
// or contradict it, and prove nothing. A trouble that no such finding is about is a finding of its own.
//
// A file's host is the one that it names; else the one that has its GPUs (by UUID); else the one whose name
// is a word of the file's name; else the job's only one. Without one it is set beside no finding.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "links/judge/facts.h"
#include "verdict/diagnosed_run.h"

namespace lockstep::verdict {

// How its kind of evidence is called.
inline constexpr std::string_view kLinkChecks = "link checks";

void add_link_checks(const std::vector<LinkCheck>& checks, const std::vector<Evidence>& evidence,
                     std::vector<analysis::Finding>& findings);

// "ibstat (8 ports), nvbandwidth (56 pairs of GPUs)"
std::string link_checks_sentence(const std::vector<LinkCheck>& checks);

}  // namespace lockstep::verdict
