// SPDX-License-Identifier: Apache-2.0
// A host as its links see it: GPUs, network cards and their ports, the PCI tree between them, and the
// settings that decide how they reach each other. Plain data; what is not known is absent, never zero.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "links/gpu_facts.h"
#include "links/host_files.h"

namespace lockstep::links {

// Of one end of a PCI link.
struct PciLink {
  std::optional<double> gigatransfers;  // a lane and second
  std::optional<uint32_t> width;        // lanes
  // Bytes a second and direction that the line code leaves, in GB/s; nothing if either is unknown.
  std::optional<double> rate() const;
};

// Access Control Services of a bridge: what it does with what its devices send each other.
struct Acs {
  enum class State : uint8_t {
    kUnknown,  // its configuration space could not be read (that takes root)
    kHidden,   // a hypervisor leaves capabilities out: nothing can be said
    kAbsent,
    kPresent,
  };
  State state = State::kUnknown;
  uint16_t capability = 0, control = 0;
  static constexpr uint16_t kRequestRedirect = 0x04, kCompletionRedirect = 0x08, kUpstreamForwarding = 0x10,
                            kEgressControl = 0x20;
};

struct PciDevice {
  std::string address;  // 0000:1b:00.0
  uint32_t kind = 0;    // class code, 24 bits
  uint16_t vendor = 0, device = 0;
  std::optional<int> numa_node;      // absent where the host does not say
  PciLink now, most;                 // its own end
  std::vector<std::string> bridges;  // from the root port down to the parent; empty on a root bus
  std::string root;                  // "pci0000:17"
  std::map<std::string, uint64_t>
      errors;  // AER totals: "correctable", "nonfatal", "fatal"; empty: not counted here
  Acs acs;     // of bridges
};

struct Port {
  uint32_t number = 1;
  std::string state, physical_state, link_layer, speed_name;  // "ACTIVE", "LinkUp", "InfiniBand", "4X NDR"
  std::optional<double> gigabits;                             // a second
  std::map<std::string, uint64_t> counters, hw_counters;      // raw, as the files have them
};

// A network interface of the kernel. `state` is its operstate; `megabits` a second, as its driver says.
struct NetDevice {
  std::string name, state;  // "up"
  std::optional<uint64_t> mtu, carrier_changes, megabits;
  std::map<std::string, uint64_t> statistics;
};

// A card that carries RDMA, by its name there ("mlx5_0"), or a Slingshot card ("cxi0").
struct Nic {
  std::string name, pci, firmware, type, board;
  bool is_efa = false, is_slingshot = false;
  std::vector<Port> ports;
  std::vector<NetDevice> net;
  std::map<std::string, uint64_t> device_counters;
};

// kPassThrough: on, and devices reach memory without translation.
enum class Iommu : uint8_t { kUnknown, kOff, kPassThrough, kTranslates };

struct HostSettings {
  std::string name, boot_id, kernel, driver;
  bool is_virtual = false;
  Iommu iommu = Iommu::kUnknown;
  bool has_peer_memory = false;  // nvidia_peermem or one of its forerunners is loaded
  std::optional<uint64_t> shared_memory_bytes, locked_memory_bytes,
      huge_pages;  // locked: UINT64_MAX without a limit
  std::string governor;
};

struct Machine {
  HostSettings host;
  std::map<std::string, PciDevice> pci;  // by address
  std::vector<Nic> nics;                 // by name
  std::vector<Gpu> gpus;                 // by the number that the driver gives
  bool cut = false;                      // more is there than was read
};

// Never fails: what the files do not say is absent. AMD's GPUs are read from the files where `gpus` has none.
Machine machine_of(const HostFiles& files, const GpuFacts& gpus);

// Errors that a device's aer_dev_* file counts. Names differ between kernels; where it has a total, that or
// their sum, whichever is more.
uint64_t error_total(std::string_view text);

// Of a file of amdgpu ("ue: 0", "ce: 3", a line each): errors that could not be corrected, or those that
// were.
std::optional<uint64_t> ras_errors(std::string_view text, bool corrected);

// How near two devices are, as NCCL and nvidia-smi name it.
enum class Path : uint8_t { kUnknown, kSwitch, kSwitches, kHostBridge, kRootComplex, kSystem };
std::string_view path_text(Path path);  // "PIX", "PXB", "PHB", "NODE", "SYS"
// By PCI address. kUnknown where the tree does not hold both, or their nodes are not known.
Path path_between(const Machine& machine, const std::string& a, const std::string& b);

// What becomes of traffic between two devices that have switches in common.
// In the order in which one bridge outweighs the others of a path: what redirects decides, what is unknown
// leaves open only what the others do not settle.
enum class Redirect : uint8_t { kNo, kHidden, kUnknown, kPerhaps, kYes, kCrossesRoot };
struct RedirectedPath {
  Redirect redirect = Redirect::kUnknown;
  std::vector<std::string> bridges;  // that redirect, or may
};
// By PCI address; kUnknown where the tree does not hold both.
RedirectedPath redirected(const Machine& machine, const std::string& a, const std::string& b);

}  // namespace lockstep::links
