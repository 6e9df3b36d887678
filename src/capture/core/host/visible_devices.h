// SPDX-License-Identifier: Apache-2.0
// Which of a host's GPUs the environment shows to this process, as one list: where a list counts what another
// one has left, both are made one of the host's numbers.
#pragma once
#include <cstddef>
#include <cstdint>

namespace lockstep::capture {

enum class Maker : uint8_t { kAmd, kOther };  // of the GPUs that the process uses

// Of CUDA_, and on AMD's of HIP_ and ROCR_VISIBLE_DEVICES. Empty: all; "-": no number of the host's.
void read_visible_devices(Maker maker, char (&out)[256]);

}  // namespace lockstep::capture
