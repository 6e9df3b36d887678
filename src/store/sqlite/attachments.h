// SPDX-License-Identifier: Apache-2.0
// Files of other tools within a trace.db, as they were: cut into pieces that are compressed each for itself
// (zlib), so that neither writing nor reading holds a file in memory.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/sqlite/database.h"

namespace lockstep::store::sqlite {

inline constexpr size_t kPieceBytes = 1 << 20;  // before compression

// How large attached files may be together; the largest of both.
struct AttachmentLimits {
  uint64_t harmless_bytes = uint64_t{1} << 30;
  uint64_t most_growth = 200;  // so many times the size of the trace.db
};

// Into the open transaction; `rows` grows by what was added. Returns those that were written: regular files
// that can be read.
Result<std::vector<std::string>> write_attachments(const Database& database,
                                                   const std::vector<std::string>& paths, uint64_t& rows);
// Every file into the folder that `folder` makes; their paths there. Any content of the tables will do: names
// stay in the folder, and what grows without bound is refused. `path`: of the trace.db.
Result<std::vector<std::string>> read_attachments(const Database& database, const std::string& path,
                                                  const std::function<Result<std::string>()>& folder,
                                                  const AttachmentLimits& limits = {});
// Those of `paths`, as they were written, that are in there to the last byte. An error: one that does not
// read back.
Result<std::vector<std::string>> whole_attachments(const Database& database,
                                                   const std::vector<std::string>& paths);

}  // namespace lockstep::store::sqlite
