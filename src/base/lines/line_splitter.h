// SPDX-License-Identifier: Apache-2.0
// Lines out of pieces of a file, in bounded memory: of a line longer than kLineMost the beginning is kept and
// the rest is counted. Lines that lie in one piece are not copied. Returns, terminal colours, quote marks of
// mails and the characters without width that pasting leaves are taken away; so are bytes of zero, which a
// file that two processes wrote has; and of a text with markup, that. A line is damaged if it holds what no
// program prints: other control characters, bytes of zero behind text, and where NCCL speaks what is no
// UTF-8.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace lockstep {

class LineSplitter {
 public:
  static constexpr size_t kLineMost = 64 << 10;

  // Calls visit(line) for every line that ends in `piece`. A line is valid during the call.
  template <class Visit>
  void feed(std::string_view piece, Visit&& visit) {
    while (!piece.empty()) {
      const void* found = std::memchr(piece.data(), '\n', piece.size());
      if (found == nullptr) return keep(piece);
      const auto length = static_cast<size_t>(static_cast<const char*>(found) - piece.data());
      if (carry_.empty() && length <= kLineMost) {
        visit(clean(piece.substr(0, length)));
      } else {
        keep(piece.substr(0, length));
        flush(visit);
      }
      piece.remove_prefix(length + 1);
    }
  }
  // The last line, if no newline ended it: what it lacks, it lacks at its end.
  template <class Visit>
  void finish(Visit&& visit) {
    is_open_ = !carry_.empty();
    if (is_open_) flush(visit);
  }
  // From the next line on, markup is taken away too (markup.h).
  void take_markup() { takes_markup_ = true; }

  // Of the line that is being visited, and the last one.
  bool is_damaged() const { return is_damaged_; }
  bool is_open() const { return is_open_; }

  uint64_t cut_lines() const { return cut_lines_; }
  uint64_t cut_bytes() const { return cut_bytes_; }
  uint64_t zero_bytes() const { return zero_bytes_; }  // taken away

 private:
  void keep(std::string_view part);
  void drop_half_character();
  std::string_view clean(std::string_view line);
  std::string_view without_marks(std::string_view line);
  template <class Visit>
  void flush(Visit& visit) {
    if (is_cut_) drop_half_character();
    visit(clean(carry_));
    carry_.clear();
    is_cut_ = false;
  }

  std::string carry_, scratch_, plain_;
  bool takes_markup_ = false;
  bool is_cut_ = false, is_damaged_ = false, is_open_ = false;
  uint64_t cut_lines_ = 0, cut_bytes_ = 0, zero_bytes_ = 0;
};

// The lines of a whole text, UTF-16 and markup too, without what feed() takes away.
std::string plain_lines(std::string_view text);

}  // namespace lockstep
