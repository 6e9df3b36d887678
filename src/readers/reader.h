// SPDX-License-Identifier: Apache-2.0
// A reader turns one kind of file into the model. A new one is a folder and a line in readers.def.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/trace_source.h"

namespace lockstep::readers {

inline constexpr size_t kSniffBytes = 4096;

struct Format {
  std::string_view name;     // shown by `info` and in docs
  std::string_view summary;  // one line
  // True if a file that begins with these bytes (at most kSniffBytes) is of this format. No side effects.
  bool (*sniff)(std::span<const std::byte> first_bytes);
  // Opens files of this format as one source; files of one process become one process. A file that cannot be read
  // at all is a run loss, unless it is the only one.
  Result<std::unique_ptr<model::TraceSource>> (*open)(std::vector<std::string> paths);
};

std::span<const Format* const> all();
// The first format, in readers.def order, whose sniff accepts the file; nullptr if none does.
Result<const Format*> detect(const std::string& path);
// Opens what a user names: files, a run directory (manifest or not), or both, in any mix of formats.
Result<std::unique_ptr<model::TraceSource>> open(const std::vector<std::string>& paths);

}  // namespace lockstep::readers
