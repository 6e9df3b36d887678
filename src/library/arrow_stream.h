// SPDX-License-Identifier: Apache-2.0
// A table of a run as a stream of Arrow record batches: one process in memory at a time, its columns handed
// over as they are built.
#pragma once
#include <memory>

#include "exporters/common/run_tables.h"
#include "input/input.h"
#include "lockstep/diagnose.h"

namespace lockstep::library {

// Fills `stream`, which owns the input from then on. No exception leaves it.
void open_stream(input::Input input, const exporters::common::TableLayout& table, ArrowArrayStream* stream);

}  // namespace lockstep::library
