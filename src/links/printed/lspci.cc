// SPDX-License-Identifier: Apache-2.0
// Puts what lspci printed back into the files of /sys/bus/pci, so that all that follows is the same as for a
// host that was read. A device is a heading and the lines behind it, up to an empty one, which the last
// device has as well: without it the text is cut. The tree is drawn from the buses below each bridge. Bytes
// (-xxxx) say all that the lines (-vvv) do, and outweigh them.
#include "links/printed/lspci.h"

#include <array>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "links/printed/lines.h"

namespace lockstep::links {
namespace {

constexpr size_t kMostPciDevices = 8192, kConfigBytes = 4096, kMostLevels = 32, kMostPciName = 96;
constexpr uint32_t kBridge = 0x0604, kEthernet = 0x0200, kLeastLanes = 8;
constexpr uint16_t kNvidia = 0x10de, kAmd = 0x1002;

struct PciClass {
  std::string_view words;  // as lspci prints it without -n
  uint32_t code;
};
constexpr PciClass kClasses[] = {{"PCI bridge", kBridge},
                                 {"3D controller", 0x0302},
                                 {"VGA compatible controller", 0x0300},
                                 {"Display controller", 0x0380},
                                 {"Processing accelerators", 0x1200},
                                 {"Ethernet controller", kEthernet},
                                 {"Infiniband controller", 0x0207},
                                 {"Fabric controller", 0x0208}};
constexpr std::pair<std::string_view, uint16_t> kVendors[] = {
    {"NVIDIA Corporation", kNvidia}, {"Advanced Micro Devices", kAmd}, {"Amazon.com", 0x1d0f}};
// Bits of ACS' control, in the order in which lspci prints them.
constexpr std::string_view kAcsBits[] = {"SrcValid",    "TransBlk",   "ReqRedir",   "CmpltRedir",
                                         "UpstreamFwd", "EgressCtrl", "DirectTrans"};

bool is_hex(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789abcdef") == text.npos;
}

// "17:00.0" or "0000:17:00.0", as the kernel writes it; nothing: another line.
std::optional<std::string> pci_address_of(std::string_view line) {
  std::string word(line.substr(0, line.find(' ')));
  if (word.size() == 7) word.insert(0, "0000:");
  const size_t domain = word.size() - std::min<size_t>(word.size(), 8);
  if ((domain != 4 && domain != 8) || word[domain] != ':' || word[domain + 3] != ':' ||
      word[domain + 6] != '.' || !is_hex(word.substr(0, domain)) || !is_hex(word.substr(domain + 1, 2)) ||
      !is_hex(word.substr(domain + 4, 2)) || !is_hex(word.substr(domain + 7)))
    return std::nullopt;
  return word;
}

struct PrintedLink {
  std::optional<double> gigatransfers;
  std::optional<uint32_t> width;
};

struct PrintedDevice {
  std::string address, name;
  uint32_t kind = 0;  // upper 16 bits of the class
  uint16_t vendor = 0;
  std::optional<int> numa_node;
  std::optional<uint32_t> bus_below;
  PrintedLink now, most;
  std::string config;  // as bytes, as far as they are known
  bool may_be_read = false, has_masked = false;
  std::optional<std::pair<uint16_t, uint16_t>> acs;  // what it can do, and what it does
};

// "Port #0, Speed 32GT/s, Width x16, ASPM not supported"
PrintedLink link_in(std::string_view text) {
  PrintedLink link;
  const auto number_behind = [text](std::string_view word) {
    const size_t at = text.find(word);
    const std::string_view rest = at == text.npos ? std::string_view() : text.substr(at + word.size());
    return rest.substr(0, rest.find_first_not_of("0123456789."));
  };
  link.gigatransfers = number_of<double>(number_behind("Speed "));
  link.width = number_of<uint32_t>(number_behind("Width x"));
  return link;
}

// "SrcValid+ TransBlk- ReqRedir+ ..."
uint16_t acs_bits(std::string_view text) {
  uint32_t bits = 0;
  for (size_t i = 0; i < std::size(kAcsBits); ++i)
    if (text.find(std::string(kAcsBits[i]) + "+") != text.npos) bits |= 1u << i;
  return static_cast<uint16_t>(bits);
}

// What stands at the begin of a configuration space and in its capability of PCI Express (0x10).
class ConfigSpace {
 public:
  explicit ConfigSpace(std::string_view bytes) : bytes_(bytes) {}
  uint32_t byte(size_t at) const { return at < bytes_.size() ? static_cast<uint8_t>(bytes_[at]) : 0; }
  uint32_t word(size_t at) const { return byte(at) | byte(at + 1) << 8; }

  void describe(PrintedDevice& device) const {
    device.vendor = static_cast<uint16_t>(word(0));
    device.kind = word(0x0a);
    if ((byte(0x0e) & 0x7f) == 1) device.bus_below = byte(0x19);
    // Bit 4 of the status: it has capabilities. Each names the next; a damaged chain may be a circle.
    size_t at = word(6) & 0x10 ? byte(0x34) : 0;
    for (int step = 0; step < 48 && at >= 0x40; ++step, at = byte(at + 1)) {
      if (byte(at) != 0x10) continue;
      device.most = link(word(at + 0x0c));
      device.now = link(word(at + 0x12));
      return;
    }
  }

 private:
  // Speed in bits 0 to 3, width in bits 4 to 9.
  static PrintedLink link(uint32_t bits) {
    constexpr std::array<double, 7> kSpeeds = {0, 2.5, 5, 8, 16, 32, 64};
    PrintedLink link;
    if (const uint32_t speed = bits & 0xf; speed > 0 && speed < kSpeeds.size())
      link.gigatransfers = kSpeeds[speed];
    link.width = bits >> 4 & 0x3f;
    return link;
  }
  std::string_view bytes_;
};

class LspciParser {
 public:
  explicit LspciParser(const std::string& where) : where_(where) {}

  Result<void> line(std::string_view line) {
    if (const auto address = pci_address_of(line)) return open(*address, line.substr(line.find(' ') + 1));
    // It may stand before a heading that is none here, of a domain of five digits.
    if (trimmed(line, kBlanksOfLine).empty()) device_ = nullptr;
    if (device_ == nullptr) return {};
    if (take_bytes(line)) return {};
    line = trimmed(line, kBlanksOfLine);
    const size_t colon = line.find(':');
    if (colon == line.npos) return {};
    detail(line.substr(0, colon), trimmed(line.substr(colon + 1), kBlanksOfLine));
    return {};
  }

  Result<LinksRecord> finish() {
    if (devices_.empty()) return error("lists no PCI device");
    bool has_link = false;
    std::map<std::string, std::string> above;  // the bridge, by domain and bus
    for (auto& [address, device] : devices_) {
      if (device.config.size() >= 64) ConfigSpace(device.config).describe(device);
      has_link |= device.now.width.has_value();
      if (device.kind == kBridge && device.bus_below)
        above.emplace(bus_of(address, *device.bus_below), address);
    }
    if (!has_link) return error("shows no PCIe link: run `lspci -vvv` as root");
    for (const auto& [address, device] : devices_) add_files(device, path_of(address, above));
    for (const auto& [address, device] : devices_) add_roles(device);
    return std::move(record_);
  }
  Error error(std::string text) const { return Error{ErrorCode::kInvalidInput, std::move(text), where_}; }

 private:
  Result<void> open(const std::string& address, std::string_view rest) {
    const auto [at, is_new] = devices_.try_emplace(address);
    if (!is_new) return error("lists a PCI device twice");
    if (devices_.size() > kMostPciDevices) return error("has too many PCI devices");
    device_ = &at->second;
    device_->address = address;
    // "PCI bridge [0604]: Name [8086:9d14] (rev f1)", or of -n "0604: 8086:9d14"
    const size_t colon = rest.find(": ");
    const std::string_view words = rest.substr(0, colon);
    const std::string_view name = colon == rest.npos ? std::string_view() : rest.substr(colon + 2);
    device_->name = std::string(name.substr(0, kMostPciName));
    if (is_hex(words)) device_->kind = number_of<uint32_t>(words, 16).value_or(0);
    for (const PciClass& known : kClasses)
      if (words == known.words || words.starts_with(std::string(known.words) + " ["))
        device_->kind = known.code;
    for (const auto& [words_of_vendor, id] : kVendors)
      if (name.starts_with(words_of_vendor)) device_->vendor = id;
    if (is_hex(words)) device_->vendor = number_of<uint16_t>(name.substr(0, 4), 16).value_or(0);
    return {};
  }

  // "40: 10 00 12 00 ..."; false: another line.
  bool take_bytes(std::string_view line) {
    const size_t colon = line.find(": ");
    if (colon == line.npos || colon > 3 || !is_hex(line.substr(0, colon))) return false;
    const size_t at = number_of<size_t>(line.substr(0, colon), 16).value_or(kConfigBytes);
    // In order, so that a lost line ends what is known.
    if (at != device_->config.size() || at % 16 != 0 || at >= kConfigBytes) return true;
    std::string bytes;
    for (const std::string_view word : split_words(line.substr(colon + 2), 17))
      if (const auto value = number_of<uint8_t>(word, 16); value && word.size() == 2)
        bytes += static_cast<char>(*value);
    if (bytes.size() == 16) device_->config += bytes;
    return true;
  }

  void detail(std::string_view key, std::string_view value) {
    if (key == "NUMA node") {
      device_->numa_node = number_of<int>(value);
    } else if (key == "Bus" && value.starts_with("primary=")) {
      constexpr std::string_view kBelow = "secondary=";
      if (const size_t at = value.find(kBelow); at != value.npos)
        device_->bus_below = number_of<uint32_t>(value.substr(at + kBelow.size(), 2), 16);
    } else if (key == "LnkCap") {
      device_->most = link_in(value);
    } else if (key == "LnkSta") {
      device_->now = link_in(value);
    } else if (key == "Capabilities") {
      // Without root: "<access denied>". What a hypervisor has masked: "[100 v0] Null".
      device_->may_be_read = !value.starts_with('<');
      device_->has_masked |= value.ends_with("v0] Null");
    } else if (key == "ACSCap") {
      device_->acs = {acs_bits(value), 0};
    } else if (key == "ACSCtl" && device_->acs) {
      device_->acs->second = acs_bits(value);
    }
  }

  static std::string bus_of(const std::string& address, uint32_t bus) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    return address.substr(0, address.find(':') + 1) + kDigits[bus >> 4 & 15] + kDigits[bus & 15];
  }

  // "/sys/devices/pci0000:16/0000:16:00.0/0000:17:00.0"
  static std::string path_of(const std::string& address, const std::map<std::string, std::string>& above) {
    std::string path = address;
    std::string bus = address.substr(0, address.rfind(':'));
    for (size_t level = 0; level < kMostLevels; ++level) {
      const auto bridge = above.find(bus);
      // A damaged text may have a bridge that is below itself.
      if (bridge == above.end() || path.find(bridge->second) != path.npos) break;
      path.insert(0, bridge->second + "/");
      bus = bridge->second.substr(0, bridge->second.rfind(':'));
    }
    return "/sys/devices/pci" + bus + "/" + path;
  }

  void add(const std::string& path, std::string text) {
    record_.before.files.add(path, {HostFile::Kind::kText, std::move(text)});
  }

  void add_files(const PrintedDevice& device, const std::string& path) {
    const std::string folder = "/sys/bus/pci/devices/" + device.address;
    record_.before.files.add(folder, {HostFile::Kind::kLink, path});
    add(folder + "/class", std::to_string(uint64_t{device.kind} << 8));
    add(folder + "/vendor", std::to_string(device.vendor));
    if (device.numa_node) add(folder + "/numa_node", std::to_string(*device.numa_node));
    for (const auto& [link, name] :
         {std::pair(device.now, "/current_link_"), std::pair(device.most, "/max_link_")}) {
      if (link.gigatransfers) add(folder + name + "speed", std::to_string(*link.gigatransfers));
      if (link.width) add(folder + name + "width", std::to_string(*link.width));
    }
    if (device.kind == kBridge) add_acs(device, folder + "/config");
  }

  // Configuration space as far as ACS goes: its head stands where extended capabilities begin.
  void add_acs(const PrintedDevice& device, const std::string& path) {
    constexpr size_t kExtended = 0x100, kEnough = 8;
    std::string bytes = device.config;
    if (bytes.empty() && device.may_be_read) {
      bytes.assign(kExtended + kEnough, '\0');
      if (device.acs) {
        const auto [can, does] = *device.acs;
        for (const auto& [at, value] : {std::pair<size_t, int>(0, 0x0d), {2, 1}, {4, can}, {6, does}})
          bytes[kExtended + at] = static_cast<char>(value);
      } else if (device.has_masked) {
        bytes[kExtended + 3] = 0x20;  // no number, and another one behind it
      }
    }
    if (bytes.size() <= kExtended) return;
    std::string digits;
    constexpr std::string_view kDigits = "0123456789abcdef";
    for (const char c : bytes) {
      digits += kDigits[static_cast<uint8_t>(c) >> 4];
      digits += kDigits[static_cast<uint8_t>(c) & 15];
    }
    add(path, std::move(digits));
  }

  // GPUs are numbered by their addresses, as their drivers do.
  void add_roles(const PrintedDevice& device) {
    const bool is_display = device.kind >> 8 == 0x03 || device.kind == 0x1200;
    if (is_display && (device.vendor == kNvidia || device.vendor == kAmd)) {
      std::vector<Gpu>& gpus = record_.before.gpus.gpus;
      Gpu& gpu = gpus.emplace_back();
      gpu.index = static_cast<uint32_t>(gpus.size() - 1);
      gpu.vendor = device.vendor == kNvidia ? "nvidia" : "amd";
      gpu.name = device.name;
      gpu.pci = device.address;
    } else if (device.kind == 0x0207 || device.kind == 0x0208 ||
               (device.kind == kEthernet && device.most.width.value_or(0) >= kLeastLanes)) {
      record_.before.files.add("/sys/class/infiniband/" + device.address + "/device",
                               {HostFile::Kind::kLink, "/sys/bus/pci/devices/" + device.address});
    }
  }

  const std::string& where_;
  LinksRecord record_;
  std::map<std::string, PrintedDevice> devices_;  // by address
  PrintedDevice* device_ = nullptr;               // the one whose lines follow
};

}  // namespace

bool is_lspci(std::string_view text) {
  bool after_device = false;
  for (TextLines lines(text.substr(0, 4096)); lines.next();) {
    const std::string_view line = lines.line();
    // A list without -v has headings alone.
    if (after_device && (line.starts_with('\t') || line.starts_with("00: "))) return true;
    after_device = pci_address_of(line) && line.find(": ") != line.npos;
    if (lines.number() == 1 && !after_device) return false;
  }
  return false;
}

Result<LinksRecord> parse_lspci(std::string_view text, const std::string& where) {
  LspciParser parser(where);
  if (!text.ends_with("\n\n") && !text.ends_with("\n\r\n"))
    return parser.error("is cut: behind the last device lspci prints an empty line");
  for (TextLines lines(text); lines.next();) LOCKSTEP_TRY(parser.line(lines.line()));
  return parser.finish();
}

}  // namespace lockstep::links
