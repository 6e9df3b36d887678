// SPDX-License-Identifier: Apache-2.0
// What a word that nobody knows may have been meant for.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cli {

// The known word that takes the fewest letters added, left out, changed or swapped with the next, where that
// is at most a third of them; empty if there is none, or several are as near.
std::string_view nearest(std::string_view word, std::span<const std::string_view> known);
// "; did you mean diagnose?", or nothing.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> known);

}  // namespace lockstep::cli
