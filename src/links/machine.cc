// SPDX-License-Identifier: Apache-2.0
// Draws the picture of a host from the copy of its files alone, so that a recorded host is judged exactly as
// a live one. What a file does not say stays absent: a default would look like a measurement.
#include "links/machine.h"

#include <algorithm>
#include <charconv>

#include "base/ascii.h"

namespace lockstep::links {
namespace {

constexpr std::string_view kFileBlanks = " \t\n";

template <class Number>
std::optional<Number> leading_number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

std::string text_or(const HostFiles& files, const std::string& path) {
  const std::string* const found = files.text(path);
  return found == nullptr ? std::string() : std::string(trimmed(*found, kFileBlanks)).substr(0, 256);
}

// "0000:1b:00.0"; behind Intel's VMD a domain has eight digits.
bool is_address(std::string_view text) {
  std::string_view shape = "xxxxxxxx:xx:xx.x";
  if (text.size() == 12) shape.remove_prefix(4);
  return std::equal(text.begin(), text.end(), shape.begin(), shape.end(), [](char c, char expected) {
    return expected == 'x' ? (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') : c == expected;
  });
}

// Where configuration space holds the control of peer traffic (PCI Express base specification, extended
// capability 0xD).
Acs acs_of(const HostFiles& files, const std::string& device) {
  const HostFile* const file = files.find(device + "/config");
  if (file == nullptr || file->kind != HostFile::Kind::kText) return {};
  const auto byte = [&](size_t at) -> uint32_t {
    const size_t digit = at * 2;
    if (digit + 2 > file->text.size()) return 0;
    uint32_t value = 0;
    std::from_chars(file->text.data() + digit, file->text.data() + digit + 2, value, 16);
    return value;
  };
  const auto word = [&](size_t at) { return byte(at) | byte(at + 1) << 8; };
  // Without rights, or in some virtual machines, only the first 64 or 256 bytes are given.
  if (file->text.size() <= 512) return {};
  bool is_masked = false;
  // Extended capabilities begin behind the first 256 bytes. Each names the offset of the next in its upper
  // bits.
  size_t at = 0x100;
  // A damaged chain may lead in a circle. 96 steps are more than a real one has.
  for (int step = 0; step < 96 && at >= 0x100 && at <= 0xFFC; ++step) {
    const uint32_t head = word(at) | word(at + 2) << 16;
    // What a device that is gone or asleep answers.
    if (head == 0xFFFFFFFF) return {};
    const uint32_t id = head & 0xFFFF, next = head >> 20 & 0xFFC;
    if (id == 0x000D)
      return {Acs::State::kPresent, static_cast<uint16_t>(word(at + 4)), static_cast<uint16_t>(word(at + 6))};
    // A hypervisor takes a capability away by making its id zero and leaving the chain as it is.
    if (id == 0 && next != 0) is_masked = true;
    if (next == 0) break;
    at = next;
  }
  return {is_masked ? Acs::State::kHidden : Acs::State::kAbsent, 0, 0};
}

void read_pci(const HostFiles& files, Machine& machine) {
  const std::string folder = "/sys/bus/pci/devices";
  for (const std::string& name : files.children(folder)) {
    if (!is_address(name)) continue;
    const std::string path = folder + "/" + name;
    PciDevice device;
    device.address = name;
    device.kind = static_cast<uint32_t>(files.number(path + "/class").value_or(0));
    device.vendor = static_cast<uint16_t>(files.number(path + "/vendor").value_or(0));
    device.device = static_cast<uint16_t>(files.number(path + "/device").value_or(0));
    // -1 is the kernel's word for "not known".
    if (const auto node = leading_number<int>(text_or(files, path + "/numa_node")); node && *node >= 0)
      device.numa_node = node;
    device.now = {leading_number<double>(text_or(files, path + "/current_link_speed")),
                  leading_number<uint32_t>(text_or(files, path + "/current_link_width"))};
    device.most = {leading_number<double>(text_or(files, path + "/max_link_speed")),
                   leading_number<uint32_t>(text_or(files, path + "/max_link_width"))};
    for (const char* const kind : {"correctable", "nonfatal", "fatal"})
      if (const std::string* const text = files.text(path + "/aer_dev_" + kind))
        device.errors[kind] = error_total(*text);
    if (const HostFile* const link = files.find(path);
        link != nullptr && link->kind == HostFile::Kind::kLink) {
      std::string_view rest = link->text;
      while (!rest.empty()) {
        const std::string_view part = rest.substr(0, rest.find('/'));
        if (part.starts_with("pci") && part.find(':') != std::string_view::npos) device.root = part;
        // From the root down, as the path of the link goes: each address on the way is a bridge.
        if (is_address(part) && part != name) device.bridges.emplace_back(part);
        rest.remove_prefix(std::min(rest.size(), part.size() + 1));
      }
    }
    if ((device.kind >> 8) == 0x0604) device.acs = acs_of(files, path);
    machine.pci.emplace(name, std::move(device));
  }
}

std::string device_address(const HostFiles& files, const std::string& link_path) {
  const HostFile* const link = files.find(link_path);
  if (link == nullptr || link->kind != HostFile::Kind::kLink) return {};
  std::string_view rest = link->text;
  // The innermost address: some drivers put a folder of their own below the device.
  while (!rest.empty()) {
    const size_t slash = rest.rfind('/');
    const std::string_view part = slash == std::string_view::npos ? rest : rest.substr(slash + 1);
    if (is_address(part)) return std::string(part);
    rest = slash == std::string_view::npos ? std::string_view() : rest.substr(0, slash);
  }
  return {};
}

std::map<std::string, uint64_t> numbers_in(const HostFiles& files, const std::string& folder) {
  std::map<std::string, uint64_t> numbers;
  for (const std::string& name : files.children(folder)) {
    if (name == "lifespan") continue;  // how long the driver keeps a reading: no counter
    const std::string* const text = files.text(folder + "/" + name);
    // Slingshot writes "value@time".
    if (const auto value =
            text == nullptr ? std::nullopt : leading_number<uint64_t>(trimmed(*text, kFileBlanks)))
      numbers[name] = *value;
  }
  return numbers;
}

// "4: ACTIVE"
std::string word_behind_number(const std::string& text) {
  const size_t colon = text.find(": ");
  return colon == std::string::npos ? text : text.substr(colon + 2);
}

NetDevice net_device(const HostFiles& files, const std::string& name) {
  const std::string path = "/sys/class/net/" + name;
  return {.name = name,
          .state = text_or(files, path + "/operstate"),
          .mtu = files.number(path + "/mtu"),
          .carrier_changes = files.number(path + "/carrier_changes"),
          .megabits = files.number(path + "/speed"),
          .statistics = numbers_in(files, path + "/statistics")};
}

void read_ports(const HostFiles& files, const std::string& path, Nic& nic) {
  for (const std::string& number : files.children(path + "/ports")) {
    const std::string port_path = path + "/ports/" + number;
    Port port;
    port.number = leading_number<uint32_t>(number).value_or(1);
    port.state = word_behind_number(text_or(files, port_path + "/state"));
    port.physical_state = word_behind_number(text_or(files, port_path + "/phys_state"));
    port.link_layer = text_or(files, port_path + "/link_layer");
    // "400 Gb/sec (4X NDR)"
    const std::string rate = text_or(files, port_path + "/rate");
    port.gigabits = leading_number<double>(rate);
    if (const size_t open = rate.find('('), close = rate.find(')'); open != std::string::npos && close > open)
      port.speed_name = rate.substr(open + 1, close - open - 1);
    port.counters = numbers_in(files, port_path + "/counters");
    port.hw_counters = numbers_in(files, port_path + "/hw_counters");
    nic.ports.push_back(std::move(port));
  }
}

void read_nics(const HostFiles& files, Machine& machine) {
  for (const std::string& name : files.children("/sys/class/infiniband")) {
    const std::string path = "/sys/class/infiniband/" + name;
    Nic nic;
    nic.name = name;
    nic.pci = device_address(files, path + "/device");
    nic.firmware = text_or(files, path + "/fw_ver");
    nic.type = text_or(files, path + "/hca_type");
    nic.board = text_or(files, path + "/board_id");
    nic.device_counters = numbers_in(files, path + "/hw_counters");
    const auto pci = machine.pci.find(nic.pci);
    // Amazon's number.
    nic.is_efa = pci != machine.pci.end() && pci->second.vendor == 0x1d0f;
    read_ports(files, path, nic);
    for (const std::string& net : files.children(path + "/device/net"))
      nic.net.push_back(net_device(files, net));
    machine.nics.push_back(std::move(nic));
  }
  for (const std::string& name : files.children("/sys/class/cxi")) {
    const std::string path = "/sys/class/cxi/" + name;
    Nic nic;
    nic.name = name;
    nic.is_slingshot = true;
    nic.pci = device_address(files, path + "/device");
    nic.device_counters = numbers_in(files, path + "/device/telemetry");
    machine.nics.push_back(std::move(nic));
  }
}

Iommu iommu_of(const HostFiles& files) {
  bool translates = false, passes = false;
  for (const std::string& group : files.children("/sys/kernel/iommu_groups")) {
    const std::string type = text_or(files, "/sys/kernel/iommu_groups/" + group + "/type");
    // "DMA" and "DMA-FQ". One such group is enough to slow its devices down.
    translates |= type.starts_with("DMA");
    passes |= type == "identity";
  }
  if (translates) return Iommu::kTranslates;
  if (passes) return Iommu::kPassThrough;
  if (files.has_below("/sys/class/iommu")) {
    const std::string* const command = files.text("/proc/cmdline");
    return command != nullptr && command->find("iommu=pt") != std::string::npos ? Iommu::kPassThrough
                                                                                : Iommu::kUnknown;
  }
  // No IOMMU among the host's devices means that there is none only if those devices can be seen.
  return files.has_below("/sys/bus/pci/devices") ? Iommu::kOff : Iommu::kUnknown;
}

// "Max locked memory         unlimited            unlimited            bytes"
std::optional<uint64_t> locked_memory(const HostFiles& files) {
  const std::string* const limits = files.text("/proc/self/limits");
  const size_t at = limits == nullptr ? std::string::npos : limits->find("Max locked memory");
  if (at == std::string::npos) return std::nullopt;
  const std::string_view rest =
      trimmed(std::string_view(*limits).substr(at + sizeof "Max locked memory" - 1), kFileBlanks);
  if (rest.starts_with("unlimited")) return UINT64_MAX;
  return leading_number<uint64_t>(rest);
}

void read_settings(const HostFiles& files, HostSettings& host) {
  host.name = text_or(files, "/proc/sys/kernel/hostname");
  host.boot_id = text_or(files, "/proc/sys/kernel/random/boot_id");
  host.kernel = text_or(files, "/proc/sys/kernel/osrelease");
  host.driver = text_or(files, "/sys/module/nvidia/version");
  const std::string* const cpu = files.text("/proc/cpuinfo");
  // A flag that the CPU shows to guests alone.
  host.is_virtual = cpu != nullptr && cpu->find(" hypervisor") != std::string::npos;
  host.iommu = iommu_of(files);
  for (const char* const module : {"nvidia_peermem", "nv_peer_mem", "ib_peer_mem"})
    host.has_peer_memory |= files.find(std::string("/sys/module/") + module) != nullptr;
  host.shared_memory_bytes = files.number("/dev/shm.bytes");
  host.locked_memory_bytes = locked_memory(files);
  if (const std::string* const memory = files.text("/proc/meminfo")) {
    const size_t at = memory->find("HugePages_Total:");
    if (at != std::string::npos)
      host.huge_pages =
          leading_number<uint64_t>(trimmed(std::string_view(*memory).substr(at + 16), kFileBlanks));
  }
  host.governor = text_or(files, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
}

const PciDevice* device_at(const Machine& machine, const std::string& address) {
  const auto found = machine.pci.find(address);
  return found == machine.pci.end() ? nullptr : &found->second;
}

// Paths begin at the root, so what they share is a common beginning.
size_t common_bridges(const PciDevice& a, const PciDevice& b) {
  size_t common = 0;
  while (common < a.bridges.size() && common < b.bridges.size() && a.bridges[common] == b.bridges[common])
    ++common;
  return common;
}

}  // namespace

std::optional<double> PciLink::rate() const {
  if (!gigatransfers || !width) return std::nullopt;
  // 8b/10b up to generation 2, 128b/130b to 5, and from 6 on 236 of 256 bytes.
  const double code = *gigatransfers < 8 ? 0.8 : *gigatransfers < 64 ? 128.0 / 130 : 236.0 / 256;
  return *gigatransfers * *width / 8 * code;
}

uint64_t error_total(std::string_view text) {
  // "RxErr 0\n... TOTAL_ERR_COR 3": names differ between kernels, the number is behind the last blank.
  uint64_t sum = 0, total = 0;
  bool has_total = false;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view line = trimmed(rest.substr(0, rest.find('\n')), kFileBlanks);
    rest.remove_prefix(
        std::min(rest.size(), rest.find('\n') == std::string_view::npos ? rest.size() : rest.find('\n') + 1));
    const size_t blank = line.rfind(' ');
    if (blank == std::string_view::npos) continue;
    const auto value = leading_number<uint64_t>(line.substr(blank + 1));
    if (!value) continue;
    if (line.starts_with("TOTAL_")) {
      total = *value;
      has_total = true;
    } else {
      sum += *value;
    }
  }
  return has_total ? std::max(total, sum) : sum;
}

std::optional<uint64_t> ras_errors(std::string_view text, bool corrected) {
  const std::string_view key = corrected ? "ce: " : "ue: ";
  const size_t at = text.find(key);
  return at == text.npos ? std::nullopt : leading_number<uint64_t>(text.substr(at + key.size()));
}

namespace {

void read_ras(const HostFiles& files, const std::string& path, const std::string& of, Gpu& gpu) {
  const std::string* const text = files.text(path);
  if (text == nullptr) return;
  for (const auto& [corrected, name] : {std::pair(false, "_uncorrected"), std::pair(true, "_corrected")})
    if (const auto count = ras_errors(*text, corrected)) gpu.counters[of + name] = *count;
}

// Of AMD's GPUs the kernel's own files have all that is asked here; without their driver there are none.
void read_amd_gpus(const HostFiles& files, Machine& machine) {
  for (const std::string& name : files.children("/sys/class/drm")) {
    const std::string device = "/sys/class/drm/" + name + "/device";
    const HostFile* const link = files.find(device);
    if (link == nullptr || link->kind != HostFile::Kind::kLink) continue;
    Gpu gpu;
    gpu.pci = link->text.substr(link->text.rfind('/') + 1);
    if (!is_address(gpu.pci) || files.number(device + "/vendor") != 0x1002) continue;
    gpu.vendor = "amd";
    gpu.name = "AMD GPU";
    gpu.uuid = text_or(files, device + "/unique_id");
    if (const auto count = files.number(device + "/pcie_replay_count")) gpu.counters["pcie_replay"] = *count;
    read_ras(files, device + "/ras/xgmi_wafl_err_count", "xgmi", gpu);
    read_ras(files, device + "/ras/pcie_bif_err_count", "pcie", gpu);
    gpu.utilization_percent = files.number(device + "/gpu_busy_percent");
    machine.gpus.push_back(std::move(gpu));
  }
  // By address, as the driver and ROCm number them; names of cards are in the order of their discovery.
  const auto is_amd = [](const Gpu& gpu) { return gpu.vendor == "amd"; };
  const auto first = std::find_if(machine.gpus.begin(), machine.gpus.end(), is_amd);
  std::sort(first, machine.gpus.end(), [](const Gpu& a, const Gpu& b) { return a.pci < b.pci; });
  for (auto gpu = first; gpu != machine.gpus.end(); ++gpu) gpu->index = static_cast<uint32_t>(gpu - first);
}

}  // namespace

Machine machine_of(const HostFiles& files, const GpuFacts& gpus) {
  Machine machine;
  machine.cut = files.cut();
  read_settings(files, machine.host);
  if (!gpus.driver.empty()) machine.host.driver = gpus.driver;
  read_pci(files, machine);
  read_nics(files, machine);
  machine.gpus = gpus.gpus;
  // An archive may hold them already.
  if (std::none_of(machine.gpus.begin(), machine.gpus.end(),
                   [](const Gpu& gpu) { return gpu.vendor == "amd"; }))
    read_amd_gpus(files, machine);
  return machine;
}

std::string_view path_text(Path path) {
  switch (path) {
    case Path::kUnknown:
      return "?";
    case Path::kSwitch:
      return "PIX";
    case Path::kSwitches:
      return "PXB";
    case Path::kHostBridge:
      return "PHB";
    case Path::kRootComplex:
      return "NODE";
    case Path::kSystem:
      return "SYS";
  }
  return "?";
}

Path path_between(const Machine& machine, const std::string& a, const std::string& b) {
  const PciDevice* const first = device_at(machine, a);
  const PciDevice* const second = device_at(machine, b);
  if (first == nullptr || second == nullptr || first->root.empty() || second->root.empty())
    return Path::kUnknown;
  // One root complex: the switches that both are below decide.
  if (first->root == second->root) {
    const size_t common = common_bridges(*first, *second);
    if (common == 0) return Path::kHostBridge;
    // A root port is a bridge, too, but two devices cannot share it without a switch below it. Beyond the
    // shared bridge each side goes through one port of that switch.
    const size_t beyond = std::max(first->bridges.size(), second->bridges.size()) - common;
    return beyond <= 1 ? Path::kSwitch : Path::kSwitches;
  }
  if (first->numa_node && second->numa_node)
    return *first->numa_node == *second->numa_node ? Path::kRootComplex : Path::kSystem;
  return Path::kUnknown;
}

RedirectedPath redirected(const Machine& machine, const std::string& a, const std::string& b) {
  const PciDevice* const first = device_at(machine, a);
  const PciDevice* const second = device_at(machine, b);
  if (first == nullptr || second == nullptr) return {};
  const size_t common = first->root == second->root ? common_bridges(*first, *second) : 0;
  // Nothing below the root complex connects them, so nothing there can redirect.
  if (common == 0) return {Redirect::kCrossesRoot, {}};
  RedirectedPath path{Redirect::kNo, {}};
  for (const PciDevice* const side : {first, second}) {
    // Only ports below the shared bridge turn traffic around; those above never see it.
    for (size_t i = common; i < side->bridges.size(); ++i) {
      const PciDevice* const bridge = device_at(machine, side->bridges[i]);
      Redirect at = Redirect::kUnknown;
      if (bridge != nullptr) switch (bridge->acs.state) {
          case Acs::State::kUnknown:
            break;
          case Acs::State::kHidden:
            at = Redirect::kHidden;
            break;
          case Acs::State::kAbsent:
            at = Redirect::kNo;
            break;
          case Acs::State::kPresent:
            at = bridge->acs.control & (Acs::kRequestRedirect | Acs::kCompletionRedirect) ? Redirect::kYes
                 : bridge->acs.control & (Acs::kUpstreamForwarding | Acs::kEgressControl) ? Redirect::kPerhaps
                                                                                          : Redirect::kNo;
        }
      if (at == Redirect::kYes || at == Redirect::kPerhaps) path.bridges.push_back(side->bridges[i]);
      path.redirect = std::max(path.redirect, at);
    }
  }
  return path;
}

}  // namespace lockstep::links
