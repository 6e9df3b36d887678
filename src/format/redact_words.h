// SPDX-License-Identifier: Apache-2.0
// Takes out of a command line what nobody should read in a trace: the values behind names that hold `token`,
// `key`, `secret` or `password`, in upper or lower case: --hf-token VALUE, --api_key=VALUE, SECRET=VALUE.
//
// This guards against habit, not against malice: a secret under another name, or behind a blank in one word,
// stays. Capture calls it at the start of a process, tools do for command lines of their own; it
// works in place and allocates nothing.
#pragma once
#include <cstddef>
#include <cstring>

namespace lockstep::format {

// LOCKSTEP_ARGV: what is kept of command lines. Without it, all but such values.
inline constexpr char kArgvSetting[] = "LOCKSTEP_ARGV", kArgvAll[] = "all", kArgvNone[] = "none";

namespace redact_detail {

inline char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
inline bool holds(const char* name, size_t length, const char* part) {
  const size_t size = std::strlen(part);
  for (size_t at = 0; at + size <= length; ++at) {
    size_t same = 0;
    while (same < size && lower(name[at + same]) == part[same]) ++same;
    if (same == size) return true;
  }
  return false;
}
inline bool is_secret(const char* name, size_t length) {
  static constexpr const char* kParts[] = {"token", "key", "secret", "password"};
  for (const char* part : kParts) {
    if (holds(name, length, part)) return true;
  }
  return false;
}

}  // namespace redact_detail

// `words`, each with its NUL (the last may be cut), with such values as at most three stars. Returns how many
// bytes are left, at most `size`. Any bytes will do.
inline size_t redact_words(char* words, size_t size) {
  // What is written is never longer than what was read, so it never reaches a word that is still to come.
  size_t out = 0;
  bool is_value = false;  // of the word before
  for (size_t at = 0; at < size;) {
    const char* word = words + at;
    const void* nul = std::memchr(word, 0, size - at);
    const size_t length =
        nul == nullptr ? size - at : static_cast<size_t>(static_cast<const char*>(nul) - word);
    const void* equals = std::memchr(word, '=', length);
    size_t name = equals == nullptr ? length : static_cast<size_t>(static_cast<const char*>(equals) - word);
    const bool is_option = length > 1 && word[0] == '-';
    const bool is_secret =
        !is_value && (is_option || equals != nullptr) && redact_detail::is_secret(word, name);
    size_t kept = length;
    if (is_value && !is_option) {
      kept = length < 3 ? length : 3;
      std::memset(words + out, '*', kept);
    } else if (is_secret && equals != nullptr) {
      ++name;
      kept = name + (length - name < 3 ? length - name : 3);
      std::memmove(words + out, word, name);
      std::memset(words + out + name, '*', kept - name);
    } else {
      std::memmove(words + out, word, length);
    }
    is_value = is_option && is_secret && equals == nullptr;
    out += kept;
    at += length;
    if (at < size) {
      words[out++] = 0;
      ++at;
    }
  }
  return out;
}

}  // namespace lockstep::format
