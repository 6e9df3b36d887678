// SPDX-License-Identifier: Apache-2.0
// What a vendor's library says of the GPUs of a host: plain data, with an answer for each question that could
// not be answered. Filled by links/nvidia or links/amd, or from an archive.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::links {

// One NVLink, NVSwitch or xGMI connection of a GPU.
struct GpuLink {
  uint32_t number = 0;
  std::optional<bool> is_up;
  std::string remote_pci;                  // of the other end; empty: unknown
  std::map<std::string, uint64_t> errors;  // "replay", "recovery", "crc"; absent: not counted by this device
};

struct Gpu {
  uint32_t index = 0;  // as the driver's library numbers them
  std::string vendor;  // "nvidia", "amd"
  std::string name, uuid, pci;
  // As the link is trained now, and the most that GPU and slot can do together; widths in lanes.
  std::optional<uint32_t> pcie_generation, pcie_width, most_pcie_generation, most_pcie_width;
  std::vector<GpuLink> links;
  std::optional<double> link_rate;  // GB/s a link and direction, nominal
  // NVLink domain: 0 not supported, 1 not started, 2 in progress, 3 completed; with its status and health
  // bits.
  std::optional<uint32_t> fabric_state, fabric_status, fabric_health;
  std::string fabric_cluster;
  std::optional<uint32_t> fabric_clique;
  std::optional<uint64_t> throttle_reasons;  // bits of nvmlClocksThrottleReasons
  std::optional<uint32_t> sm_clock_mhz, memory_clock_mhz, most_sm_clock_mhz, temperature_celsius,
      power_milliwatts, power_limit_milliwatts, utilization_percent;
  // Errors over the GPU's life; rows of its memory that were replaced by spare ones.
  std::optional<uint64_t> uncorrected_ecc, corrected_ecc, remapped_rows, remap_failed, remap_pending;
  std::map<std::string, uint64_t>
      counters;                     // "pcie_replay", "pcie_recovery", "nvlink_tx_bytes", "nvlink_rx_bytes"
  std::vector<uint32_t> processes;  // pids that compute on it
  std::map<std::string, int>
      peer_status;  // by the other's PCI address: 0 is fine; else why peers may not access it
  // It is split into instances, of which each is a GPU to programs.
  bool is_mig = false;
  std::vector<std::string> unanswered;  // questions that failed, with the library's own word for why
};

// Not only by the list of processes: in a container NVML may list none of others, and their load still shows.
inline bool is_at_work(const Gpu& gpu) {
  return !gpu.processes.empty() || gpu.utilization_percent.value_or(0) >= 5;
}

struct GpuFacts {
  std::string library;  // what answered, with its version; empty: none did
  std::string absent;   // why not
  // Its version, as the library says it.
  std::string driver;
  std::vector<Gpu> gpus;
};

}  // namespace lockstep::links
