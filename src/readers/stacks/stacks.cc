// SPDX-License-Identifier: Apache-2.0
// Sniffed deep: a program prints much before its first stack.
#include "readers/stacks/stacks.h"

#include <string_view>

#include "readers/stacks/read_stacks.h"

namespace lockstep::readers::stacks {
namespace {

bool sniff(std::span<const std::byte> first_bytes) {
  return has_stack({reinterpret_cast<const char*>(first_bytes.data()), first_bytes.size()});
}

}  // namespace

const Format kFormat{.name = "stacks",
                     .summary = "stacks of processes",
                     .sniff = sniff,
                     .open = nullptr,
                     .sniff_deep = true,
                     .setting = "py-spy dump --pid PID > stack_rank_N.txt of each rank, while it hangs"};

}  // namespace lockstep::readers::stacks
