// SPDX-License-Identifier: Apache-2.0
// Fields of documents that lie in folders of others. A wrong type is an absent field, so that no reader has
// to doubt each of them.
#include "run/json_fields.h"

#include "run/small_file.h"

namespace lockstep::run {

std::optional<nlohmann::json> read_document(const std::string& path) {
  auto text = read_small(path);
  if (!text) return std::nullopt;
  // Nesting is bounded before parsing: the parser keeps a value per level.
  size_t depth = 0;
  for (char c : *text) {
    if (c == '[' || c == '{') ++depth;
    if ((c == ']' || c == '}') && depth > 0) --depth;
    if (depth > 64) return std::nullopt;
  }
  // Not by exceptions: a document that is none is "discarded", and so no object.
  auto document = nlohmann::json::parse(*text, nullptr, false);
  if (!document.is_object()) return std::nullopt;
  return document;
}

std::string text_field(const nlohmann::json& object, const char* name) {
  auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

int64_t number_field(const nlohmann::json& object, const char* name, int64_t fallback) {
  auto found = object.find(name);
  return found != object.end() && found->is_number_integer() ? found->get<int64_t>() : fallback;
}

std::vector<std::string> words_field(const nlohmann::json& object, const char* name) {
  std::vector<std::string> words;
  auto found = object.find(name);
  if (found == object.end() || !found->is_array()) return words;
  for (const auto& word : *found) {
    if (word.is_string()) words.push_back(word.get<std::string>());
  }
  return words;
}

std::string to_text(const nlohmann::ordered_json& document) {
  return document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace lockstep::run
