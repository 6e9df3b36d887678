// SPDX-License-Identifier: Apache-2.0
// Parts of `--json` documents about a whole run.
#pragma once
#include "base/text/json_text.h"
#include "input/run_overview.h"

namespace lockstep::input {

// A count for each kind of event, by its name.
Json events_json(const model::EventCounts& events);
// Rows of the loss ledger; `process` is a position in RunOverview::processes, null for the whole run.
Json losses_json(const RunOverview& run);

}  // namespace lockstep::input
