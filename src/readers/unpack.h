// SPDX-License-Identifier: Apache-2.0
// Compressed files and archives, written out plain so that readers see nothing but plain files: gzip, zstd,
// xz, bzip2, tar, and tar within those; a compressed file within an archive as well, and no deeper. What is
// not asked for is not written. Any bytes will do: names stay within the directory, and what expands without
// bound is refused.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/temporary_directory.h"

namespace lockstep::readers {

// How large what is packed may grow.
struct UnpackLimits {
  uint64_t harmless_bytes = uint64_t{1}
                            << 30;  // of all files of an Unpacker together, beyond what their sizes allow
  uint64_t most_growth = 200;       // what its size allows a packed file: so many times as much
  uint64_t files_most = 1 << 17;    // of one packed file, all that is in it
};

// Safe for use by several threads at once.
class Unpacker {
 public:
  static constexpr size_t kFirstBytes = 1 << 20;
  // Whether a file is wanted: its name, and its first bytes (at most kFirstBytes).
  using Wants = std::function<bool(const std::string& name, std::span<const std::byte> first_bytes)>;

  explicit Unpacker(UnpackLimits limits = {}) : limits_(limits), harmless_left_(limits.harmless_bytes) {}

  static bool is_packed(std::span<const std::byte> first_bytes);

  struct Unpacked {
    std::vector<std::string> files;  // plain; for as long as the Unpacker lives
    std::vector<Error> troubles;     // of a part of it; what was good is there
  };
  // `tars`: archives as well; without, an archive holds nothing.
  Result<Unpacked> unpack(const std::string& path, const Wants& wants, bool tars);

  // A folder for files from elsewhere, which are known to the user by this name; it goes with the Unpacker.
  Result<std::string> make_folder(const std::string& shown) { return new_folder(shown, ""); }

  // A text in which names of unpacked files are those that the user knows: "dumps.tar.gz/rank_3".
  std::string shown(std::string text) const;

 private:
  class Expansion;
  Result<std::string> new_folder(const std::string& shown, const std::string& cut_name);
  // What one named file may still grow by, all that is within it included, wanted or not: by what its size
  // allows, then by what is left for all.
  class Budget {
   public:
    Budget(uint64_t own_bytes, uint64_t files, std::atomic<uint64_t>& harmless_left)
        : own_bytes_(own_bytes), files_(files), harmless_left_(harmless_left) {}
    // False once it is spent, and from then on.
    bool take_bytes(uint64_t bytes);
    bool take_file() { return files_ > 0 && files_-- > 0; }
    bool is_spent() const { return is_spent_; }

   private:
    uint64_t own_bytes_, files_;
    std::atomic<uint64_t>& harmless_left_;
    bool is_spent_ = false;
  };
  Result<void> unpack_into(const std::string& path, const Wants& wants, bool tars, int depth, Budget& budget,
                           Unpacked& out);

  const UnpackLimits limits_;
  std::atomic<uint64_t> harmless_left_;
  mutable std::mutex lock_;
  std::optional<TemporaryDirectory> directory_;
  std::vector<std::pair<std::string, std::string>>
      shown_;  // what stands in a path, and the name that it stands for
};

}  // namespace lockstep::readers
