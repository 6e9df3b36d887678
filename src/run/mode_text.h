// SPDX-License-Identifier: Apache-2.0
// What is recorded, as users write it: lite, default, deep, sample=K/N, off; standard and full, as in
// rocm-trace-lite.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "format/file_layout.h"

namespace lockstep::run {

// For the options that take one.
inline constexpr std::string_view kModeChoices = "lite default deep sample= off standard full";

struct ModeChoice {
  format::Mode mode = format::Mode::kDefault;
  uint32_t keep = 0, of = 0;  // sample=K/N
};
std::optional<ModeChoice> parse_mode(std::string_view text);
std::string mode_text(ModeChoice choice);

}  // namespace lockstep::run
