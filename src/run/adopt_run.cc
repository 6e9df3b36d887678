// SPDX-License-Identifier: Apache-2.0
// Every command that reads a run finishes first what dead processes left in memory, so that no verdict
// depends on whether their launcher lived long enough.
#include "run/adopt_run.h"

#include "run/process_files.h"
#include "segment/adopt.h"

namespace lockstep::run {
void adopt_run(const std::string& path) {
  for (const ProcessFile& file : process_files_at(path)) {
    if (!file.segment.empty()) segment::adopt(file.segment.c_str(), file.path.c_str());
  }
}

}  // namespace lockstep::run
