// SPDX-License-Identifier: Apache-2.0
// Declared groups: one slot each, found by what the group is, so that declaring it again gives the same
// handle. A handle is a number, checked before use:   63 process_tag 32 | 31 1 + slot 0
//
// Who is which member may not be known at first: PyTorch gives the own rank with most operations, and
// another's with some. So a group has an entry for "rank unknown", which stands for the process' first member
// as soon as there is one.
//
// Any thread. Finding takes no lock; adding takes one, and writes the group's definitions. Slots live for
// ever.
#pragma once
#include <cstdint>

#include "capture/core/session/session.h"
#include "lockstep/lockstep.h"

namespace lockstep::capture::api {

struct alignas(64) Group {
  uint64_t key;                  // 0: free. What the group is, and this process' place in it; published last
  uint32_t comm;                 // index in the session
  uint32_t main;                 // slot that has its operations; its own, mostly. Atomic
  int32_t rank;                  // of the entry for "unknown": the first member; -1 none. Under the lock
  uint64_t collectives, paired;  // operations so far; atomic
};

// `lockstep control` has switched recording off; operations are numbered all the same.
bool is_off();
extern const Steering kSteering;

// The handle; 0 when nothing is captured or the group could not be recorded (counted).
lockstep_group declare_group(const lockstep_group_info* info);
// nullptr for a handle that was not given out here.
Group* find_group(lockstep_group handle);

}  // namespace lockstep::capture::api
