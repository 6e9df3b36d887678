// SPDX-License-Identifier: Apache-2.0
// With PXN a process drives the network card for another process of its host, and NCCL reports those
// transfers in the driving process alone. This pass loads the processes that drove for others and attaches
// their proxy operations to the operation that caused them. Boot, pid, context and handle identify it
// together, as a pid alone repeats across hosts.
#include "cli/show/foreign_network.h"

#include <map>
#include <tuple>
#include <utility>

#include "base/parallel.h"
#include "cli/show/network_tree.h"
#include "model/event_kind.h"
#include "model/foreign_proxy_op.h"

namespace lockstep::cli::show {
namespace {

using Origin =
    std::tuple<model::StringId, int64_t, uint64_t, uint64_t>;  // boot, pid, context, place of the handle
using Origins = std::map<Origin, size_t>;                      // to the rank's place
using RowsOfRank = std::map<size_t, std::vector<uint32_t>>;

Origins origins_of(const model::Job& job, const std::vector<RankOperation>& ranks) {
  Origins origins;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const model::Process& process = job.processes[ranks[i].process].row;
    // A rank that is shown without a tree has nowhere to put the events, so no process is loaded for it.
    if (ranks[i].has_tree && ranks[i].context != 0 && ranks[i].handle != 0)
      origins.try_emplace(
          {process.boot_id, process.pid, ranks[i].context, ranks[i].handle & model::kHandlePlace}, i);
  }
  return origins;
}

RowsOfRank rows_for(const model::Trace& trace, model::StringId boot, const Origins& origins) {
  RowsOfRank rows;
  const model::ProxyOpTable& ops = trace.proxy_ops;
  for (uint32_t row = 0; row < ops.size(); ++row) {
    // What the process drove for itself is in its own tree.
    if (!model::is_foreign_proxy_op(ops, row, trace.processes.pid[0])) continue;
    const auto at = origins.find(
        {boot, ops.originator_pid[row], ops.context[row], ops.parent[row] & model::kHandlePlace});
    if (at != origins.end()) rows[at->second].push_back(row);
  }
  return rows;
}

// The task may lie below a plan, so the search goes down the tree.
EventNode* enqueued(std::vector<EventNode>& events) {
  for (EventNode& event : events) {
    for (const auto kind : {model::EventKind::kColl, model::EventKind::kP2p, model::EventKind::kCeColl}) {
      if (event.event == model::event_name(number(kind))) return &event;
    }
    if (EventNode* below = enqueued(event.children)) return below;
  }
  return nullptr;
}

}  // namespace

void add_foreign_network(const model::Job& job, model::TraceSource& source, size_t most,
                         std::vector<RankOperation>& ranks) {
  const Origins origins = origins_of(job, ranks);
  std::vector<uint32_t> drivers;
  for (uint32_t process = 0; process < job.processes.size() && !origins.empty(); ++process) {
    if (!job.processes[process].drives_others) continue;
    const model::StringId boot = job.processes[process].row.boot_id;
    // PXN stays within a host: a driver of another boot has nothing for these ranks and is not loaded.
    const auto first = origins.lower_bound({boot, INT64_MIN, 0, 0});
    if (first != origins.end() && std::get<0>(first->first) == boot) drivers.push_back(process);
  }
  // Each thread fills its own place. The trees are joined afterwards in the order of processes, so the output
  // does not depend on the threads.
  std::vector<std::map<size_t, std::vector<EventNode>>> found(drivers.size());
  for_each_parallel(drivers.size(), parallel_threads(), [&](size_t i) {
    model::Trace trace;
    if (!source.load(drivers[i], trace)) return;  // gather has counted it
    for (const auto& [rank, rows] : rows_for(trace, job.processes[drivers[i]].row.boot_id, origins))
      found[i][rank] = network_tree(trace, rows, most);
  });
  for (size_t i = 0; i < drivers.size(); ++i) {
    for (auto& [rank, events] : found[i]) {
      EventNode* into = enqueued(ranks[rank].events);
      if (into == nullptr) continue;
      for (EventNode& event : events) {
        event.process = drivers[i];
        into->children.push_back(std::move(event));
      }
    }
  }
}

}  // namespace lockstep::cli::show
