// SPDX-License-Identifier: Apache-2.0
#include "model/trace.h"

namespace lockstep::model {

std::string_view gpu_source_name(uint8_t source) {
  constexpr std::string_view kNames[] = {"none", "KernelCh", "Api",       "Cupti",
                                         "Hsa",  "Watchdog", "Inspector", "Network"};
  return source < std::size(kNames) ? kNames[source] : "?";
}

StringId StringPool::intern(std::string_view text) {
  if (auto found = ids_.find(text); found != ids_.end()) return found->second;
  auto id = static_cast<StringId>(texts_.size());
  texts_.emplace_back(text);
  // The key views the copy in the deque, whose texts never move.
  ids_.emplace(texts_.back(), id);
  return id;
}

// A linear search, since equal losses are folded: a trace has few rows of them.
void Trace::lose(uint32_t process, std::string_view stage, std::string_view kind, uint64_t count,
                 std::string_view detail) {
  if (count == 0) return;
  Loss row{process, strings.intern(stage), strings.intern(kind), count, strings.intern(detail)};
  for (size_t i = 0; i < losses.size(); ++i) {
    if (losses.process[i] == row.process && losses.stage[i] == row.stage && losses.kind[i] == row.kind &&
        losses.detail[i] == row.detail) {
      losses.count[i] += count;
      return;
    }
  }
  losses.append(row);
}

// The hash only finds candidates: shapes of one hash stand side by side and are compared.
uint32_t Trace::intern_shape(const Shape& shape) {
  uint64_t key = 0;
  for (uint64_t part : {uint64_t{shape.func}, uint64_t{shape.datatype}, uint64_t{shape.algo},
                        uint64_t{shape.proto}, uint64_t{static_cast<uint32_t>(shape.root)}}) {
    key = (key ^ part) * 0x9e3779b97f4a7c15;
    key ^= key >> 32;
  }
  for (uint32_t row : shape_index_[key]) {
    if (shapes.func[row] == shape.func && shapes.datatype[row] == shape.datatype &&
        shapes.algo[row] == shape.algo && shapes.proto[row] == shape.proto &&
        shapes.root[row] == shape.root) {
      return row;
    }
  }
  uint32_t row = shapes.append(shape);
  shape_index_[key].push_back(row);
  return row;
}

}  // namespace lockstep::model
