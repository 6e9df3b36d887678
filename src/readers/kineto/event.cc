// SPDX-License-Identifier: Apache-2.0
// Reads one event by its keys in any order. Writers of different versions spell one value as number, text or
// truth value, so all are taken. Times are decimal microseconds; unless they have an exponent they are read
// as digits and become ns exactly, since a double loses the last digits of a time since the epoch.
#include "readers/kineto/event.h"

#include <simdjson.h>

#include <charconv>
#include <cmath>

#include "readers/kineto/event_stream.h"

namespace lockstep::readers::kineto {
namespace {

namespace json = simdjson::ondemand;
// Far more than jobs have; a forged file must not make lists without end.
constexpr size_t kMostGroups = size_t{1} << 20, kMostDevices = 4096;
static_assert(EventStream::kPadding >= simdjson::SIMDJSON_PADDING);

template <class T>
std::optional<T> parse_number(std::string_view text) {
  T number{};
  const char* const end = text.data() + text.size();
  const auto [behind, error] = std::from_chars(text.data(), end, number);
  // A whole number may be written as 3.0 or 1e3, so a double is tried next; it is exact below 2^53.
  if (error == std::errc{} && behind == end) return number;
  double real = 0;
  const auto [real_behind, real_error] = std::from_chars(text.data(), end, real);
  // The comparison is written so that a NaN fails it.
  if (real_error != std::errc{} || real_behind != end || !(std::abs(real) < 0x1p62)) return std::nullopt;
  return static_cast<T>(static_cast<int64_t>(real));
}

std::string_view trimmed(std::string_view token) {
  // A raw token reaches to the next one, blanks included.
  while (!token.empty() && (token.back() <= ' ' && token.back() >= 0)) token.remove_suffix(1);
  return token;
}

// Writers spell one value as a number, a text or a truth value.
class Value {
 public:
  explicit Value(json::value value) : value_(value) {}

  bool text(std::string_view& out) { return value_.get_string().get(out) == simdjson::SUCCESS; }
  // Of a list, its JSON.
  bool text_or_list(std::string_view& out) {
    json::json_type type;
    if (value_.type().get(type) != simdjson::SUCCESS) return false;
    if (type == json::json_type::string) return text(out);
    return simdjson::to_json_string(value_).get(out) == simdjson::SUCCESS;
  }
  template <class T>
  // By its raw token, so that a number that fits no type is none, and no error of the event.
  std::optional<T> number() {
    json::json_type type;
    if (value_.type().get(type) != simdjson::SUCCESS) return std::nullopt;
    std::string_view token;
    switch (type) {
      case json::json_type::number:
        return parse_number<T>(trimmed(value_.raw_json_token()));
      case json::json_type::string:
        if (!text(token)) return std::nullopt;
        return parse_number<T>(token);
      case json::json_type::boolean: {
        bool truth = false;
        if (value_.get_bool().get(truth) != simdjson::SUCCESS) return std::nullopt;
        return static_cast<T>(truth);
      }
      default:
        return std::nullopt;
    }
  }
  void number(int64_t& out) {
    if (const auto read = number<int64_t>()) out = *read;
  }
  void truth(std::optional<bool>& out) {
    if (const auto read = number<int64_t>()) out = *read != 0;
  }
  // Through int64, so that -1 for "unknown" is not taken for a huge count.
  void count(uint64_t& out) {
    if (const auto read = number<int64_t>(); read && *read >= 0) out = static_cast<uint64_t>(*read);
  }
  std::optional<int64_t> microseconds() {
    json::json_type type;
    std::string_view token;
    if (value_.type().get(type) != simdjson::SUCCESS) return std::nullopt;
    if (type == json::json_type::string) return text(token) ? parse_microseconds(token) : std::nullopt;
    return parse_microseconds(trimmed(value_.raw_json_token()));
  }

 private:
  json::value value_;
};

void read_comms_arg(std::string_view key, Value& value, Event& event) {
  if (key == "Collective name")
    value.text(event.collective);
  else if (key == "dtype")
    value.text(event.dtype);
  else if (key == "In msg nelems")
    value.count(event.in);
  else if (key == "Out msg nelems")
    value.count(event.out);
  else if (key == "In split size")
    value.text_or_list(event.in_split);
  else if (key == "Out split size")
    value.text_or_list(event.out_split);
  else if (key == "Group size")
    value.number(event.group_size);
  else if (key == "Process Group Name" || key == "Process Group ID")
    value.text_or_list(event.group_name);
  else if (key == "Process Group Description")
    value.text(event.group_description);
  else if (key == "Process Group Ranks")
    value.text_or_list(event.group_ranks);
  else if (key == "Global rank start")
    value.number(event.rank_start);
  else if (key == "Global rank stride")
    value.number(event.rank_stride);
  else if (key == "Rank")
    value.number(event.rank);
  else if (key == "Src Rank")
    value.number(event.source);
  else if (key == "Dst Rank")
    value.number(event.target);
  else if (key == "Seq")
    value.number(event.seq);
  else if (key == "Comms Id")
    event.comms_id = value.number<uint64_t>();
  else if (key == "Is asynchronized op")
    value.truth(event.is_async);
}

// Newer versions of PyTorch put the arguments of a collective on its kernel, too.
void read_arg(std::string_view key, Value& value, EventKind kind, Event& event) {
  if (key == "External id" || key == "external id")
    value.number(event.external);
  else if (key == "correlation")
    value.number(event.correlation);
  else if (key == "labels" || (kind == EventKind::kThread && key == "name"))
    value.text(event.label);
  else if (key == "device")
    value.number(event.device);
  else if (key == "stream")
    value.number(event.stream);
  else if (key == "graph id")
    value.number(event.graph);
  else if (key == "graph node id")
    value.number(event.graph_node);
  else if (kind == EventKind::kComms || kind == EventKind::kKernel)
    read_comms_arg(key, value, event);
}

void read_group(json::object object, GroupConfig& group) {
  for (auto field : object) {
    std::string_view key;
    json::value raw;
    if (field.unescaped_key().get(key) != simdjson::SUCCESS || field.value().get(raw) != simdjson::SUCCESS)
      return;
    Value value(raw);
    std::string_view text;
    if (key == "pg_name") {
      if (value.text_or_list(text)) group.name = trimmed(text);
    } else if (key == "pg_desc") {
      if (value.text(text)) group.description = text;
    } else if (key == "pg_size") {
      value.number(group.size);
    } else if (key == "ranks") {
      if (value.text_or_list(text)) group.ranks = text;
    }
  }
}

void read_groups(json::value value, std::vector<GroupConfig>& groups) {
  json::array array;
  if (value.get_array().get(array) != simdjson::SUCCESS) return;
  for (auto element : array) {
    json::object object;
    if (groups.size() == kMostGroups || element.get_object().get(object) != simdjson::SUCCESS) return;
    read_group(object, groups.emplace_back());
  }
}

}  // namespace

std::optional<int64_t> parse_microseconds(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  int64_t whole = 0;
  const char* const end = text.data() + text.size();
  auto [at, error] = std::from_chars(text.data(), end, whole);
  if (error != std::errc{} || whole < 0 || whole > INT64_MAX / 1000 - 1) return std::nullopt;
  int64_t ns = whole * 1000;
  if (at < end && *at == '.') {
    int64_t unit = 100;
    // Behind the third decimal `unit` is 0: what is finer than a nanosecond is left out.
    for (++at; at < end && *at >= '0' && *at <= '9'; ++at, unit /= 10) ns += (*at - '0') * unit;
  }
  if (at == end) return negative ? -ns : ns;
  const auto real = parse_number<double>(text);  // an exponent
  if (!real || *real * 1000 >= 0x1p62) return std::nullopt;
  return static_cast<int64_t>(*real * (negative ? -1000 : 1000));
}

struct EventParser::State {
  json::parser parser;
  json::document document;

  bool open(std::string_view text) {
    // The stream leaves room behind each piece, so that the parser needs no copy.
    const simdjson::padded_string_view padded(text.data(), text.size(), text.size() + EventStream::kPadding);
    return parser.iterate(padded).get(document) == simdjson::SUCCESS;
  }
};

EventParser::EventParser() : state_(std::make_unique<State>()) {}
EventParser::~EventParser() = default;

std::optional<Event> EventParser::event(std::string_view text, EventKind kind) {
  Event event;
  json::object object;
  if (!state_->open(text) || state_->document.get_object().get(object) != simdjson::SUCCESS)
    return std::nullopt;
  for (auto field : object) {
    std::string_view key;
    json::value raw;
    if (field.unescaped_key().get(key) != simdjson::SUCCESS || field.value().get(raw) != simdjson::SUCCESS)
      return std::nullopt;
    Value value(raw);
    if (key == "ts") {
      if (const auto ns = value.microseconds()) event.ts_ns = *ns;
    } else if (key == "dur") {
      event.dur_ns = std::max<int64_t>(value.microseconds().value_or(0), 0);
    } else if (key == "name") {
      if (!value.text(event.name)) return std::nullopt;
    } else if (key == "pid") {
      value.number(event.pid);
    } else if (key == "tid") {
      value.number(event.tid);
    } else if (key == "id") {
      value.number(event.flow);
    } else if (key == "args") {
      json::object args;
      if (raw.get_object().get(args) != simdjson::SUCCESS) continue;
      for (auto arg : args) {
        std::string_view name;
        json::value inner;
        if (arg.unescaped_key().get(name) != simdjson::SUCCESS || arg.value().get(inner) != simdjson::SUCCESS)
          return std::nullopt;
        Value of(inner);
        read_arg(name, of, kind, event);
      }
    }
  }
  return event;
}

std::optional<DistributedInfo> EventParser::distributed_info(std::string_view text) {
  DistributedInfo info;
  json::object object;
  if (!state_->open(text) || state_->document.get_object().get(object) != simdjson::SUCCESS)
    return std::nullopt;
  for (auto field : object) {
    std::string_view key;
    json::value raw;
    if (field.unescaped_key().get(key) != simdjson::SUCCESS || field.value().get(raw) != simdjson::SUCCESS)
      return info;
    Value value(raw);
    if (key == "rank") {
      value.number(info.rank);
    } else if (key == "world_size") {
      value.number(info.world);
    } else if (key == "nccl_version") {
      if (std::string_view version; value.text(version)) info.nccl_version = version;
    } else if (key == "pg_config") {
      read_groups(raw, info.groups);
    }
  }
  return info;
}

std::vector<std::string> EventParser::device_names(std::string_view text) {
  std::vector<std::string> names;
  json::array devices;
  if (!state_->open(text) || state_->document.get_array().get(devices) != simdjson::SUCCESS) return names;
  for (auto device : devices) {
    std::string_view name;
    if (device["name"].get_string().get(name) != simdjson::SUCCESS) name = {};
    if (names.size() == kMostDevices) break;
    names.emplace_back(name);
  }
  return names;
}

}  // namespace lockstep::readers::kineto
