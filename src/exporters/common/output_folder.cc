// SPDX-License-Identifier: Apache-2.0
// Replaces a folder by another one without a moment in which neither is there, and only a folder that holds
// nothing but an older output: a mistyped name must not cost anybody's files.
#include "exporters/common/output_folder.h"

#include <unistd.h>

#include <system_error>

namespace lockstep::exporters::common {

namespace fs = std::filesystem;

Result<void> check_replaceable(const std::string& path, const FolderKind& kind) {
  std::error_code error;
  // Of the link itself. A link to a folder is refused, because renaming would move the link and not the
  // folder.
  const fs::file_status there = fs::symlink_status(path, error);
  if (there.type() == fs::file_type::not_found) return {};
  bool is_ours = fs::is_directory(there);
  error.clear();
  for (fs::directory_iterator entry(path, error), end; is_ours && !error && entry != end;
       entry.increment(error))
    is_ours = kind.is_own(*entry);
  // What cannot be listed may hold anything.
  if (is_ours && !error) return {};
  return usage_error("is there, and is not just an older " + std::string(kind.name) + "; name another output",
                     path);
}

Result<void> replace_folder(const std::string& whole, const std::string& path, const FolderKind& kind) {
  LOCKSTEP_TRY(check_replaceable(path, kind));
  std::error_code error, ignored;
  // Not the name of a partial file: those are removed by others.
  const std::string old = path + ".old-" + std::to_string(::getpid());
  const bool has_old = fs::exists(fs::symlink_status(path, ignored));
  if (has_old) fs::rename(path, old, error);
  if (!error) {
    fs::rename(whole, path, error);
    // If even that fails, the older output stays under the `.old-` name; it is never removed on this way.
    if (error && has_old) fs::rename(old, path, ignored);
  }
  if (error) return Error{ErrorCode::kIo, "cannot rename into place: " + error.message(), path};
  // What came into it since the check stays, under that name.
  if (has_old && check_replaceable(old, kind)) fs::remove_all(old, ignored);
  return {};
}

}  // namespace lockstep::exporters::common
