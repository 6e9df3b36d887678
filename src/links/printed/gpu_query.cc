// SPDX-License-Identifier: Apache-2.0
// Reads the tree that `nvidia-smi -q` prints: a heading is a line without a value, and what belongs to it is
// indented by four blanks more. Releases move a value from one section to another and rename some, so a value
// is known by its name and that of the section around it. What a release prints under another name is absent,
// and absent is never zero. Speeds of PCIe are left out: an idle GPU lowers them, and whether it was idle is
// a matter of luck.
#include "links/printed/gpu_query.h"

#include <cmath>
#include <map>
#include <optional>

#include "links/printed/lines.h"

namespace lockstep::links {
namespace {

constexpr std::string_view kLogHead = "==============NVSMI LOG==============";
constexpr size_t kMostQueried = 256, kIndent = 4, kMostDepth = 8;

// "00000000:1B:00.0" as the kernel writes it, "0000:1b:00.0"; empty: it is none.
std::string kernel_pci(std::string_view address) {
  if (address.size() == 16 && address.starts_with("0000")) address.remove_prefix(4);
  if (address.size() != 12 || address[4] != ':' || address[7] != ':' || address[10] != '.') return {};
  std::string text(address);
  for (char& c : text) {
    if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
    if ((c < '0' || c > '9') && (c < 'a' || c > 'f') && c != ':' && c != '.') return {};
  }
  return text;
}

// The number before a unit: "700.00 W", "16x", "33 C"; nothing of "N/A".
std::optional<double> leading(std::string_view value) {
  value = value.substr(0, value.find_first_of(" x%"));
  const auto number = number_of<double>(value);
  return number && std::isfinite(*number) && *number >= 0 && *number < 1e15 ? number : std::nullopt;
}
template <class T>
void set(std::optional<T>& field, std::string_view value, double scale = 1) {
  if (const auto number = leading(value); number && *number * scale <= 4e9)
    field = static_cast<T>(*number * scale);
}
void set_flag(std::optional<uint64_t>& field, std::string_view value) {
  if (value == "Yes" || value == "No") field = value == "Yes";
}

struct Reason {
  std::string_view printed;
  uint64_t bit;  // of nvmlClocksThrottleReasons
};
constexpr Reason kReasonsPrinted[] = {{"Idle", 0x1},
                                      {"Applications Clocks Setting", 0x2},
                                      {"SW Power Cap", 0x4},
                                      {"HW Slowdown", 0x8},
                                      {"Sync Boost", 0x10},
                                      {"SW Thermal Slowdown", 0x20},
                                      {"HW Thermal Slowdown", 0x40},
                                      {"HW Power Brake Slowdown", 0x80},
                                      {"Display Clock Setting", 0x100}};

class QueryParser {
 public:
  explicit QueryParser(const std::string& where) : where_(where) {}

  Result<void> line(std::string_view line, uint32_t number) {
    const size_t indent = line.find_first_not_of(' ');
    if (indent == line.npos) return {};
    const std::string_view text = trimmed(line, kBlanksOfLine);
    if (indent == 0) return top(text);
    if (gpu_ == nullptr || indent % kIndent != 0 || indent / kIndent > kMostDepth) return {};
    path_.resize(std::min(path_.size(), indent / kIndent - 1));
    const size_t colon = text.find(" : ");
    if (indent == kIndent) sections_[gpu_->pci] = trimmed(text.substr(0, colon), kBlanksOfLine);
    if (colon == text.npos) {
      path_.emplace_back(text);
      return {};
    }
    const std::string_view name = trimmed(text.substr(0, colon), kBlanksOfLine),
                           value = trimmed(text.substr(colon + 3), kBlanksOfLine);
    take(name, value);
    if (is_worth_showing(name, value)) keep_line_of(record_, gpu_->pci, number, line);
    // Some values are headings of what follows: "HW Slowdown : Active" and why.
    path_.emplace_back(name);
    return {};
  }

  Result<LinksRecord> finish() {
    std::vector<Gpu>& gpus = record_.before.gpus.gpus;
    if (gpus.empty()) return error("lists no GPU");
    if (attached_ && gpus.size() > 1 && gpus.size() < *attached_)
      return error("lists " + std::to_string(gpus.size()) + " GPUs of " + std::to_string(*attached_) +
                   ": it is cut, or -i named some; print all, or one");
    // All end with the same section, or the last one was cut.
    if (sections_[gpus.back().pci] != sections_[gpus.front().pci])
      return error("is cut: its last GPU has fewer sections than others");
    return std::move(record_);
  }

 private:
  Error error(std::string text) const { return Error{ErrorCode::kInvalidInput, std::move(text), where_}; }

  Result<void> top(std::string_view text) {
    path_.clear();
    if (text == kLogHead) {
      // Two of them, which may be of two hosts or moments.
      if (gpu_ != nullptr) return error("holds more than one output");
      return {};
    }
    if (const size_t colon = text.find(" : "); colon != text.npos) {
      const std::string_view name = trimmed(text.substr(0, colon), kBlanksOfLine),
                             value = trimmed(text.substr(colon + 3), kBlanksOfLine);
      if (name == "Driver Version") record_.before.gpus.driver = std::string(value.substr(0, 64));
      if (name == "Attached GPUs") attached_ = number_of<uint32_t>(value);
      return {};
    }
    if (!text.starts_with("GPU ")) return {};
    std::string pci = kernel_pci(text.substr(4));
    std::vector<Gpu>& gpus = record_.before.gpus.gpus;
    if (pci.empty()) return error("names a GPU as nvidia-smi does not");
    if (sections_.contains(pci)) return error("lists a GPU twice");
    if (gpus.size() >= kMostQueried) return error("has too many GPUs");
    gpus.reserve(kMostQueried);  // `gpu_` stays
    record_.before.gpus.library = "nvidia-smi";
    gpu_ = &gpus.emplace_back();
    // In the order of their addresses, as the driver numbers them; -i prints one alone.
    gpu_->index = static_cast<uint32_t>(gpus.size() - 1);
    gpu_->vendor = "nvidia";
    gpu_->pci = std::move(pci);
    sections_.emplace(gpu_->pci, "");
    return {};
  }

  std::string_view section(size_t depth) const {
    return depth < path_.size() ? std::string_view(path_[depth]) : std::string_view();
  }

  void take(std::string_view name, std::string_view value) {
    const std::string_view first = section(0), last = path_.empty() ? std::string_view() : path_.back();
    if (name == "Product Name" && path_.empty()) gpu_->name = std::string(value.substr(0, 128));
    if (name == "GPU UUID" && value.starts_with("GPU-")) gpu_->uuid = std::string(value.substr(0, 64));
    if (first == "MIG Mode" && name == "Current") gpu_->is_mig = value == "Enabled";
    if (first == "PCI") take_pci(name, value, last);
    if (first == "Clocks Event Reasons" || first == "Clocks Throttle Reasons") take_reason(name, value);
    if (first == "ECC Errors" && last == "Aggregate") take_ecc(name, value);
    if (first == "Remapped Rows" && path_.size() == 1) take_rows(name, value);
    if (first == "Temperature" && name == "GPU Current Temp") set(gpu_->temperature_celsius, value);
    if (first == "Clocks" && name == "SM") set(gpu_->sm_clock_mhz, value);
    if (first == "Max Clocks" && name == "SM") set(gpu_->most_sm_clock_mhz, value);
    if (first == "Utilization" && (name == "Gpu" || name == "GPU")) set(gpu_->utilization_percent, value);
    if (first == "Fabric") take_fabric(name, value, last);
  }

  void take_pci(std::string_view name, std::string_view value, std::string_view last) {
    if (last == "Link Width" && (name == "Current" || name == "Max")) {
      if (const auto width = leading(value); width && *width > 0)
        record_.before.files.add(
            "/sys/bus/pci/devices/" + gpu_->pci + (name == "Max" ? "/max_link_width" : "/current_link_width"),
            {HostFile::Kind::kText, std::to_string(static_cast<uint32_t>(*width))});
    }
    if (name == "Replays Since Reset")
      if (const auto count = number_of<uint64_t>(value)) gpu_->counters["pcie_replay"] = *count;
  }

  void take_reason(std::string_view name, std::string_view value) {
    if (value != "Active" && value != "Not Active") return;
    for (const Reason& reason : kReasonsPrinted)
      if (reason.printed == name)
        gpu_->throttle_reasons = gpu_->throttle_reasons.value_or(0) | (value == "Active" ? reason.bit : 0);
  }

  void take_ecc(std::string_view name, std::string_view value) {
    const auto count = number_of<uint64_t>(value);
    if (!count) return;
    const bool is_uncorrected = name.find("Uncorrectable") != name.npos;
    if (!is_uncorrected && name.find("Correctable") == name.npos) return;
    std::optional<uint64_t>& sum = is_uncorrected ? gpu_->uncorrected_ecc : gpu_->corrected_ecc;
    // Kinds of memory are added up; no GPU lives to see a sum that overflows.
    sum = sum.value_or(0) + std::min(*count, uint64_t{1} << 48);
  }

  void take_rows(std::string_view name, std::string_view value) {
    if (name == "Pending") set_flag(gpu_->remap_pending, value);
    if (name == "Remapping Failure Occurred") set_flag(gpu_->remap_failed, value);
    if (name != "Correctable Error" && name != "Uncorrectable Error") return;
    if (const auto count = number_of<uint32_t>(value))
      gpu_->remapped_rows = gpu_->remapped_rows.value_or(0) + *count;
  }

  void take_fabric(std::string_view name, std::string_view value, std::string_view last) {
    if (name == "State" && path_.size() == 1) {
      if (value == "Not Started") gpu_->fabric_state = 1;
      if (value == "In Progress") gpu_->fabric_state = 2;
      if (value == "Completed") gpu_->fabric_state = 3;
    }
    // It prints the words of an error, and no number. NVML's for an unknown one.
    constexpr uint32_t kUnknownError = 999;
    if (name == "Status" && path_.size() == 1 && value != "N/A")
      gpu_->fabric_status = value == "Success" ? 0 : kUnknownError;
    if (last == "Health" && name == "Bandwidth" && value == "Degraded")
      gpu_->fabric_health = gpu_->fabric_health.value_or(0) | 1;
  }

  // Reasons and errors that a finding may rest on.
  bool is_worth_showing(std::string_view name, std::string_view value) const {
    const std::string_view first = section(0);
    if (first == "Clocks Event Reasons" || first == "Clocks Throttle Reasons")
      return value == "Active" && name.find("Slowdown") != name.npos;
    if (first == "Remapped Rows") return value == "Yes";
    return first == "Fabric" && (name == "State" || name == "Status") && value != "Completed" &&
           value != "Success" && value != "N/A";
  }

  const std::string& where_;
  LinksRecord record_;
  Gpu* gpu_ = nullptr;  // the one whose sections follow
  std::vector<std::string> path_;
  std::map<std::string, std::string> sections_;  // the newest of the first depth, by GPU
  std::optional<uint32_t> attached_;
};

}  // namespace

bool is_gpu_query(std::string_view text) { return text.substr(0, 4096).find(kLogHead) != text.npos; }

Result<LinksRecord> parse_gpu_query(std::string_view text, const std::string& where) {
  QueryParser parser(where);
  for (TextLines lines(text); lines.next();) LOCKSTEP_TRY(parser.line(lines.line(), lines.number()));
  return parser.finish();
}

}  // namespace lockstep::links
