// SPDX-License-Identifier: Apache-2.0
// A folder that takes its name when it is whole, and the place of nothing but an older one of its kind.
#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace lockstep::exporters::common {

struct FolderKind {
  std::string_view name;                                                // "OTF2 archive"
  std::function<bool(const std::filesystem::directory_entry&)> is_own;  // true of what such a folder holds
};

// An error if there is anything at `path` but a folder whose entries are all the kind's own.
Result<void> check_replaceable(const std::string& path, const FolderKind& kind);
// Renames `whole` to `path`. What is there is checked once more, makes room under a name of its own, and
// comes back if `whole` cannot take its place.
Result<void> replace_folder(const std::string& whole, const std::string& path, const FolderKind& kind);

}  // namespace lockstep::exporters::common
