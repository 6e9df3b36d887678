// SPDX-License-Identifier: Apache-2.0
// Counts a process in one place for people who ask whether a trace can be believed. What is counted twice in
// different ways must agree, which a test holds: a sum that does not add up shows a loss that nobody
// reported.
#include "store/sqlite/diagnostics.h"

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "model/event_counts.h"

namespace lockstep::store::sqlite {
namespace {

struct Counter {
  std::string name;
  uint64_t value;
  std::string text;
};
using Counters = std::vector<Counter>;

void add_events(const model::Trace& trace, Counters& counters) {
  model::EventCounts events = model::count_events(trace);
  for (uint8_t kind = 1; kind < model::kEventKinds; ++kind) {
    counters.push_back(
        {"events_" + std::string(model::event_name(kind)), events[kind], "events of this kind"});
  }
}

void add_ops(const model::OpTable& ops, Counters& counters) {
  uint64_t timed = 0;
  for (size_t i = 0; i < ops.size(); ++i) timed += ops.gpu_start_ns[i] != 0 && ops.gpu_end_ns[i] != 0;
  counters.push_back({"ops", ops.size(), "operations"});
  counters.push_back({"ops_gpu_timed", timed, "operations with GPU times"});
  counters.push_back({"ops_host_only", ops.size() - timed, "operations without GPU times"});
}

void add_resolved(const std::string& table, std::span<const uint32_t> parents, Counters& counters) {
  auto unresolved = static_cast<uint64_t>(std::count(parents.begin(), parents.end(), model::kNoRow));
  counters.push_back({table, parents.size(), "rows"});
  counters.push_back({table + "_resolved", parents.size() - unresolved, "rows whose parent is known"});
  counters.push_back({table + "_unresolved", unresolved, "rows whose parent is not known"});
}

void add_losses(const model::Trace& trace, Counters& counters) {
  const char* const stages[] = {"capture", "read", "assemble", "merge"};
  uint64_t by_stage[std::size(stages) + 1] = {};
  uint64_t total = 0;
  for (size_t i = 0; i < trace.losses.size(); ++i) {
    std::string_view stage = trace.strings[trace.losses.stage[i]];
    // A stage that this list lacks counts as `other`, so that the sum stays right.
    auto place =
        static_cast<size_t>(std::find(std::begin(stages), std::end(stages), stage) - std::begin(stages));
    by_stage[place] += trace.losses.count[i];
    total += trace.losses.count[i];
    counters.push_back({"loss_" + std::string(stage) + "_" + std::string(trace.strings[trace.losses.kind[i]]),
                        trace.losses.count[i], std::string(trace.strings[trace.losses.detail[i]])});
  }
  counters.push_back({"lost", total, "losses of all stages"});
  for (size_t i = 0; i < std::size(stages); ++i) {
    counters.push_back({std::string("lost_") + stages[i], by_stage[i], "losses of this stage"});
  }
  counters.push_back({"lost_other", by_stage[std::size(stages)], "losses of other stages"});
}

}  // namespace

Result<void> write_diagnostics(const Database& database, const model::Trace& trace, int64_t process_id,
                               uint64_t& rows) {
  // Zeros are written too: a counter that is missing could mean none or unknown.
  Counters counters;
  add_events(trace, counters);
  add_ops(trace.ops, counters);
  add_resolved("channels", trace.channels.all(&model::ChannelTable::task), counters);
  add_resolved("proxy_ops", trace.proxy_ops.all(&model::ProxyOpTable::task), counters);
  add_resolved("proxy_steps", trace.proxy_steps.all(&model::ProxyStepTable::proxy_op), counters);
  add_resolved("net_events", trace.net_events.all(&model::NetEventTable::proxy_step), counters);
  counters.push_back({"kernels", trace.kernels.size(), "kernels and copies on the GPU"});
  const model::KernelCounts kernels = model::count_kernels(trace);
  counters.push_back({"kernels_communication", kernels.communication, "kernels of communication"});
  counters.push_back({"kernels_joined", kernels.joined, "of these, kernels whose operation is known"});
  counters.push_back({"launches", trace.launches.size(), "calls that launched kernels and graphs"});
  add_losses(trace, counters);
  LOCKSTEP_ASSIGN(Statement insert, database.prepare("INSERT INTO diagnostic VALUES (?, ?, ?, ?)"));
  for (const Counter& counter : counters) {
    insert.bind(1, process_id);
    insert.bind(2, std::string_view(counter.name));
    insert.bind(3, static_cast<int64_t>(counter.value));
    insert.bind(4, std::string_view(counter.text));
    LOCKSTEP_ASSIGN(uint64_t added, insert.run());
    rows += added;
  }
  return {};
}

}  // namespace lockstep::store::sqlite
