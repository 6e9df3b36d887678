// SPDX-License-Identifier: Apache-2.0
// JsonLine: one flat JSON object (strings and integers only, as tapes hold) cut into fields. Views point into
// the line or, for strings with escapes, into the object's own buffer; both die with the next parse. One
// thread.
#pragma once
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::sim {

class JsonLine {
 public:
  // False when the line is not one complete flat object.
  bool parse(std::string_view line);
  bool has(std::string_view key) const { return find(key) != nullptr; }
  // Absent or of the other type: zero or empty. Negative numbers are in two's complement.
  uint64_t number(std::string_view key) const;
  int integer(std::string_view key) const { return static_cast<int>(number(key)); }
  std::string_view text(std::string_view key) const;

 private:
  struct Field {
    std::string_view key, text;
    uint64_t number = 0;
  };
  const Field* find(std::string_view key) const;
  bool take_string(std::string_view* out);
  bool take_number(uint64_t* out);
  void skip_space();
  bool take(char expected);

  std::string_view rest_;
  std::vector<Field> fields_;
  std::deque<std::string> unescaped_;
};

}  // namespace lockstep::sim
