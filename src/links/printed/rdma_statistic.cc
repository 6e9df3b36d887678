// SPDX-License-Identifier: Apache-2.0
// Puts the counters back into the files that the kernel has for them. A line of text or an object of JSON is
// a port: its name, then names and numbers in turn. A port that ends within such a pair, or without a line
// end, was cut.
#include "links/printed/rdma_statistic.h"

#include <simdjson.h>

#include <set>

#include "links/printed/lines.h"

namespace lockstep::links {
namespace {

constexpr size_t kMostPortsPrinted = 1024, kMostPrinted = 1024, kMostPlainName = 64;

bool is_plain(std::string_view name) {
  return !name.empty() && name.size() <= kMostPlainName && !name.starts_with('.') &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") ==
             name.npos;
}

class StatisticParser {
 public:
  explicit StatisticParser(const std::string& where) : where_(where) {}

  // "link mlx5_0/1 rx_write_requests 0 out_of_sequence 7 ..."
  Result<void> line(std::string_view line) {
    if (!line.starts_with("link ")) return {};
    const std::vector<std::string_view> words = split_words(line, 2 * kMostPrinted + 3);
    if (words.size() < 4 || words.size() > 2 * kMostPrinted + 2 || words.size() % 2 != 0)
      return error("is cut inside a port");
    const size_t slash = words[1].rfind('/');
    const auto number =
        slash == words[1].npos ? std::nullopt : number_of<uint32_t>(words[1].substr(slash + 1));
    if (!number) return error("names a port as rdma does not");
    LOCKSTEP_TRY(open(words[1].substr(0, slash), *number));
    for (size_t i = 2; i < words.size(); i += 2) {
      const auto value = number_of<uint64_t>(words[i + 1]);
      if (!value) return error("has a counter that is not a number");
      LOCKSTEP_TRY(count(words[i], *value));
    }
    return {};
  }

  // [{"ifindex":0,"ifname":"mlx5_0","port":1,"rx_write_requests":0,...},...]
  Result<void> json(std::string_view text) {
    simdjson::dom::parser parser;
    simdjson::dom::array ports;
    if (parser.parse(simdjson::padded_string(text)).get(ports) != simdjson::SUCCESS)
      return error("is no JSON of rdma, or is cut");
    for (const simdjson::dom::element item : ports) {
      simdjson::dom::object port;
      std::string_view name;
      uint64_t number = 0;
      if (item.get(port) != simdjson::SUCCESS || port["ifname"].get(name) != simdjson::SUCCESS ||
          port["port"].get(number) != simdjson::SUCCESS || number > UINT32_MAX)
        return error("names a port as rdma does not");
      LOCKSTEP_TRY(open(name, static_cast<uint32_t>(number)));
      for (const auto& [key, value] : port) {
        uint64_t counted = 0;
        if (key == "ifindex" || key == "ifname" || key == "port" || value.get(counted) != simdjson::SUCCESS)
          continue;
        LOCKSTEP_TRY(count(key, counted));
      }
    }
    return {};
  }

  Result<LinksRecord> finish() {
    if (ports_.empty()) return error("lists no port");
    return std::move(record_);
  }
  Error error(std::string text) const { return Error{ErrorCode::kInvalidInput, std::move(text), where_}; }

 private:
  Result<void> open(std::string_view card, uint32_t number) {
    if (!is_plain(card) || number > 255) return error("has a card name that no kernel gives");
    folder_ =
        "/sys/class/infiniband/" + std::string(card) + "/ports/" + std::to_string(number) + "/hw_counters/";
    if (!ports_.insert(folder_).second) return error("lists a port twice");
    if (ports_.size() > kMostPortsPrinted) return error("has too many ports");
    counted_ = 0;
    return {};
  }
  Result<void> count(std::string_view name, uint64_t value) {
    // The name becomes part of a path in the copy.
    if (!is_plain(name) || ++counted_ > kMostPrinted) return error("has a counter that no driver has");
    record_.before.files.add(folder_ + std::string(name), {HostFile::Kind::kText, std::to_string(value)});
    return {};
  }

  const std::string& where_;
  LinksRecord record_;
  std::set<std::string> ports_;  // their folders
  std::string folder_;
  size_t counted_ = 0;
};

bool is_json_of_rdma(std::string_view text) {
  // `rdma link` has the same keys and a state.
  text = text.substr(0, 512);
  return text.starts_with('[') && text.find("\"ifindex\":") != text.npos &&
         text.find("\"ifname\":") != text.npos && text.find("\"port\":") != text.npos &&
         text.find("\"state\":") == text.npos;
}

bool is_text_of_rdma(std::string_view text) {
  // `rdma link` has other words behind the port's name.
  for (TextLines lines(text.substr(0, 4096)); lines.next();) {
    if (!lines.line().starts_with("link ")) continue;
    const std::vector<std::string_view> words = split_words(lines.line(), 4);
    if (words.size() == 4 && words[1].find('/') != words[1].npos && number_of<uint64_t>(words[3]))
      return true;
  }
  return false;
}

}  // namespace

bool is_rdma_statistic(std::string_view text) { return is_json_of_rdma(text) || is_text_of_rdma(text); }

Result<LinksRecord> parse_rdma_statistic(std::string_view text, const std::string& where) {
  StatisticParser parser(where);
  if (is_json_of_rdma(text)) {
    LOCKSTEP_TRY(parser.json(text));
    return parser.finish();
  }
  if (!text.ends_with('\n')) return parser.error("is cut: its last line has no end");
  for (TextLines lines(text); lines.next();) LOCKSTEP_TRY(parser.line(lines.line()));
  return parser.finish();
}

}  // namespace lockstep::links
