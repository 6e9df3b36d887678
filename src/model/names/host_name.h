// SPDX-License-Identifier: Apache-2.0
// What counts as a host, in every sentence and table: NCCL_HOSTID where it is set, as for NCCL itself, else
// the host's name. Boots do not count: a host that was restarted is one, and other tools' files name none.
#pragma once
#include "model/trace.h"

namespace lockstep::model {

// 0: unknown.
inline StringId host_of(const Process& process) {
  return process.host_id != 0 ? process.host_id : process.host;
}

}  // namespace lockstep::model
