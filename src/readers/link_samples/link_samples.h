// SPDX-License-Identifier: Apache-2.0
// Samples of a host's links, as `lockstep trace` writes them beside a job: links/samples/sample_log.h reads
// them.
#pragma once
#include "readers/reader.h"

namespace lockstep::readers::link_samples {

extern const Format kFormat;

}  // namespace lockstep::readers::link_samples
