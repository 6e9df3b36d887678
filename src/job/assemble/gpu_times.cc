// SPDX-License-Identifier: Apache-2.0
// Computes an operation's GPU times from its KernelCh events: from the first begin to the last end of its
// channels. Events with stamps of an earlier kernel are recognised by the clock's bounds and left out.
#include "job/assemble/gpu_times.h"

#include <algorithm>
#include <map>
#include <set>

#include "job/assemble/loss.h"
#include "model/event_kind.h"

namespace lockstep::job::assemble {
namespace {

using model::EventKind;
using model::GpuClock;
using model::kNoRow;
using model::Trace;

constexpr uint64_t kNoDevice = ~uint64_t{0};

// Which clock the kernels of each comm are stamped with: the device if capture knew it, else the process'
// only one. A process that is several ranks of one comm drives several devices, so there each comm stands for
// itself.
std::vector<uint64_t> devices_of_comms(const Trace& trace) {
  const model::CommTable& comms = trace.comms;
  // Several ranks of one communicator in a process: it drives several GPUs, each with a clock of its own.
  std::map<std::pair<uint32_t, uint64_t>, int32_t> ranks;
  std::set<uint32_t> several_devices;
  for (uint32_t row = 0; row < comms.size(); ++row) {
    auto [at, is_new] = ranks.try_emplace({comms.process[row], comms.comm_id[row]}, comms.rank[row]);
    if (!is_new && comms.comm_id[row] != 0 && at->second != comms.rank[row])
      several_devices.insert(comms.process[row]);
  }
  std::vector<uint64_t> devices(comms.size());
  for (uint32_t row = 0; row < comms.size(); ++row) {
    bool known = comms.device[row] >= 0 || comms.uuid[row] != 0 || comms.pci[row] != 0;
    uint32_t process = comms.process[row];
    devices[row] = known ? uint64_t{1} << 32 | static_cast<uint32_t>(comms.gpu[row])
                   : several_devices.contains(process) ? uint64_t{2} << 32 | row
                                                       : uint64_t{3} << 32 | process;
  }
  return devices;
}

}  // namespace

GpuTimes::GpuTimes(Trace& trace, const Launches& launches)
    : trace_(trace), work_(trace.tasks.size()), comm_device_(devices_of_comms(trace)) {
  observe(launches);
  fit();
}

void GpuTimes::observe(const Launches& launches) {
  const model::ChannelTable& channels = trace_.channels;
  uint64_t disordered = 0, unknown_rate = 0;
  for (size_t row = 0; row < channels.size(); ++row) {
    uint32_t task = channels.task[row];
    uint64_t start = channels.gpu_start[row], stop = channels.gpu_stop[row];
    if (task == kNoRow || start == 0 || channels.kind[row] != number(EventKind::kKernelCh)) continue;
    // AMD's ticks have a rate that these events do not give.
    if (trace_.processes.gpu_clock[channels.process[row]] != static_cast<uint8_t>(GpuClock::kNvidiaNs)) {
      ++unknown_rate;
    } else if (stop != 0 && stop < start) {
      ++disordered;
    } else {
      uint64_t device = device_of(task);
      size_t number =
          fits_[device].observe({start, stop, launches.not_before_ns(task), channels.stop_seen_ns[row]});
      observed_.push_back({task, device, number, start, stop});
    }
  }
  lose(trace_, "gpu_times_disordered", disordered, "KernelCh events that stop before they start");
  lose(trace_, "gpu_rate_unknown", unknown_rate,
       "KernelCh events whose GPU clock counts ticks of unknown rate: GPU times left out");
}

uint64_t GpuTimes::device_of(uint32_t task) const {
  uint32_t comm = trace_.tasks.comm[task];
  return comm == kNoRow ? kNoDevice : comm_device_[comm];
}

void GpuTimes::fit() {
  uint64_t fewer_channels = 0, unplaced = 0, contradictions = 0, stale = 0;
  std::set<uint64_t> one_sided;
  for (auto& [device, fit] : fits_) {
    if (!fit.fit()) one_sided.insert(device);
    contradictions += fit.contradictions();
  }
  for (const Observed& o : observed_) {
    Work& work = work_[o.task];
    // The bounds of the clock exclude this stamp: it is another kernel's, and would stretch the operation.
    if (!fits_.at(o.device).plausible(o.number)) {
      ++stale;
      continue;
    }
    work.start = work.channels == 0 ? o.start : std::min(work.start, o.start);
    work.stop = std::max(work.stop, o.stop);
    work.open |= o.stop == 0;
    ++work.channels;
  }
  for (uint32_t task = 0; task < work_.size(); ++task) {
    const Work& work = work_[task];
    if (work.channels == 0) continue;
    fewer_channels += !work.open && work.channels < trace_.tasks.channels[task];
    unplaced += one_sided.contains(device_of(task));
  }
  lose(trace_, "gpu_stamps_stale", stale,
       "KernelCh events with the stamps of another kernel (before their launch, or after they were seen): "
       "left out");
  lose(trace_, "fewer_channels", fewer_channels,
       "operations with fewer usable KernelCh events than channels: GPU times come from those that exist");
  lose(trace_, "gpu_clock_unbounded", unplaced,
       "operations whose GPU clock cannot be placed: launches or kernel ends were not recorded");
  lose(trace_, "gpu_clock_contradiction", contradictions,
       "clock bounds contradict: GPU times with a wider uncertainty (gpu_error_ns)");
}

GpuTimes::Times GpuTimes::of_task(uint32_t task) const {
  const Work& work = work_[task];
  if (work.channels == 0) return {};
  const GpuClockFit& fit = fits_.at(device_of(task));
  auto start = fit.to_host(work.start);
  if (!start) return {};
  Times times{start->ns, 0, start->error_ns};
  // A channel that has no end may still run: the operation has a begin and no end.
  if (work.open) return times;
  if (auto end = fit.to_host(work.stop)) {
    times.end_ns = end->ns;
    times.error_ns = std::max(times.error_ns, end->error_ns);
  }
  return times;
}

}  // namespace lockstep::job::assemble
