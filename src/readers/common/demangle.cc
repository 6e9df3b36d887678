// SPDX-License-Identifier: Apache-2.0
// The demangler of the C++ library has no limit: parts of a symbol may refer to earlier parts, and each such
// reference can multiply the name. So a symbol that refers too often stays as it is.
#include "readers/common/demangle.h"

#include <cxxabi.h>

#include <charconv>
#include <cstdlib>
#include <memory>

namespace lockstep::readers::common {
namespace {

// Each reference can at most multiply what it repeats: n of them make a name up to 3^(n/3) times as long as
// its symbol. Symbols of PyTorch's and cuBLAS' kernels have up to 20.
constexpr int kMostReferences = 28;
constexpr size_t kMostBytes = 1024;

bool is_tag(char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z'); }

int references(std::string_view symbol) {
  int found = 0;
  for (size_t i = 0; i < symbol.size(); ++i) {
    if (symbol[i] != 'S' && symbol[i] != 'T') continue;
    size_t end = i + 1;
    while (end < symbol.size() && is_tag(symbol[end])) ++end;
    found += end < symbol.size() && symbol[end] == '_';
  }
  return found;
}

}  // namespace

std::string demangled(std::string_view symbol) {
  std::string text(symbol);
  if (!symbol.starts_with("_Z") || symbol.size() > kMostBytes || references(symbol) > kMostReferences)
    return text;
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(text.c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 && name != nullptr ? std::string(name.get()) : text;
}

std::string scoped_name(std::string_view symbol) {
  // Names stand in it with their lengths. What follows the last of them, templates and arguments, is not
  // read.
  std::string_view rest = symbol;
  if (!rest.starts_with("_Z")) return std::string(symbol);
  rest.remove_prefix(2);
  const bool is_nested = rest.starts_with('N');
  rest.remove_prefix(is_nested ? 1 : 0);
  std::string name;
  do {
    size_t length = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), length);
    if (error != std::errc{}) break;
    rest.remove_prefix(static_cast<size_t>(end - rest.data()));
    if (length > rest.size()) return std::string(symbol);
    if (!name.empty()) name += "::";
    name += rest.substr(0, length);
    rest.remove_prefix(length);
  } while (is_nested);
  return name.empty() ? std::string(symbol) : name;
}

}  // namespace lockstep::readers::common
