// SPDX-License-Identifier: Apache-2.0
// Documents of `--json`: keys in the order in which they are put, text that is not UTF-8 repaired.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace lockstep {

using Json = nlohmann::ordered_json;

std::string json_text(const Json& document);  // indented
std::string json_line(const Json& document);  // one line
// A number that may be unknown: null when negative.
Json known(int64_t number);
// "0x1f..." for an id; null for 0.
Json id_json(uint64_t id);

}  // namespace lockstep
