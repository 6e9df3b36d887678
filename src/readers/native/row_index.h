// SPDX-License-Identifier: Apache-2.0
// Handle -> row of the model. A handle names a log and a position; a position is a chunk number and a unit.
// Rows of one table that one chunk adds are consecutive, so per record 16 bits are enough: table, and
// distance from the chunk's first row. Costs 2 KiB per 32 KiB chunk; no hash map on the per-record path.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "format/file_layout.h"
#include "model/trace.h"

namespace lockstep::readers::native {

// The table that holds a record's row. The numbers are stored in four bits of an index slot.
enum class Target : uint8_t {
  kNone,
  kCall,
  kTask,
  kChannel,
  kProxyOp,
  kProxyStep,
  kProxyCtrl,
  kNetEvent,
  kKernel,
  kLaunch,
  kRange,
  kGpuWork  // of GpuWork, not of a table
};
inline constexpr size_t kTargets = 12;

// A row of one table; none by default, and where a handle leads nowhere.
struct RowRef {
  Target table = Target::kNone;
  uint32_t row = model::kNoRow;
  explicit operator bool() const { return table != Target::kNone; }
};

// The rows of one log's records. Written while the log is decoded, then read; one thread.
class LogIndex {
 public:
  // Chunks come by ascending number. `first_rows`: present size of each table, by Target.
  void begin_chunk(uint32_t chunk_no, const std::array<uint32_t, kTargets>& first_rows) {
    numbers_.push_back(chunk_no);
    chunks_.emplace_back().first_rows = first_rows;
  }
  // A record of the newest chunk. Records are at least two units long, so a pair of units begins at most one.
  void set(uint32_t unit, Target table, uint32_t row) {
    ChunkRows& chunk = chunks_.back();
    uint32_t distance = row - chunk.first_rows[static_cast<size_t>(table)];
    chunk.slots[unit / 2] = static_cast<uint16_t>(kUsed | (unit & 1) << kOddShift |
                                                  static_cast<uint32_t>(table) << kTableShift | distance);
  }
  // The row of the record at a position; none where no record begins. Any position may be asked for.
  RowRef find(uint64_t position) const {
    uint64_t number = position / format::kUnitsPerChunk;
    const ChunkRows* chunk = find_chunk(number);
    if (chunk == nullptr) return {};
    uint32_t unit = static_cast<uint32_t>(position % format::kUnitsPerChunk);
    uint32_t slot = chunk->slots[unit / 2];
    if (slot == 0 || ((slot >> kOddShift) & 1) != (unit & 1)) return {};
    auto table = static_cast<Target>(slot >> kTableShift & kTableMask);
    return {table, chunk->first_rows[static_cast<size_t>(table)] + (slot & kDistanceMask)};
  }
  // Room for so many chunks, as the census counted them.
  void reserve(size_t chunks) {
    numbers_.reserve(chunks);
    chunks_.reserve(chunks);
  }

 private:
  // A slot: used, the record begins at the odd unit of the pair, table, distance from the chunk's first row.
  static constexpr uint32_t kUsed = 0x8000, kOddShift = 14, kTableShift = 10, kTableMask = 0xf,
                            kDistanceMask = 0x3ff;
  static_assert(format::kUnitsPerChunk / 2 <= kDistanceMask + 1 && kTargets <= kTableMask + 1);
  struct ChunkRows {
    std::array<uint32_t, kTargets> first_rows;
    std::array<uint16_t, format::kUnitsPerChunk / 2> slots{};
  };
  const ChunkRows* find_chunk(uint64_t number) const {
    if (numbers_.empty() || number < numbers_.front() || number > numbers_.back()) return nullptr;
    size_t guess = number - numbers_.front();  // right unless numbers are missing
    if (guess < numbers_.size() && numbers_[guess] == number) return &chunks_[guess];
    auto at = std::lower_bound(numbers_.begin(), numbers_.end(), number);
    return *at == number ? &chunks_[static_cast<size_t>(at - numbers_.begin())] : nullptr;
  }

  std::vector<uint32_t> numbers_;
  std::vector<ChunkRows> chunks_;
};

// Index over all logs of a file.
class RowIndex {
 public:
  RowIndex() : logs_(format::kMaxLogs + 1) {}
  // `log` is at most format::kMaxLogs: FileView lets no other number through.
  LogIndex& log(uint16_t log) { return logs_[log]; }
  // The event whose record is at `now` is known by the handle `issued` (ring retention moves open events).
  void add_name(uint64_t issued, uint64_t now) { names_[issued] = now; }
  // The row of an event by any handle, also a forged one: none where no record of the file is. A handle that
  // still names a record needs no look at the moved ones.
  RowRef find(uint64_t handle) const {
    RowRef found = find_record(handle);
    if (found || names_.empty()) return found;
    auto name = names_.find(handle);
    return name == names_.end() ? RowRef{} : find_record(name->second);
  }

 private:
  RowRef find_record(uint64_t handle) const {
    uint32_t log = format::handle_log(handle);
    return log < logs_.size() ? logs_[log].find(format::handle_position(handle)) : RowRef{};
  }
  std::vector<LogIndex> logs_;
  std::unordered_map<uint64_t, uint64_t> names_;
};

}  // namespace lockstep::readers::native
