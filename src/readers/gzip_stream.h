// SPDX-License-Identifier: Apache-2.0
// The plain bytes of a gzip file, to the last one before the place where it is damaged or ends: what unpacks
// in larger pieces loses the piece in which that is. Several gzip files one behind the other are one. Belongs
// to one thread.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/input_file.h"
#include "base/result.h"

struct z_stream_s;

namespace lockstep::readers {

class GzipStream {
 public:
  static bool is_gzip(std::span<const std::byte> first_bytes);
  // An error only if the file cannot be read at all; damage is given by damage(), behind the bytes before it.
  static Result<std::unique_ptr<GzipStream>> open(const std::string& path);
  ~GzipStream();
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;

  // Valid until the next call; empty: there are no more.
  std::string_view next();
  // Once there are no more: why it ended before its end; empty: it did not.
  const std::string& damage() const { return damage_; }

 private:
  explicit GzipStream(InputFile file);
  bool refill();
  // Whether another gzip file follows.
  bool begin_next();

  InputFile file_;
  uint64_t offset_ = 0;
  std::vector<std::byte> in_, out_;
  std::unique_ptr<z_stream_s> zlib_;
  bool is_open_ = false;  // within a gzip file
  bool is_done_ = false;
  std::string damage_;
};

}  // namespace lockstep::readers
