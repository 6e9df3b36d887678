// SPDX-License-Identifier: Apache-2.0
// Between devices: whether GPUs may access each other, and whether bridges send peers' traffic up to the root
// complex. Redirection matters between a GPU and the network card next to it; of each pair below one switch
// the worst is reported once.
#include <algorithm>
#include <cstdio>
#include <set>

#include "base/text/wording.h"
#include "links/judge/judge.h"
#include "links/judge/words.h"

namespace lockstep::links {
namespace {
using analysis::Finding;
using analysis::FindingId;
using analysis::Severity;

std::string_view peer_trouble(int status) {
  switch (status) {
    case 1:
      return "the chipset does not support it";
    case 2:
      return "one of the GPUs does not support it";
    case 3:
      return "their I/O hubs do not forward it";
    case 4:
      return "a setting of the driver switches it off";
    case 5:
      return "it is not supported";
    default:
      return "the driver does not say why";
  }
}

void judge_peers(const Machine& machine, std::vector<Finding>& findings) {
  // By reason, so that many pairs with one cause are one finding.
  std::map<int, std::vector<std::string>> pairs;
  for (const Gpu& gpu : machine.gpus)
    for (const auto& [pci, status] : gpu.peer_status)
      // Each pair once, as the first of its two GPUs reports it.
      if (status != 0 && gpu.pci < pci)
        pairs[status].push_back(place_words(machine, gpu.pci) + " and " + place_words(machine, pci));
  for (const auto& [status, names] : pairs) {
    Finding& finding =
        add(findings, FindingId::kFallbackP2p,
            wording::count(names.size(), "pair") +
                " of GPUs cannot access each other's memory: " + std::string(peer_trouble(status)),
            machine.host.name,
            status == 4 ? "Look for NVreg_RegistryDwords in /etc/modprobe.d."
                        : "Check the topology: `nvidia-smi topo -p2p w`.");
    for (size_t i = 0; i < names.size() && i < 8; ++i) finding.evidence.push_back(names[i]);
  }
}

void judge_redirection(const Machine& machine, std::vector<Finding>& findings) {
  // A bridge is above many pairs: named once.
  std::set<std::string> bridges, perhaps;
  size_t pairs = 0;
  std::string example;
  for (const Gpu& gpu : machine.gpus) {
    const auto check = [&](const std::string& pci) {
      const RedirectedPath path = redirected(machine, gpu.pci, pci);
      if (path.redirect == Redirect::kYes) {
        ++pairs;
        bridges.insert(path.bridges.begin(), path.bridges.end());
        if (example.empty()) example = device_words(machine, gpu.pci) + " and " + device_words(machine, pci);
      } else if (path.redirect == Redirect::kPerhaps) {
        perhaps.insert(path.bridges.begin(), path.bridges.end());
      }
    };
    for (const Nic& nic : machine.nics)
      if (!nic.pci.empty()) check(nic.pci);
    for (const Gpu& other : machine.gpus)
      if (gpu.pci < other.pci) check(other.pci);
  }
  if (pairs > 0) {
    const bool is_virtual = machine.host.is_virtual;
    Finding& finding = add(
        findings, FindingId::kFallbackAcs,
        "ACS sends what " + wording::count(pairs, "pair") +
            " of devices send each other through the root complex, " + example + " among them",
        machine.host.name,
        is_virtual
            ? "In a virtual machine ACS stays on: use cards and GPUs with ATS."
            : "Boot without redirection (IOMMU off or iommu=pt, ACS off in the BIOS). Until the next boot, as root: " +
                  ("`setpci -s " + *bridges.begin() + " ECAP_ACS+0x6.w=0000`."));
    // A guest cannot change what keeps guests apart.
    if (is_virtual) finding.severity = Severity::kNote;
    for (const std::string& bridge : bridges) {
      char control[16];
      std::snprintf(control, sizeof control, "0x%04x", machine.pci.at(bridge).acs.control);
      finding.evidence.push_back(bridge + ": ACS control " + control);
    }
  } else if (!perhaps.empty()) {
    add(findings, FindingId::kFallbackAcs,
        "ACS of " + wording::count(perhaps.size(), "bridge") +
            " may send peers' traffic through the root complex",
        machine.host.name, "Compare the traffic of these pairs with others.")
        .severity = Severity::kNote;
  }
}

}  // namespace

void judge_paths(const Machine& machine, std::vector<Finding>& findings) {
  judge_peers(machine, findings);
  judge_redirection(machine, findings);
}

void judge_settings(const Machine& machine, std::vector<Finding>& findings) {
  const HostSettings& host = machine.host;
  const bool has_cards = !machine.nics.empty();
  if (host.iommu == Iommu::kTranslates && has_cards && !machine.gpus.empty() && !host.is_virtual)
    add(findings, FindingId::kFallbackIommu,
        "the IOMMU translates every device access: GPUs and network cards reach each other through it",
        host.name, "Boot with iommu=pt.");
  const bool has_nvidia = std::any_of(machine.gpus.begin(), machine.gpus.end(),
                                      [](const Gpu& gpu) { return gpu.vendor == "nvidia"; });
  if (has_cards && has_nvidia && !host.has_peer_memory)
    add(findings, FindingId::kFallbackPeerMemory,
        "nvidia_peermem is not loaded: GPUDirect RDMA works only if driver and kernel do DMA-BUF", host.name,
        "Run `modprobe nvidia_peermem`, or check NCCL's log for 'GDR'.");
  constexpr uint64_t kLeastLocked = uint64_t{1} << 30;
  if (has_cards && host.locked_memory_bytes && *host.locked_memory_bytes < kLeastLocked)
    add(findings, FindingId::kMisconfiguredMemlock,
        "processes may lock " + wording::bytes(*host.locked_memory_bytes) + " of memory; RDMA registers more",
        host.name, "Set `ulimit -l unlimited`, and for containers `--ulimit memlock=-1`.")
        .severity = Severity::kWarning;
  // Docker gives containers 64 MiB, which NCCL's documentation calls too little.
  constexpr uint64_t kLeastShared = uint64_t{512} << 20;
  if (machine.gpus.size() > 1 && host.shared_memory_bytes && *host.shared_memory_bytes < kLeastShared)
    add(findings, FindingId::kMisconfiguredSharedMemory,
        "/dev/shm has " + wording::bytes(*host.shared_memory_bytes) + "; NCCL's shared buffers may not fit",
        host.name, "Start the container with --shm-size=1g or more, or --ipc=host.")
        .severity = Severity::kWarning;
  if (host.governor == "powersave" && has_cards)
    add(findings, FindingId::kMisconfiguredGovernor, "the CPUs' frequency governor is 'powersave'", host.name,
        "Run `cpupower frequency-set -g performance`.");
}

void judge_visibility(const Machine& machine, const GpuFacts& gpus, std::vector<Finding>& findings) {
  const auto missing = [&](std::string what, std::string how) -> Finding& {
    Finding& finding =
        add(findings, FindingId::kEvidenceMissingLinks, std::move(what), machine.host.name, "");
    finding.needed_evidence = std::move(how);
    return finding;
  };
  if (machine.gpus.empty() && !gpus.absent.empty())
    missing("GPUs cannot be queried: " + wording::name(gpus.absent, 160),
            "the vendor's driver and its management library")
        .severity = Severity::kWarning;
  bool unknown = false, hidden = false, has_bridge = false;
  for (const Gpu& gpu : machine.gpus)
    for (const Nic& nic : machine.nics) {
      const Redirect redirect = redirected(machine, gpu.pci, nic.pci).redirect;
      // Of GPUs and cards alone: what other devices send each other is nothing to NCCL.
      unknown |= redirect == Redirect::kUnknown;
      hidden |= redirect == Redirect::kHidden;
      has_bridge |= redirect != Redirect::kCrossesRoot;
    }
  if (hidden)
    missing(
        "the hypervisor hides the bridges' ACS, so Lockstep cannot see whether peers' traffic is redirected",
        "the same check on the host itself");
  else if (unknown && has_bridge)
    missing("the bridges' ACS can be read only as root", "the same as root");
  if (machine.nics.empty())
    missing("no network card with RDMA is visible here",
            "a container that sees /sys/class/infiniband, if the host has such cards");
  if (machine.cut) missing("the host has more devices than are read", "");
  size_t unreadable = 0;
  for (const Gpu& gpu : machine.gpus) unreadable += gpu.pci.empty() ? 1 : 0;
  if (unreadable > 0)
    missing(wording::count(unreadable, "GPU") + " does not answer at all",
            "dmesg: look for Xid 79 (fell off the bus)");
}

}  // namespace lockstep::links
