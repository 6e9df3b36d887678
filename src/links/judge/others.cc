// SPDX-License-Identifier: Apache-2.0
// NVLink's counters of data are exact for copies, so what they rose by beyond our own is somebody else's. A
// container hides the processes of others, but not these counters.
#include "links/judge/others.h"

#include <algorithm>

#include "base/text/units.h"
#include "links/counters.h"

namespace lockstep::links {
namespace {

// Chasing pointers and copies by kernels move some more than their data.
constexpr double kOwnShare = 1.05;
constexpr double kLittle = 256e6;

// Bytes beyond our own; 0 for less than what our own may be off by.
double beyond(const Increases& rose, const std::string& pci, const std::string& counter,
              const std::map<std::string, uint64_t>& own) {
  const auto moved = rose.find({DeviceKind::kGpu, pci, counter});
  const auto ours = own.find(pci);
  if (moved == rose.end() || moved->second.was_reset || ours == own.end()) return 0;
  const auto all = static_cast<double>(moved->second.amount), us = static_cast<double>(ours->second);
  return all > us * kOwnShare + kLittle ? all - us : 0;
}

}  // namespace

OthersUse used_by_others(const LinksRecord& record) {
  OthersUse others;
  for (const Gpu& gpu : record.before.gpus.gpus) {
    if (!gpu.processes.empty())
      others[gpu.pci] = "is in use by pid " + std::to_string(gpu.processes[0]);
    else if (is_at_work(gpu))
      others[gpu.pci] = "is busy (" + std::to_string(*gpu.utilization_percent) + " %)";
  }
  if (!record.after || !record.traffic) return others;
  const Increases rose = increases(counters_of(machine_of(record.before.files, record.before.gpus)),
                                   counters_of(machine_of(record.after->files, record.after->gpus)));
  for (const Gpu& gpu : record.before.gpus.gpus) {
    const double sent = beyond(rose, gpu.pci, "nvlink_tx_bytes", record.traffic->sent);
    const double received = beyond(rose, gpu.pci, "nvlink_rx_bytes", record.traffic->received);
    if (sent == 0 && received == 0) continue;
    std::string& text = others[gpu.pci];
    text += (text.empty() ? "" : ", and ") + std::string(sent >= received ? "sent " : "received ") +
            format_decimal(std::max(sent, received) / 1e9, 1) + " GB of others over NVLink";
  }
  return others;
}

}  // namespace lockstep::links
