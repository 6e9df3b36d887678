// SPDX-License-Identifier: Apache-2.0
// Protocol Buffers' wire format, as far as writing needs it: varints, fixed 64 bits, and messages whose size
// is known before they are written. A growing piece of memory that is used again and again. One thread.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace lockstep::exporters::perfetto {

inline constexpr size_t kLongestVarint = 10;

constexpr size_t varint_size(uint64_t value) {
  size_t size = 1;
  for (; value >= 0x80; value >>= 7) ++size;
  return size;
}

// Writes at `at`, where kLongestVarint bytes have room; returns the end.
inline char* put_varint(char* at, uint64_t value) {
  for (; value >= 0x80; value >>= 7) *at++ = static_cast<char>(value | 0x80);
  *at++ = static_cast<char>(value);
  return at;
}

enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2 };
constexpr uint64_t tag(uint32_t field, WireType type) { return uint64_t{field} << 3 | type; }

class ProtoBytes {
 public:
  std::string_view view() const { return {bytes_.data(), size_}; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  void clear() { size_ = 0; }

  ProtoBytes& number(uint32_t field, uint64_t value) {
    char* at = room(2 * kLongestVarint);
    return take(put_varint(put_varint(at, tag(field, kVarint)), value));
  }
  // Negative numbers take ten bytes, as int32 and int64 do.
  ProtoBytes& signed_number(uint32_t field, int64_t value) {
    return number(field, static_cast<uint64_t>(value));
  }
  ProtoBytes& fixed64(uint32_t field, uint64_t value) {
    char* at = put_varint(room(kLongestVarint + 8), tag(field, kFixed64));
    for (int shift = 0; shift < 64; shift += 8) *at++ = static_cast<char>(value >> shift);
    return take(at);
  }
  // A text, or a message that is already bytes.
  ProtoBytes& bytes(uint32_t field, std::string_view value) {
    header(field, value.size());
    return append(value);
  }
  // What stands before `size` bytes of a text or a message.
  ProtoBytes& header(uint32_t field, size_t size) {
    char* at = room(2 * kLongestVarint);
    return take(put_varint(put_varint(at, tag(field, kLengthDelimited)), size));
  }
  ProtoBytes& append(std::string_view value) {
    std::memcpy(room(value.size()), value.data(), value.size());
    size_ += value.size();
    return *this;
  }

 private:
  char* room(size_t bytes) {
    if (bytes_.size() - size_ < bytes) [[unlikely]]
      grow(bytes);
    return bytes_.data() + size_;
  }
  [[gnu::noinline]] void grow(size_t bytes) { bytes_.resize(2 * (size_ + bytes)); }
  ProtoBytes& take(const char* end) {
    size_ = static_cast<size_t>(end - bytes_.data());
    return *this;
  }
  std::string bytes_;  // longer than what has been written
  size_t size_ = 0;
};

}  // namespace lockstep::exporters::perfetto
