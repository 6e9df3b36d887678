// SPDX-License-Identifier: Apache-2.0
// Small files that other programs may write at any time: read up to a limit, made by one of many. To replace
// one: base/partial_path.h.
#pragma once
#include <cstddef>
#include <optional>
#include <string>

#include "base/result.h"

namespace lockstep::run {

inline constexpr size_t kSmallFileLimit = size_t{16} << 20;

// Creates the file; false if it is already there.
Result<bool> create_exclusively(const std::string& path, const std::string& text);
// Contents, cut at `limit`; nothing if it cannot be read. Works for /proc.
std::optional<std::string> read_small(const std::string& path, size_t limit = kSmallFileLimit);

}  // namespace lockstep::run
