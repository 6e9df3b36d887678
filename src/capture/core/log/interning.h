// SPDX-License-Identifier: Apache-2.0
// What records name by a number instead of by text: shapes, streams, names of kernels and ranges. Each is
// defined once in the log's definitions. A small cache in front finds what is used all the time; behind it is
// a table of all. Owner thread of the log only; all zero before begin(). A key for which there is no room is
// not remembered, so that each event that does without it is counted by the caller.
#pragma once
#include <cstddef>
#include <cstdint>

#include "capture/core/log/definition_chunks.h"
#include "capture/core/log/key_table.h"
#include "format/definitions.h"

namespace lockstep::capture {

// What an operation is; the key of the shape cache. Pointers to the host's text, compared by address alone:
// equal text at two addresses makes two shapes, and what stands at an address must not change.
struct ShapeKey {
  const char* func;
  const char* datatype;
  const char* algo;
  const char* proto;
  int32_t root;
  bool operator==(const ShapeKey&) const = default;
};
struct ShapeRef {
  uint16_t id;            // format::kNoShape.. ; kShapeUnknown when the table is full
  uint8_t element_bytes;  // of the datatype, 1 if unknown
};

class Interning {
 public:
  void begin(uint32_t index, LogOwner owner) {
    chunks_.begin(index, owner);
    next_shape_ = next_stream_ = kernel_names_.next = range_names_.next = 1;
  }
  DefinitionChunks& chunks() { return chunks_; }

  // nullptr: not in the cache.
  const ShapeRef* cached_shape(const ShapeKey& key) const {
    const ShapeEntry& entry = shapes_[hash_of(key) >> 58];
    return entry.ref.id != 0 && entry.key == key ? &entry.ref : nullptr;
  }
  // From the table, into the cache.
  ShapeRef find_shape(const ShapeKey& key);
  // A new one, whoever else has its name.
  ShapeRef define_shape(const ShapeKey& key);

  // Number of a stream but 0; 0 if not in the cache.
  uint16_t cached_stream(uint64_t stream) const {
    const StreamEntry& entry = streams_[slot_of(stream)];
    return entry.stream == stream ? entry.id : uint16_t{0};
  }
  uint16_t find_stream(uint64_t stream);

  // 0: no room.
  uint32_t kernel_name(const char* name, size_t length) {
    return find_name(&kernel_names_, format::Def::kKernelName, name, length);
  }
  // Programs make up names as they go, of kernels where they compile them: in ring retention those of all
  // logs take 1 / kNamesOfRing of the ring, those of ranges as much again, of which a log has
  // kMostRangeNames.
  uint32_t range_name(const char* name, size_t length) {
    return find_name(&range_names_, format::Def::kRangeName, name, length);
  }
  static constexpr uint32_t kMostRangeNames = 16384, kNamesOfRing = 8;

 private:
  static constexpr uint32_t kShapes = 64, kStreams = 16;
  struct ShapeEntry {
    ShapeKey key;
    ShapeRef ref;
  };
  struct StreamEntry {
    uint64_t stream;
    uint16_t id;
  };
  struct Names {
    KeyTable<uint64_t, uint32_t> known;  // by a hash of the name
    uint32_t next;
  };

  static uint64_t hash_of(const ShapeKey& key) {
    auto mix = reinterpret_cast<uintptr_t>(key.func) ^ reinterpret_cast<uintptr_t>(key.datatype) << 1 ^
               reinterpret_cast<uintptr_t>(key.algo) << 2 ^ reinterpret_cast<uintptr_t>(key.proto) << 3 ^
               static_cast<uintptr_t>(static_cast<uint32_t>(key.root)) << 4;
    return mix * 0x9e3779b97f4a7c15;
  }
  static uint64_t slot_of(uint64_t stream) { return (stream >> 4 ^ stream >> 12) % kStreams; }
  uint16_t define_stream(uint64_t stream);
  uint32_t find_name(Names* names, format::Def kind, const char* name, size_t length);

  ShapeEntry shapes_[kShapes];
  StreamEntry streams_[kStreams];
  KeyTable<ShapeKey, ShapeRef> known_shapes_;
  KeyTable<uint64_t, uint16_t> known_streams_;
  Names kernel_names_, range_names_;
  uint32_t next_shape_, next_stream_;
  DefinitionChunks chunks_;
};

}  // namespace lockstep::capture
