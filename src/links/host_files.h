// SPDX-License-Identifier: Apache-2.0
// What a host says of itself in /sys and /proc, read once into plain data. Everything else about links is
// drawn from this copy, so a host can be judged on another machine, and a test is a folder of files.
//
// Reading is bounded: 64 KiB a file, 4 KiB of PCI configuration space, 40,000 entries, 512 children of a
// folder. It changes nothing on the host, starts no program, and needs no rights: what may not be read is an
// entry that says so.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lockstep::links {

struct HostFile {
  enum class Kind : uint8_t { kText, kLink, kUnreadable };
  Kind kind = Kind::kText;
  std::string
      text;  // contents without the last line end; of a link the path it leads to, from the host's root on
  int error = 0;  // errno, of kUnreadable
};

// Plain data once it is read: copies are whole, and any thread may read one.
class HostFiles {
 public:
  // Of the host whose root is `root`: "" for this one. An error only if `root` is no folder.
  static Result<HostFiles> read(const std::string& root);

  // Contents; nothing where it is absent or unreadable. Paths begin with '/'.
  const std::string* text(std::string_view path) const;
  std::optional<uint64_t> number(
      std::string_view path) const;  // decimal or 0x; nothing if it is anything else
  // nullptr: it is not there, or was not among the files that are read.
  const HostFile* find(std::string_view path) const;
  // Names of the entries below a folder, ascending.
  std::vector<std::string> children(std::string_view folder) const;
  // Whether there is any entry below a folder.
  bool has_below(std::string_view folder) const;

  // Takes the place of what is there under that path. Bounds are the caller's.
  void add(std::string path, HostFile file);
  const std::map<std::string, HostFile, std::less<>>& entries() const { return entries_; }
  bool cut() const { return cut_; }  // a bound was met: more is there

 private:
  std::map<std::string, HostFile, std::less<>> entries_;
  bool cut_ = false;
  friend class HostFileReader;
};

}  // namespace lockstep::links
