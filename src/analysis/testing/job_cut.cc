// SPDX-License-Identifier: Apache-2.0
#include "analysis/testing/job_cut.h"

#include <vector>

namespace lockstep::analysis::testing {
namespace {

// Moves what is kept to the front. `kept`: by old position, how many are kept before it.
void close_up(model::JobOps& ops, const std::vector<uint32_t>& kept) {
  const auto pack = [&](auto& column) {
    for (size_t i = 0; i + 1 < kept.size(); ++i) {
      if (kept[i + 1] != kept[i]) column[kept[i]] = column[i];
    }
    column.resize(kept.back());
  };
  pack(ops.signature), pack(ops.index), pack(ops.seq), pack(ops.called_ns), pack(ops.enqueued_ns);
  pack(ops.launched_ns), pack(ops.gpu_start_ns), pack(ops.gpu_end_ns), pack(ops.gpu_error_ns);
  pack(ops.flags), pack(ops.gpu_source);
}

}  // namespace

void cut_at(model::Job& job, int64_t ns) {
  for (model::JobProcess& process : job.processes) {
    model::JobOps& ops = process.ops;
    std::vector<uint32_t> kept = {0};
    for (size_t i = 0; i < ops.size(); ++i) {
      kept.push_back(kept.back() + (ops.entered_ns(i) < ns));
      if (ops.gpu_end_ns[i] >= ns) ops.gpu_start_ns[i] = ops.gpu_end_ns[i] = 0;
    }
    const auto move = [&](uint32_t& first, uint32_t& count) {
      count = kept[first + count] - kept[first];
      first = kept[first];
    };
    for (uint32_t row : process.members) {
      model::Member& member = job.members[row];
      move(member.first, member.ops);
      for (model::Lane& lane : member.lanes) move(lane.first, lane.ops);
    }
    close_up(ops, kept);
    std::erase_if(process.marks, [&](const model::Mark& mark) { return mark.time_ns >= ns; });
    process.liveness = model::Liveness::kRunning;
  }
}

}  // namespace lockstep::analysis::testing
