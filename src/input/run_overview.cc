// SPDX-License-Identifier: Apache-2.0
// Gathers the overview while traces pass by on their way to somebody else, since a run is read once. A
// process that is loaded twice overwrites its own place.
#include "input/run_overview.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include "base/text/units.h"
#include "format/file_layout.h"
#include "model/hsa_counters.h"
#include "model/names/chained_plugin.h"
#include "model/names/host_name.h"
#include "model/names/who.h"
#include "readers/link_samples/link_samples.h"
#include "run/mode_text.h"

namespace lockstep::input {
namespace {

std::string retention_name(uint8_t retention) {
  switch (static_cast<format::Retention>(retention)) {
    case format::Retention::kStream:
      return "stream";
    case format::Retention::kRing:
      return "ring";
  }
  return "unknown";
}

std::string gpu_clock_name(uint8_t clock) {
  switch (static_cast<model::GpuClock>(clock)) {
    case model::GpuClock::kNvidiaNs:
      return "nvidia-ns";
    case model::GpuClock::kAmdTicks:
      return "amd-ticks";
    case model::GpuClock::kUnknown:
      break;
  }
  return "unknown";
}

std::vector<LossLine> loss_lines(const model::Trace& trace, bool of_run) {
  std::vector<LossLine> lines;
  for (size_t i = 0; i < trace.losses.size(); ++i) {
    lines.push_back({of_run ? -1 : 0, std::string(trace.strings[trace.losses.stage[i]]),
                     std::string(trace.strings[trace.losses.kind[i]]),
                     std::string(trace.strings[trace.losses.detail[i]]), trace.losses.count[i]});
  }
  return lines;
}

// A declared group without operations that only named a communicator is no second one.
std::vector<CommMember> members(const model::Trace& trace) {
  std::vector<CommMember> members;
  std::set<model::StringId> of_nccl;
  for (size_t i = 0; i < trace.comms.size(); ++i)
    if (trace.comms.api_version[i] != 0) of_nccl.insert(trace.comms.name[i]);
  const auto of_ops = trace.ops.all(&model::OpTable::comm);
  const std::set<uint32_t> used(of_ops.begin(), of_ops.end());
  for (uint32_t i = 0; i < trace.comms.size(); ++i) {
    model::Comm comm = trace.comms.row(i);
    if (comm.api_version == 0 && of_nccl.contains(comm.name) && !used.contains(i)) continue;
    members.push_back({comm.comm_id, std::string(trace.strings[comm.name]), 0, comm.rank, comm.ranks,
                       comm.nodes, comm.api_version, comm.end_ns != 0});
  }
  return members;
}

// Of several that one process chained, as copies of NCCL may, the first.
std::string chained_plugin_of(const model::Trace& trace) {
  for (model::StringId name : trace.marks.all(&model::MarkTable::name)) {
    const std::string_view text = trace.strings[name];
    if (text.starts_with(model::kChainedPluginMark))
      return std::string(text.substr(model::kChainedPluginMark.size()));
  }
  return {};
}

// "default 17000000, deep 17000001"
std::vector<ProcessOverview::ModeSince> modes_of(const std::string& text) {
  std::vector<ProcessOverview::ModeSince> modes;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(", ", at), text.size());
    const std::string one = text.substr(at, end - at);
    const size_t blank = one.find(' ');
    if (blank != std::string::npos)
      modes.push_back({one.substr(0, blank), std::strtoll(one.c_str() + blank + 1, nullptr, 10)});
    at = end + 2;
  }
  return modes;
}

// Of several samples the one of the largest share.
std::string mode_of(format::Mode mode, const std::vector<ProcessOverview::ModeSince>& modes) {
  run::ModeChoice most{mode};
  for (const auto& [text, since_ns] : modes) {
    const auto choice = run::parse_mode(text);
    if (!choice || choice->mode != mode || choice->of == 0) continue;
    // Products, not quotients: two shares compare exactly.
    if (most.of == 0 || uint64_t{choice->keep} * most.of > uint64_t{most.keep} * choice->of) most = *choice;
  }
  return run::mode_text(most);
}

// As PyTorch and the vendors' tools call it.
std::string device_name(const model::Trace& trace, const ProcessOverview& process) {
  if (!process.pci.empty() || process.device < 0) return process.pci;
  return (model::is_amd(trace.processes.row(0), trace.strings) ? "hip:" : "cuda:") +
         std::to_string(process.device);
}

ProcessOverview look_at(const model::Trace& trace) {
  ProcessOverview seen;
  if (trace.processes.size() == 0) return seen;
  model::Process row = trace.processes.row(0);
  auto text = [&](model::StringId id) { return std::string(trace.strings[id]); };
  seen.host = text(row.host);
  seen.host_name = text(model::host_of(row));
  seen.boot_id = text(row.boot_id);
  seen.launcher = text(row.launcher);
  seen.job = text(row.job);
  seen.argv = text(row.argv);
  seen.visible_devices = text(row.visible_devices);
  seen.pci = text(row.pci);
  seen.uuid = text(row.uuid);
  seen.gpu_model = text(row.gpu_model);
  seen.nccl_library = text(row.nccl_library);
  seen.nccl_build_id = text(row.nccl_build_id);
  seen.other_nccl = text(row.other_nccl);
  seen.chained_plugin = chained_plugin_of(trace);
  seen.pid = row.pid;
  seen.start_ns = row.start_ns;
  seen.first_ns = row.first_ns;
  seen.last_ns = row.last_ns;
  seen.heartbeat_ns = row.heartbeat_ns;
  seen.rank = row.rank;
  seen.local_rank = row.local_rank;
  seen.world = row.world;
  seen.node_rank = row.node_rank;
  seen.device = row.device;
  seen.gpu = row.gpu;
  seen.host_device = model::who(row, trace.strings).device;
  seen.device_name = device_name(trace, seen);
  seen.nccl_version = row.nccl_version;
  seen.modes = modes_of(text(row.modes));
  // Another tool's file has no mode; a run in which nothing was recorded says "off".
  const bool has_mode = row.mode != 0 || row.retention != 0 || !seen.modes.empty();
  seen.mode = has_mode ? mode_of(static_cast<format::Mode>(row.mode), seen.modes) : "unknown";
  seen.retention = retention_name(row.retention);
  seen.gpu_clock = gpu_clock_name(row.gpu_clock);
  seen.closed = row.closed != 0;
  for (int32_t width : trace.clock_anchors.all(&model::ClockAnchorTable::width_ns)) {
    if (seen.anchor_width_ns < 0 || width < seen.anchor_width_ns) seen.anchor_width_ns = width;
  }
  seen.ops = trace.ops.size();
  seen.ranges = trace.ranges.size();
  seen.events = model::count_events(trace);
  seen.kernels = model::count_kernels(trace);
  for (const model::StringId mark : trace.marks.all(&model::MarkTable::name)) {
    if (seen.counters.empty()) seen.counters = model::hsa_counters_of(trace.strings[mark]);
  }
  seen.comms = members(trace);
  seen.losses = loss_lines(trace, false);
  return seen;
}

// Communicators without an id are one each: nothing says that two of them are the same.
void group_comms(RunOverview& run) {
  std::map<uint64_t, size_t> by_id;
  for (const ProcessOverview& process : run.processes) {
    for (const CommMember& member : process.comms) {
      auto [at, is_new] = by_id.try_emplace(member.comm_id, run.comms.size());
      if (is_new || member.comm_id == 0) run.comms.emplace_back();
      run.comms[member.comm_id == 0 ? run.comms.size() - 1 : at->second].push_back(member);
    }
  }
}

}  // namespace

std::string recorded_mode(uint8_t mode, const std::string& modes) {
  return mode_of(static_cast<format::Mode>(mode), modes_of(modes));
}

bool RunOverview::salvaged() const {
  return std::any_of(losses.begin(), losses.end(),
                     [](const LossLine& loss) { return loss.stage == "read" || loss.stage == "merge"; });
}

ObservedSource::ObservedSource(std::unique_ptr<model::TraceSource> source, std::vector<LossLine> more_losses)
    : source_(std::move(source)), more_losses_(std::move(more_losses)), slots_(source_->processes()) {}

Result<void> ObservedSource::load(size_t i, model::Trace& trace) {
  auto loaded = source_->load(i, trace);
  // A process writes to its own slot alone, so loads on several threads need no lock.
  Slot& slot = slots_[i];
  slot.loaded = loaded.has_value() && trace.processes.size() > 0;
  slot.error = loaded ? "" : loaded.error().message();
  if (slot.loaded) slot.process = look_at(trace);
  return loaded;
}

void ObservedSource::run_losses(model::Trace& trace) {
  source_->run_losses(trace);
  for (const LossLine& loss : more_losses_)
    trace.lose(model::kNoRow, loss.stage, loss.kind, loss.count, loss.detail);
}

Result<void> ObservedSource::host_counters(const HostCounterVisitor& visit) {
  std::vector<Error> errors = readers::link_samples::visit_counters(link_logs_, visit);
  if (auto visited = source_->host_counters(visit); !visited) errors.push_back(visited.error());
  for (const Error& error : errors) {
    LossLine loss{-1, "read", "unreadable_file", error.message(), 1};
    // Whoever asks twice loses nothing more.
    const auto is_same = [&](const LossLine& line) { return line.detail == loss.detail; };
    if (std::none_of(more_losses_.begin(), more_losses_.end(), is_same)) more_losses_.push_back(loss);
  }
  return {};
}

RunOverview ObservedSource::overview() {
  RunOverview run;
  model::Trace of_run;
  run_losses(of_run);
  run.losses = loss_lines(of_run, true);
  std::set<std::string> hosts;
  for (const Slot& slot : slots_) {
    if (!slot.error.empty()) run.losses.push_back({-1, "read", "unreadable_process", slot.error, 1});
    if (!slot.loaded) continue;
    auto index = static_cast<int64_t>(run.processes.size());
    ProcessOverview& process = run.processes.emplace_back(slot.process);
    for (CommMember& member : process.comms) member.process = index;
    for (LossLine& loss : process.losses) {
      loss.process = index;
      run.losses.push_back(loss);
    }
    for (size_t kind = 0; kind < run.events.size(); ++kind) run.events[kind] += process.events[kind];
    run.ops += process.ops;
    run.ranges += process.ranges;
    run.kernels.kernels += process.kernels.kernels;
    run.kernels.copies += process.kernels.copies;
    run.kernels.launches += process.kernels.launches;
    run.kernels.communication += process.kernels.communication;
    run.kernels.joined += process.kernels.joined;
    if (!process.host_name.empty()) hosts.insert(process.host_name);
    if (process.first_ns != 0 && (run.first_ns == 0 || process.first_ns < run.first_ns))
      run.first_ns = process.first_ns;
    run.last_ns = std::max(run.last_ns, process.last_ns);
  }
  run.hosts = hosts.size();
  group_comms(run);
  return run;
}

std::string processes_text(const RunOverview& run) {
  return plural(run.processes.size(), "process") + (run.hosts == 0 ? "" : " on " + plural(run.hosts, "host"));
}

std::string kernels_text(const RunOverview& run) {
  const model::KernelCounts& kernels = run.kernels;
  if (kernels.kernels + kernels.copies == 0) return {};
  return "\nGPU work: " + plural(kernels.kernels, "kernel") + " and " +
         (kernels.copies == 1 ? "1 copy" : format_count(kernels.copies) + " copies") + ", " +
         plural(kernels.launches, "launching call") + "; " + format_count(kernels.joined) + " of " +
         plural(kernels.communication, "communication kernel") + " joined to operations\n";
}

}  // namespace lockstep::input
