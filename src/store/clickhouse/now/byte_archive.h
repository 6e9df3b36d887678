// SPDX-License-Identifier: Apache-2.0
// Numbers and texts in few bytes. ByteWriter and ByteReader take the same calls in the same order, so that
// one description of a row serves both. A reader that meets what no writer makes has failed: it gives zeros
// from then on.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/utf8.h"
#include "model/string_pool.h"

namespace lockstep::store::clickhouse {

// Nothing fails: texts are cut to kMostText bytes. `strings` is what ids name, and outlives it.
class ByteWriter {
 public:
  static constexpr bool kReads = false;
  explicit ByteWriter(const model::StringPool& strings) : strings_(strings) {}

  void unsigned_number(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  // Small where it is near 0, on either side.
  void signed_number(int64_t value) {
    unsigned_number((static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63));
  }
  template <class T>
  void number(const T& value) {
    if constexpr (std::is_signed_v<T>)
      signed_number(value);
    else
      unsigned_number(value);
  }
  // The text itself and not its number, which means nothing outside its pool.
  void text(const model::StringId& id) {
    const std::string_view text = strings_[id].substr(0, kMostText);
    unsigned_number(text.size());
    bytes_ += text;
  }
  bool failed() const { return false; }
  // All bytes so far; the writer is empty then.
  std::string take() { return std::move(bytes_); }

 private:
  static constexpr size_t kMostText = 1024;
  const model::StringPool& strings_;
  std::string bytes_;
};

// Texts become new ids in `strings`. Once it has failed, all numbers are 0 and failed() stays true.
class ByteReader {
 public:
  static constexpr bool kReads = true;
  ByteReader(std::string_view bytes, model::StringPool& strings) : bytes_(bytes), strings_(strings) {}

  // At most ten bytes; bits beyond 64 are lost.
  uint64_t unsigned_number() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (bytes_.empty()) break;
      const auto byte = static_cast<unsigned char>(bytes_.front());
      bytes_.remove_prefix(1);
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return failed_ ? 0 : value;
    }
    failed_ = true;
    return 0;
  }
  int64_t signed_number() {
    const uint64_t value = unsigned_number();
    return static_cast<int64_t>((value >> 1) ^ (0 - (value & 1)));
  }
  template <class T>
  void number(T& value) {
    if constexpr (std::is_signed_v<T>) {
      const int64_t read = signed_number();
      value = static_cast<T>(read);
      failed_ = failed_ || value != read;
    } else {
      const uint64_t read = unsigned_number();
      value = static_cast<T>(read);
      failed_ = failed_ || value != read;
    }
  }
  void text(model::StringId& id) {
    const uint64_t size = unsigned_number();
    if (size > bytes_.size()) return fail();
    id = strings_.intern(valid_utf8(bytes_.substr(0, size)));
    bytes_.remove_prefix(size);
  }
  // So many things, of which each takes `least` bytes, follow.
  size_t count(size_t least) {
    const uint64_t count = unsigned_number();
    if (count <= bytes_.size() / least) return count;
    fail();
    return 0;
  }
  void fail() { failed_ = true; }
  bool failed() const { return failed_; }
  // Whether all bytes were what a writer makes, with none left over.
  bool is_done() const { return !failed_ && bytes_.empty(); }

 private:
  std::string_view bytes_;
  model::StringPool& strings_;
  bool failed_ = false;
};

}  // namespace lockstep::store::clickhouse
