// SPDX-License-Identifier: Apache-2.0
#include "readers/native/file_builder.h"

#include <algorithm>
#include <cstddef>
#include <fstream>

#include "format/losses.h"
#include "format/seal.h"

namespace lockstep::readers::native {
namespace {

// Writes what capture writes, in its order and with its terminators, so that tests read what readers will
// meet. Seals and the header's counts are made last, as they depend on all the rest. Test files differ from
// each other by what a test sets and by nothing else: all clocks, pids and ids are fixed.
using format::ChunkHeader;
using format::Def;
using format::Purpose;

template <size_t N>
// Cut to leave the NUL; `out` is zero before.
void copy_text(char (&out)[N], std::string_view text) {
  std::memcpy(out, text.data(), std::min(text.size(), N - 1));
}

template <class Definition>
Definition with_head(Definition definition, Def kind, uint32_t id) {
  definition.head = {1000, id, static_cast<uint16_t>(kind), sizeof definition / format::kUnitBytes};
  return definition;
}

}  // namespace

FileBuilder::FileBuilder() {
  // Padding, too: the same run has the same bytes.
  std::memset(static_cast<void*>(&header_), 0, sizeof header_);
  std::memcpy(header_.magic, format::kMagic, sizeof header_.magic);
  header_.major = format::kMajor;
  header_.minor = format::kMinor;
  header_.header_bytes = format::kHeaderBytes;
  header_.chunk_bytes = format::kChunkBytes;
  header_.unit_bytes = format::kUnitBytes;
  header_.source = format::Source::kNccl;
  header_.host_clock = format::HostClock::kMonotonic;
  header_.gpu_clock = format::GpuClock::kNvidiaNs;
  header_.mode = format::Mode::kDeep;
  header_.retention = format::Retention::kStream;
  header_.tick_hz = 1'000'000'000;
  header_.pid = 100;
  header_.start_ticks = 5000;
  header_.rank = header_.local_rank = header_.node_rank = 0;
  header_.world = header_.local_world = header_.nodes = 1;
  header_.boot_id[0] = 0xb0;
  header_.first_anchor = {1000, 1000, 1000, kEpochNs + 1000, 100, 0};
  copy_text(header_.host, "node1");
  copy_text(header_.launcher, "none");
  header_.process_tag = 0x7a9;
  header_.state = static_cast<uint32_t>(format::FileState::kOpen);
}

uint32_t FileBuilder::comm(uint64_t comm_id, int32_t rank, int32_t ranks, std::string_view name) {
  format::CommDef definition{};
  definition.comm_id = comm_id;
  definition.rank = rank;
  definition.ranks = ranks;
  definition.nodes = 1;
  definition.api_version = 5;
  definition.device = -1;
  copy_text(definition.name, name);
  return comm(definition);
}

uint32_t FileBuilder::comm(format::CommDef definition) {
  define(Def::kComm, comms_, definition);
  return comms_++;
}

void FileBuilder::ring(uint32_t chunks) {
  header_.retention = format::Retention::kRing;
  ring_chunks_ = chunks;
}

FileBuilder::Log& FileBuilder::log(uint32_t tid, std::string_view thread_name, uint64_t pthread) {
  auto number = static_cast<uint16_t>(logs_.size() + 1);
  return *logs_.emplace_back(std::make_unique<Log>(*this, number, tid, thread_name, pthread));
}

uint32_t FileBuilder::add_chunk(Purpose purpose, uint16_t log, uint32_t chunk_no, uint32_t tid) {
  auto index = static_cast<uint32_t>(chunks_.size());
  chunks_.push_back(std::make_unique<ChunkBytes>());
  open_chunk(index, purpose, log, chunk_no, tid);
  return index;
}

void FileBuilder::open_chunk(uint32_t index, Purpose purpose, uint16_t log, uint32_t chunk_no, uint32_t tid) {
  ChunkHeader header{};
  header.magic = format::kChunkMagic;
  header.purpose = purpose;
  header.log = log;
  header.chunk_no = chunk_no;
  header.tid = tid;
  std::memcpy(chunks_[index]->data(), &header, sizeof header);
  // A recycled chunk keeps the old bytes behind this zero, as in a real ring: readers must stop here.
  std::memset(unit(index, format::kChunkHeaderUnits), 0, format::kUnitBytes);
}

std::byte* FileBuilder::add_definition(List& list, Purpose purpose, uint16_t log, const void* bytes,
                                       size_t size) {
  auto units = static_cast<uint32_t>(size / format::kUnitBytes);
  // A full chunk names the next. The first unit of a new List is beyond its end, so the first entry makes a
  // chunk.
  if (list.unit + units > format::kLastUnit) {
    uint32_t next = add_chunk(purpose, log, list.chunks, 0);
    if (list.chunks++ > 0) chunk_header(list.chunk)->next = next;
    list.chunk = next;
    list.unit = format::kChunkHeaderUnits;
  }
  std::byte* at = unit(list.chunk, list.unit);
  std::memcpy(at, bytes, size);
  list.unit += units;
  return at;
}

format::FileHeader FileBuilder::final_header() const {
  format::FileHeader header = header_;
  header.chunks_claimed = header.chunks_ready = static_cast<uint32_t>(chunks_.size());
  if (sealed_) {
    header.seal = format::seal_of_header(header);
    // As late as the heartbeat, so that a closed file counts as sealed to its end.
    if (header.sealed_ticks == 0) header.sealed_ticks = std::max<uint64_t>(header.heartbeat_ticks, 1);
  }
  return header;
}

FileBuilder::ChunkBytes FileBuilder::final_chunk(size_t chunk) const {
  alignas(64) ChunkBytes bytes = *chunks_[chunk];
  auto* header = reinterpret_cast<ChunkHeader*>(bytes.data());
  if (sealed_ && format::has_seal(header->purpose))
    header->seal = format::make_seal(reinterpret_cast<const unsigned char*>(bytes.data()));
  return bytes;
}

std::vector<std::byte> FileBuilder::bytes() const {
  std::vector<std::byte> out(size_bytes());
  const format::FileHeader header = final_header();
  std::memcpy(out.data(), &header, sizeof header);
  for (size_t i = 0; i < chunks_.size(); ++i) {
    const ChunkBytes chunk = final_chunk(i);
    std::memcpy(out.data() + format::kHeaderBytes + i * format::kChunkBytes, chunk.data(), chunk.size());
  }
  return out;
}

// Chunk by chunk: a simulated job would need its bytes twice otherwise.
bool FileBuilder::write(const std::string& path) const {
  std::array<char, format::kHeaderBytes> first{};
  const format::FileHeader header = final_header();
  std::memcpy(first.data(), &header, sizeof header);
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(first.data(), first.size());
  for (size_t i = 0; i < chunks_.size(); ++i) {
    const ChunkBytes chunk = final_chunk(i);
    out.write(reinterpret_cast<const char*>(chunk.data()), format::kChunkBytes);
  }
  out.close();
  return out.good();
}

FileBuilder::Log::Log(FileBuilder& file, uint16_t number, uint32_t tid, std::string_view thread_name,
                      uint64_t pthread)
    : file_(file), number_(number), tid_(tid) {
  auto definition = with_head(format::LogDef{}, Def::kLog, number);
  log_definition_ =
      file_.add_definition(definitions_, Purpose::kDefs, number_, &definition, sizeof definition);
  chunks_.push_back(file_.add_chunk(Purpose::kRecords, number_, 0, tid_));
  unit_ = format::kChunkHeaderUnits;
  thread(tid, thread_name, pthread);
}

void FileBuilder::Log::thread(uint32_t tid, std::string_view name, uint64_t pthread, uint64_t ticks) {
  tid_ = tid;
  auto definition = with_head(format::ThreadDef{}, Def::kThread, tid);
  definition.head.ticks = ticks;
  definition.pthread = pthread;
  definition.from_position = uint64_t{chunk_no_} * format::kUnitsPerChunk + unit_;
  copy_text(definition.name, name);
  file_.add_definition(definitions_, Purpose::kDefs, number_, &definition, sizeof definition);
}

uint16_t FileBuilder::Log::shape(std::string_view func, std::string_view datatype, std::string_view algo,
                                 std::string_view proto, int32_t root) {
  auto definition = with_head(format::ShapeDef{}, Def::kShape, ++shapes_);
  definition.root = root;
  copy_text(definition.func, func);
  copy_text(definition.datatype, datatype);
  copy_text(definition.algo, algo);
  copy_text(definition.proto, proto);
  file_.add_definition(definitions_, Purpose::kDefs, number_, &definition, sizeof definition);
  return shapes_;
}

uint16_t FileBuilder::Log::stream(uint64_t pointer) {
  auto definition = with_head(format::StreamDef{}, Def::kStream, ++streams_);
  definition.stream = pointer;
  file_.add_definition(definitions_, Purpose::kDefs, number_, &definition, sizeof definition);
  return streams_;
}

uint32_t FileBuilder::Log::kernel_name(std::string_view symbol) {
  file_.add_name(definitions_, Purpose::kDefs, number_, Def::kKernelName, ++kernel_names_,
                 symbol.substr(0, format::kMaxKernelNameBytes - 1));
  return kernel_names_;
}

uint32_t FileBuilder::Log::range_name(std::string_view name) {
  file_.add_name(definitions_, Purpose::kDefs, number_, Def::kRangeName, ++range_names_,
                 name.substr(0, format::kMaxRangeNameBytes - 1));
  return range_names_;
}

void FileBuilder::add_name(List& list, Purpose purpose, uint16_t log, Def kind, uint32_t number,
                           std::string_view name) {
  constexpr size_t kHead = offsetof(format::NameDef, name);
  // Whole units, with room for at least one NUL.
  const size_t size = (kHead + name.size() + format::kUnitBytes) / format::kUnitBytes * format::kUnitBytes;
  std::vector<std::byte> bytes(std::max(size, sizeof(format::NameDef)));
  auto head = with_head(format::NameDef{}, kind, number).head;
  head.units = static_cast<uint16_t>(bytes.size() / format::kUnitBytes);
  std::memcpy(bytes.data(), &head, sizeof head);
  std::memcpy(bytes.data() + kHead, name.data(), name.size());
  add_definition(list, purpose, log, bytes.data(), bytes.size());
}

void FileBuilder::Log::histogram(format::HistogramCell cell) {
  const uint32_t at = cells_ % format::kHistogramCells;
  if (at == 0)
    histogram_ = file_.add_chunk(Purpose::kHistogram, number_, cells_ / format::kHistogramCells, tid_);
  ++cells_;
  size_t offset = sizeof(ChunkHeader) + at * sizeof cell;
  std::memcpy(file_.chunks_[histogram_]->data() + offset, &cell, sizeof cell);
}

uint16_t FileBuilder::Log::distance(uint64_t parent, size_t size) {
  if (!fits(size)) next_chunk();
  uint64_t back = uint64_t{chunk_no_} * format::kUnitsPerChunk + unit_ - format::handle_position(parent);
  return format::handle_log(parent) == number_ && back < format::kFarLink ? static_cast<uint16_t>(back)
                                                                          : format::kFarLink;
}

void FileBuilder::Log::next_chunk() {
  file_.chunk_header(chunks_.back())->records = static_cast<uint32_t>(records_);
  records_ = 0;
  ++chunk_no_;
  const uint32_t full = chunks_.back();
  if (chunks_.size() >= file_.ring_chunks_) {
    std::rotate(chunks_.begin(), chunks_.begin() + 1, chunks_.end());
    uint64_t& overwritten = losses()[format::kLoss_overwritten];
    overwritten += file_.chunk_header(chunks_.back())->records;
    file_.open_chunk(chunks_.back(), Purpose::kRecords, number_, chunk_no_, tid_);
  } else {
    chunks_.push_back(file_.add_chunk(Purpose::kRecords, number_, chunk_no_, tid_));
  }
  if (chunks_.back() != full) file_.chunk_header(full)->next = chunks_.back();
  unit_ = format::kChunkHeaderUnits;
}

std::byte* FileBuilder::Log::append(const void* record, size_t size) {
  if (!fits(size)) next_chunk();
  std::byte* at = file_.unit(chunks_.back(), unit_);
  last_position_ = uint64_t{chunk_no_} * format::kUnitsPerChunk + unit_;
  unit_ += static_cast<uint32_t>(size / format::kUnitBytes);
  // As capture does: the unit behind a record is zeroed before the record is published.
  std::memset(file_.unit(chunks_.back(), unit_), 0, format::kUnitBytes);
  std::memcpy(at, record, size);
  ++records_;
  return at;
}

}  // namespace lockstep::readers::native
