// SPDX-License-Identifier: Apache-2.0
// Reading small JSON documents that may hold anything: a field of another type counts as absent. Nothing
// throws.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::run {

// The object in a file; nothing if it cannot be read or is none.
std::optional<nlohmann::json> read_document(const std::string& path);
// Empty, `fallback` or no words where the field is absent.
std::string text_field(const nlohmann::json& object, const char* name);
int64_t number_field(const nlohmann::json& object, const char* name, int64_t fallback);
std::vector<std::string> words_field(const nlohmann::json& object, const char* name);
// Indented text with a line end; bytes that are not UTF-8 are replaced.
std::string to_text(const nlohmann::ordered_json& document);

}  // namespace lockstep::run
