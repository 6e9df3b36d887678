// SPDX-License-Identifier: Apache-2.0
// Parts of `--json` documents that tell of a whole run.
#pragma once
#include "base/text/json_text.h"
#include "input/run_overview.h"

namespace lockstep::input {

Json events_json(const model::EventCounts& events);
Json losses_json(const RunOverview& run);

}  // namespace lockstep::input
