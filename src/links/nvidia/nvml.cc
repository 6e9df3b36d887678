// SPDX-License-Identifier: Apache-2.0
// Asks NVML for what /sys does not say of GPUs and their NVLinks. The library is loaded by name and each
// function looked up by itself: drivers of different years have different ones, and one that is missing
// leaves out its fact alone.
#include "links/nvidia/nvml.h"

#include <algorithm>
#include <cstring>

#include "links/nvidia/nvml_library.h"

namespace lockstep::links::nvidia {
namespace {
using namespace nvml;

constexpr unsigned kMostProcesses = 65'536;

// Asks about one GPU and keeps what could not be answered.
class Questions {
 public:
  Questions(const Library& library, Device device, Gpu& gpu)
      : library_(library), device_(device), gpu_(gpu) {}

  template <class... Arguments>
  bool ask(const char* name, Arguments... arguments) {
    const Return result = library_.call(name, device_, arguments...);
    if (result == kSuccess) return true;
    // Kept by name, so that a fact that is missing can be explained later, also from a record.
    gpu_.unanswered.push_back(std::string(name) + ": " + library_.error(result));
    return false;
  }
  template <class Value, class Answer, class... Arguments>
  void ask_for(Value& value, Answer answer, const char* name, Arguments... arguments) {
    if (ask(name, arguments..., &answer)) value = answer;
  }
  std::string text(const char* name) {
    char buffer[96] = {};
    return ask(name, static_cast<char*>(buffer), static_cast<unsigned>(sizeof buffer))
               ? std::string(buffer, strnlen(buffer, sizeof buffer))
               : std::string();
  }

  void identity() {
    gpu_.vendor = "nvidia";
    gpu_.name = text("nvmlDeviceGetName");
    gpu_.uuid = text("nvmlDeviceGetUUID");
    PciInfo pci{};
    if (ask("nvmlDeviceGetPciInfo_v3", &pci)) gpu_.pci = address(pci);
    unsigned mode = 0, pending = 0;
    // Parts without MIG answer that they do not support it: no question stays open.
    if (library_.call("nvmlDeviceGetMigMode", device_, &mode, &pending) == kSuccess) gpu_.is_mig = mode == 1;
  }

  void state() {
    ask_for(gpu_.pcie_generation, 0u, "nvmlDeviceGetCurrPcieLinkGeneration");
    ask_for(gpu_.pcie_width, 0u, "nvmlDeviceGetCurrPcieLinkWidth");
    ask_for(gpu_.most_pcie_generation, 0u, "nvmlDeviceGetMaxPcieLinkGeneration");
    ask_for(gpu_.most_pcie_width, 0u, "nvmlDeviceGetMaxPcieLinkWidth");
    unsigned long long reasons = 0;
    if (ask("nvmlDeviceGetCurrentClocksThrottleReasons", &reasons)) gpu_.throttle_reasons = reasons;
    ask_for(gpu_.sm_clock_mhz, 0u, "nvmlDeviceGetClockInfo", static_cast<int>(kSmClock));
    ask_for(gpu_.memory_clock_mhz, 0u, "nvmlDeviceGetClockInfo", static_cast<int>(kMemoryClock));
    ask_for(gpu_.most_sm_clock_mhz, 0u, "nvmlDeviceGetMaxClockInfo", static_cast<int>(kSmClock));
    ask_for(gpu_.temperature_celsius, 0u, "nvmlDeviceGetTemperature", 0);
    ask_for(gpu_.power_milliwatts, 0u, "nvmlDeviceGetPowerUsage");
    ask_for(gpu_.power_limit_milliwatts, 0u, "nvmlDeviceGetEnforcedPowerLimit");
    Utilization use{};
    if (ask("nvmlDeviceGetUtilizationRates", &use)) gpu_.utilization_percent = use.gpu;
    unsigned long long errors = 0;
    // NVML's numbers: 1 is uncorrected, 0 corrected; the second 1 means over the GPU's life.
    if (ask("nvmlDeviceGetTotalEccErrors", 1, 1, &errors)) gpu_.uncorrected_ecc = errors;
    if (ask("nvmlDeviceGetTotalEccErrors", 0, 1, &errors)) gpu_.corrected_ecc = errors;
    unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0;
    if (ask("nvmlDeviceGetRemappedRows", &corrected, &uncorrected, &pending, &failed)) {
      gpu_.remapped_rows = uint64_t{corrected} + uncorrected;
      gpu_.remap_pending = pending;
      gpu_.remap_failed = failed;
    }
    processes();
  }

  void links() {
    unsigned count = 0;
    for (unsigned link = 0; link < kMostLinks; ++link) {
      unsigned active = 0;
      const Return result = library_.call("nvmlDeviceGetNvLinkState", device_, link, &active);
      if (result == kNotSupported || result == 2) break;  // 2, invalid argument: there are no more
      count = link + 1;
      GpuLink& entry = gpu_.links.emplace_back();
      entry.number = link;
      // Another error leaves it unknown, but the link exists and is counted.
      if (result == kSuccess) entry.is_up = active == 1;
      PciInfo remote{};
      if (library_.call("nvmlDeviceGetNvLinkRemotePciInfo_v2", device_, link, &remote) == kSuccess)
        entry.remote_pci = address(remote);
    }
    // All of one call: the first field of a link costs as much as all.
    std::vector<FieldValue> values;
    for (unsigned link = 0; link < count; ++link)
      for (const Field field : {kLinkReplay, kLinkRecovery, kLinkCrc, kLinkSpeed})
        values.push_back(question(field, link));
    if (values.empty() || !read(values)) return;
    for (unsigned link = 0; link < count; ++link) {
      const FieldValue* const of_link = &values[size_t{link} * 4];
      constexpr const char* kNames[] = {"replay", "recovery", "crc"};
      for (size_t i = 0; i < 3; ++i)
        if (const auto value = number(of_link[i])) gpu_.links[link].errors[kNames[i]] = *value;
      if (const auto speed = number(of_link[3]); speed && *speed > 0)
        gpu_.link_rate = static_cast<double>(*speed) / 1000;
    }
  }

  void counters() {
    std::vector<FieldValue> values = {question(kPcieReplay, 0), question(kPcieRecovery, 0),
                                      question(kNvLinkDataTx, kAllLinks), question(kNvLinkDataRx, kAllLinks)};
    if (!read(values)) return;
    if (const auto value = number(values[0])) gpu_.counters["pcie_replay"] = *value;
    if (const auto value = number(values[1])) gpu_.counters["pcie_recovery"] = *value;
    // NVML counts KiB.
    if (const auto value = number(values[2])) gpu_.counters["nvlink_tx_bytes"] = *value * 1024;
    if (const auto value = number(values[3])) gpu_.counters["nvlink_rx_bytes"] = *value * 1024;
  }

  void fabric() {
    FabricInfo info{};
    // The library fills in what this version has, and refuses a structure without one.
    info.version = kFabricInfoVersion;
    if (!library_.has("nvmlDeviceGetGpuFabricInfoV") || !ask("nvmlDeviceGetGpuFabricInfoV", &info)) return;
    gpu_.fabric_state = info.state;
    gpu_.fabric_status = static_cast<uint32_t>(info.status);
    gpu_.fabric_health = info.health;
    gpu_.fabric_clique = info.clique;
    constexpr char digits[] = "0123456789abcdef";
    for (const uint8_t byte : info.cluster) {
      gpu_.fabric_cluster += digits[byte >> 4];
      gpu_.fabric_cluster += digits[byte & 15];
    }
  }

 private:
  bool read(std::vector<FieldValue>& values) {
    return ask("nvmlDeviceGetFieldValues", static_cast<int>(values.size()), values.data());
  }
  void processes() {
    std::vector<ProcessInfo> found(64);
    auto count = static_cast<unsigned>(found.size());
    Return result = library_.call("nvmlDeviceGetComputeRunningProcesses_v3", device_, &count, found.data());
    if (result == kInsufficientSize) {
      // Nothing is filled in, but how many there are; some more may have come meanwhile.
      found.resize(std::min(count + 64, kMostProcesses));
      count = static_cast<unsigned>(found.size());
      result = library_.call("nvmlDeviceGetComputeRunningProcesses_v3", device_, &count, found.data());
    }
    if (result != kSuccess) {
      gpu_.unanswered.push_back("nvmlDeviceGetComputeRunningProcesses_v3: " + library_.error(result));
      return;
    }
    for (unsigned i = 0; i < std::min(count, static_cast<unsigned>(found.size())); ++i)
      gpu_.processes.push_back(found[i].pid);
  }

  const Library& library_;
  const Device device_;
  Gpu& gpu_;
};

void peers(const Library& library, const std::vector<Device>& devices, std::vector<Gpu>& gpus) {
  for (size_t i = 0; i < gpus.size(); ++i)
    for (size_t j = 0; j < gpus.size(); ++j) {
      int status = 0;
      // A GPU that does not answer has no handle, and NVML must not be asked with a null one.
      if (i != j && devices[i] != nullptr && devices[j] != nullptr &&
          library.call("nvmlDeviceGetP2PStatus", devices[i], devices[j], static_cast<int>(kPeerWrite),
                       &status) == kSuccess)
        gpus[i].peer_status[gpus[j].pci] = status;
    }
}

}  // namespace

GpuFacts facts() {
  GpuFacts facts;
  auto loaded = SharedLibrary::load("LOCKSTEP_NVML", "libnvidia-ml.so.1");
  if (!loaded) {
    facts.absent = loaded.error().message();
    return facts;
  }
  // From here on every answer may be missing: the library may be of any year.
  const Library library(*loaded);
  if (const Return result = library.call("nvmlInit_v2"); result != kSuccess) {
    facts.absent = "NVML does not start: " + library.error(result);
    return facts;
  }
  char version[96] = {};
  if (library.call("nvmlSystemGetDriverVersion", static_cast<char*>(version),
                   static_cast<unsigned>(sizeof version)) == kSuccess)
    facts.driver.assign(version, strnlen(version, sizeof version));
  facts.library = "NVML";
  unsigned count = 0;
  // A failure leaves 0: no GPUs, with a library that answers.
  library.call("nvmlDeviceGetCount_v2", &count);
  std::vector<Device> devices;
  for (unsigned i = 0; i < std::min(count, kMostGpus); ++i) {
    Gpu& gpu = facts.gpus.emplace_back();
    gpu.index = i;
    Device device = nullptr;
    const Return result = library.call("nvmlDeviceGetHandleByIndex_v2", i, &device);
    // Also one without a handle, so that places are the same in both lists.
    devices.push_back(device);
    if (result != kSuccess) {
      gpu.vendor = "nvidia";
      gpu.unanswered.push_back("nvmlDeviceGetHandleByIndex_v2: " + library.error(result));
      continue;
    }
    Questions questions(library, device, gpu);
    questions.identity();
    questions.state();
    questions.links();
    questions.counters();
    questions.fabric();
  }
  peers(library, devices, facts.gpus);
  library.call("nvmlShutdown");
  return facts;
}

}  // namespace lockstep::links::nvidia
