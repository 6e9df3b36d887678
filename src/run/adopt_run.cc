// SPDX-License-Identifier: Apache-2.0
// Every command that reads a run finishes first what dead processes left in memory, so that no verdict
// depends on whether their launcher lived long enough.
#include "run/adopt_run.h"

#include <filesystem>

#include "run/process_files.h"
#include "segment/adopt.h"

namespace lockstep::run {
namespace {

namespace fs = std::filesystem;

void adopt(const ProcessFile& file) {
  if (!file.segment.empty()) segment::adopt(file.segment.c_str(), file.path.c_str());
}

}  // namespace

void adopt_run(const std::string& path) {
  for (const ProcessFile& file : process_files_at(path)) adopt(file);
  // One folder deeper, too, as readers look there for process files.
  std::error_code error;
  for (fs::directory_iterator at(path, fs::directory_options::skip_permission_denied, error), end;
       !error && at != end; at.increment(error)) {
    if (!at->is_directory(error)) continue;
    for (const ProcessFile& file : process_files(at->path().string())) adopt(file);
  }
}

}  // namespace lockstep::run
