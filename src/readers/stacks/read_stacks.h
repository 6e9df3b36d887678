// SPDX-License-Identifier: Apache-2.0
// Texts with stacks: `py-spy dump`, Python's faulthandler (also where a log has it), stacks_*.txt and
// pyspy_dump_*.txt of PyTorch's debug server, gdb and pstack, several processes in one or one a file.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "readers/stacks/stacks_model.h"

namespace lockstep::readers::stacks {

// True of text that has the head of a thread's stack.
bool has_stack(std::string_view text);

// Adds what `text` holds. `file`: its name, from which a rank is taken where the text gives none and the name
// says that it is one ("rank_3").
void parse_stacks(std::string_view text, const std::string& file, StacksModel& model);

// Of several files of one process each, numbers alone count as ranks, too ("stack_0.txt"), if all have one
// and no two the same. An error: no stack in any of them.
Result<StacksModel> read_stacks(const std::vector<std::string>& paths);

}  // namespace lockstep::readers::stacks
