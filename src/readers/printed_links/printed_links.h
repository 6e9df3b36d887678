// SPDX-License-Identifier: Apache-2.0
// What ibstat, nvbandwidth and others print about a host's links, and records of `lockstep links`:
// links/printed/printed.h reads them.
#pragma once
#include "readers/reader.h"

namespace lockstep::readers::printed_links {

extern const Format kFormat;

}  // namespace lockstep::readers::printed_links
