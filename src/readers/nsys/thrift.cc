// SPDX-License-Identifier: Apache-2.0
// Thrift's compact protocol, as far as Parquet's metadata needs it. A reader that has failed stays at the end
// of its bytes and gives zeros, so that no caller has to check each value; each checks once whether it is
// still good. Depth, lists and texts are bounded by the bytes that are left.
#include "readers/nsys/thrift.h"

namespace lockstep::readers::nsys {
namespace {

constexpr int kDeepest = 16;
constexpr uint32_t kLongestList = 1 << 20;

}  // namespace

// To the end, so that every loop over what is left ends, too.
void ThriftReader::fail() {
  good_ = false;
  at_ = bytes_.size();
}

uint8_t ThriftReader::byte() {
  if (at_ >= bytes_.size()) {
    fail();
    return 0;
  }
  return static_cast<uint8_t>(bytes_[at_++]);
}

uint64_t ThriftReader::varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const uint8_t next = byte();
    value |= static_cast<uint64_t>(next & 0x7f) << shift;
    if ((next & 0x80) == 0) return value;
  }
  fail();
  return 0;
}

// Zigzag: the sign is the lowest bit.
int64_t ThriftReader::integer() {
  const uint64_t zigzag = varint();
  return static_cast<int64_t>(zigzag >> 1) ^ -static_cast<int64_t>(zigzag & 1);
}

std::string_view ThriftReader::binary() {
  const uint64_t size = varint();
  if (!good_ || size > bytes_.size() - at_) {
    fail();
    return {};
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes_.data()) + at_, size);
  at_ += size;
  return text;
}

ThriftReader::Field ThriftReader::next_field(int32_t& last) {
  const uint8_t head = byte();
  Field field{.id = last, .type = static_cast<Type>(head & 0x0f)};
  if (!good_ || field.type > Type::kStruct) {
    fail();
    return {};
  }
  if (field.type == Type::kStop) return {};
  // A field's number is mostly the distance from the one before, in the head's upper half; 0 there: it
  // follows.
  const int64_t id = (head >> 4) != 0 ? int64_t{last} + (head >> 4) : integer();
  if (id < 0 || id > INT16_MAX) {
    fail();
    return {};
  }
  last = field.id = static_cast<int32_t>(id);
  return field;
}

ThriftReader::List ThriftReader::list() {
  const uint8_t head = byte();
  const uint64_t size = (head >> 4) == 15 ? varint() : uint64_t{head} >> 4;
  const auto type = static_cast<Type>(head & 0x0f);
  // Each element takes a byte at least.
  if (!good_ || size > kLongestList || size > bytes_.size() - at_ || type > Type::kStruct) {
    fail();
    return {};
  }
  return {type, static_cast<uint32_t>(size)};
}

// Each takes a byte at least, or a few bytes could ask for any number of steps: truth values, which take none
// as fields, do so here, and there are none of type kStop.
void ThriftReader::skip_element(Type type, int depth) {
  if (type == Type::kStop) return fail();
  skip(type == Type::kTrue || type == Type::kFalse ? Type::kByte : type, depth + 1);
}

void ThriftReader::skip(Type type, int depth) {
  // Structs nest without bound in what a file may hold; Parquet's own metadata is a few levels deep.
  if (depth > kDeepest) return fail();
  switch (type) {
    case Type::kStop:
    // A truth value of a field stands in the field's type and takes no byte.
    case Type::kTrue:
    case Type::kFalse:
      return;
    case Type::kByte:
      byte();
      return;
    case Type::kI16:
    case Type::kI32:
    case Type::kI64:
      varint();
      return;
    case Type::kDouble:
      if (bytes_.size() - at_ < 8) return fail();
      at_ += 8;
      return;
    case Type::kBinary:
      binary();
      return;
    case Type::kList:
    case Type::kSet: {
      const List items = list();
      for (uint32_t i = 0; i < items.size && good_; ++i) skip_element(items.type, depth);
      return;
    }
    case Type::kMap: {
      const uint64_t size = varint();
      if (size == 0) return;
      const uint8_t types = byte();
      if (size > bytes_.size() - at_) return fail();
      for (uint64_t i = 0; i < size && good_; ++i) {
        skip_element(static_cast<Type>(types >> 4), depth);
        skip_element(static_cast<Type>(types & 0x0f), depth);
      }
      return;
    }
    case Type::kStruct: {
      int32_t last = 0;
      while (good_) {
        const Field field = next_field(last);
        if (field.type == Type::kStop) return;
        skip(field.type, depth + 1);
      }
      return;
    }
  }
  fail();
}

}  // namespace lockstep::readers::nsys
