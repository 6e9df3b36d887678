// SPDX-License-Identifier: Apache-2.0
// A source whose traces come assembled. Readers fill the tables of what was recorded and may not see the
// analyses; this is where the two meet.
#pragma once
#include <memory>

#include "model/trace_source.h"

namespace lockstep::job::assemble {

std::unique_ptr<model::TraceSource> assembled(std::unique_ptr<model::TraceSource> source);

}  // namespace lockstep::job::assemble
