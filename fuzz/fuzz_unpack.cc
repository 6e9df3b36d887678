// SPDX-License-Identifier: Apache-2.0
// Feeds arbitrary bytes to the unpacker as a file, wants all that is in it, and checks that what was written
// lies where it may and is no larger than it may be.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "readers/unpack.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace fs = std::filesystem;
  using lockstep::readers::Unpacker;
  const int fd = memfd_create("fuzz", 0);
  if (fd < 0 || write(fd, data, size) != static_cast<ssize_t>(size)) std::abort();
  constexpr uint64_t kMost = 4 << 20;
  {
    Unpacker unpacker({.harmless_bytes = kMost, .most_growth = 1, .files_most = 64});
    const std::string path = "/proc/self/fd/" + std::to_string(fd);
    const auto wants = [](const std::string&, std::span<const std::byte>) { return true; };
    auto unpacked = unpacker.unpack(path, wants, true);
    if (unpacked) {
      const fs::path folder = fs::weakly_canonical(unpacker.make_folder("x").value()).parent_path();
      uint64_t bytes = 0;
      for (const std::string& file : unpacked->files) {
        const fs::path at = fs::weakly_canonical(file);
        if (at.string().rfind(folder.string() + '/', 0) != 0 || !fs::is_regular_file(at)) std::abort();
        bytes += fs::file_size(at);
        if (unpacker.shown(file).find(path) != 0) std::abort();
      }
      // What is packed within an archive has a limit of its own.
      if (bytes > kMost * (1 + unpacked->files.size())) std::abort();
    }
  }
  close(fd);
  return 0;
}
