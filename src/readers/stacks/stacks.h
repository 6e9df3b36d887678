// SPDX-License-Identifier: Apache-2.0
// Stacks of processes, as py-spy, Python's faulthandler and PyTorch's debug server print them: read_stacks.h
// reads them.
#pragma once
#include "readers/reader.h"

namespace lockstep::readers::stacks {

extern const Format kFormat;

}  // namespace lockstep::readers::stacks
