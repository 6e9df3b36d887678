// SPDX-License-Identifier: Apache-2.0
// Kinds of characters, by ASCII alone: what <cctype> says depends on the locale.
#pragma once

namespace lockstep {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace lockstep
