// SPDX-License-Identifier: Apache-2.0
// Numbers say the order within a function and times the order between functions. The earliest known end of
// any member stands for an operation. Two functions that overlap may be placed either way, and then equally
// on all members, which is what matching needs.
#include "readers/common/call_order.h"

#include <algorithm>

#include "base/result.h"

namespace lockstep::readers::common {
namespace {

// Inspector keeps 1 to 59 % of what a busy job does; an index far beyond that is a damaged number, and
// analyses pay for every index.
constexpr uint64_t kMostFreePlaces = 256;  // for each operation that is there
constexpr uint64_t kFewPlaces = 65'536;
constexpr uint64_t kMostPlaces = uint64_t{1} << 31;

}  // namespace

void CallOrder::add(std::string_view func, uint32_t seq, int64_t ended_ns) {
  auto at = functions_.find(func);
  if (at == functions_.end()) at = functions_.emplace(func, Function()).first;
  at->second.push_back({seq, 0, ended_ns});
}

// By number, each once, with the earliest time; and no operation before one with a lower number.
void CallOrder::sort(Function& function) {
  std::sort(function.begin(), function.end(), [](const Operation& a, const Operation& b) {
    return a.seq != b.seq ? a.seq < b.seq : a.ended_ns < b.ended_ns;
  });
  function.erase(std::unique(function.begin(), function.end(),
                             [](const Operation& a, const Operation& b) { return a.seq == b.seq; }),
                 function.end());
  for (size_t i = 1; i < function.size(); ++i)
    function[i].ended_ns = std::max(function[i].ended_ns, function[i - 1].ended_ns);
}

bool CallOrder::finish() {
  uint64_t kept = 0, places = 0;
  for (auto& [name, function] : functions_) {
    sort(function);
    kept += function.size();
    places += uint64_t{function.back().seq} + 1;
  }
  const bool plausible = places <= kept * kMostFreePlaces + kFewPlaces && places < kMostPlaces;
  // A merge of sorted lists by time: the list whose next operation ended first gives it. n log k for k
  // functions, of which there are few.
  struct Head {
    Function* function;
    size_t next;
    uint32_t expected;
  };
  std::vector<Head> heads;
  for (auto& [name, function] : functions_) heads.push_back({&function, 0, 0});
  const auto later = [](const Head& a, const Head& b) {
    return (*a.function)[a.next].ended_ns > (*b.function)[b.next].ended_ns;
  };
  std::make_heap(heads.begin(), heads.end(), later);
  for (uint32_t place = 0; !heads.empty();) {
    std::pop_heap(heads.begin(), heads.end(), later);
    Head& head = heads.back();
    Operation& operation = (*head.function)[head.next];
    if (plausible) place += operation.seq - head.expected;
    operation.index = place++;
    head.expected = operation.seq + 1;
    if (++head.next == head.function->size()) {
      heads.pop_back();
    } else {
      std::push_heap(heads.begin(), heads.end(), later);
    }
  }
  return plausible;
}

uint32_t CallOrder::index(std::string_view func, uint32_t seq) const {
  const auto function = functions_.find(func);
  LOCKSTEP_CHECK(function != functions_.end());
  const auto at =
      std::lower_bound(function->second.begin(), function->second.end(), seq,
                       [](const Operation& operation, uint32_t wanted) { return operation.seq < wanted; });
  LOCKSTEP_CHECK(at != function->second.end() && at->seq == seq);
  return at->index;
}

}  // namespace lockstep::readers::common
