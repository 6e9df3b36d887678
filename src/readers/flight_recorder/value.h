// SPDX-License-Identifier: Apache-2.0
// What a dump says before it is understood: plain values in one pool, named by their numbers. A hostile file
// may make containers that hold themselves, so whoever walks them goes to a fixed depth.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lockstep::readers::flight_recorder {

using ValueId = uint32_t;
inline constexpr ValueId kNoValue = 0xffffffff;

struct Value {
  enum class Kind : uint8_t { kNone, kBool, kInt, kFloat, kText, kList, kDict } kind = Kind::kNone;
  int64_t integer = 0;  // kBool: 0 or 1
  double number = 0;
  std::string_view text{};
  std::vector<ValueId> items{};  // kDict: keys and values by turns
};

class Values {
 public:
  // 1 GiB of them; a dump of 100,000 entries has 5 million.
  static constexpr size_t kMost = size_t{1} << 24;

  // kNoValue: there are too many.
  ValueId add(Value value) {
    if (values_.size() >= kMost) return kNoValue;
    values_.push_back(std::move(value));
    return static_cast<ValueId>(values_.size() - 1);
  }
  std::string_view keep(std::string text) { return texts_.emplace_back(std::move(text)); }
  Value& operator[](ValueId id) { return values_[id]; }
  const Value& operator[](ValueId id) const { return values_[id]; }

  // Value of a key; kNoValue if it is absent, or `dict` is none. Of equal keys, the last.
  ValueId find(ValueId dict, std::string_view key) const;
  // Items of a list, keys and values of a dict; nothing of anything else.
  const std::vector<ValueId>& items(ValueId id) const;
  bool is_dict(ValueId id) const { return id != kNoValue && values_[id].kind == Value::Kind::kDict; }
  // An integer, or a text or a whole number that says one; `otherwise` of anything else.
  int64_t integer(ValueId id, int64_t otherwise) const;
  std::string_view text(ValueId id) const;  // empty of anything else

 private:
  std::vector<Value> values_;
  std::deque<std::string> texts_;
};

struct Document {
  Values values;
  ValueId root = kNoValue;
  std::string cut;  // why it ends early; empty: it is whole
};

// `bytes` outlives the document. Executes nothing: a fixed set of opcodes, those that PyTorch writes and
// those that a Python of today writes for the same values. Anything else is an error that names its offset.
// Of a file that ends early, what was complete.
Result<Document> read_pickle(std::string_view bytes);
// A JSON text is copied where it has escapes. Depth is bounded. A text that ends early is an error.
Result<Document> read_json(std::string_view bytes);

}  // namespace lockstep::readers::flight_recorder
