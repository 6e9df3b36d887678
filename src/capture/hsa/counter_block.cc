// SPDX-License-Identifier: Apache-2.0
#include "capture/hsa/counter_block.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

namespace lockstep::capture::hsa {

void print_counters(const uint64_t* counts) {
  struct Line {
    uint32_t index;
    const char* label;
  };
  constexpr Line kLines[] = {
#define COUNTER(index, name, label, text) {index, label},
#include "format/hsa_counters.def"
#undef COUNTER
  };
  char text[4096];
  int length =
      snprintf(text, sizeof text, "=== lockstep diagnostic (PID %d) ===\n", static_cast<int>(getpid()));
  for (const Line& line : kLines) {
    length += snprintf(text + length, sizeof text - static_cast<size_t>(length), "  %s:%*s%llu\n", line.label,
                       static_cast<int>(20 - strlen(line.label)), "",
                       static_cast<unsigned long long>(counts[line.index]));
  }
  fprintf(stderr, "%s====================================\n", text);
}

}  // namespace lockstep::capture::hsa
