// SPDX-License-Identifier: Apache-2.0
// What `merge` and the end of `trace` report, for people and for programs.
#pragma once
#include <string>
#include <vector>

#include "base/text/json_text.h"
#include "input/run_overview.h"
#include "store/store.h"

namespace lockstep::cli {

// Losses first, one sentence a line.
std::vector<std::string> merge_sentences(const input::RunOverview& run, const store::MergeResult& merged,
                                         const std::string& output, uint64_t files);
Json merge_json(const input::RunOverview& run, const store::MergeResult& merged, const std::string& output,
                uint64_t files);

}  // namespace lockstep::cli
