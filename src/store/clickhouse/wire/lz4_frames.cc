// SPDX-License-Identifier: Apache-2.0
// Why LZ4 and not zstd: it costs the client a third, and every server knows it. Why our own: what is needed
// of it is this page, and the block format is fixed for ever.
//
//   frame: 16 bytes of checksum, 0x82, u32 bytes from there on, u32 bytes of the body, block
//   block: sequences of a token (4 bits literals, 4 bits match - 4; 15: more bytes follow), literals, u16
//          distance; the last one ends with its literals
#include "store/clickhouse/wire/lz4_frames.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace lockstep::store::clickhouse {
namespace {

constexpr size_t kFrameBytes = size_t{1} << 20;
// Of LZ4's block format: the least match, the bytes at the end that are always literals, and how far before
// the end the last match must begin.
constexpr size_t kLeastMatch = 4, kLastLiterals = 5, kLastMatch = 12, kMostDistance = 65'535;
// 64 KiB of positions stay in the second cache.
constexpr unsigned kHashBits = 14;

void append_u32(std::string& out, size_t value) {
  for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>(value >> shift & 0xff);
}

class BlockCompressor {
 public:
  // Appends the block to `out`.
  void compress(std::string_view body, std::string& out) {
    body_ = body;
    out_ = &out;
    anchor_ = 0;
    positions_.assign(size_t{1} << kHashBits, 0);
    size_t at = 0;
    while (body.size() > kLastMatch && at < body.size() - kLastMatch) {
      uint32_t& known = positions_[hash(word(at))];
      const size_t before = known;
      known = static_cast<uint32_t>(at);
      // Position 0 stands for none, which costs one match a frame.
      if (before == 0 || at - before > kMostDistance || word(before) != word(at)) {
        // What does not compress is passed over faster and faster.
        at += 1 + ((at - anchor_) >> 6);
        continue;
      }
      const size_t length = match(before, at);
      sequence(at, length, at - before);
      at += length;
      anchor_ = at;
    }
    sequence(body.size(), 0, 0);
  }

 private:
  uint32_t word(size_t at) const {
    uint32_t value = 0;
    std::memcpy(&value, body_.data() + at, sizeof value);
    return value;
  }
  static size_t hash(uint32_t word) { return word * 2'654'435'761U >> (32 - kHashBits); }
  size_t match(size_t before, size_t at) const {
    const size_t most = body_.size() - kLastLiterals - at;
    size_t length = kLeastMatch;
    while (length < most && body_[before + length] == body_[at + length]) ++length;
    return length;
  }
  void more(size_t value) {
    for (; value >= 255; value -= 255) *out_ += static_cast<char>(255);
    *out_ += static_cast<char>(value);
  }
  // The literals up to `at`, and a match unless `length` is 0.
  void sequence(size_t at, size_t length, size_t distance) {
    const size_t literals = at - anchor_, rest = length == 0 ? 0 : length - kLeastMatch;
    *out_ += static_cast<char>(std::min<size_t>(literals, 15) << 4 | std::min<size_t>(rest, 15));
    if (literals >= 15) more(literals - 15);
    *out_ += body_.substr(anchor_, literals);
    if (length == 0) return;
    *out_ += static_cast<char>(distance & 0xff);
    *out_ += static_cast<char>(distance >> 8);
    if (rest >= 15) more(rest - 15);
  }

  std::string_view body_;
  std::string* out_ = nullptr;
  size_t anchor_ = 0;  // what is before it is in the block
  std::vector<uint32_t> positions_;
};

}  // namespace

std::string lz4_frames(std::string_view body) {
  BlockCompressor compressor;
  std::string frames, block;
  for (size_t at = 0; at < body.size(); at += kFrameBytes) {
    const std::string_view part = body.substr(at, kFrameBytes);
    block.clear();
    compressor.compress(part, block);
    frames.append(16, '\0');
    frames += static_cast<char>(0x82);
    append_u32(frames, 1 + 4 + 4 + block.size());
    append_u32(frames, part.size());
    frames += block;
  }
  return frames;
}

}  // namespace lockstep::store::clickhouse
