// SPDX-License-Identifier: Apache-2.0
// Puts what ibstat printed back into the files of /sys that it was drawn from. So all that follows is the
// same as for a host that was read. ibstat prints a block for each card and port, with a fixed set of lines.
// A port that lacks one was cut, and a card says how many ports it has. Both are refused, since a missing
// port would look like one that is well.
#include "links/printed/ibstat.h"

#include <map>
#include <optional>

#include "links/printed/lines.h"

namespace lockstep::links {
namespace {

constexpr size_t kMostHostCards = 256, kMostPorts = 255, kMostValue = 128;

// "CA 'mlx5_0'", or with a port asked for "CA: 'mlx5_0'"; empty: another line. The tool has other words for
// kinds of cards that carry no collectives.
std::string_view card_of(std::string_view line) {
  for (const std::string_view head : {"CA '", "CA: '", "iWARP RNIC '", "iWARP RNIC: '"})
    if (line.starts_with(head) && line.ends_with('\'') && line.size() > head.size() + 1)
      return line.substr(head.size(), line.size() - head.size() - 1);
  return {};
}

bool is_name(std::string_view text) {
  return text.size() <= 64 && !text.starts_with('.') &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") ==
             text.npos;
}

// As the kernel's files write them.
std::string kernel_state(std::string_view word) {
  if (word == "Active") return "4: ACTIVE";
  if (word == "Armed") return "3: ARMED";
  if (word == "Initializing") return "2: INIT";
  if (word == "Down") return "1: DOWN";
  return std::string(word);
}

class IbstatParser {
 public:
  explicit IbstatParser(const std::string& where) : where_(where) {}

  Result<void> line(std::string_view line, uint32_t number) {
    if (const std::string_view name = card_of(line); !name.empty()) {
      LOCKSTEP_TRY(close_card());
      // The name becomes part of a path in the copy.
      if (!is_name(name) || ++cards_ > kMostHostCards) return error("has a card name that no kernel gives");
      card_ = "/sys/class/infiniband/" + std::string(name);
      return {};
    }
    line = trimmed(line, kBlanksOfLine);
    const size_t colon = line.find(':');
    if (card_.empty() || colon == line.npos) return {};
    const std::string_view key = line.substr(0, colon),
                           value = trimmed(line.substr(colon + 1), kBlanksOfLine);
    if (value.size() > kMostValue) return error("has a value that is too long");
    if (key.starts_with("Port ") && value.empty()) return open_port(key.substr(5));
    if (!port_.empty()) {
      // Two outputs in one file may be of two hosts: nobody could say which line is right.
      if (!values_.emplace(key, value).second) return error("lists a port twice");
      if (key == "State" || key == "Physical state" || key == "Rate")
        keep_line_of(record_, device_, number, line);
    } else if (key == "Firmware version") {
      add(card_ + "/fw_ver", std::string(value));
    } else if (key.ends_with(" type")) {
      add(card_ + "/hca_type", std::string(value));
    } else if (key == "Number of ports") {
      if (!(expected_ = number_of<uint32_t>(value)) || *expected_ > kMostPorts)
        return error("does not count ports as ibstat does");
    }
    return {};
  }

  Result<LinksRecord> finish() {
    LOCKSTEP_TRY(close_card());
    if (cards_ == 0) return error("lists no card");
    return std::move(record_);
  }

 private:
  Error error(std::string text) const { return Error{ErrorCode::kInvalidInput, std::move(text), where_}; }
  void add(std::string path, std::string text) {
    record_.before.files.add(std::move(path), {HostFile::Kind::kText, std::move(text)});
  }

  Result<void> open_port(std::string_view number) {
    LOCKSTEP_TRY(close_port());
    const auto of = number_of<uint32_t>(number);
    if (!of || *of > kMostPorts || ++ports_ > kMostPorts) return error("has a port number that no card has");
    port_ = card_ + "/ports/" + std::to_string(*of);
    device_ = card_.substr(card_.rfind('/') + 1) + '/' + std::to_string(*of);
    if (record_.before.files.find(port_ + "/state") != nullptr) return error("lists a port twice");
    return {};
  }

  // The port's id follows what is used of it: with it, that is whole.
  Result<void> close_port() {
    if (port_.empty()) return {};
    for (const std::string_view key : {"State", "Physical state", "Rate", "Port GUID"})
      if (!values_.contains(key)) return error("is cut inside a port");
    const std::string rate(values_.at("Rate").substr(0, values_.at("Rate").find(' ')));
    if (!number_of<double>(rate)) return error("has a rate that is not a number");
    add(port_ + "/state", kernel_state(values_.at("State")));
    add(port_ + "/phys_state", std::string(values_.at("Physical state")));
    // The kernel names lanes and generation in brackets, which ibstat does not print.
    add(port_ + "/rate", rate + " Gb/sec (" + rate + " Gb/s)");
    if (const auto layer = values_.find("Link layer"); layer != values_.end())
      add(port_ + "/link_layer", std::string(layer->second));
    port_.clear();
    values_.clear();
    return {};
  }

  Result<void> close_card() {
    LOCKSTEP_TRY(close_port());
    if (!card_.empty() && ports_ == 0)
      return error("has a card without a port: ibstat without -s lists them");
    if (expected_ && ports_ < *expected_) return error("is cut: a card has more ports");
    expected_.reset();
    ports_ = 0;
    return {};
  }

  const std::string& where_;
  LinksRecord record_;
  std::string card_, port_;  // their folders; empty: none is open
  std::string device_;       // "mlx5_0/1"
  std::map<std::string_view, std::string_view> values_;
  std::optional<uint32_t> expected_;
  size_t cards_ = 0, ports_ = 0;
};

}  // namespace

bool is_ibstat(std::string_view text) {
  for (TextLines lines(text.substr(0, 4096)); lines.next();)
    if (!card_of(lines.line()).empty()) return true;
  return false;
}

Result<LinksRecord> parse_ibstat(std::string_view text, const std::string& where) {
  IbstatParser parser(where);
  for (TextLines lines(text); lines.next();) LOCKSTEP_TRY(parser.line(lines.line(), lines.number()));
  return parser.finish();
}

}  // namespace lockstep::links
