// SPDX-License-Identifier: Apache-2.0
// NVML without a driver: healthy GPUs, but for what the file says that LOCKSTEP_FAKE_NVML names, which each
// nvmlInit_v2 and each wait for events reads anew. A line each; GPU and LINK are numbers, or -1 for all:
//
//   gpus COUNT                          4 unless said
//   links COUNT                         of each GPU; 18 unless said
//   down GPU LINK
//   fail FUNCTION GPU CODE              what that function returns (of functions without a device, GPU is -1)
//   answer FUNCTION GPU VALUE           of functions with one number as their answer
//   field NUMBER GPU SCOPE VALUE        of nvmlDeviceGetFieldValues, as 64 bits; 0 unless said
//   field_type NUMBER GPU SCOPE TYPE
//   field_fail NUMBER GPU SCOPE CODE
//   xid GPU NUMBER                      an event, reported once
//   text FUNCTION GPU WORD              "full": all of the caller's buffer, without an end
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "links/nvidia/nvml_abi.h"

namespace {

using namespace lockstep::links::nvidia::nvml;

constexpr Return kInvalidArgument = 2;
constexpr uint32_t kMostNumbered = 4096;  // devices that can be told apart

struct Script {
  uint32_t gpus = 4, links = 18;
  std::map<std::pair<std::string, int>, long long> fail, answer;
  std::map<std::pair<std::string, int>, std::string> text;
  std::map<std::tuple<uint32_t, int, int>, long long> field, field_type, field_fail;
  std::map<std::pair<int, int>, bool> down;
  std::vector<std::pair<int, uint64_t>> xids;
};
Script script;
size_t reported_xids = 0;

void read_script() {
  script = {};
  const char* const path = std::getenv("LOCKSTEP_FAKE_NVML");
  std::ifstream file(path == nullptr ? "" : path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string key, name;
    long long a = 0, b = 0, c = 0, d = 0;
    words >> key;
    if (key == "gpus" && words >> a) script.gpus = static_cast<uint32_t>(a);
    if (key == "links" && words >> a) script.links = static_cast<uint32_t>(a);
    if (key == "down" && words >> a >> b) script.down[{static_cast<int>(a), static_cast<int>(b)}] = true;
    if (key == "fail" && words >> name >> a >> b) script.fail[{name, static_cast<int>(a)}] = b;
    if (key == "answer" && words >> name >> a >> b) script.answer[{name, static_cast<int>(a)}] = b;
    if (key == "xid" && words >> a >> b)
      script.xids.emplace_back(static_cast<int>(a), static_cast<uint64_t>(b));
    if (key == "text" && words >> name >> a) words >> script.text[{name, static_cast<int>(a)}];
    if (key.starts_with("field") && words >> a >> b >> c >> d) {
      auto& fields = key == "field_type"   ? script.field_type
                     : key == "field_fail" ? script.field_fail
                                           : script.field;
      fields[{static_cast<uint32_t>(a), static_cast<int>(b), static_cast<int>(c)}] = d;
    }
  }
}

// Handles are numbers from 1 on.
int number_of(Device device) { return static_cast<int>(reinterpret_cast<uintptr_t>(device)) - 1; }

template <class Map, class Key>
auto found(const Map& map, Key key, Key of_all) -> std::optional<typename Map::mapped_type> {
  auto at = map.find(key);
  if (at == map.end()) at = map.find(of_all);
  return at == map.end() ? std::nullopt : std::optional(at->second);
}
Return result_of(const char* function, int gpu) {
  using Key = std::pair<std::string, int>;
  return static_cast<Return>(found(script.fail, Key(function, gpu), Key(function, -1)).value_or(kSuccess));
}
long long answer_of(const char* function, int gpu, long long usual) {
  using Key = std::pair<std::string, int>;
  return found(script.answer, Key(function, gpu), Key(function, -1)).value_or(usual);
}

template <class Value>
Return answer(const char* function, Device device, Value* value, long long usual) {
  *value = static_cast<Value>(answer_of(function, number_of(device), usual));
  return result_of(function, number_of(device));
}

Return put_text(const char* function, int gpu, char* buffer, unsigned size, const std::string& usual) {
  using Key = std::pair<std::string, int>;
  const std::string text = found(script.text, Key(function, gpu), Key(function, -1)).value_or(usual);
  if (text == "full")
    std::memset(buffer, 'x', size);
  else
    std::snprintf(buffer, size, "%s", text.c_str());
  return result_of(function, gpu);
}

void put_address(PciInfo& pci, int bus) {
  std::snprintf(pci.bus_id, sizeof pci.bus_id, "00000000:%02X:00.0", static_cast<unsigned>(bus) & 0xFFu);
}

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED Return nvmlInit_v2() {
  read_script();
  reported_xids = 0;
  return result_of("nvmlInit_v2", -1);
}
EXPORTED Return nvmlShutdown() { return kSuccess; }
EXPORTED const char* nvmlErrorString(Return result) {
  return result == kNotSupported ? "Not Supported" : result == kGpuIsLost ? "GPU is lost" : "Unknown Error";
}
EXPORTED Return nvmlSystemGetDriverVersion(char* text, unsigned size) {
  return put_text("nvmlSystemGetDriverVersion", -1, text, size, "570.86.10");
}
EXPORTED Return nvmlDeviceGetCount_v2(unsigned* count) {
  *count = script.gpus;
  return result_of("nvmlDeviceGetCount_v2", -1);
}
EXPORTED Return nvmlDeviceGetHandleByIndex_v2(unsigned index, Device* device) {
  if (index >= std::min(script.gpus, kMostNumbered)) return kInvalidArgument;
  *device = reinterpret_cast<Device>(uintptr_t{index} + 1);
  return result_of("nvmlDeviceGetHandleByIndex_v2", static_cast<int>(index));
}
EXPORTED Return nvmlDeviceGetName(Device device, char* text, unsigned size) {
  return put_text("nvmlDeviceGetName", number_of(device), text, size, "NVIDIA H100 80GB HBM3");
}
EXPORTED Return nvmlDeviceGetUUID(Device device, char* text, unsigned size) {
  return put_text("nvmlDeviceGetUUID", number_of(device), text, size,
                  "GPU-00000000-0000-0000-0000-" + std::to_string(100'000'000'000 + number_of(device)));
}
EXPORTED Return nvmlDeviceGetPciInfo_v3(Device device, PciInfo* pci) {
  put_address(*pci, 0x1b + number_of(device));
  return result_of("nvmlDeviceGetPciInfo_v3", number_of(device));
}
EXPORTED Return nvmlDeviceGetMigMode(Device device, unsigned* mode, unsigned* pending) {
  *pending = 0;
  return answer("nvmlDeviceGetMigMode", device, mode, 0);
}

#define ONE_NUMBER(function, usual) \
  EXPORTED Return function(Device device, unsigned* value) { return answer(#function, device, value, usual); }
ONE_NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, 5)
ONE_NUMBER(nvmlDeviceGetCurrPcieLinkWidth, 16)
ONE_NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, 5)
ONE_NUMBER(nvmlDeviceGetMaxPcieLinkWidth, 16)
ONE_NUMBER(nvmlDeviceGetPowerUsage, 120'000)
ONE_NUMBER(nvmlDeviceGetEnforcedPowerLimit, 700'000)

EXPORTED Return nvmlDeviceGetCurrentClocksThrottleReasons(Device device, unsigned long long* reasons) {
  return answer("nvmlDeviceGetCurrentClocksThrottleReasons", device, reasons, 0);
}
EXPORTED Return nvmlDeviceGetClockInfo(Device device, int, unsigned* clock) {
  return answer("nvmlDeviceGetClockInfo", device, clock, 1980);
}
EXPORTED Return nvmlDeviceGetMaxClockInfo(Device device, int, unsigned* clock) {
  return answer("nvmlDeviceGetMaxClockInfo", device, clock, 1980);
}
EXPORTED Return nvmlDeviceGetTemperature(Device device, int, unsigned* degrees) {
  return answer("nvmlDeviceGetTemperature", device, degrees, 35);
}
EXPORTED Return nvmlDeviceGetUtilizationRates(Device device, Utilization* use) {
  use->memory = 0;
  return answer("nvmlDeviceGetUtilizationRates", device, &use->gpu, 0);
}
EXPORTED Return nvmlDeviceGetTotalEccErrors(Device device, int, int, unsigned long long* errors) {
  return answer("nvmlDeviceGetTotalEccErrors", device, errors, 0);
}
EXPORTED Return nvmlDeviceGetRemappedRows(Device device, unsigned* corrected, unsigned* uncorrected,
                                          unsigned* pending, unsigned* failed) {
  *corrected = *uncorrected = *pending = 0;
  return answer("nvmlDeviceGetRemappedRows", device, failed, 0);
}
EXPORTED Return nvmlDeviceGetComputeRunningProcesses_v3(Device device, unsigned* count,
                                                        ProcessInfo* processes) {
  const unsigned room = *count;
  const Return result = answer("nvmlDeviceGetComputeRunningProcesses_v3", device, count, 0);
  // Where they do not fit, the library says how many there are and nothing else.
  if (result == kSuccess && *count > room) return kInsufficientSize;
  for (unsigned i = 0; i < std::min(*count, room); ++i) processes[i] = {1000 + i, 0, 0, 0};
  return result;
}

EXPORTED Return nvmlDeviceGetNvLinkState(Device device, unsigned link, unsigned* active) {
  using Key = std::pair<int, int>;
  if (link >= script.links) return kInvalidArgument;
  *active =
      found(script.down, Key(number_of(device), static_cast<int>(link)), Key(-1, static_cast<int>(link)))
              .has_value()
          ? 0
          : 1;
  return result_of("nvmlDeviceGetNvLinkState", number_of(device));
}
EXPORTED Return nvmlDeviceGetNvLinkRemotePciInfo_v2(Device device, unsigned, PciInfo* remote) {
  put_address(*remote, 0xc1);  // a switch
  return result_of("nvmlDeviceGetNvLinkRemotePciInfo_v2", number_of(device));
}

EXPORTED Return nvmlDeviceGetFieldValues(Device device, int count, FieldValue* values) {
  const int gpu = number_of(device);
  for (int i = 0; i < count; ++i) {
    FieldValue& value = values[i];
    // As NVML 580 does: of links it answers no field that seems to have failed beforehand.
    const bool is_of_links = value.field >= kNvLinkDataTx && value.field <= kLinkSpeed;
    if (is_of_links && value.result != kSuccess) {
      value.result = kNotSupported;
      value.type = kDouble;
      continue;
    }
    using Key = std::tuple<uint32_t, int, int>;
    const Key own(value.field, gpu, static_cast<int>(value.scope)), all(value.field, -1, -1);
    value.value.number64 =
        static_cast<uint64_t>(found(script.field, own, all).value_or(value.field == kLinkSpeed ? 26'562 : 0));
    value.type = static_cast<uint32_t>(found(script.field_type, own, all).value_or(kUnsigned64));
    value.result = static_cast<Return>(found(script.field_fail, own, all).value_or(kSuccess));
  }
  return result_of("nvmlDeviceGetFieldValues", gpu);
}

EXPORTED Return nvmlDeviceGetGpuFabricInfoV(Device device, FabricInfo* info) {
  std::memset(info->cluster, 0, sizeof info->cluster);
  info->status = 0;
  info->clique = 0;
  info->health = 0;
  return answer("nvmlDeviceGetGpuFabricInfoV", device, &info->state, 3);
}
EXPORTED Return nvmlEventSetCreate(EventSet* set) {
  *set = reinterpret_cast<EventSet>(uintptr_t{1});
  return result_of("nvmlEventSetCreate", -1);
}
EXPORTED Return nvmlEventSetFree(EventSet) { return kSuccess; }
EXPORTED Return nvmlDeviceRegisterEvents(Device device, unsigned long long, EventSet) {
  return result_of("nvmlDeviceRegisterEvents", number_of(device));
}
EXPORTED Return nvmlEventSetWait_v2(EventSet, EventData* event, unsigned) {
  read_script();
  if (reported_xids >= script.xids.size()) return kTimeout;
  const auto& [gpu, number] = script.xids[reported_xids++];
  *event = {reinterpret_cast<Device>(static_cast<uintptr_t>(gpu) + 1), kXidEvent, number, 0, 0};
  return result_of("nvmlEventSetWait_v2", -1);
}
EXPORTED Return nvmlDeviceGetP2PStatus(Device device, Device, int, int* status) {
  return answer("nvmlDeviceGetP2PStatus", device, status, 0);
}
