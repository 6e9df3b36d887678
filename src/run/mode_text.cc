// SPDX-License-Identifier: Apache-2.0
#include "run/mode_text.h"

#include <charconv>

namespace lockstep::run {
namespace {

using format::Mode;

constexpr std::string_view kSample = "sample=";

bool parse_count(std::string_view text, uint32_t* count) {
  // Of an unsigned number: from_chars() takes no sign, so "-1" is no count.
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *count);
  return error == std::errc{} && end == text.data() + text.size() && *count >= 1 &&
         *count <= format::kMostSampled;
}

}  // namespace

std::optional<ModeChoice> parse_mode(std::string_view text) {
  if (text == format::kDefaultAlias) text = format::mode_name(Mode::kDefault);
  if (text == format::kDeepAlias) text = format::mode_name(Mode::kDeep);
  for (Mode mode : {Mode::kOff, Mode::kLite, Mode::kDefault, Mode::kDeep}) {
    if (text == format::mode_name(mode)) return ModeChoice{mode};
  }
  const size_t slash = text.find('/');
  if (!text.starts_with(kSample) || slash == std::string_view::npos) return std::nullopt;
  ModeChoice choice{Mode::kSample};
  if (!parse_count(text.substr(kSample.size(), slash - kSample.size()), &choice.keep) ||
      !parse_count(text.substr(slash + 1), &choice.of) || choice.keep > choice.of)
    return std::nullopt;
  return choice;
}

std::string mode_text(ModeChoice choice) {
  // A file may name the mode without its numbers.
  if (choice.mode != Mode::kSample || choice.of == 0) return format::mode_name(choice.mode);
  return std::string(kSample) + std::to_string(choice.keep) + "/" + std::to_string(choice.of);
}

}  // namespace lockstep::run
