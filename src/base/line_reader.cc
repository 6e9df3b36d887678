// SPDX-License-Identifier: Apache-2.0
// Reads pieces of 256 KiB and keeps only what no newline has ended yet, so a file of any size costs one
// buffer. `looked` says how far the open line was searched: each byte is searched once, however often a line
// needs another piece.
#include "base/line_reader.h"

#include <algorithm>
#include <cstring>
#include <span>

namespace lockstep {
namespace {

constexpr size_t kPieceBytes = 256 << 10;

}  // namespace

LineReader::LineReader(const InputFile& file, size_t longest)
    : file_(file), longest_(longest), buffer_(kPieceBytes + kPadding) {}

void LineReader::fill() {
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  // Few files have a line that is longer than a piece.
  if (end_ + kPieceBytes / 2 > buffer_.size() - kPadding)
    buffer_.resize(std::min(2 * buffer_.size(), longest_ + kPieceBytes + kPadding));
  const std::span<char> room(buffer_.data() + end_, buffer_.size() - kPadding - end_);
  const size_t got = file_.read_at(file_at_, std::as_writable_bytes(room));
  end_ += got;
  file_at_ += got;
  // A short read is the end. What another process appends later is not waited for.
  ended_ = got < room.size();
}

std::optional<std::string_view> LineReader::next() {
  size_t looked = 0;
  bool skipping = false;
  for (;;) {
    const char* const text = buffer_.data() + begin_;
    const void* const newline = std::memchr(text + looked, '\n', end_ - begin_ - looked);
    const size_t length =
        newline == nullptr ? end_ - begin_ : static_cast<size_t>(static_cast<const char*>(newline) - text);
    const bool whole = newline != nullptr || ended_;
    if (skipping || length > longest_) {
      // Of a line that is too long nothing stays but that it was there.
      too_long_ += skipping ? 0 : 1;
      skipping = !whole;
      begin_ += length + (newline != nullptr ? 1 : 0);
      looked = 0;
    } else if (newline != nullptr || (ended_ && length > 0)) {
      offset_ = file_at_ - (end_ - begin_);
      open_ = newline == nullptr;
      begin_ += length + (open_ ? 0 : 1);
      return std::string_view(text, length);
    } else {
      looked = length;
    }
    if (newline != nullptr) continue;
    if (ended_) return std::nullopt;
    fill();
  }
}

}  // namespace lockstep
