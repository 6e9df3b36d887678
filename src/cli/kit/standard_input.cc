// SPDX-License-Identifier: Apache-2.0
// Copies standard input into a temporary file, as readers seek, map and open files by their name. The copy
// goes with the object. Messages must not show the temporary path, which the user never named.
#include "cli/kit/standard_input.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>

#include "base/partial_path.h"

namespace lockstep::cli {
namespace {

constexpr const char* kName = "standard-input";

}  // namespace

std::string StandardInput::path() const { return folder_.path() + '/' + kName; }

Result<StandardInput> StandardInput::read() {
  // A pipe may be endless, and the copy takes room on the disk of TMPDIR.
  constexpr uint64_t kMost = uint64_t{4} << 30;
  LOCKSTEP_ASSIGN(TemporaryDirectory folder, TemporaryDirectory::make());
  StandardInput input(std::move(folder));
  const std::string name = input.path();
  const auto close = [](std::FILE* file) { std::fclose(file); };
  const std::unique_ptr<std::FILE, decltype(close)> file(std::fopen(name.c_str(), "wbe"), close);
  if (file == nullptr) return Error{ErrorCode::kIo, "cannot be written", name};
  std::vector<char> buffer(256 << 10);
  uint64_t bytes = 0;
  while (const size_t got = std::fread(buffer.data(), 1, buffer.size(), stdin)) {
    bytes += got;
    if (bytes > kMost)
      return Error{ErrorCode::kUnsupported, "holds more than 4 GiB: name a file", "standard input"};
    if (std::fwrite(buffer.data(), 1, got, file.get()) != got)
      return Error{ErrorCode::kIo, "cannot be written", name};
  }
  // What broke off would pass for the whole.
  if (std::ferror(stdin) != 0) return system_error("cannot be read", "standard input", errno);
  // Readers open the file by its name, so all of it has to be there.
  if (std::fflush(file.get()) != 0) return Error{ErrorCode::kIo, "cannot be written", name};
  return input;
}

std::vector<std::string> StandardInput::in_place_of_dash(std::vector<std::string> paths) const {
  std::replace(paths.begin(), paths.end(), std::string("-"), path());
  return paths;
}

bool StandardInput::is_in(std::string_view text) const { return text.find(path()) != std::string_view::npos; }

std::string StandardInput::shown(std::string text) const {
  const std::string folder = folder_.path() + '/';
  for (size_t at = text.find(folder); at != std::string::npos; at = text.find(folder, at))
    text.erase(at, folder.size());
  return text;
}

}  // namespace lockstep::cli
