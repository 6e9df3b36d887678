// SPDX-License-Identifier: Apache-2.0
// Counters of one process: what it recorded, what was put together, what was lost, zeros included.
// Identities, which a test holds us to: ops = ops_gpu_timed + ops_host_only; each <table> = <table>_resolved
// + <table>_unresolved; lost = the sum of lost_<stage>.
#pragma once
#include <cstdint>

#include "model/trace.h"
#include "store/sqlite/database.h"

namespace lockstep::store::sqlite {

// Adds the rows of `diagnostic` for the process and counts them in `rows`.
Result<void> write_diagnostics(const Database& database, const model::Trace& trace, int64_t process_id,
                               uint64_t& rows);

}  // namespace lockstep::store::sqlite
