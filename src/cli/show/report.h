// SPDX-License-Identifier: Apache-2.0
// What `show` prints, as text of a width (Style::columns) and as JSON. Tables are as wide as their cells.
#pragma once
#include <string>
#include <vector>

#include "base/text/json_text.h"
#include "base/text/style.h"
#include "cli/show/operation.h"

namespace lockstep::cli::show {

// A table of `limit` rows.
std::string list_text(const model::Job& job, const std::vector<ListedOperation>& listed, uint64_t p2ps,
                      size_t limit, size_t width = Style::kColumns);
Json list_json(const model::Job& job, const std::vector<ListedOperation>& listed, uint64_t p2ps);

// `all`: every line of every table, and no text is cut.
std::string operation_text(const model::Job& job, const Operation& operation, bool all,
                           size_t width = Style::kColumns);
Json operation_json(const model::Job& job, const Operation& operation);

}  // namespace lockstep::cli::show
