// SPDX-License-Identifier: Apache-2.0
// Split lists of declared operations, put together from their pieces. A list that lacks a piece is left out
// and counted.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "format/records.h"
#include "model/trace.h"
#include "readers/native/file/file_view.h"
#include "readers/native/row_index.h"

namespace lockstep::readers::native {

class SplitLists {
 public:
  // One piece, in the order of its log. Any content: a piece that does not continue its list spoils the list.
  void add(const format::SplitsRecord& record);
  // Rows of `splits` for the operations' tasks, once all logs are read.
  void move_into(model::Trace& trace, uint32_t process, const RowIndex& index, ReadLosses& losses,
                 const std::string& path);

 private:
  struct List {
    std::vector<int64_t> values;
    uint32_t total = 0;
    bool is_whole = true;
    std::string text() const;
  };
  // Of a list longer than format::kSplitsKept capture keeps the first numbers and the last, so that is whole.
  static bool is_complete(const List& list);
  std::map<uint64_t, std::pair<List, List>> lists_;  // by handle; of the input, of the output
};

}  // namespace lockstep::readers::native
