// SPDX-License-Identifier: Apache-2.0
// Everything that was read and measured goes into one file, so that a verdict can be made again elsewhere.
// Coming back the file is as hostile as any other: sizes, counts and texts are bounded before they are used.
#include "links/record.h"

#include <simdjson.h>

#include <type_traits>
#include <utility>

#include "base/text/json_text.h"
#include "links/gpu_fields.h"

namespace lockstep::links {
namespace {

constexpr uint64_t kVersion = 1;
constexpr size_t kMostItems = 100'000;  // of one list or map
constexpr size_t kMostText = 64 << 10;
constexpr size_t kMostCells = 8192;  // each is compared with all

// Structs whose fields gpu_fields.h lists: one list for writing and reading, so that no field is forgotten in
// one of them.
template <class T>
concept Visited = requires(T& value) {
  visit(value, [](auto&&...) {});
};

// --- writing

template <class T>
Json to_json(const T& value);

template <class T>
Json to_json(const std::optional<T>& value) {
  return value ? to_json(*value) : Json(nullptr);
}
template <class T>
Json to_json(const std::vector<T>& values) {
  Json list = Json::array();
  for (const T& value : values) list.push_back(to_json(value));
  return list;
}
template <class T>
Json to_json(const std::map<std::string, T>& values) {
  Json object = Json::object();
  for (const auto& [key, value] : values) object[key] = to_json(value);
  return object;
}
template <class T>
Json to_json(const T& value) {
  if constexpr (Visited<T>) {
    Json object = Json::object();
    // The list serves readers too and takes a reference that may be written; here nothing is.
    visit(const_cast<T&>(value), [&](const char* name, auto& field) { object[name] = to_json(field); });
    return object;
  } else if constexpr (std::is_same_v<T, CellKind>) {
    return std::string(kind_text(value));
  } else {
    return value;
  }
}

Json files_json(const HostFiles& files) {
  Json object = Json::object();
  for (const auto& [path, file] : files.entries()) {
    switch (file.kind) {
      case HostFile::Kind::kText:
        object[path] = file.text;
        break;
      case HostFile::Kind::kLink:
        object[path] = Json{{"link", file.text}};
        break;
      case HostFile::Kind::kUnreadable:
        object[path] = Json{{"error", file.error}};
        break;
    }
  }
  return object;
}

Json reading_json(const Reading& reading) {
  return {
      {"time_ns", reading.time_ns}, {"gpus", to_json(reading.gpus)}, {"files", files_json(reading.files)}};
}

// --- reading: what is of another type than it should be is left as if it were absent

using Element = simdjson::dom::element;

bool from_json(const Element& element, std::string& value) {
  std::string_view text;
  if (element.get(text) != simdjson::SUCCESS) return false;
  value = text.substr(0, kMostText);
  return true;
}
bool from_json(const Element& element, bool& value) { return element.get(value) == simdjson::SUCCESS; }
bool from_json(const Element& element, double& value) { return element.get(value) == simdjson::SUCCESS; }
template <class T>
requires std::is_integral_v<T>
bool from_json(const Element& element, T& value) {
  std::conditional_t<std::is_unsigned_v<T>, uint64_t, int64_t> number = 0;
  if (element.get(number) != simdjson::SUCCESS || !std::in_range<T>(number)) return false;
  value = static_cast<T>(number);
  return true;
}
bool from_json(const Element& element, CellKind& value) {
  std::string_view text;
  if (element.get(text) != simdjson::SUCCESS) return false;
  for (int kind = 0; kind <= static_cast<int>(CellKind::kToHostAll); ++kind) {
    if (kind_text(static_cast<CellKind>(kind)) != text) continue;
    value = static_cast<CellKind>(kind);
    return true;
  }
  return false;
}
bool from_json(const Element& element, Reading& reading);
template <Visited T>
bool from_json(const Element& element, T& value);
template <class T>
bool from_json(const Element& element, std::optional<T>& value) {
  T inner{};
  if (!from_json(element, inner)) return false;
  value = std::move(inner);
  return true;
}
template <class T>
bool from_json(const Element& element, std::vector<T>& values) {
  simdjson::dom::array list;
  if (element.get(list) != simdjson::SUCCESS) return false;
  for (const Element item : list) {
    // What is beyond is left out: such a file was not written by this program.
    if (values.size() == kMostItems) break;
    if (!from_json(item, values.emplace_back())) values.pop_back();
  }
  return true;
}
template <class T>
bool from_json(const Element& element, std::map<std::string, T>& values) {
  simdjson::dom::object object;
  if (element.get(object) != simdjson::SUCCESS) return false;
  for (const auto& [key, item] : object) {
    if (values.size() == kMostItems) break;
    T value{};
    if (from_json(item, value)) values[std::string(key.substr(0, 256))] = std::move(value);
  }
  return true;
}
template <Visited T>
bool from_json(const Element& element, T& value) {
  visit(value, [&](const char* name, auto& field) {
    Element item;
    if (element[name].get(item) == simdjson::SUCCESS) from_json(item, field);
  });
  return element.is_object();
}

void read_files(const Element& element, HostFiles& files) {
  simdjson::dom::object object;
  if (element.get(object) != simdjson::SUCCESS) return;
  size_t count = 0;
  for (const auto& [path, item] : object) {
    if (++count > kMostItems) return;
    // Paths of a record are only looked up in it, and never opened; the bound is of memory.
    if (path.empty() || path[0] != '/' || path.size() > 1024) continue;
    std::string_view text;
    int64_t error = 0;
    if (item.get(text) == simdjson::SUCCESS)
      files.add(std::string(path), {HostFile::Kind::kText, std::string(text.substr(0, kMostText)), 0});
    else if (item["link"].get(text) == simdjson::SUCCESS)
      files.add(std::string(path), {HostFile::Kind::kLink, std::string(text.substr(0, 1024)), 0});
    else if (item["error"].get(error) == simdjson::SUCCESS)
      files.add(std::string(path), {HostFile::Kind::kUnreadable, "", static_cast<int>(error & 0xFFFF)});
  }
}

bool from_json(const Element& element, Reading& reading) {
  Element item;
  if (element["time_ns"].get(item) == simdjson::SUCCESS) from_json(item, reading.time_ns);
  if (element["gpus"].get(item) == simdjson::SUCCESS) from_json(item, reading.gpus);
  if (element["files"].get(item) == simdjson::SUCCESS) read_files(item, reading.files);
  return element.is_object();
}

}  // namespace

std::string record_text(const LinksRecord& record) {
  Json document = {
      {"format", "lockstep-links"}, {"version", kVersion}, {"before", reading_json(record.before)}};
  if (record.under_load) document["under_load"] = reading_json(*record.under_load);
  if (record.after) document["after"] = reading_json(*record.after);
  if (record.traffic) document["traffic"] = to_json(*record.traffic);
  if (!record.traffic_absent.empty()) document["traffic_absent"] = record.traffic_absent;
  return json_text(document) + "\n";
}

Result<LinksRecord> parse_record(std::string_view text, const std::string& where) {
  simdjson::dom::parser parser;
  Element document;
  if (const auto error = parser.parse(text.data(), text.size()).get(document); error != simdjson::SUCCESS)
    return Error{ErrorCode::kInvalidInput,
                 std::string("is not a `lockstep links` record: ") + simdjson::error_message(error) +
                     "; make one with: lockstep links --record FILE",
                 where};
  std::string_view format;
  uint64_t version = 0;
  if (document["format"].get(format) != simdjson::SUCCESS || format != "lockstep-links" ||
      document["version"].get(version) != simdjson::SUCCESS)
    return Error{ErrorCode::kInvalidInput,
                 "is not a `lockstep links` record; make one with: lockstep links --record FILE", where};
  // An older version has fewer fields, which stay absent; a newer one may mean something else by the same
  // words.
  if (version > kVersion)
    return Error{ErrorCode::kUnsupported,
                 "has version " + std::to_string(version) + "; this program reads up to " +
                     std::to_string(kVersion) + "; use the program that wrote it, or a newer one",
                 where};
  LinksRecord record;
  Element item;
  if (document["before"].get(item) == simdjson::SUCCESS) from_json(item, record.before);
  if (document["under_load"].get(item) == simdjson::SUCCESS) from_json(item, record.under_load);
  if (document["after"].get(item) == simdjson::SUCCESS) from_json(item, record.after);
  if (document["traffic"].get(item) == simdjson::SUCCESS) from_json(item, record.traffic);
  // Judging compares each with all: 8,192 cells are 67 million comparisons.
  if (record.traffic && record.traffic->cells.size() > kMostCells)
    return Error{ErrorCode::kInvalidInput, "has more measurements than a host has links", where};
  if (document["traffic_absent"].get(item) == simdjson::SUCCESS) from_json(item, record.traffic_absent);
  return record;
}

}  // namespace lockstep::links
