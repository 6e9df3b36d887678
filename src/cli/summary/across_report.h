// SPDX-License-Identifier: Apache-2.0
// The figures of a run across its ranks as tables and as JSON.
#pragma once
#include <string>

#include "analysis/summary/across.h"
#include "base/text/json_text.h"
#include "cli/kit/columns.h"

namespace lockstep::cli {

// Tables of at most `limit` rows each; empty for a run of one rank.
std::string across_text(const analysis::summary::AcrossFigures& figures, size_t limit);
// Adds bandwidth_list, fit_list, comm_wait_list, rank_wait_list, link_list, overlap_list and steps to the
// document.
void add_across_json(const analysis::summary::AcrossFigures& figures, Json& document);

// "  ... and 3 more; ..." where rows do not fit.
std::string more_rows(size_t rows, size_t limit);
// The table of rows, and that line.
template <class Rows, class Show>
std::string rows_text(const Rows& rows, size_t limit, const Show& show) {
  return table_of(rows, limit, show).text() + more_rows(rows.size(), limit);
}

}  // namespace lockstep::cli
