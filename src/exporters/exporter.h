// SPDX-License-Identifier: Apache-2.0
// An exporter turns a run into a file, or a folder of files, of another format. A new one is a folder and a
// line in exporters.def. Exporters read the source one process at a time, write to `output` (never over an
// input), and report how many events they wrote. Progress is called now and then with a fraction 0..1.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/trace_source.h"

namespace lockstep::exporters {

struct ExportResult {
  uint64_t events = 0;
  uint64_t bytes = 0;
};
using Progress = std::function<void(double fraction)>;

struct Exporter {
  std::string_view name;              // `convert -f NAME`
  std::string_view summary;           // one line for help and docs
  std::string_view extension;         // default output: input stem + this
  bool is_folder = false;             // what is written is a folder of files
  std::string_view counts = "event";  // what ExportResult::events is the number of
  std::string_view off = {};  // why this build cannot write it, and what would change that; else empty
  // Writes to `path` through something temporary beside it, renamed when whole. A file that ends in .gz is
  // compressed.
  Result<ExportResult> (*write)(model::TraceSource& source, const std::string& path,
                                const Progress& progress) = nullptr;  // nullptr: off
};

std::span<const Exporter* const> all();
const Exporter* find(std::string_view name);

}  // namespace lockstep::exporters
