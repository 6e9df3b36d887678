// SPDX-License-Identifier: Apache-2.0
// The arguments of a timeline's events, from arguments.def, and lists of them that many events share.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "model/string_pool.h"

namespace lockstep::exporters::common {

enum class ArgumentKind : char {
  kUnsigned = 'U',
  kSigned = 'S',
  kTime = 'T',
  kFlag = 'F',
  kText = 'X',
  kJsonOnly = 'J'
};

struct ArgumentInfo {
  std::string_view json;  // its key
  ArgumentKind kind;
  uint32_t field;             // in the message that Perfetto's events bear; 0 none
  std::string_view perfetto;  // its name there
};

enum class Argument : uint8_t {
#define ARGUMENT(id, json, kind, field, perfetto) id,
#include "exporters/common/arguments.def"
#undef ARGUMENT
};

inline constexpr ArgumentInfo kArguments[] = {
#define ARGUMENT(id, json, kind, field, perfetto) \
  {json, static_cast<ArgumentKind>(#kind[0]), field, perfetto},
#include "exporters/common/arguments.def"
#undef ARGUMENT
};

constexpr const ArgumentInfo& info(Argument argument) { return kArguments[static_cast<size_t>(argument)]; }

// Equal for all operations of one shape on one communicator: a writer renders the list once and keeps what it
// made under `number`, which counts from 0 within a process.
struct FixedArguments {
  struct Item {
    Argument argument;
    bool is_text = false;
    model::StringId word = 0;  // texts: in the words of the process
    int64_t number = 0;        // numbers
  };
  uint32_t number = 0;
  std::vector<Item> items;
};

}  // namespace lockstep::exporters::common
