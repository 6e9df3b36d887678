// SPDX-License-Identifier: Apache-2.0
// Records name shapes, streams and texts by a number of their log, so that a record has a fixed size and a
// text is stored once. The small direct table answers nearly every question with one comparison; behind it is
// the full one. Numbers of a log need no lock; the price is that a shape is defined once for each thread that
// uses it.
#include "capture/core/log/interning.h"

#include <cstring>

#include "format/element_size.h"

namespace lockstep::capture {

ShapeRef Interning::define_shape(const ShapeKey& key) {
  ShapeRef ref{format::kShapeUnknown, format::element_bytes(key.datatype)};
  if (next_shape_ < format::kShapeUnknown) {
    if (auto* shape = chunks_.define<format::ShapeDef>()) {
      shape->root = key.root;
      copy_text(shape->func, key.func);
      copy_text(shape->datatype, key.datatype);
      copy_text(shape->algo, key.algo);
      copy_text(shape->proto, key.proto);
      ref.id = static_cast<uint16_t>(next_shape_++);
      publish_definition(shape, format::Def::kShape, ref.id);
    }
  }
  return ref;
}

ShapeRef Interning::find_shape(const ShapeKey& key) {
  uint64_t hash = hash_of(key);
  const ShapeRef* known = known_shapes_.find(key, hash);
  ShapeRef ref = known != nullptr ? *known : define_shape(key);
  // Not kept: room for definitions may come back, and the next operation asks again.
  if (ref.id == format::kShapeUnknown) return ref;
  if (known == nullptr) known_shapes_.add(key, hash, ref);
  shapes_[hash >> 58] = {key, ref};
  return ref;
}

uint16_t Interning::define_stream(uint64_t stream) {
  if (next_stream_ >= 0xffff) return 0;
  auto* definition = chunks_.define<format::StreamDef>();
  if (definition == nullptr) return 0;
  definition->stream = stream;
  auto id = static_cast<uint16_t>(next_stream_++);
  publish_definition(definition, format::Def::kStream, id);
  return id;
}

uint16_t Interning::find_stream(uint64_t stream) {
  uint64_t hash = stream * 0x9e3779b97f4a7c15;
  const uint16_t* known = known_streams_.find(stream, hash);
  uint16_t id = known != nullptr ? *known : define_stream(stream);
  if (id == 0) return 0;
  if (known == nullptr) known_streams_.add(stream, hash, id);
  streams_[slot_of(stream)] = {stream, id};
  return id;
}

// Bytes of names of all logs; of kernels, of ranges.
static uint64_t g_kernel_name_bytes, g_range_name_bytes;

static bool take_name(uint64_t* all, size_t bytes) {
  const ProcessFile& file = Session::get().file();
  const uint64_t most = uint64_t{file.cap_chunks()} * format::kChunkBytes / Interning::kNamesOfRing;
  const uint64_t taken = __atomic_add_fetch(all, bytes, __ATOMIC_RELAXED);
  if (!file.ring() || taken <= most) return true;
  // Taken first and given back: two threads that look before they take could both go beyond the bound.
  __atomic_fetch_sub(all, bytes, __ATOMIC_RELAXED);
  return false;
}

uint32_t Interning::find_name(Names* names, format::Def kind, const char* name, size_t length) {
  uint64_t hash = 0xcbf29ce484222325 ^ length;
  for (size_t at = 0; at < length; at += sizeof(uint64_t)) {
    uint64_t word = 0;
    memcpy(&word, name + at, length - at < sizeof word ? length - at : sizeof word);
    hash = (hash ^ word) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 29;
  }
  // Names are compared by 64 bits of hash alone: the text may have left memory with its chunk.
  if (const uint32_t* known = names->known.find(hash, hash)) return *known;
  const size_t bytes =
      sizeof(format::DefHead) + (length / format::kUnitBytes + 1) * format::kUnitBytes;  // a NUL always
  const bool is_range = kind == format::Def::kRangeName;
  uint64_t* const all = is_range ? &g_range_name_bytes : &g_kernel_name_bytes;
  if ((is_range && names->next > kMostRangeNames) || !take_name(all, bytes)) return 0;
  char* at = chunks_.room(bytes);
  if (at == nullptr) {
    __atomic_fetch_sub(all, bytes, __ATOMIC_RELAXED);
    return 0;
  }
  auto* definition = clear_definition<format::NameDef>(at, bytes);
  memcpy(at + offsetof(format::NameDef, name), name, length);
  const uint32_t id = names->next++;
  publish_definition(definition, kind, id, bytes);
  names->known.add(hash, hash, id);
  return id;
}

}  // namespace lockstep::capture
