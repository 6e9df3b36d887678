// SPDX-License-Identifier: Apache-2.0
// Builds process files for tests, benchmarks, fuzz corpora and simulated jobs (sim/job): what a capture
// library leaves behind, by the same rules (format/file_layout.h), without a process that captures. No tool
// that reads links it.
#pragma once
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "format/definitions.h"
#include "format/records.h"

namespace lockstep::readers::native {

// A file in memory until bytes() or write(). Nothing is checked: tests build damaged files with it, too. One
// thread.
class FileBuilder {
 public:
  class Log;

  // A header as of an open file: a monotonic clock, so ticks are ns, and Unix time kEpochNs at tick 0.
  static constexpr int64_t kEpochNs = 1'700'000'000'000'000'000;
  FileBuilder();
  FileBuilder(const FileBuilder&) = delete;
  FileBuilder& operator=(const FileBuilder&) = delete;

  // May be changed until the file is built; sizes and seals are filled in then.
  format::FileHeader& header() { return header_; }
  const format::FileHeader& header() const { return header_; }
  // Definitions of the process. Fills in the head; `id` as the kind needs it.
  template <class Definition>
  void define(format::Def kind, uint32_t id, Definition definition, uint64_t ticks = 1000) {
    definition.head = {ticks, id, static_cast<uint16_t>(kind), sizeof definition / format::kUnitBytes};
    add_definition(meta_, format::Purpose::kMeta, 0, &definition, sizeof definition);
  }
  // A communicator; its index is the number of those before.
  uint32_t comm(uint64_t comm_id, int32_t rank, int32_t ranks, std::string_view name = "");
  uint32_t comm(format::CommDef definition);
  // Name of a kernel of AMD's runtime.
  void kernel_symbol(uint32_t number, std::string_view symbol) {
    add_name(meta_, format::Purpose::kMeta, 0, format::Def::kKernelSymbol, number, symbol);
  }
  // As written by a version before 1.4, without checksums.
  void unsealed() {
    header_.minor = 3;
    sealed_ = false;
  }
  // Late fields that were filled in from then on are not covered by seals; left alone, the heartbeat.
  void sealed_at(uint64_t ticks) { header_.sealed_ticks = ticks; }
  // Ring retention: each log recycles its oldest chunk instead of using more than `chunks`. Before logs are
  // made.
  void ring(uint32_t chunks);

  // A new log, which lives as long as the builder. `thread_name` is cut to 15 bytes, as the kernel cuts it.
  Log& log(uint32_t tid, std::string_view thread_name = "main", uint64_t pthread = 0);

  // The file as it is now, sealed unless unsealed() was called. More may be added behind it.
  std::vector<std::byte> bytes() const;
  size_t size_bytes() const { return format::kHeaderBytes + chunks_.size() * format::kChunkBytes; }
  // False if not all of it could be written.
  bool write(const std::string& path) const;

 private:
  using ChunkBytes = std::array<std::byte, format::kChunkBytes>;
  struct List {  // of definitions
    uint32_t chunk = 0, chunks = 0, unit = format::kUnitsPerChunk;
  };
  // Seals are made of what is written, on the way out, as capture makes them of the copy that goes into the
  // file.
  format::FileHeader final_header() const;
  ChunkBytes final_chunk(size_t chunk) const;
  // A new chunk at the end of the file; its index there.
  uint32_t add_chunk(format::Purpose purpose, uint16_t log, uint32_t chunk_no, uint32_t tid);
  void open_chunk(uint32_t index, format::Purpose purpose, uint16_t log, uint32_t chunk_no, uint32_t tid);
  // Where the definition now lies. Chunks do not move, so that it may be changed in place.
  std::byte* add_definition(List& list, format::Purpose purpose, uint16_t log, const void* bytes,
                            size_t size);
  void add_name(List& list, format::Purpose purpose, uint16_t log, format::Def kind, uint32_t number,
                std::string_view name);
  std::byte* unit(uint32_t chunk, uint32_t unit) {
    return chunks_[chunk]->data() + size_t{unit} * format::kUnitBytes;
  }
  format::ChunkHeader* chunk_header(uint32_t chunk) {
    return reinterpret_cast<format::ChunkHeader*>(chunks_[chunk]->data());
  }

  format::FileHeader header_{};
  std::vector<std::unique_ptr<ChunkBytes>> chunks_;
  List meta_;
  bool sealed_ = true;
  uint32_t comms_ = 0, ring_chunks_ = UINT32_MAX;
  std::vector<std::unique_ptr<Log>> logs_;
};

// A thread log. Handles are those that capture would give to the host.
class FileBuilder::Log {
 public:
  Log(FileBuilder& file, uint16_t number, uint32_t tid, std::string_view thread_name, uint64_t pthread);

  uint16_t number() const { return number_; }
  // Numbers for records to name: each call defines another one.
  uint16_t shape(std::string_view func, std::string_view datatype = "", std::string_view algo = "",
                 std::string_view proto = "", int32_t root = 0);
  uint16_t stream(uint64_t pointer);
  uint32_t kernel_name(std::string_view symbol);
  uint32_t range_name(std::string_view name);
  // Another thread takes the log over, from here on.
  void thread(uint32_t tid, std::string_view name, uint64_t pthread = 0, uint64_t ticks = 1000);
  uint64_t* losses() { return reinterpret_cast<format::LogDef*>(log_definition_)->losses; }
  void histogram(format::HistogramCell cell);

  // Appends a record whose head needs only `start` and what belongs to its kind.
  template <class Record>
  uint64_t add(format::Kind kind, Record record) {
    record.head.kind = kind;
    std::byte* at = append(&record, sizeof record);
    last_ = at;
    return format::make_handle(static_cast<uint32_t>(kind), number_, last_position_);
  }
  // The same with `parent`, a handle of this log, as its link.
  template <class Record>
  uint64_t add_child(format::Kind kind, Record record, uint64_t parent) {
    record.head.link = distance(parent, sizeof record);
    return add(kind, record);
  }
  // Units back from the record that the next add() writes; kFarLink when it does not fit.
  uint16_t distance(uint64_t parent, size_t size);
  // The record that was added last, for in-place changes.
  template <class Record>
  Record& last() {
    return *reinterpret_cast<Record*>(last_);
  }

 private:
  std::byte* append(const void* record, size_t size);
  void next_chunk();
  // The last unit of a chunk stays free, as the zero that ends a full one.
  bool fits(size_t size) const { return unit_ + size / format::kUnitBytes <= format::kLastUnit; }

  FileBuilder& file_;
  uint16_t number_;
  uint32_t tid_;
  List definitions_;
  std::byte* log_definition_;
  std::vector<uint32_t> chunks_;  // of records, oldest first
  uint32_t chunk_no_ = 0, unit_ = 0;
  uint16_t shapes_ = 0, streams_ = 0;
  uint32_t kernel_names_ = 0, range_names_ = 0;
  uint32_t histogram_ = 0, cells_ = 0;  // the chunk of cells, and those in all
  std::byte* last_ = nullptr;
  uint64_t last_position_ = 0, records_ = 0;
};

}  // namespace lockstep::readers::native
