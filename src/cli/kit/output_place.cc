// SPDX-License-Identifier: Apache-2.0
// Keeps commands from writing over evidence. An input, a process file, or another file in a directory that is
// read may be the only copy of what happened. Results of Lockstep may be replaced. --force does not lift
// this.
#include "cli/kit/output_place.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "readers/native/native.h"

namespace lockstep::cli {
namespace {

namespace fs = std::filesystem;

// A torn one is known by its name alone, a renamed one by its first bytes.
bool is_process_file(const std::string& path) {
  if (path.ends_with(".lks")) return true;
  const auto format = readers::detect(path);
  return format && *format == &readers::native::kFormat;
}

}  // namespace

Result<void> check_output(const std::string& output, const std::vector<std::string>& inputs,
                          std::span<const std::string_view> results) {
  const auto refused = [&](const std::string& why) {
    return usage_error(why + "; name another file with --output", output);
  };
  std::error_code error;
  for (const std::string& input : inputs) {
    // By device and inode and not by name: links and `..` lead to the same file. An output that does not
    // exist is no input.
    if (fs::equivalent(input, output, error)) return refused("is an input");
  }
  // Whether a folder may be replaced depends on what it holds.
  if (!fs::is_regular_file(output, error)) return {};
  if (is_process_file(output)) return refused("is a process file, which is never replaced");
  if (std::any_of(results.begin(), results.end(),
                  [&](std::string_view ending) { return output.ends_with(ending); }))
    return {};
  // Other tools' files have no ending of their own, so only endings of results are safe to replace there.
  const fs::path folder = fs::path(output).parent_path();
  for (const std::string& input : inputs) {
    if (fs::equivalent(input, folder.empty() ? fs::path(".") : folder, error))
      return refused("may be one of the files of the run in " + input);
  }
  return {};
}

}  // namespace lockstep::cli
