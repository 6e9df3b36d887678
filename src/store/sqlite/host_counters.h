// SPDX-License-Identifier: Apache-2.0
// Counters of hosts' links and GPUs as tables of a trace.db: `host_counter` and `host_sample`.
#pragma once
#include <cstdint>

#include "base/result.h"
#include "model/trace_source.h"
#include "store/sqlite/database.h"

namespace lockstep::store::sqlite {

// Into the open transaction; `rows` grows by what was added.
Result<void> write_host_counters(const Database& database, model::TraceSource& source, uint64_t& rows);
// Files of older releases have none. Values that no sampler writes are left out, and an error at the end.
Result<void> read_host_counters(const Database& database,
                                const model::TraceSource::HostCounterVisitor& visit);

}  // namespace lockstep::store::sqlite
