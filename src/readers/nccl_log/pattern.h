// SPDX-License-Identifier: Apache-2.0
// The little language in which lines.def describes what a line says: literal text with holes. Nothing in it
// repeats or backtracks, so a match reads the text once, whatever the text is.
//
//   {int}   digits, perhaps behind a minus        {hex}   hexadecimal digits, perhaps behind 0x
//   {num}   digits and dots                       {word}  one or more characters up to the text that follows,
//                                                         no blank
//   {text}  anything up to the text that follows  {rest}  the rest of the line
//   {skip}  as {word}, and not kept
//
// A brace that begins none of these is a brace. A pattern matches the beginning of a text; with `$` as its
// last character all of it.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace lockstep::readers::nccl_log {

// What the holes of a match held, in order; views into the text.
struct Captures {
  static constexpr size_t kMost = 10;
  std::array<std::string_view, kMost> text;
  size_t count = 0;

  std::string_view operator[](size_t i) const { return i < count ? text[i] : std::string_view(); }
};

class Pattern {
 public:
  // `source` must outlive the pattern and have at most Captures::kMost holes.
  explicit Pattern(std::string_view source);
  bool match(std::string_view text, Captures& captures) const;
  // The literal text before the first hole.
  std::string_view head() const;
  bool is_whole() const { return whole_; }  // ends with `$`

 private:
  enum class Part : uint8_t { kLiteral, kInt, kHex, kNum, kWord, kSkip, kText, kRest };
  struct Token {
    Part part;
    std::string_view literal;
  };
  static Part part_at(std::string_view source, size_t& length);
  // End of what the i-th token takes of `text` from `at` on; npos: it does not match.
  size_t take(size_t i, std::string_view text, size_t at) const;
  std::string_view literal_after(size_t i) const;

  std::vector<Token> tokens_;
  bool whole_ = false;
};

// Numbers out of captures. What is no number, or too large, is 0.
int64_t to_int(std::string_view text);
int32_t to_small(std::string_view text);  // a rank, card or channel; -1: absent, or of more than nine digits
uint64_t to_hex(std::string_view text);   // with or without 0x
double to_double(std::string_view text);

}  // namespace lockstep::readers::nccl_log
