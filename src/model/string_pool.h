// SPDX-License-Identifier: Apache-2.0
// Interned text of a trace. Id 0 is the empty text. Ids are dense, in order of first use.
#pragma once
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

namespace lockstep::model {

using StringId = uint32_t;

class StringPool {
 public:
  StringPool() { intern(""); }
  StringPool(StringPool&&) = default;
  StringPool& operator=(StringPool&&) = default;
  // The id of the text, which is copied when new. An id stays valid for the life of the pool, also when it is
  // moved; a view from operator[] does, too. Ids of one pool mean nothing in another.
  StringId intern(std::string_view text);
  std::string_view operator[](StringId id) const { return texts_[id]; }
  size_t size() const { return texts_.size(); }

 private:
  std::deque<std::string> texts_;  // stable addresses: the map's keys point into it
  std::unordered_map<std::string_view, StringId> ids_;
};

}  // namespace lockstep::model
