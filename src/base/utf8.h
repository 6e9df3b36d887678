// SPDX-License-Identifier: Apache-2.0
// Text from outside (fields cut at a fixed size, host-given names) as valid UTF-8: each byte that is not part
// of a well-formed sequence becomes '?', so that databases and JSON take it.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep {

// Length of the well-formed sequence that begins the text; 0 if there is none.
size_t utf8_length(std::string_view text);
// Overlong forms, surrogates and numbers above U+10FFFF are no sequences either. As long as the input.
std::string valid_utf8(std::string_view text);
// The beginning of valid UTF-8, at most `most` bytes of whole characters.
std::string_view cut_utf8(std::string_view text, size_t most);
// A name as it may be shown: at most `most` bytes, longer ones end in "...", a '?' for each character that
// controls a terminal, turns the direction of text, or takes no room.
std::string shown_name(std::string_view text, size_t most = 64);

}  // namespace lockstep
