// SPDX-License-Identifier: Apache-2.0
// What other processes of its host did of an operation's network (PXN): it is in their traces.
#pragma once
#include <cstddef>
#include <vector>

#include "cli/show/operation.h"

namespace lockstep::cli::show {

// Adds it to the trees of `ranks`, below what was enqueued. Loads those processes of `source` that drove the
// network of others.
void add_foreign_network(const model::Job& job, model::TraceSource& source, size_t most,
                         std::vector<RankOperation>& ranks);

}  // namespace lockstep::cli::show
