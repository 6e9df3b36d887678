// SPDX-License-Identifier: Apache-2.0
// A heading opens a matrix, a line of numbers names its columns, and each line after that is a row. The
// program counts both directions into the rates of its bidirectional matrix; a cell of ours is one direction.
#include "links/printed/p2p_matrices.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>
#include <utility>
#include <vector>

#include "links/printed/lines.h"

namespace lockstep::links {
namespace {

constexpr std::string_view kTitle = "P2P (Peer-to-Peer) GPU Bandwidth Latency Test";
constexpr size_t kMostGpus = 32, kMostRates = 8192;
constexpr double kNsOfUs = 1000;

// The word behind "name:", with or without a space.
std::string_view behind(std::string_view line, std::string_view name) {
  const size_t at = line.find(name);
  if (at == line.npos) return {};
  line.remove_prefix(at + name.size());
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  return line.substr(0, line.find_first_of(", \r"));
}

class Parser {
 public:
  explicit Parser(const std::string& where) : where_(where) {}

  Result<void> line(std::string_view line, uint32_t number) {
    if (line.starts_with("Device: ")) return device(line);
    // Such pairs are in the matrices all the same, with the rate of the way through the host.
    if (line.find(" CANNOT Access Peer ") != line.npos) return no_access(line);
    if (line.find("Matrix") != line.npos) {
      LOCKSTEP_TRY(close());
      open(line);
      return {};
    }
    if (!in_matrix_) return {};
    const std::vector<std::string_view> words = split_words(line, kMostGpus + 1);
    if (words.empty()) return close();
    if (words[0] == "D\\D" || words[0] == "GPU" || words[0] == "CPU") {
      if (words[0] == "CPU") return close();  // the time to call, not that of the link
      columns_.assign(words.begin() + 1, words.end());
      return {};
    }
    return row(words, line, number);
  }

  Result<LinksRecord> finish() {
    LOCKSTEP_TRY(close());
    if (traffic_.cells.size() > kMostRates) return error("has more rates than a host has links");
    if (traffic_.cells.empty()) return error("has no matrix of pairs with peer access");
    record_.traffic = std::move(traffic_);
    return std::move(record_);
  }

 private:
  Error error(std::string text) const { return Error{ErrorCode::kInvalidInput, std::move(text), where_}; }

  Result<void> device(std::string_view line) {
    const auto index = number_of<uint32_t>(behind(line, "Device:"));
    const auto domain = number_of<uint32_t>(behind(line, "pciDomainID:"), 16);
    const auto bus = number_of<uint32_t>(behind(line, "pciBusID:"), 16);
    const auto slot = number_of<uint32_t>(behind(line, "pciDeviceID:"), 16);
    if (!index || !domain || !bus || !slot || *bus > 0xff || *slot > 0x1f ||
        record_.before.gpus.gpus.size() >= kMostGpus)
      return error("does not name a device as p2pBandwidthLatencyTest does");
    char address[32];
    // The program prints no function number; a GPU's is 0.
    std::snprintf(address, sizeof address, "%04x:%02x:%02x.0", *domain, *bus, *slot);
    Gpu gpu;
    gpu.index = *index;
    gpu.vendor = "nvidia";
    const size_t comma = line.find(", "), next = line.find(", pciBusID");
    if (comma < next) gpu.name = std::string(line.substr(comma + 2, next - comma - 2));
    gpu.pci = address;
    record_.before.gpus.library = "p2pBandwidthLatencyTest";
    record_.before.gpus.gpus.push_back(std::move(gpu));
    return {};
  }

  // "Device=0 CANNOT Access Peer Device=1": what is copied between them goes through the host.
  Result<void> no_access(std::string_view line) {
    const std::string* const from = gpu(behind(line, "Device="));
    const std::string* const to = gpu(behind(line, "Peer Device="));
    if (from == nullptr || to == nullptr) return error("names a device that it does not list");
    if (apart_.emplace(*from, *to).second) traffic_.notes.push_back(*from + " has no peer access to " + *to);
    return {};
  }

  void open(std::string_view heading) {
    columns_.clear();
    rows_ = 0;
    // Matrices without peer access measure the host's memory.
    in_matrix_ = heading.find("P2P=Enabled") != heading.npos;
    const bool reads = heading.find("P2P Reads") != heading.npos;
    is_latency_ = heading.find("Latency") != heading.npos;
    both_ways_ = heading.starts_with("Bidirectional");
    kind_ = is_latency_  ? CellKind::kLatency
            : both_ways_ ? CellKind::kBothWays
            : reads      ? CellKind::kRead
                         : CellKind::kWrite;
  }

  Result<void> row(const std::vector<std::string_view>& words, std::string_view line, uint32_t number) {
    const std::string* const from = gpu(words[0]);
    if (columns_.empty() || from == nullptr || words.size() != columns_.size() + 1)
      return error("has a row that does not fit its matrix: '" + std::string(words[0].substr(0, 20)) + "'");
    ++rows_;
    keep_line(record_, number, line);
    for (size_t i = 0; i < columns_.size(); ++i) {
      const auto value = number_of<double>(words[i + 1]);
      const std::string* const to = gpu(columns_[i]);
      if (!value || !std::isfinite(*value) || *value < 0 || to == nullptr)
        return error("has a cell that is not a number");
      if (from == to || *value == 0 || apart_.contains({*from, *to})) continue;
      Cell cell;
      cell.kind = kind_;
      cell.from = *from;
      cell.to = *to;
      cell.line = number;
      cell.samples = {is_latency_ ? *value * kNsOfUs : both_ways_ ? *value / 2 : *value};
      traffic_.cells.push_back(std::move(cell));
    }
    return {};
  }

  Result<void> close() {
    if (in_matrix_ && rows_ != columns_.size()) return error("is cut inside a matrix");
    in_matrix_ = false;
    return {};
  }

  const std::string* gpu(std::string_view word) const {
    const auto index = number_of<uint32_t>(word);
    for (const Gpu& of : record_.before.gpus.gpus)
      if (index == of.index) return &of.pci;
    return nullptr;
  }

  const std::string& where_;
  LinksRecord record_;
  Traffic traffic_;
  std::set<std::pair<std::string, std::string>> apart_;
  std::vector<std::string> columns_;
  size_t rows_ = 0;
  bool in_matrix_ = false, is_latency_ = false, both_ways_ = false;
  CellKind kind_ = CellKind::kWrite;
};

}  // namespace

bool is_p2p_matrices(std::string_view text) { return text.substr(0, 4096).find(kTitle) != text.npos; }

Result<LinksRecord> parse_p2p_matrices(std::string_view text, const std::string& where) {
  Parser parser(where);
  for (TextLines lines(text); lines.next();) LOCKSTEP_TRY(parser.line(lines.line(), lines.number()));
  return parser.finish();
}

}  // namespace lockstep::links
