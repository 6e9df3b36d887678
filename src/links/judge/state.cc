// SPDX-License-Identifier: Apache-2.0
// What a link's own state says, without any traffic. A lower PCIe speed is judged of network cards, and of
// GPUs only while they work: idle GPUs train down to save power. A lower width is never that.
#include <algorithm>
#include <map>

#include "base/text/units.h"
#include "base/text/wording.h"
#include "links/judge/judge.h"
#include "links/judge/state_rules.h"
#include "links/judge/words.h"

namespace lockstep::links {
namespace {
using analysis::Finding;
using analysis::FindingId;
using analysis::Severity;

std::string name_of(const PciDevice& device, const Machine& machine) {
  return device_words(machine, device.address);
}

class States {
 public:
  States(const Machine& machine, bool under_load, std::vector<Finding>& findings)
      : machine_(machine), under_load_(under_load), findings_(findings) {}

  void run() {
    for (const Gpu& gpu : machine_.gpus) {
      // The GPU's speed is judged only under load, the width always (see above).
      pci_link(gpu.pci, under_load_);
      gpu_links(gpu);
      fabric(gpu);
      health(gpu);
    }
    for (const Nic& nic : machine_.nics) {
      pci_link(nic.pci, true);
      for (const Port& port : nic.ports) port_state(nic, port);
      if (!nic.ports.empty()) net_state(nic);
    }
    siblings();
  }

 private:
  Finding& add_finding(FindingId id, std::string statement, std::string advice) {
    return add(findings_, id, std::move(statement), machine_.host.name, std::move(advice));
  }

  // Against what both ends can: the device's own, and that of the port above it.
  void pci_link(const std::string& pci, bool judges_speed) {
    const auto found = machine_.pci.find(pci);
    if (found == machine_.pci.end()) return;
    const PciDevice& device = found->second;
    PciLink most = device.most;
    const auto port = device.bridges.empty() ? machine_.pci.end() : machine_.pci.find(device.bridges.back());
    const PciDevice* const above = port == machine_.pci.end() ? nullptr : &port->second;
    if (above != nullptr) {
      const PciLink& other = above->most;
      // A card that can do more than its slot is not degraded.
      if (most.width && other.width) most.width = std::min(*most.width, *other.width);
      if (most.gigatransfers && other.gigatransfers)
        most.gigatransfers = std::min(*most.gigatransfers, *other.gigatransfers);
    }
    const bool narrow =
        device.now.width && most.width && *device.now.width > 0 && *device.now.width < *most.width;
    const bool slow = judges_speed && device.now.gigatransfers && most.gigatransfers &&
                      *device.now.gigatransfers < *most.gigatransfers;
    if (!narrow && !slow) return;
    std::string statement = name_of(device, machine_) + " has a PCIe link of ";
    // In a virtual machine a device may stand alone.
    const std::string can = above != nullptr ? " where both ends can do " : " where it can do ";
    if (narrow) statement += std::to_string(*device.now.width) + " lanes" + can + std::to_string(*most.width);
    if (slow)
      statement += (narrow ? std::string(", at ") : std::string()) +
                   format_decimal(*device.now.gigatransfers, 1) + " GT/s" + can +
                   format_decimal(*most.gigatransfers, 1);
    Finding& finding = add_finding(FindingId::kSlowLinkPcie, std::move(statement),
                                   "Reseat the card; check the riser and the slot's setting in the BIOS.");
    finding.evidence.push_back(device.address + " runs at " + link_words(device.now) + ", and can do " +
                               link_words(device.most));
    if (above != nullptr)
      finding.evidence.push_back("the port above it, " + above->address + ", can do " +
                                 link_words(above->most));
  }

  void gpu_links(const Gpu& gpu) {
    const size_t down = down_links(gpu), least = unconnected_links(machine_);
    if (down <= least) return;
    std::string list;
    for (const GpuLink& link : gpu.links)
      if (link.is_up == false) list += (list.empty() ? "" : ", ") + std::to_string(link.number);
    add_finding(FindingId::kSlowLinkNvlinkDown,
                device_words(machine_, gpu.pci) + " has " + wording::count(down, "link") + " of " +
                    std::to_string(gpu.links.size()) + " down (" + list + "); its siblings have " +
                    std::to_string(least),
                "Reset the GPU; if the links stay down, drain the host: `nvidia-smi nvlink -s -i " +
                    std::to_string(gpu.index) + "`.");
  }

  void fabric(const Gpu& gpu) {
    if (!gpu.fabric_state || *gpu.fabric_state == 0) return;  // no NVLink domain here
    const std::string who = device_words(machine_, gpu.pci);
    // States and fields of nvmlGpuFabricInfo: state 3 is completed. The first fields of the health mask have
    // two bits each: 1 is true, 2 is false.
    constexpr const char* kAdvice =
        "Restart nvidia-fabricmanager; its version must be the driver's: `systemctl status "
        "nvidia-fabricmanager`.";
    if (*gpu.fabric_state != 3) {
      add_finding(FindingId::kMisconfiguredFabric,
                  who + " has not joined the NVLink fabric: its registration is " +
                      (*gpu.fabric_state == 1 ? "not started" : "in progress"),
                  kAdvice);
    } else if (gpu.fabric_status.value_or(0) != 0) {
      add_finding(FindingId::kMisconfiguredFabric,
                  who + " could not join the NVLink fabric: status " + std::to_string(*gpu.fabric_status),
                  kAdvice);
    }
    const uint32_t health = gpu.fabric_health.value_or(0);
    std::string bad;
    const auto field = [&](uint32_t shift, const char* words) {
      if ((health >> shift & 3) == 1) bad += (bad.empty() ? "" : ", ") + std::string(words);
    };
    field(0, "degraded bandwidth");
    field(2, "routes are being recovered");
    field(4, "a route is unhealthy");
    field(6, "a time-out is being recovered");
    if ((health >> 8 & 15) >= 2) bad += (bad.empty() ? "" : ", ") + std::string("wrong configuration");
    if ((health >> 12 & 3) == 2) bad += (bad.empty() ? "" : ", ") + std::string("no partition");
    if (!bad.empty())
      add_finding(FindingId::kSlowLinkNvlinkFabric, who + ": the NVLink fabric reports " + bad,
                  "Check the fabric manager's log, and dmesg for SXid lines.");
  }

  void health(const Gpu& gpu) {
    const std::string who = device_words(machine_, gpu.pci);
    if (const std::string reasons = throttle_words(gpu.throttle_reasons.value_or(0)); !reasons.empty())
      add_finding(FindingId::kGpuLateThrottled, who + " is slowed down: " + reasons,
                  "Check cooling and power of this host: `nvidia-smi -q -d PERFORMANCE -i " +
                      std::to_string(gpu.index) + "`.")
          .evidence.push_back(
              "clocks, temperature and power at that time: " +
              (gpu.sm_clock_mhz ? std::to_string(*gpu.sm_clock_mhz) + " MHz, " : std::string()) +
              (gpu.temperature_celsius ? std::to_string(*gpu.temperature_celsius) + " C" : std::string()));
    if (gpu.remap_failed.value_or(0) > 0)
      add_finding(FindingId::kGpuLateMemory, who + " has memory that could not be remapped",
                  "Replace the GPU.");
    else if (gpu.remap_pending.value_or(0) > 0)
      add_finding(FindingId::kGpuLateMemory, who + " has memory that is remapped at the next reset",
                  "Reset the GPU when the job has ended.")
          .severity = Severity::kWarning;
    else if (gpu.uncorrected_ecc.value_or(0) > 0)
      add_finding(FindingId::kGpuLateMemory,
                  who + " has had " + wording::count(*gpu.uncorrected_ecc, "memory error") +
                      " that could not be corrected",
                  "Watch it; one more is a reason to replace the GPU.")
          .severity = Severity::kNote;
  }

  void port_state(const Nic& nic, const Port& port) {
    const std::string who = nic.name + (nic.ports.size() > 1 ? " port " + std::to_string(port.number) : "");
    if (const auto inactive = inactive_words(nic, port)) {
      // A port without a cable on a host whose other ports work is somebody's choice as often as a fault.
      const bool others = std::any_of(machine_.nics.begin(), machine_.nics.end(), [&](const Nic& other) {
        return other.type == nic.type && std::any_of(other.ports.begin(), other.ports.end(),
                                                     [](const Port& p) { return p.state == "ACTIVE"; });
      });
      const char* advice = port.state == "INIT"
                               ? "Start the subnet manager, or find out why it leaves this port out."
                           : port.physical_state == "Polling"  ? "Check the cable: no signal arrives."
                           : port.physical_state == "Disabled" ? "Enable the port, if you want to use it."
                                                               : "Check the cable and the switch's port.";
      Finding& finding = add_finding(FindingId::kSlowNicPort, who + " " + *inactive, advice);
      // No port of its type works: what is left, if anything, is a network of another kind.
      if (!others) finding.severity = Severity::kCritical;
    } else if (const auto slow = slow_words(machine_, nic, port)) {
      add_finding(FindingId::kSlowNicRate, who + " " + *slow, kSlowRateAdvice)
          .evidence.push_back(nic.name + " port " + std::to_string(port.number) + ": rate " +
                              port.speed_name);
    }
  }

  void net_state(const Nic& nic) {
    for (const NetDevice& net : nic.net)
      if (net.state == "down" || net.state == "lowerlayerdown")
        add_finding(FindingId::kSlowNicPort, nic.name + ": its interface " + net.name + " is down",
                    "Check the cable and the switch's port.");
  }

  // Cards of one type should agree.
  void siblings() {
    std::map<std::string, std::vector<const Nic*>> types;
    for (const Nic& nic : machine_.nics)
      if (!nic.type.empty()) types[nic.type].push_back(&nic);
    for (const auto& [type, nics] : types) {
      // The only card of its type has nothing to be compared with.
      if (nics.size() < 2) continue;
      differing_firmware(nics);
    }
  }

  void differing_firmware(const std::vector<const Nic*>& nics) {
    std::map<std::string, std::vector<std::string>> versions;
    for (const Nic* const nic : nics)
      if (!nic->firmware.empty()) versions[nic->firmware].push_back(nic->name);
    if (versions.size() < 2) return;
    Finding& finding = add_finding(
        FindingId::kMisconfiguredNicFirmware,
        "network cards of one type have " + wording::count(versions.size(), "version") + " of firmware",
        "Update them to one version.");
    for (const auto& [version, names] : versions) {
      std::string line = version + ":";
      for (const std::string& name : names) line += " " + name;
      finding.evidence.push_back(std::move(line));
    }
  }

  const Machine& machine_;
  const bool under_load_;
  std::vector<Finding>& findings_;
};

}  // namespace

void judge_state(const Machine& machine, bool under_load, std::vector<Finding>& findings) {
  States(machine, under_load, findings).run();
}

}  // namespace lockstep::links
