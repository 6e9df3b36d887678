// SPDX-License-Identifier: Apache-2.0
// A test's name says what its matrix is. The arrows of its titles do not follow the data: in each test the
// row's GPU is the one that works, and it copies to the column's (write) or from it (read).
#include "links/printed/nvbandwidth.h"

#include <cmath>
#include <map>

#include "links/printed/lines.h"

namespace lockstep::links {
namespace {

constexpr size_t kMostGpusOfTest = 32, kMostTests = 256, kMostRatesOfTests = 8192;
constexpr std::string_view kHead = "nvbandwidth Version:";

struct Test {
  std::string_view name;
  CellKind kind;
  enum class Row : uint8_t { kFrom, kTo } row;  // the row's end of the copy
  bool with_host;                               // the row is the host
};
constexpr Test kTests[] = {
    {"host_to_device_memcpy_ce", CellKind::kToGpu, Test::Row::kFrom, true},
    {"device_to_host_memcpy_ce", CellKind::kToHost, Test::Row::kTo, true},
    {"device_to_device_memcpy_read_ce", CellKind::kRead, Test::Row::kTo, false},
    {"device_to_device_memcpy_write_ce", CellKind::kWrite, Test::Row::kFrom, false},
    {"device_to_device_memcpy_write_sm", CellKind::kCoreWrite, Test::Row::kFrom, false},
};

class NvbandwidthParser {
 public:
  explicit NvbandwidthParser(const std::string& where) : where_(where) {}

  Result<void> line(std::string_view line, uint32_t number) {
    // The multi-node build prints a line for each of its MPI processes.
    if (line.starts_with("Process ")) return error("covers several hosts, which Lockstep does not read");
    // Titles of matrices begin with the same word.
    if (line.starts_with("Device ") && tests_ == 0) return device(line.substr(7));
    if (line.starts_with("Running ")) {
      LOCKSTEP_TRY(close());
      return start(line.substr(8));
    }
    if (test_ == nullptr) return {};
    if (line.find("(row)") != line.npos) {
      LOCKSTEP_TRY(close());
      // Latency tests have the same shape with "(ns)": read as rates they would be wrong by orders of
      // magnitude.
      if (line.find("(GB/s)") == line.npos) return error("has a matrix of another unit");
      in_matrix_ = true;
      return {};
    }
    if (!in_matrix_) return {};
    const std::vector<std::string_view> words = split_words(line, kMostGpusOfTest + 2);
    // An empty line ends a matrix.
    if (words.empty()) return close();
    return columns_.empty() ? columns(words) : row(words, line, number);
  }

  Result<LinksRecord> finish() {
    LOCKSTEP_TRY(close());
    if (traffic_.cells.size() > kMostRatesOfTests) return error("has more rates than a host has links");
    if (traffic_.cells.empty()) return error("has no link rate");
    record_.traffic = std::move(traffic_);
    return std::move(record_);
  }

 private:
  Error error(std::string text) const { return Error{ErrorCode::kInvalidInput, std::move(text), where_}; }

  // "0: NVIDIA H100 80GB HBM3 (00000000:1b:00)"
  Result<void> device(std::string_view line) {
    const size_t colon = line.find(": "), open = line.rfind(" (");
    const auto index = colon == line.npos ? std::nullopt : number_of<uint32_t>(line.substr(0, colon));
    const std::string_view pci = open == line.npos ? std::string_view() : line.substr(open + 2);
    if (!pci.ends_with(')')) return error("comes from a release of nvbandwidth that prints no PCI addresses");
    if (!index || gpus_.size() >= kMostGpusOfTest || open < colon + 2 || pci.size() != 15 || pci[14] != ')' ||
        pci[8] != ':' || pci[11] != ':' ||
        pci.substr(0, 14).find_first_not_of("0123456789abcdef:") != pci.npos || !pci.starts_with("0000"))
      return error("does not name a device as nvbandwidth does");
    Gpu gpu;
    gpu.index = *index;
    gpu.vendor = "nvidia";
    gpu.name = std::string(line.substr(colon + 2, open - colon - 2));
    // nvbandwidth prints no function number; a GPU's is 0.
    gpu.pci = std::string(pci.substr(4, 10)) + ".0";
    if (!gpus_.emplace(*index, gpu.pci).second) return error("names a device twice");
    record_.before.gpus.library = "nvbandwidth";
    record_.before.gpus.gpus.push_back(std::move(gpu));
    return {};
  }

  // "device_to_device_memcpy_write_ce."
  Result<void> start(std::string_view name) {
    if (++tests_ > kMostTests) return error("has too many tests");
    if (name.ends_with('.')) name.remove_suffix(1);
    test_ = nullptr;
    for (const Test& test : kTests)
      if (test.name == name) test_ = &test;
    return {};
  }

  Result<void> columns(const std::vector<std::string_view>& words) {
    for (const std::string_view word : words) {
      const auto index = number_of<uint32_t>(word);
      if (!index || !gpus_.contains(*index)) return error("has a column that is not a GPU");
      columns_.push_back(*index);
    }
    return {};
  }

  Result<void> row(const std::vector<std::string_view>& words, std::string_view line, uint32_t line_number) {
    const auto number = number_of<uint32_t>(words[0]);
    if (!number || words.size() != columns_.size() + 1 || (!test_->with_host && !gpus_.contains(*number)))
      return error("has a row that does not fit its matrix: '" + std::string(words[0].substr(0, 20)) + "'");
    ++rows_;
    keep_line(record_, line_number, line);
    // A row of the host has a number too, which means nothing.
    const std::string of_row = test_->with_host ? "host" : gpus_.at(*number);
    for (size_t i = 0; i < columns_.size(); ++i) {
      const std::string& of_column = gpus_.at(columns_[i]);
      if (of_row == of_column) continue;
      if (words[i + 1] == "N/A") {
        traffic_.notes.push_back(of_row + " to " + of_column + ": nvbandwidth has no value");
        continue;
      }
      const auto value = number_of<double>(words[i + 1]);
      if (!value || !std::isfinite(*value) || *value < 0) return error("has a cell that is not a number");
      if (*value == 0) {  // as older releases print that there is none
        traffic_.notes.push_back(of_row + " to " + of_column + ": nvbandwidth has no value");
        continue;
      }
      Cell cell;
      cell.kind = test_->kind;
      cell.from = test_->row == Test::Row::kFrom ? of_row : of_column;
      cell.to = test_->row == Test::Row::kFrom ? of_column : of_row;
      cell.samples = {*value};
      cell.line = line_number;
      traffic_.cells.push_back(std::move(cell));
    }
    return {};
  }

  Result<void> close() {
    if (in_matrix_ && (columns_.empty() || rows_ != (test_->with_host ? 1 : columns_.size())))
      return error("is cut inside a matrix");
    in_matrix_ = false;
    columns_.clear();
    rows_ = 0;
    return {};
  }

  const std::string& where_;
  LinksRecord record_;
  Traffic traffic_;
  std::map<uint32_t, std::string> gpus_;
  std::vector<uint32_t> columns_;
  const Test* test_ = nullptr;  // nullptr: before the first, or one that is left out
  size_t rows_ = 0, tests_ = 0;
  bool in_matrix_ = false;
};

}  // namespace

bool is_nvbandwidth(std::string_view text) { return text.substr(0, 4096).find(kHead) != text.npos; }

Result<LinksRecord> parse_nvbandwidth(std::string_view text, const std::string& where) {
  NvbandwidthParser parser(where);
  for (TextLines lines(text); lines.next();) LOCKSTEP_TRY(parser.line(lines.line(), lines.number()));
  return parser.finish();
}

}  // namespace lockstep::links
