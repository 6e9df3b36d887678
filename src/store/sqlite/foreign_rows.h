// SPDX-License-Identifier: Apache-2.0
// Network operations that a process did for another one of its host (PXN): which communicator and task they
// are of is known by boot id, pid, context and handle, and known once both processes are in the database.
#pragma once
#include <cstdint>
#include <span>

#include "base/result.h"
#include "model/trace.h"
#include "store/sqlite/database.h"

namespace lockstep::store::sqlite {

// The proxy operations of a process that has some of these.
struct ForeignRows {
  int64_t trace = 0, first_id = 0;
  uint64_t rows = 0;
};
// True if the process has network operations of another one. Only then its rows need the join.
bool has_foreign(const model::Trace& trace);

// Fills `comm` and `task` of those rows; the number of operations whose originator is not there.
Result<uint64_t> join_foreign_rows(const Database& database, std::span<const ForeignRows> rows);
// As RowDigest is made of rows that are inserted.
Result<int64_t> digest_of_proxy_ops(const Database& database, const ForeignRows& rows);

}  // namespace lockstep::store::sqlite
