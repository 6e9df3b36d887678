// SPDX-License-Identifier: Apache-2.0
// lockstep-write-recorded DIRECTORY TAPE...: a run directory as the capture libraries would have written it,
// of recorded ranks at their recorded times to the nanosecond. A replay on a busy machine has that machine's
// delays in it; this has none.
#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>

#include "golden/recorded_files.h"

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: lockstep-write-recorded DIRECTORY TAPE...\n");
    return 2;
  }
  const std::string directory = argv[1];
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  for (int i = 2; i < argc; ++i) {
    const auto written =
        lockstep::golden::write_recorded(argv[i], "", directory, "process" + std::to_string(i - 2));
    if (written) continue;
    std::fprintf(stderr, "lockstep-write-recorded: %s\n", written.error().message().c_str());
    return 1;
  }
  return 0;
}
