// SPDX-License-Identifier: Apache-2.0
// What of NVML's interface is asked, declared by us from its public documentation: the library comes with the
// driver and is loaded when `lockstep links` runs. Versioned structures carry their size and version in the
// first word.
#pragma once
#include <cstddef>
#include <cstdint>

namespace lockstep::links::nvidia::nvml {

using Return = int;  // 0 success
inline constexpr Return kSuccess = 0, kNotSupported = 3, kNoPermission = 4, kInsufficientSize = 7,
                        kTimeout = 10, kGpuIsLost = 15;
using Device = struct OpaqueDevice*;

struct PciInfo {
  char bus_id_legacy[16];
  uint32_t domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};
static_assert(sizeof(PciInfo) == 68 && offsetof(PciInfo, bus_id) == 36);

struct FieldValue {
  uint32_t field, scope;
  int64_t timestamp_us, latency_us;
  uint32_t type;  // of Value
  Return result;  // of this value alone
  union {
    double real;
    uint32_t number32;
    uint64_t number64;
    int64_t signed64;
  } value;
};
static_assert(sizeof(FieldValue) == 40 && offsetof(FieldValue, value) == 32);
enum ValueType : uint32_t { kDouble, kUnsigned32, kUnsignedLong, kUnsigned64, kSigned64, kSigned32 };
inline constexpr uint32_t kNoType = 0xFFFFFFFF;

inline constexpr uint32_t kAllLinks = 0xFFFFFFFF;  // scope: the sum over links
enum Field : uint32_t {
  kPcieReplay = 94,
  kPcieRollover = 95,
  kNvLinkCount = 91,
  kNvLinkDataTx = 138,  // KiB since the driver was loaded
  kNvLinkDataRx = 139,
  kLinkReplay = 161,  // of the link in `scope`
  kLinkRecovery = 162,
  kLinkCrc = 163,
  kLinkSpeed = 164,     // MB/s
  kPcieRecovery = 169,  // L0 to recovery; not zero on healthy devices
};

struct FabricInfo {
  uint32_t version;
  uint8_t cluster[16];
  Return status;
  uint32_t clique;
  uint8_t state;
  uint32_t health;
};
static_assert(sizeof(FabricInfo) == 36 && offsetof(FabricInfo, health) == 32);
inline constexpr uint32_t kFabricInfoVersion = sizeof(FabricInfo) | 2u << 24;

struct ProcessInfo {
  uint32_t pid;
  uint64_t used_memory;
  uint32_t gpu_instance, compute_instance;
};
static_assert(sizeof(ProcessInfo) == 24);

struct Utilization {
  uint32_t gpu, memory;  // percent
};

using EventSet = struct OpaqueEventSet*;
inline constexpr unsigned long long kXidEvent = 0x8;
struct EventData {
  Device device;
  uint64_t type, data;  // of a Xid: its number
  uint32_t gpu_instance, compute_instance;
};
static_assert(sizeof(EventData) == 32 && offsetof(EventData, data) == 16);

enum Clock : int { kGraphicsClock, kSmClock, kMemoryClock };
enum PeerCapability : int { kPeerRead, kPeerWrite, kPeerNvLink, kPeerAtomics, kPeerPci };

}  // namespace lockstep::links::nvidia::nvml
