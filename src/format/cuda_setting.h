// SPDX-License-Identifier: Apache-2.0
// LOCKSTEP_CUDA, as the launcher sets the environment by it and the capture library reads it: words between
// commas, of which `off` comes before all others.
#pragma once
namespace lockstep::format {

// The variable, and its words; kernels are recorded without one. `copies` adds copies and fills, `ranges`
// NVTX ranges; words that nobody knows are passed over.
inline constexpr const char* kCudaSetting = "LOCKSTEP_CUDA";
inline constexpr const char *kCudaOff = "off", *kCudaCopies = "copies", *kCudaRanges = "ranges";

// Whether a value of it, nullptr if it is not set, has the word, whole and in small letters.
constexpr bool has_word(const char* value, const char* word) {
  while (value != nullptr) {
    const char* expected = word;
    while (*expected != 0 && *value == *expected) ++value, ++expected;
    if (*expected == 0 && (*value == 0 || *value == ',')) return true;
    while (*value != 0 && *value != ',') ++value;
    value = *value == ',' ? value + 1 : nullptr;
  }
  return false;
}
static_assert(has_word("a,bc", "bc") && has_word("bc,a", "bc") && !has_word("bcd,b", "bc") &&
              !has_word("", "bc"));
// Whether `word` is asked for, and `off` is not.
constexpr bool asks_for(const char* value, const char* word) {
  return has_word(value, word) && !has_word(value, kCudaOff);
}

}  // namespace lockstep::format
