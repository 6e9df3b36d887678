// SPDX-License-Identifier: Apache-2.0
// Puts the pieces of a split list together. A list is taken only if every piece of it is there and fits: part
// of a list would say that a rank sent nothing to the others, and the job would look unbalanced.
#include "readers/native/split_lists.h"

#include <algorithm>
#include <iterator>

#include "model/torch/comms_id.h"

namespace lockstep::readers::native {

// Pieces of a list follow each other in their log.
void SplitLists::add(const format::SplitsRecord& record) {
  auto& [in, out] = lists_[record.child];
  List& list = record.is_out != 0 ? out : in;
  const size_t n = std::min<size_t>(record.n, std::size(record.values));
  // `total` may be any number; what is kept of a list is bounded, so a forged one takes no memory.
  list.is_whole = list.is_whole && record.first == list.values.size() &&
                  (list.total == 0 || list.total == record.total) &&
                  list.values.size() + n <= format::kSplitsKept;
  list.total = record.total;
  if (list.is_whole) list.values.insert(list.values.end(), record.values, record.values + n);
}

bool SplitLists::is_complete(const List& list) {
  return list.is_whole && list.values.size() == std::min(list.total, format::kSplitsKept);
}

std::string SplitLists::List::text() const {
  return total == 0 ? std::string() : model::torch_list(values, total);
}

void SplitLists::move_into(model::Trace& trace, uint32_t process, const RowIndex& index, ReadLosses& losses,
                           const std::string& path) {
  for (const auto& [handle, lists] : lists_) {
    const RowRef op = index.find(handle);
    // Both or neither: one list without the other shows half of an exchange.
    if (op.table != Target::kTask || !is_complete(lists.first) || !is_complete(lists.second)) {
      losses.add("incomplete_split", 1,
                 [&] { return "split lists of operations that are not whole in the file: " + path; });
      continue;
    }
    trace.splits.append({.process = process,
                         .op = model::kNoRow,
                         .task = op.row,
                         .in_split = trace.strings.intern(lists.first.text()),
                         .out_split = trace.strings.intern(lists.second.text())});
  }
  lists_.clear();
}

}  // namespace lockstep::readers::native
