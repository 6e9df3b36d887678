// SPDX-License-Identifier: Apache-2.0
// Which kind of line something is: lines.def, asked by the first four characters.
#pragma once
#include <cstdint>
#include <string_view>

#include "readers/nccl_log/pattern.h"

namespace lockstep::readers::nccl_log {

enum class LineKind : uint8_t {
#define KIND(name, captures) k##name,
#define PATTERN(kind, text)
#include "readers/nccl_log/lines.def"
#undef PATTERN
#undef KIND
  kUnknown,
};
inline constexpr LineKind kFirstError = LineKind::kConnectFailed;  // this one and all behind it report errors
inline constexpr size_t kLineKinds = static_cast<size_t>(LineKind::kUnknown);

// The kind of a warning that `classify` does not know, by what it is about (words.def).
LineKind classify_words(std::string_view body);

// The kind of `body` (what stands behind a head) and what its holes hold. Any thread.
LineKind classify(std::string_view body, Captures& captures);

}  // namespace lockstep::readers::nccl_log
