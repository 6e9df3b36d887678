// SPDX-License-Identifier: Apache-2.0
// Samples of a host's links, as `lockstep trace` writes them beside a job: links/samples/sample_log.h reads
// them, and here they become counters of the model.
#pragma once
#include <string>
#include <vector>

#include "model/trace_source.h"
#include "readers/reader.h"

namespace lockstep::readers::link_samples {

extern const Format kFormat;

// All counters of the logs that could be read, host by host; one host is in memory. Two logs of one host that
// follow each other are one; of two at the same time the later one is left out, as both read the same
// counters. Returns what kept logs from being read.
std::vector<Error> visit_counters(const std::vector<std::string>& logs,
                                  const model::TraceSource::HostCounterVisitor& visit);

}  // namespace lockstep::readers::link_samples
