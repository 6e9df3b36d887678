// SPDX-License-Identifier: Apache-2.0
#include "nccl_host/program.h"

namespace lockstep::sim {

namespace abi = nccl_abi;

void Program::link() {
  handles.assign(handle_count, {});
  for (const Call& call : calls) {
    if (call.kind != CallKind::kStart) continue;
    const Start& start = starts[call.detail];
    HandleInfo& info = handles[call.handle];
    info = {start.descriptor.type, kNone, start.parent};
    if (info.type == abi::kTypeProxyStep) info.step = start.descriptor.proxy_step.step;
    if (info.type == abi::kTypeProxyOp) info.is_send = start.descriptor.proxy_op.is_send != 0;
    if (info.type == abi::kTypeGroupApi) {
      info.root = call.handle;
    } else if (start.parent != kNone) {
      info.root = handles[start.parent].root;
    }
    // The plan takes the snapshot of its first task.
    if (start.parent_group != kNone && handles[start.parent_group].root == kNone)
      handles[start.parent_group].root = info.root;
  }
}

std::array<uint64_t, kEventKinds> Program::starts_per_kind() const {
  std::array<uint64_t, kEventKinds> counts{};
  for (size_t i = 0; i < calls.size(); ++i) {
    if (calls[i].kind != CallKind::kStart) continue;
    const bool looped = i >= loop_begin && i < loop_end;
    counts[event_index(starts[calls[i].detail].descriptor.type)] += looped ? loop_count : 1;
  }
  return counts;
}

}  // namespace lockstep::sim
