// SPDX-License-Identifier: Apache-2.0
#include "nccl_host/json_line.h"

#include <charconv>

namespace lockstep::sim {

void JsonLine::skip_space() {
  while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\t' || rest_[0] == '\r')) rest_.remove_prefix(1);
}

bool JsonLine::take(char expected) {
  skip_space();
  if (rest_.empty() || rest_[0] != expected) return false;
  rest_.remove_prefix(1);
  return true;
}

bool JsonLine::take_string(std::string_view* out) {
  if (!take('"')) return false;
  const size_t end = rest_.find_first_of("\"\\");
  if (end == std::string_view::npos) return false;
  if (rest_[end] == '"') {
    *out = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return true;
  }
  std::string& copy = unescaped_.emplace_back();
  while (!rest_.empty() && rest_[0] != '"') {
    char c = rest_[0];
    rest_.remove_prefix(1);
    if (c == '\\') {
      if (rest_.empty()) return false;
      c = rest_[0];
      rest_.remove_prefix(1);
      if (c == 'u') {  // names are labels here: what is not ASCII becomes '?'
        unsigned code = 0;
        if (rest_.size() < 4 ||
            std::from_chars(rest_.data(), rest_.data() + 4, code, 16).ptr != rest_.data() + 4)
          return false;
        rest_.remove_prefix(4);
        c = code < 0x80 ? static_cast<char>(code) : '?';
      } else if (c == 'n') {
        c = '\n';
      } else if (c == 't') {
        c = '\t';
      }
    }
    copy += c;
  }
  *out = copy;
  return take('"');
}

bool JsonLine::take_number(uint64_t* out) {
  const bool negative = !rest_.empty() && rest_[0] == '-';
  if (negative) rest_.remove_prefix(1);
  const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), *out);
  if (error != std::errc()) return false;
  rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
  if (negative) *out = 0 - *out;
  return true;
}

bool JsonLine::parse(std::string_view line) {
  fields_.clear();
  unescaped_.clear();
  rest_ = line;
  if (!take('{')) return false;
  if (take('}')) return rest_.empty();
  do {
    Field field;
    if (!take_string(&field.key) || !take(':')) return false;
    skip_space();
    const bool is_text = !rest_.empty() && rest_[0] == '"';
    if (!(is_text ? take_string(&field.text) : take_number(&field.number))) return false;
    fields_.push_back(field);
  } while (take(','));
  if (!take('}')) return false;
  skip_space();
  return rest_.empty();
}

const JsonLine::Field* JsonLine::find(std::string_view key) const {
  for (const Field& field : fields_)
    if (field.key == key) return &field;
  return nullptr;
}

uint64_t JsonLine::number(std::string_view key) const {
  const Field* field = find(key);
  return field ? field->number : 0;
}

std::string_view JsonLine::text(std::string_view key) const {
  const Field* field = find(key);
  return field ? field->text : std::string_view();
}

}  // namespace lockstep::sim
