// SPDX-License-Identifier: Apache-2.0
// Small files that other programs may read at any time: written whole or not at all, read up to a limit.
#pragma once
#include <cstddef>
#include <optional>
#include <string>

#include "base/result.h"

namespace lockstep::run {

inline constexpr size_t kSmallFileLimit = size_t{16} << 20;

// Through a temporary file beside it, renamed. Replaces an existing file.
Result<void> write_whole(const std::string& path, const std::string& text);
// Creates the file; false if it is already there.
Result<bool> create_exclusively(const std::string& path, const std::string& text);
// Contents, cut at `limit`; nothing if it cannot be read. Works for /proc.
std::optional<std::string> read_small(const std::string& path, size_t limit = kSmallFileLimit);

// `what`, and what errno `error` means; kPermission or kIo.
Error system_error(const std::string& what, const std::string& where, int error);

}  // namespace lockstep::run
