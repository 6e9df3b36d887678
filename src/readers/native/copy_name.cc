// SPDX-License-Identifier: Apache-2.0
// Names copies as PyTorch's profiler does ("Memcpy HtoD (Pageable -> Device)"), from CUPTI's kinds of memory.
// A kind that is not known here is "Unknown" and has no side, so that no direction is made up.
#include "readers/native/copy_name.h"

#include <string_view>

namespace lockstep::readers::native {
namespace {

struct Memory {
  std::string_view name;
  char side;  // of the host, of the device
};
constexpr Memory kMemories[kMemoryKinds] = {{"Unknown", '?'},       {"Pageable", 'H'},      {"Pinned", 'H'},
                                            {"Device", 'D'},        {"Array", 'D'},         {"Managed", 'D'},
                                            {"Device Static", 'D'}, {"Managed Static", 'D'}};

// In the order of CUpti_ActivityMemoryKind.
const Memory& memory(uint8_t kind) { return kMemories[kind < kMemoryKinds ? kind : 0]; }

}  // namespace

std::string copy_name(format::CopyKind kind, uint8_t from, uint8_t to) {
  const Memory &source = memory(from), &target = memory(to);
  if (kind == format::CopyKind::kSet) return "Memset (" + std::string(target.name) + ")";
  std::string sides = "PtoP";
  if (kind != format::CopyKind::kPeerCopy) sides = {source.side, 't', 'o', target.side};
  return "Memcpy " + sides + " (" + std::string(source.name) + " -> " + std::string(target.name) + ")";
}

}  // namespace lockstep::readers::native
