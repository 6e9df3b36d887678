// SPDX-License-Identifier: Apache-2.0
// Decides what a timeline shows of a process, once for all formats. The host's part of an operation is its
// call: NCCL's task is enqueued later and on another thread. A replay of a captured graph has no call of its
// own, so its enqueueing stands for it.
#include "exporters/common/process_slices.h"

#include <algorithm>

#include "base/hex.h"
#include "model/event_kind.h"
#include "model/names/who.h"

namespace lockstep::exporters::common {
namespace {

enum Group : uint32_t {
  kThread,
  kRangeTrack,
  kStream,
  kCommStream,
  kChannelTrack,
  kProxyTrack,
  kProxyCtrlTrack,
  kNetTrack
};

}  // namespace

Interval host_interval(const model::Trace& trace, uint32_t op) {
  uint32_t call = trace.ops.call[op], task = trace.ops.task[op];
  const int64_t enqueued = trace.ops.enqueued_ns[op];
  if ((trace.ops.flags[op] & model::kFlagGraphCaptured) != 0 && enqueued != 0) {
    // The task may be that of the capture. It says how long enqueueing took only if it began with this
    // replay.
    const bool is_reported = task < trace.tasks.size() && trace.tasks.start_ns[task] == enqueued;
    return {enqueued, is_reported ? trace.tasks.end_ns[task] : enqueued};
  }
  if (call < trace.calls.size() && trace.calls.start_ns[call] > 0)
    return {trace.calls.start_ns[call], trace.calls.end_ns[call]};
  if (task < trace.tasks.size()) return {trace.tasks.start_ns[task], trace.tasks.end_ns[task]};
  return {};
}

ProcessSlices::ProcessSlices(const model::Trace& trace, int64_t number, Detail detail)
    : trace_(trace), number_(number), detail_(detail) {
  const model::Process process = trace.processes.row(0);
  who_ = model::who(process, trace.strings).label();
  // A stuck process records nothing more, but its keeper refreshes the heartbeat: open slices reach to it.
  last_ns_ = std::max(process.last_ns, process.heartbeat_ns);
  const std::string host(trace.strings[process.host]);
  if (!host.empty()) on_host_ = " (" + host + ")";
  name_pid(host_pid(), who_ + (host.empty() ? "" : " (" + host + " pid " + std::to_string(process.pid) + ")"),
           "CPU", number * 10);
  slices_.reserve(trace.calls.size() + 2 * trace.ops.size() + trace.kernels.size() + trace.launches.size() +
                  trace.marks.size() + trace.ranges.size() +
                  (detail == Detail::kAll
                       ? trace.channels.size() + trace.proxy_ops.size() + trace.proxy_steps.size() +
                             trace.net_events.size() + trace.proxy_ctrls.size()
                       : 0));
  add_steps();
  add_ops();
  add_other_kernels();
  add_launches();
  add_ranges();
  add_calls();
  if (detail == Detail::kAll) {
    add_channels();
    add_proxy();
  }
  cut_short_ = assign_lanes(slices_, tracks_);
}

void ProcessSlices::report_losses(model::Trace& run) const {
  run.lose(model::kNoRow, "export", "without_time", without_time_,
           "events left out, because their begin is unknown");
  run.lose(model::kNoRow, "export", "cut_short", cut_short_,
           "events drawn shorter, because too many overlapped");
}

void ProcessSlices::add(SliceKind kind, uint32_t row, uint32_t track, int64_t start, int64_t end) {
  if (start <= 0) {
    ++without_time_;
    return;
  }
  // A slice without an end is what somebody who looks at a hang is looking for: it must not vanish.
  if (end == 0) end = last_ns_;  // never ended: drawn to the end of the recording
  slices_.push_back({start, std::max(start, end), track, row, kind});
}

void ProcessSlices::name_pid(int64_t pid, const std::string& name, const std::string& label,
                             int64_t sort_index) {
  for (const ViewerProcess& known : viewer_processes_) {
    if (known.pid == pid) return;
  }
  viewer_processes_.push_back({pid, name, label, sort_index});
}

std::string ProcessSlices::comm_name(uint32_t comm) const {
  if (comm >= trace_.comms.size()) return "unknown comm";
  std::string_view name = trace_.strings[trace_.comms.name[comm]];
  return name.empty() ? "comm " + hex16(trace_.comms.comm_id[comm]) : std::string(name);
}

uint32_t ProcessSlices::thread_track(uint32_t thread) {
  return track({.group = kThread, .a = thread}, [&]() -> Track {
    if (thread >= trace_.threads.size()) return {host_pid(), kUnknownTid, "unknown thread"};
    int64_t tid = trace_.threads.tid[thread];
    std::string name(trace_.strings[trace_.threads.name[thread]]);
    return {host_pid(), tid, name + " (" + std::to_string(tid) + ")"};
  });
}

int32_t ProcessSlices::gpu_of_comm(uint32_t comm) const {
  const bool is_known = comm < trace_.comms.size() && trace_.comms.device[comm] >= 0;
  return is_known ? trace_.comms.gpu[comm] : trace_.processes.gpu[0];
}

// A device that no communicator names gets the next free number.
int32_t ProcessSlices::device_of(int32_t gpu) {
  if (devices_.empty()) {
    devices_.emplace(trace_.processes.gpu[0], trace_.processes.device[0]);
    for (size_t comm = 0; comm < trace_.comms.size(); ++comm) {
      if (trace_.comms.device[comm] >= 0) devices_.emplace(trace_.comms.gpu[comm], trace_.comms.device[comm]);
    }
  }
  const auto [at, is_new] = devices_.try_emplace(gpu, 0);
  if (is_new) {
    for (const auto& [other, device] : devices_) {
      // A damaged file may name any device.
      if (other != gpu) at->second = std::max(at->second, std::min(device, INT32_MAX - 1) + 1);
    }
  }
  return at->second;
}

uint32_t ProcessSlices::stream_track(int32_t gpu, uint64_t stream) {
  const TrackKey key{.group = kStream, .a = static_cast<uint32_t>(gpu), .b = stream};
  return track(key, [&] { return gpu_track(gpu, "stream " + hex(stream)); });
}

Track ProcessSlices::gpu_track(int32_t gpu, std::string name) {
  // A damaged file may name any device; its pid must not become that of channels or of another process.
  const int32_t device = std::clamp(device_of(gpu), 0, static_cast<int32_t>(kChannelPid - kGpuPid) - 1);
  int64_t pid = number_ * kPidStride + kGpuPid + device;
  const int32_t on_host =
      gpu < 0 ? -1 : model::host_device(device, trace_.strings[trace_.processes.visible_devices[0]]);
  std::string label = on_host >= 0 ? "GPU " + std::to_string(on_host) : "GPU";
  // As programs for HIP call it, besides.
  if (gpu >= 0 && model::is_amd(trace_.processes.row(0), trace_.strings))
    label += " (hip:" + std::to_string(device) + ")";
  // Ten places for each process: 0 is the host, 1 to 7 devices, 8 channels, 9 the network.
  name_pid(pid, label + " of " + who_ + on_host_, label, number_ * 10 + 1 + std::min(device, 6));
  return {pid, next_gpu_tid_++, std::move(name)};
}

Track ProcessSlices::channel_track(std::string name) {
  int64_t pid = number_ * kPidStride + kChannelPid;
  name_pid(pid, "channels of " + who_ + on_host_ + " as the host saw them", "channels", number_ * 10 + 8);
  return {pid, next_channel_tid_++, std::move(name)};
}

Track ProcessSlices::network_track(std::string name) {
  int64_t pid = number_ * kPidStride + kNetworkPid;
  name_pid(pid, "network of " + who_ + on_host_, "network", number_ * 10 + 9);
  return {pid, next_network_tid_++, std::move(name)};
}

// A step lasts until the next one begins on its thread; the last one until the last record.
void ProcessSlices::add_steps() {
  std::vector<uint32_t> last_by_thread(trace_.threads.size() + 1, model::kNoRow);
  auto slot = [&](uint32_t row) { return std::min<size_t>(trace_.marks.thread[row], trace_.threads.size()); };
  auto close = [&](uint32_t row, int64_t end) {
    add(SliceKind::kStep, row, thread_track(trace_.marks.thread[row]), trace_.marks.time_ns[row], end);
  };
  for (uint32_t row = 0; row < trace_.marks.size(); ++row) {
    // Needed even for a mark that is no step: writers list the tracks before they draw instants on them.
    thread_track(trace_.marks.thread[row]);
    if (!trace_.marks.is_step[row]) continue;
    uint32_t& last = last_by_thread[slot(row)];
    if (last != model::kNoRow) close(last, trace_.marks.time_ns[row]);
    last = row;
  }
  for (uint32_t row : last_by_thread) {
    if (row != model::kNoRow) close(row, 0);
  }
}

void ProcessSlices::add_ops() {
  const model::OpTable& ops = trace_.ops;
  for (uint32_t row = 0; row < ops.size(); ++row) {
    uint32_t comm = ops.comm[row];
    if (detail_ == Detail::kAll || ops.call[row] >= trace_.calls.size()) {
      const Interval host = host_interval(trace_, row);
      add(SliceKind::kRecordParamComms, row, thread_track(ops.thread[row]), host.start, host.end);
    }
    if (ops.gpu_start_ns[row] == 0 || ops.gpu_end_ns[row] == 0) continue;
    uint64_t stream = ops.stream[row];
    const int32_t gpu = gpu_of_comm(comm);
    const uint32_t place = stream != 0 ? stream_track(gpu, stream)
                                       : track({.group = kCommStream, .a = comm},
                                               [&] { return gpu_track(gpu, "kernels, " + comm_name(comm)); });
    add(SliceKind::kKernel, row, place, ops.gpu_start_ns[row], ops.gpu_end_ns[row]);
  }
}

// On the tracks of their streams, beside the operations.
void ProcessSlices::add_other_kernels() {
  const model::KernelTable& kernels = trace_.kernels;
  for (uint32_t row = 0; row < kernels.size(); ++row) {
    if (kernels.op[row] < trace_.ops.size()) continue;
    const int32_t gpu = kernels.gpu[row] >= 0 ? kernels.gpu[row] : trace_.processes.gpu[0];
    add(SliceKind::kOtherKernel, row, stream_track(gpu, kernels.stream[row]), kernels.start_ns[row],
        kernels.end_ns[row]);
  }
}

void ProcessSlices::add_launches() {
  const model::LaunchTable& launches = trace_.launches;
  for (uint32_t row = 0; row < launches.size(); ++row) {
    add(SliceKind::kLaunch, row, thread_track(launches.thread[row]), launches.start_ns[row],
        launches.end_ns[row]);
  }
}

// Those that are started and ended need not nest with what their thread does: they are beside it.
void ProcessSlices::add_ranges() {
  const model::RangeTable& ranges = trace_.ranges;
  for (uint32_t row = 0; row < ranges.size(); ++row) {
    const uint32_t thread = thread_track(ranges.thread[row]);
    const bool is_nested = ranges.kind[row] == static_cast<uint8_t>(model::RangeKind::kNested);
    const uint32_t place =
        is_nested ? thread : track({.group = kRangeTrack, .a = ranges.thread[row]}, [&]() -> Track {
          return {tracks_[thread].pid, next_range_tid_++, "ranges started by " + tracks_[thread].name};
        });
    add(SliceKind::kRange, row, place, ranges.start_ns[row], ranges.end_ns[row]);
  }
}

void ProcessSlices::add_calls() {
  const model::CallTable& calls = trace_.calls;
  for (uint32_t row = 0; row < calls.size(); ++row) {
    add(SliceKind::kCall, row, thread_track(calls.thread[row]), calls.start_ns[row], calls.end_ns[row]);
  }
}

void ProcessSlices::add_channels() {
  const model::ChannelTable& channels = trace_.channels;
  for (uint32_t row = 0; row < channels.size(); ++row) {
    TrackKey key{.group = kChannelTrack, .a = channels.comm[row], .c = channels.channel[row]};
    uint32_t place = track(key, [&] {
      return channel_track("channel " + std::to_string(channels.channel[row]) + ", " +
                           comm_name(channels.comm[row]));
    });
    add(SliceKind::kChannel, row, place, channels.start_seen_ns[row], channels.stop_seen_ns[row]);
  }
}

void ProcessSlices::add_proxy() {
  const model::ProxyOpTable& ops = trace_.proxy_ops;
  std::vector<uint32_t> op_track(ops.size());
  for (uint32_t row = 0; row < ops.size(); ++row) {
    TrackKey key{.group = kProxyTrack,
                 .a = ops.thread[row],
                 .c = ops.channel[row] * 2u + ops.is_send[row],
                 .b = ops.comm[row]};
    op_track[row] = track(key, [&] {
      int64_t tid = ops.thread[row] < trace_.threads.size() ? trace_.threads.tid[ops.thread[row]] : 0;
      return network_track((ops.is_send[row] ? "send " : "receive ") + std::to_string(ops.channel[row]) +
                           ", " + comm_name(ops.comm[row]) + " (thread " + std::to_string(tid) + ")");
    });
    add(SliceKind::kProxyOp, row, op_track[row], ops.start_ns[row], ops.end_ns[row]);
  }
  const model::ProxyStepTable& steps = trace_.proxy_steps;
  for (uint32_t row = 0; row < steps.size(); ++row) {
    uint32_t op = steps.proxy_op[row];
    uint32_t place = op < ops.size() ? op_track[op] : track({.group = kProxyTrack, .a = model::kNoRow}, [&] {
      return network_track("steps of unknown operations");
    });
    add(SliceKind::kProxyStep, row, place, steps.start_ns[row], steps.end_ns[row]);
  }
  const model::ProxyCtrlTable& ctrls = trace_.proxy_ctrls;
  for (uint32_t row = 0; row < ctrls.size(); ++row) {
    uint32_t place = track({.group = kProxyCtrlTrack, .a = ctrls.thread[row]},
                           [&] { return network_track("proxy thread"); });
    add(SliceKind::kProxyCtrl, row, place, ctrls.start_ns[row], ctrls.end_ns[row]);
  }
  const model::NetEventTable& events = trace_.net_events;
  for (uint32_t row = 0; row < events.size(); ++row) {
    uint32_t place =
        track({.group = kNetTrack, .a = events.thread[row]}, [&] { return network_track("network plugin"); });
    add(SliceKind::kNetEvent, row, place, events.start_ns[row], events.end_ns[row]);
  }
}

}  // namespace lockstep::exporters::common
