// SPDX-License-Identifier: Apache-2.0
// The libraries are found relative to the program, so that a tarball, a wheel and a build tree work wherever
// they lie. Without the NCCL plugin there is nothing to trace with; the others are optional, as builds may
// lack them.
#include "cli/trace/capture_libraries.h"

#include <filesystem>
#include <vector>

namespace lockstep::cli::trace {
namespace fs = std::filesystem;

Result<CaptureLibraries> find_capture_libraries() {
  std::error_code error;
  // /proc/self/exe and not argv[0], which may be a bare name or a link.
  fs::path program = fs::read_symlink("/proc/self/exe", error);
  fs::path prefix = program.parent_path().parent_path();
  std::string looked;
  for (const fs::path& folder : {prefix / "lib", prefix / LOCKSTEP_LIBRARY_FOLDER}) {
    fs::path nccl = folder / "liblockstep-nccl.so";
    if (fs::is_regular_file(nccl, error)) {
      auto if_there = [&](const char* name) {
        const fs::path path = folder / name;
        return fs::is_regular_file(path, error) ? path.lexically_normal().string() : std::string();
      };
      return CaptureLibraries{nccl.lexically_normal().string(), if_there("liblockstep.so"),
                              if_there("liblockstep-cuda.so"), if_there("liblockstep-hsa.so"),
                              if_there("liblockstep-rocp.so")};
    }
    if (looked.empty()) looked = nccl.lexically_normal().string();
  }
  return Error{ErrorCode::kNotFound,
               "the capture library is missing; build with LOCKSTEP_BUILD_CAPTURE=ON or reinstall", looked};
}

}  // namespace lockstep::cli::trace
