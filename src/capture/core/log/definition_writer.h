// SPDX-License-Identifier: Apache-2.0
// How a definition (format/definitions.h) becomes visible: cleared together with the tag behind it, filled,
// and published by the store of its tag word. One writer at a time per chunk.
#pragma once
#include <cstring>

#include "capture/core/clock.h"
#include "format/definitions.h"

namespace lockstep::capture {

// `bytes`: of a definition as long as its text.
template <class Definition>
Definition* clear_definition(char* at, size_t bytes = sizeof(Definition)) {
  memset(at, 0, bytes + format::kUnitBytes);
  auto* definition = reinterpret_cast<Definition*>(at);
  definition->head.ticks = read_ticks();
  return definition;
}

template <class Definition>
void publish_definition(Definition* definition, format::Def kind, uint32_t id,
                        size_t bytes = sizeof(Definition)) {
  uint64_t tag =
      uint64_t{id} | uint64_t{static_cast<uint16_t>(kind)} << 32 | uint64_t{bytes / format::kUnitBytes} << 48;
  __atomic_store_n(reinterpret_cast<uint64_t*>(&definition->head.id), tag, __ATOMIC_RELEASE);
}

// Copies text into a cleared field, cut to fit.
template <size_t N>
void copy_text(char (&out)[N], const char* text) {
  if (text != nullptr) memcpy(out, text, strnlen(text, N - 1));
}

}  // namespace lockstep::capture
