// SPDX-License-Identifier: Apache-2.0
// Puts the counters where the kernel has those of interfaces. A block is a heading and a line for each
// counter; drivers may indent further lines under one without a value. Its last line has a line end, else it
// was cut.
#include "links/printed/ethtool.h"

#include <set>

#include "links/printed/lines.h"

namespace lockstep::links {
namespace {

constexpr std::string_view kStatisticsHead = "NIC statistics:";
constexpr size_t kMostInterfaces = 256, kMostStatistics = 8192, kMostNameBytes = 64;

bool is_kernel_name(std::string_view name) {
  return !name.empty() && name.size() <= kMostNameBytes && !name.starts_with('.') &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") ==
             name.npos;
}

// "$ ethtool -S ens1f0": the interface; empty: another line.
std::string_view interface_of_command(std::string_view line) {
  for (const std::string_view command : {"ethtool -S ", "ethtool --statistics "})
    if (const size_t at = line.find(command); at != line.npos) {
      const auto words = split_words(line.substr(at + command.size()), 1);
      return !words.empty() && is_kernel_name(words[0]) ? words[0] : std::string_view();
    }
  return {};
}

class EthtoolParser {
 public:
  explicit EthtoolParser(const std::string& where) : where_(where) {}

  Result<void> line(std::string_view line) {
    if (const std::string_view named = interface_of_command(line); !named.empty()) {
      next_ = named;
      is_open_ = false;
      return {};
    }
    if (trimmed(line, kBlanksOfLine) == kStatisticsHead) return open();
    // Counters are indented; anything else ends them.
    if (!line.starts_with(' ') && !line.starts_with('\t')) is_open_ = false;
    if (!is_open_) return {};
    line = trimmed(line, kBlanksOfLine);
    const size_t colon = line.rfind(": ");
    if (colon == line.npos) return {};
    const std::string_view name = line.substr(0, colon);
    // "[3]: rx_packets" and names with blanks are of drivers whose counters mean nothing here.
    if (!is_kernel_name(name)) return {};
    const auto value = number_of<uint64_t>(trimmed(line.substr(colon + 2), kBlanksOfLine));
    if (!value) return error("has a counter that is not a number");
    if (++counted_ > kMostStatistics) return error("has too many counters");
    const std::string path = folder_ + std::string(name);
    if (record_.before.files.find(path) != nullptr) return error("lists a counter twice");
    record_.before.files.add(path, {HostFile::Kind::kText, std::to_string(*value)});
    return {};
  }

  Result<LinksRecord> finish() {
    LOCKSTEP_TRY(close());
    if (interfaces_.empty()) return error("lists no interface");
    return std::move(record_);
  }
  Error error(std::string text) const { return Error{ErrorCode::kInvalidInput, std::move(text), where_}; }

 private:
  Result<void> open() {
    LOCKSTEP_TRY(close());
    std::string name(next_);
    next_ = {};
    if (name.empty())
      name = "interface" + (interfaces_.empty() ? "" : "_" + std::to_string(interfaces_.size() + 1));
    if (!interfaces_.insert(name).second) return error("lists an interface twice");
    if (interfaces_.size() > kMostInterfaces) return error("has too many interfaces");
    // As the card of that name, which has the interface.
    record_.before.files.add("/sys/class/infiniband/" + name + "/device/net/" + name,
                             {HostFile::Kind::kText, ""});
    folder_ = "/sys/class/net/" + name + "/statistics/";
    counted_ = 0;
    is_open_ = true;
    return {};
  }
  Result<void> close() const {
    if (!interfaces_.empty() && counted_ == 0) return error("has an interface without counters");
    return {};
  }

  const std::string& where_;
  LinksRecord record_;
  std::string_view next_;             // the interface that a command has named
  std::set<std::string> interfaces_;  // by name
  std::string folder_;
  size_t counted_ = 0;  // of the last interface
  bool is_open_ = false;
};

}  // namespace

bool is_ethtool(std::string_view text) {
  bool after_head = false;
  for (TextLines lines(text.substr(0, 4096)); lines.next();) {
    const std::string_view line = lines.line();
    if (after_head && (line.starts_with(' ') || line.starts_with('\t')) && line.find(": ") != line.npos)
      return true;
    after_head = trimmed(line, kBlanksOfLine) == kStatisticsHead;
  }
  return false;
}

Result<LinksRecord> parse_ethtool(std::string_view text, const std::string& where) {
  EthtoolParser parser(where);
  if (!text.ends_with('\n')) return parser.error("is cut: its last line has no end");
  for (TextLines lines(text); lines.next();) LOCKSTEP_TRY(parser.line(lines.line()));
  return parser.finish();
}

}  // namespace lockstep::links
