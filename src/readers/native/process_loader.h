// SPDX-License-Identifier: Apache-2.0
// Loads one process, which may have one file per capture library, into a trace.
#pragma once
#include <span>
#include <string>

#include "base/result.h"
#include "model/trace.h"
#include "readers/native/file/device_numbers.h"
#include "readers/native/file/file_view.h"
#include "readers/native/file/tick_clock.h"

namespace lockstep::readers::native {

// Text that is equal for, and only for, files of one process.
// A pid alone would not do: containers count their own, and the kernel gives numbers out again. Hence the
// namespace and the time of the start.
std::string process_key(const format::FileHeader& header);
// Names the host clock: the boot id, or the host where it is unknown.
std::string boot_key(const format::FileHeader& header);

// What names the devices of the process, as far as its header goes; `main` is left to the caller.
DeviceNumbers::Process device_process(const format::FileHeader& header);

// Appends the process as row 0 of an empty trace. A file that has become unreadable is a loss; an error if
// all have. Different processes may be loaded at once, each into its own trace.
Result<void> load_process(std::span<const std::string> paths, const BootClock& boot, DeviceNumbers& devices,
                          model::Trace& trace);

}  // namespace lockstep::readers::native
