// SPDX-License-Identifier: Apache-2.0
#include "model/names/who.h"

#include <charconv>

#include "base/utf8.h"
#include "model/event_kind.h"

namespace lockstep::model {

std::string Who::label() const {
  if (rank >= 0) return "rank " + std::to_string(rank);
  if (pid > 0) return "pid " + std::to_string(pid);
  return device >= 0 ? "GPU " + std::to_string(device) : "a process";
}

std::string Who::name() const {
  // Names of hosts come from files and are made fit for a terminal.
  return rank >= 0 || host.empty() ? label() : label() + " on " + shown_name(host);
}

std::string Who::gpu() const {
  if (device >= 0) return "GPU " + std::to_string(device);
  if (!pci.empty()) return "GPU " + shown_name(pci);
  return local_rank >= 0 ? "local rank " + std::to_string(local_rank) : "";
}

std::string Who::text() const {
  std::string place = gpu();
  if (rank >= 0 && !host.empty()) place += (place.empty() ? "" : " of ") + shown_name(host);
  if (rank >= 0 && pid > 0) place += (place.empty() ? "" : ", ") + ("pid " + std::to_string(pid));
  return place.empty() ? name() : name() + " (" + place + ")";
}

Who who(const Process& process, const StringPool& strings) {
  return {.rank = process.rank,
          .local_rank = process.local_rank,
          .device = host_device(process.device, strings[process.visible_devices]),
          .pid = process.pid,
          .host = std::string(strings[process.host]),
          .pci = std::string(strings[process.pci]),
          .boot_id = std::string(strings[process.boot_id]),
          .gone = process.closed != 0,
          .is_amd = is_amd(process, strings)};
}

bool is_amd(const Process& process, const StringPool& strings) {
  if (process.gpu_clock != static_cast<uint8_t>(GpuClock::kUnknown))
    return process.gpu_clock == static_cast<uint8_t>(GpuClock::kAmdTicks);
  const std::string_view model = strings[process.gpu_model];
  // 1002 is the PCI vendor id of AMD; a tool that knows no product has the architecture.
  return model.find("AMD") != model.npos || model.starts_with("PCI 1002:") || model.starts_with("gfx");
}

int32_t host_device(int32_t ordinal, std::string_view visible) {
  // CUDA and HIP renumber from 0 what is listed: the ordinal is a place in that list. A UUID in
  // that place names the device without a number.
  if (ordinal < 0 || visible.empty()) return ordinal;
  for (int32_t at = 0;; ++at) {
    const size_t comma = visible.find(',');
    const std::string_view word = visible.substr(0, comma);
    if (at == ordinal) {
      int32_t device = -1;
      const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), device);
      return error == std::errc() && end == word.data() + word.size() && device >= 0 ? device : -1;
    }
    if (comma == std::string_view::npos) return -1;
    visible.remove_prefix(comma + 1);
  }
}

}  // namespace lockstep::model
