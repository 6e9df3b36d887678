// SPDX-License-Identifier: Apache-2.0
// A process file read back byte by byte, for tests: every published entry, and every breach of docs/format.md
// found on the way. Deliberately apart from readers/native, so that writer and reader cannot be wrong in the
// same way.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include "capture/core/losses.h"
#include "format/definitions.h"
#include "format/file_layout.h"
#include "format/records.h"
#include "format/segment_layout.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::test {

// A record, or a definition, as it lies in the file.
struct Entry {
  uint32_t kind = 0;
  uint32_t log = 0;       // 0: definitions of the process
  uint64_t position = 0;  // of a record
  const char* bytes = nullptr;

  // A record of this kind; a Coll has two sizes, and both are read as a CollRecord.
  bool is(format::Kind wanted) const {
    return kind == static_cast<uint32_t>(wanted) ||
           (wanted == format::Kind::kColl && kind == static_cast<uint32_t>(format::Kind::kShortColl));
  }
  template <class Type>
  Type as() const {
    if constexpr (std::is_same_v<Type, format::CollRecord>) {
      if (kind == static_cast<uint32_t>(format::Kind::kShortColl))
        return format::expand(as<format::ShortCollRecord>());
    }
    Type copy;
    memcpy(static_cast<void*>(&copy), bytes, sizeof copy);
    return copy;
  }
  format::RecordHead head() const { return as<format::RecordHead>(); }
  format::DefHead def() const { return as<format::DefHead>(); }
  uint64_t handle() const { return format::make_handle(kind, log, position); }
};

class LksFile {
 public:
  explicit LksFile(const std::string& path) : path_(path) {
    const std::vector<char> segment = segment_of(read_all(path));
    bytes_ = read_all(path);
    if (!segment.empty()) lay_over(segment);
    if (bytes_.size() < format::kHeaderBytes) {
      problem("shorter than its header");
      return;
    }
    memcpy(static_cast<void*>(&header_), bytes_.data(), sizeof header_);
    if (memcmp(header_.magic, format::kMagic, sizeof format::kMagic) != 0) problem("wrong magic");
    if (header_.major != format::kMajor || header_.chunk_bytes != format::kChunkBytes)
      problem("wrong version");
    find_chunks();
    for (auto& [key, chunks] : chunks_) walk_chunks(key.first, key.second, chunks);
  }

  static bool has_segment(const std::string& path) {
    return as_at<format::FileHeader>(read_all(path, format::kHeaderBytes), 0).segment[0] != 0;
  }
  // What is in memory is no part of this copy.
  static void forget_segment(const std::string& copy) {
    std::fstream out(copy, std::ios::binary | std::ios::in | std::ios::out);
    out.seekp(offsetof(format::FileHeader, segment));
    out.put(0);
  }
  // Of a process that was killed.
  static void remove_segment(const std::string& path) {
    const auto header = as_at<format::FileHeader>(read_all(path, format::kHeaderBytes), 0);
    std::error_code none;
    if (header.segment[0] != 0)
      std::filesystem::remove(std::string(format::kSegmentFolder) + "/" + header.segment, none);
  }
  const format::FileHeader& header() const { return header_; }
  const std::string& path() const { return path_; }
  size_t size() const { return bytes_.size(); }
  format::FileState state() const { return static_cast<format::FileState>(header_.state); }
  const std::vector<std::string>& problems() const { return problems_; }
  const std::vector<Entry>& records() const { return records_; }
  size_t logs() const { return count(format::Def::kLog); }

  std::vector<Entry> records(format::Kind kind) const {
    std::vector<Entry> out;
    std::copy_if(records_.begin(), records_.end(), std::back_inserter(out),
                 [&](const Entry& e) { return e.is(kind); });
    return out;
  }
  std::vector<Entry> definitions(format::Def kind) const {
    return of(definitions_, static_cast<uint32_t>(kind));
  }
  size_t count(format::Kind kind) const { return records(kind).size(); }
  size_t count(format::Def kind) const { return definitions(kind).size(); }

  // The records of a kind as structs.
  template <class Type>
  std::vector<Type> all(format::Kind kind) const {
    std::vector<Type> out;
    for (const Entry& entry : records(kind)) out.push_back(entry.as<Type>());
    return out;
  }
  template <class Type>
  std::vector<Type> all(format::Def kind) const {
    std::vector<Type> out;
    for (const Entry& entry : definitions(kind)) out.push_back(entry.as<Type>());
    return out;
  }
  // The one record of a kind; a test failure and zeros if there are more or fewer.
  template <class Type>
  Type one(format::Kind kind) const {
    std::vector<Type> found = all<Type>(kind);
    EXPECT_EQ(found.size(), 1u) << "records of kind " << static_cast<int>(kind);
    return found.empty() ? Type{} : found[0];
  }
  Entry at(uint64_t handle) const {
    for (const Entry& entry : records_) {
      if (entry.handle() == handle) return entry;
    }
    return {};
  }
  format::ShapeDef shape(uint32_t log, uint32_t id) const {
    for (const Entry& entry : definitions(format::Def::kShape)) {
      if (entry.log == log && entry.def().id == id) return entry.as<format::ShapeDef>();
    }
    return {};
  }
  // A loss, summed over the process and its logs.
  uint64_t lost(capture::Loss kind) const {
    if (kind >= format::kLossKinds) return header_.more_losses[kind - format::kLossKinds];
    uint64_t sum = header_.losses[kind];
    for (const auto& log : all<format::LogDef>(format::Def::kLog)) sum += log.losses[kind];
    return sum;
  }
  // By threads that outran the keeper and the writer: on a busy machine the latter may seem to wait for
  // storage.
  uint64_t lost_without_a_place() const {
    return lost(capture::kLoss_no_chunk) + lost(capture::kLoss_storage_slow);
  }
  uint64_t lost() const {
    uint64_t sum = 0;
    for (uint32_t kind = 0; kind < format::kAllLossKinds; ++kind)
      sum += lost(static_cast<capture::Loss>(kind));
    return sum;
  }
  std::vector<format::HistogramCell> histogram() const {
    std::vector<format::HistogramCell> cells;
    for (uint64_t at : histograms_) {
      for (uint32_t i = 0; i < format::kHistogramCells; ++i) {
        format::HistogramCell cell;
        memcpy(&cell, bytes_.data() + at + sizeof(format::ChunkHeader) + i * sizeof cell, sizeof cell);
        if (cell.key != 0) cells.push_back(cell);
      }
    }
    return cells;
  }

 private:
  using ChunkMap = std::map<uint32_t, uint32_t>;  // chunk_no -> index

  static std::vector<char> read_all(const std::string& path, uintmax_t most = UINT64_MAX) {
    std::ifstream in(path, std::ios::binary);
    std::error_code none;
    const uintmax_t size = std::filesystem::file_size(path, none);
    std::vector<char> bytes(none ? 0 : std::min(size, most));
    in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    bytes.resize(static_cast<size_t>(in.gcount()));
    return bytes;
  }
  static std::vector<uint32_t> table_of(const std::vector<char>& segment) {
    std::vector<uint32_t> table(as_at<format::SegmentHeader>(segment, 0).places);
    if (segment.size() < format::segment_file_offset(static_cast<uint32_t>(table.size()))) return {};
    memcpy(table.data(), segment.data() + format::kSegmentHeaderBytes, table.size() * sizeof(uint32_t));
    return table;
  }
  template <class Type>
  static Type as_at(const std::vector<char>& bytes, size_t at) {
    Type value{};
    if (bytes.size() >= at + sizeof value)
      memcpy(static_cast<void*>(&value), bytes.data() + at, sizeof value);
    return value;
  }
  // What the process of a file that is not closed has in memory; a place that changed meanwhile holds
  // nothing. Read before the file: what has left it is there.
  static std::vector<char> segment_of(const std::vector<char>& file) {
    auto header = as_at<format::FileHeader>(file, 0);
    if (header.segment[0] == 0 || header.state == static_cast<uint32_t>(format::FileState::kClosed))
      return {};
    const std::string path = std::string(format::kSegmentFolder) + "/" + header.segment;
    const auto places = as_at<format::SegmentHeader>(read_all(path, format::kSegmentHeaderBytes), 0).places;
    const uint64_t begin = format::segment_file_offset(places);
    uint64_t used = 0;  // the rest is a hole
    for (uint64_t place = 0; const uint32_t entry : table_of(read_all(path, begin)))
      used = entry != 0 ? place + 1 : used, ++place;
    std::vector<char> segment = read_all(path, begin + format::kHeaderBytes + used * format::kChunkBytes);
    auto own = as_at<format::SegmentHeader>(segment, 0);
    if (memcmp(own.magic, format::kSegmentMagic, sizeof own.magic) != 0 || own.key != header.segment_key)
      return {};
    const std::vector<uint32_t> before = table_of(segment), after = table_of(read_all(path, begin));
    if (after.empty()) return {};  // adopted meanwhile
    for (size_t place = 0; place < before.size(); ++place) {
      if (place < used && place < after.size() && after[place] == before[place]) continue;
      memset(segment.data() + format::kSegmentHeaderBytes + place * sizeof(uint32_t), 0, sizeof(uint32_t));
    }
    return segment;
  }
  void lay_over(const std::vector<char>& segment) {
    const std::vector<uint32_t> table = table_of(segment);
    uint32_t end = 0;
    for (uint32_t entry : table) end = entry == format::kPlaceClaimed ? end : std::max(end, entry);
    bytes_.resize(
        std::max<size_t>(bytes_.size(), format::kHeaderBytes + uint64_t{end} * format::kChunkBytes));
    const size_t base = format::segment_file_offset(static_cast<uint32_t>(table.size()));
    memcpy(bytes_.data(), segment.data() + base, format::kHeaderBytes);
    for (size_t place = 0; place < table.size(); ++place) {
      if (table[place] == 0 || table[place] == format::kPlaceClaimed) continue;
      const size_t from = base + format::kHeaderBytes + place * format::kChunkBytes;
      memcpy(bytes_.data() + format::kHeaderBytes + size_t{table[place] - 1} * format::kChunkBytes,
             segment.data() + from, format::kChunkBytes);
    }
  }

  static std::vector<Entry> of(const std::vector<Entry>& entries, uint32_t kind) {
    std::vector<Entry> out;
    std::copy_if(entries.begin(), entries.end(), std::back_inserter(out),
                 [&](const Entry& e) { return e.kind == kind; });
    return out;
  }
  void problem(const std::string& text) {
    if (problems_.size() < 20) problems_.push_back(text);
  }
  const char* chunk(uint32_t index) const {
    return bytes_.data() + format::kHeaderBytes + uint64_t{index} * format::kChunkBytes;
  }
  format::ChunkHeader chunk_header(uint32_t index) const {
    format::ChunkHeader header;
    memcpy(static_cast<void*>(&header), chunk(index), sizeof header);
    return header;
  }

  void find_chunks() {
    auto chunks = static_cast<uint32_t>((bytes_.size() - format::kHeaderBytes) / format::kChunkBytes);
    for (uint32_t index = 0; index < chunks; ++index) {
      format::ChunkHeader header = chunk_header(index);
      if (header.magic != format::kChunkMagic) continue;
      if (header.purpose == format::Purpose::kHistogram) {
        histograms_.push_back(static_cast<uint64_t>(chunk(index) - bytes_.data()));
        continue;
      }
      auto key = std::make_pair(header.purpose, uint32_t{header.log});
      if (!chunks_[key].emplace(header.chunk_no, index).second) problem("two chunks with one number");
    }
  }
  void walk_chunks(format::Purpose purpose, uint32_t log, const ChunkMap& chunks) {
    bool ring = header_.retention == format::Retention::kRing && purpose == format::Purpose::kRecords;
    if (!ring && chunks.begin()->first != 0) problem("the first chunk is missing");
    for (auto at = chunks.begin(); at != chunks.end(); ++at) {
      auto next = std::next(at);
      format::ChunkHeader header = chunk_header(at->second);
      bool newest = next == chunks.end();
      if (!newest && (next->first != at->first + 1 || header.next != next->second))
        problem("a chunk is missing in between");
      size_t before = records_.size();
      if (purpose == format::Purpose::kRecords) {
        walk_records(log, *at, newest);
        if (!newest && header.records != records_.size() - before)
          problem("a full chunk miscounts its records");
      } else {
        walk_definitions(log, at->second);
      }
    }
  }
  void walk_records(uint32_t log, const ChunkMap::value_type& at, bool newest) {
    uint32_t unit = format::kChunkHeaderUnits;
    while (unit < format::kLastUnit) {
      const char* bytes = chunk(at.second) + unit * format::kUnitBytes;
      Entry entry{0, log, uint64_t{at.first} * format::kUnitsPerChunk + unit, bytes};
      entry.kind = static_cast<uint32_t>(entry.head().kind);
      if (entry.kind == 0) {
        if (entry.head().stop_after != 0 || entry.head().flags != 0) problem("half a tag word");
        break;
      }
      uint32_t units = format::record_bytes(static_cast<uint8_t>(entry.kind)) / format::kUnitBytes;
      if (units == 0 || unit + units > format::kLastUnit) {
        problem("a record of unknown kind or beyond its chunk");
        return;
      }
      records_.push_back(entry);
      unit += units;
    }
    // A full chunk has no room for the largest record.
    if (!newest && (format::kLastUnit - unit) * format::kUnitBytes >= sizeof(format::ApiOpRecord))
      problem("a chunk ends early");
  }
  void walk_definitions(uint32_t log, uint32_t index) {
    for (uint32_t unit = format::kChunkHeaderUnits; unit < format::kLastUnit;) {
      Entry entry{0, log, 0, chunk(index) + unit * format::kUnitBytes};
      entry.kind = entry.def().kind;
      if (entry.kind == 0) return;
      if (entry.def().units == 0 || unit + entry.def().units > format::kLastUnit) {
        problem("a definition beyond its chunk");
        return;
      }
      definitions_.push_back(entry);
      unit += entry.def().units;
    }
  }

  std::string path_;
  std::vector<char> bytes_;
  format::FileHeader header_{};
  std::map<std::pair<format::Purpose, uint32_t>, ChunkMap> chunks_;
  std::vector<uint64_t> histograms_;
  std::vector<Entry> records_, definitions_;
  std::vector<std::string> problems_;
};

// A run directory of its own, removed at the end.
class RunDirectory {
 public:
  RunDirectory() = default;
  RunDirectory(const RunDirectory&) = delete;
  RunDirectory& operator=(const RunDirectory&) = delete;
  ~RunDirectory() {
    if (!std::filesystem::is_directory(path())) return;
    for (const std::string& file : files()) LksFile::remove_segment(file);
  }
  const std::string& path() const { return folder_.path(); }
  std::vector<std::string> files() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path())) {
      if (entry.path().extension() == ".lks") found.push_back(entry.path());
    }
    std::sort(found.begin(), found.end());
    return found;
  }
  // The only file there is, checked against the format.
  LksFile file() const {
    std::vector<std::string> found = files();
    EXPECT_EQ(found.size(), 1u) << "process files in " << path();
    LksFile file(found.empty() ? folder_ / "none" : found[0]);
    EXPECT_TRUE(file.problems().empty()) << file.problems()[0];
    return file;
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace lockstep::test
