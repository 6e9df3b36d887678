// SPDX-License-Identifier: Apache-2.0
// Rows of one run become batches: each of one table and one partition, so that the server takes it whole or
// not at all, and equal in content and number whenever the run is pushed. A batch that the store has
// confirmed leaves a mark there, and one that has its mark is not sent again.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "base/result.h"
#include "store/clickhouse/tables.h"
#include "store/clickhouse/wire/client.h"

namespace lockstep::store::clickhouse {

struct BatchLimits {
  size_t rows = 200'000;  // fewer cost the server a part each, more cost memory here
  // Of values (BlockWriter::bytes), over all open days together: about what one request holds at most.
  size_t bytes = size_t{32} << 20;
};

// For one run, one thread. After an error it is of no use.
class Batches {
 public:
  enum class Mode : uint8_t { kSend, kCompare };  // kCompare: nothing is sent
  // `day` of the marks: that of the run.
  Batches(Client& client, std::string database, uint64_t run, uint16_t day, const BatchLimits& limits,
          Mode mode = Mode::kSend)
      : client_(client), database_(std::move(database)), run_(run), day_(day), limits_(limits), mode_(mode) {}

  // Which batches of the run the store has. First.
  Result<void> read_marks();
  // The row that comes next, for its values, in the partition of a day. All rows of a table come before those
  // of the next one.
  Result<BlockWriter*> row(TableId id, uint16_t day);
  // Sends what is left of a table.
  Result<void> finish(TableId id);
  // What the store holds of a table against what was made here; empty if that is the same.
  Result<std::string> compare(TableId id);

  // What the run has, and what of it was sent now; the difference had its marks already.
  uint64_t rows() const { return rows_; }
  uint64_t sent_rows() const { return sent_rows_; }
  uint64_t batches() const { return batches_; }
  uint64_t sent_batches() const { return sent_batches_; }
  // Of the blocks of rows as they were sent; marks are not in it.
  uint64_t sent_bytes() const { return sent_bytes_; }

 private:
  // Of one table, whether it was sent or not: what compare() holds against the store.
  struct Made {
    uint64_t rows = 0;
    uint32_t batches = 0;
    uint32_t unmarked = 0;  // of them; kCompare alone leaves any
    Sums sums;
  };
  // Counts the bytes of the row that was given out last.
  void count_last();
  // Of the open days the one with the most bytes, to make room.
  Result<void> send_fullest(TableId id);
  // Skips a batch that has its mark. An error leaves the batch without one.
  Result<void> send(TableId id, const BlockWriter& block);
  Result<void> mark(TableId id, uint32_t batch, const BlockWriter& block);

  Client& client_;
  const std::string database_;
  const uint64_t run_;
  const uint16_t day_;
  const BatchLimits limits_;
  const Mode mode_;
  std::map<std::pair<std::string, uint64_t>, uint64_t> marks_;  // by target and number: the digest
  // Of all rows that this push sends, above those of every earlier push; in ms since the Unix epoch where
  // possible.
  uint64_t version_ = 0;
  std::map<uint16_t, BlockWriter> open_;  // of the table at hand, by day
  size_t open_rows_ = 0, open_bytes_ = 0;
  const BlockWriter* last_ = nullptr;  // of open_
  size_t last_bytes_ = 0;
  std::array<Made, kTables> made_;
  uint64_t rows_ = 0, sent_rows_ = 0, batches_ = 0, sent_batches_ = 0, sent_bytes_ = 0;
};

}  // namespace lockstep::store::clickhouse
