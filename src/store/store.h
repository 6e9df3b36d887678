// SPDX-License-Identifier: Apache-2.0
// Where a merged run is kept. Engines live in folders below; callers see only this.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/trace_source.h"

namespace lockstep::store {

struct MergeResult {
  uint64_t rows = 0;  // rows written, all tables
  uint64_t processes = 0;
  uint64_t bytes = 0;
  std::vector<std::string> attached;  // attachments that are in it to their last byte
};
// Writes a whole source into `path` (a temporary file beside it, verified, then renamed). One process in
// memory at a time. An existing trace.db of ours is replaced, any other existing file is an error.
// `attachments`: files of other tools that belong to the run and are kept as they are; one that cannot be
// read stays where it is.
Result<MergeResult> write_trace_db(model::TraceSource& source, const std::string& path,
                                   const std::vector<std::string>& attachments,
                                   const std::function<void(double fraction)>& progress);
// Whether the file is a trace.db of ours, and opening it as a source.
bool is_trace_db(const std::string& path);
Result<std::unique_ptr<model::TraceSource>> open_trace_db(const std::string& path);
// Writes the files that are attached to a trace.db into a folder, and returns their paths there. `folder`
// makes one; it is only asked if there are any.
Result<std::vector<std::string>> extract_attachments(const std::string& path,
                                                     const std::function<Result<std::string>()>& folder);

}  // namespace lockstep::store
