// SPDX-License-Identifier: Apache-2.0
// Reads a JSON dump into the same values as a pickle, event by event. A parser that recursed would let a file
// of brackets overflow the stack, and one that built its own tree would hold every value twice.
#include <nlohmann/json.hpp>

#include "readers/flight_recorder/value.h"

namespace lockstep::readers::flight_recorder {
namespace {

using Kind = Value::Kind;

constexpr size_t kDeepest = 64;

// Fed by nlohmann's parser, which does not recurse.
class Builder {
 public:
  Document document;
  std::string problem;

  bool null() { return add({}); }
  bool boolean(bool value) { return add({.kind = Kind::kBool, .integer = value}); }
  bool number_integer(int64_t value) { return add({.kind = Kind::kInt, .integer = value}); }
  bool number_unsigned(uint64_t value) {
    // No field needs more than 63 bits: a larger number is damaged, and stays large.
    return number_integer(static_cast<int64_t>(std::min<uint64_t>(value, INT64_MAX)));
  }
  bool number_float(double value, const std::string&) { return add({.kind = Kind::kFloat, .number = value}); }
  bool string(std::string& value) {
    // The parser allows a text to be moved out of its buffer.
    return add({.kind = Kind::kText, .text = document.values.keep(std::move(value))});
  }
  bool binary(std::vector<uint8_t>&) { return false; }
  // A key is an item as its value is: items of a dict are keys and values by turns.
  bool key(std::string& value) { return string(value); }
  bool start_object(size_t) { return open(Kind::kDict); }
  bool start_array(size_t) { return open(Kind::kList); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception&) {
    problem = "no JSON at byte " + std::to_string(position);
    return false;
  }

 private:
  bool add(Value value) {
    const ValueId id = document.values.add(std::move(value));
    if (id == kNoValue) {
      problem = "more values than any dump has";
      return false;
    }
    if (open_.empty()) {
      document.root = id;
    } else {
      document.values[open_.back()].items.push_back(id);
    }
    last_ = id;
    return true;
  }
  bool open(Kind kind) {
    if (open_.size() >= kDeepest) {
      problem = "containers nested deeper than any dump has";
      return false;
    }
    if (!add({.kind = kind})) return false;
    open_.push_back(last_);
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  std::vector<ValueId> open_;
  ValueId last_ = kNoValue;
};

}  // namespace

Result<Document> read_json(std::string_view bytes) {
  Builder builder;
  if (!nlohmann::json::sax_parse(bytes, &builder)) {
    return Error{ErrorCode::kInvalidInput, "not a Flight Recorder dump: " + builder.problem, {}};
  }
  return std::move(builder.document);
}

}  // namespace lockstep::readers::flight_recorder
