// SPDX-License-Identifier: Apache-2.0
// How SQLite has to treat a file that somebody else may have written: no views, triggers, virtual tables,
// computed columns or extensions, bounded lengths, nothing written, and at most so much work as the file's
// size can ask for, so that a damaged tree that leads in circles ends. Every connection that reads one is
// made so.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

struct sqlite3;

namespace lockstep {

// Work is counted in thousands of SQLite's instructions. What reading a file of so many bytes can ask for, at
// so many instructions for each byte.
int64_t sqlite_work(uint64_t bytes, uint64_t instructions_per_byte);

// `work_left` counts down while statements run, which end with an error at 0; it lives as long as the handle.
Result<void> harden_sqlite(sqlite3* handle, const std::string& path, int64_t* work_left);

// Tables by name, at most 4,096; none that is a view or virtual. Of a hardened handle, as is the next.
Result<std::vector<std::string>> ordinary_tables(sqlite3* handle, const std::string& path);
// Of an ordinary table; none if it computes one.
Result<std::vector<std::string>> ordinary_columns(sqlite3* handle, const std::string& path,
                                                  std::string_view table);

// What the last call on the handle failed of. nullptr: there was no memory for one.
Error sqlite_error(sqlite3* handle, const std::string& path);
// A name as SQL takes it.
std::string sqlite_quoted(std::string_view name);

}  // namespace lockstep
