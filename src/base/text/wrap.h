// SPDX-License-Identifier: Apache-2.0
// Running text in lines.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// `text` in lines of at most `width` columns where its words allow it. The first line continues at column
// `indent`, which the caller has reached; the others are indented by as much. No newline at the end.
std::string wrap(std::string_view text, size_t indent, size_t width);

// `text` whose lines that are wider than `width` are wrapped, each behind its own indent.
std::string within(std::string_view text, size_t width);

// The lines of a text, without their newlines. Behind a newline at the end comes no line.
std::vector<std::string_view> lines(std::string_view text);

// Columns that UTF-8 text takes, one per code point: wide characters and combining ones are not known.
size_t columns(std::string_view text);

}  // namespace lockstep
