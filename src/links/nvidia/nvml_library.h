// SPDX-License-Identifier: Apache-2.0
// NVML as a caller finds it: functions by name, and what its answers mean. Drivers of different years have
// different functions; one that is missing answers that it is not supported.
#pragma once
#include <algorithm>
#include <cctype>
#include <cstring>
#include <optional>
#include <string>

#include "links/nvidia/nvml_abi.h"
#include "links/shared_library.h"

namespace lockstep::links::nvidia::nvml {

// What a library may claim.
inline constexpr uint32_t kMostGpus = 64, kMostLinks = 36;

class Library {
 public:
  explicit Library(SharedLibrary library) : library_(library) {}

  // Arguments must have exactly the types of NVML's function, as nothing checks them.
  template <class... Arguments>
  Return call(const char* name, Arguments... arguments) const {
    const auto function = library_.function<Return (*)(Arguments...)>(name);
    return function == nullptr ? kNotSupported : function(arguments...);
  }
  // In NVML's own words.
  std::string error(Return result) const {
    const auto function = library_.function<const char* (*)(Return)>("nvmlErrorString");
    const char* const text = function == nullptr ? nullptr : function(result);
    return text == nullptr ? "error " + std::to_string(result) : text;
  }
  bool has(const char* name) const { return library_.function<void*>(name) != nullptr; }

 private:
  SharedLibrary library_;
};

// "00000000:1B:00.0" as sysfs writes it.
inline std::string address(const PciInfo& pci) {
  std::string text(pci.bus_id, strnlen(pci.bus_id, sizeof pci.bus_id));
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  if (text.size() == 16 && text.starts_with("0000")) text.erase(0, 4);
  return text;
}

// Nothing where the field was not answered, or holds a fraction or a negative number.
inline std::optional<uint64_t> number(const FieldValue& value) {
  if (value.result != kSuccess) return std::nullopt;
  switch (value.type) {
    case kUnsigned32:
      return value.value.number32;
    case kUnsignedLong:
    case kUnsigned64:
      return value.value.number64;
    case kSigned64:
      if (value.value.signed64 < 0) return std::nullopt;
      return static_cast<uint64_t>(value.value.signed64);
    case kSigned32: {
      const auto narrow = static_cast<int32_t>(value.value.number32);
      if (narrow < 0) return std::nullopt;
      return static_cast<uint64_t>(narrow);
    }
    default:
      return std::nullopt;
  }
}

inline FieldValue question(Field field, uint32_t scope) {
  FieldValue value{};
  value.field = field;
  value.scope = scope;
  // A field that the library leaves alone has no type that `number` knows. Its result has to be 0 beforehand:
  // of links, NVML (580) answers no field that has another.
  value.type = kNoType;
  return value;
}

}  // namespace lockstep::links::nvidia::nvml
