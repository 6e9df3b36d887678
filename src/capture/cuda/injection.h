// SPDX-License-Identifier: Apache-2.0
// What the two ways by which this library comes into a process share: CUDA's injection, and NVTX's.
#pragma once

namespace lockstep::capture::cuda {

// Opens the session of the process, by whichever comes first. False: nothing is recorded.
bool open_session();

}  // namespace lockstep::capture::cuda
