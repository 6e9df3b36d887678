// SPDX-License-Identifier: Apache-2.0
// Apache Thrift's compact protocol, as far as Parquet's footer and page heads need it: a struct is walked
// field by field, and what the caller does not want is skipped. Every length is checked; nothing is read
// beyond the end.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace lockstep::readers::nsys {

// Views of `bytes`, which outlive it. A value of a reader that has failed is 0 or empty.
class ThriftReader {
 public:
  enum class Type : uint8_t {
    kStop = 0,
    kTrue = 1,
    kFalse = 2,
    kByte = 3,
    kI16 = 4,
    kI32 = 5,
    kI64 = 6,
    kDouble = 7,
    kBinary = 8,
    kList = 9,
    kSet = 10,
    kMap = 11,
    kStruct = 12
  };
  struct Field {
    int32_t id = 0;
    Type type = Type::kStop;
  };
  struct List {
    Type type = Type::kStop;
    uint32_t size = 0;
  };

  explicit ThriftReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  // False from the first thing that cannot be.
  bool is_good() const { return good_; }
  size_t offset() const { return at_; }

  // The next field of the struct that `last` (0 at its begin) walks; kStop behind the last one.
  Field next_field(int32_t& last);
  int64_t integer();          // of kI16, kI32, kI64
  std::string_view binary();  // within the bytes
  List list();
  void skip(Type type, int depth = 0);

 private:
  uint8_t byte();
  uint64_t varint();
  void fail();
  void skip_element(Type type, int depth);  // of a list, set or map

  std::span<const std::byte> bytes_;
  size_t at_ = 0;
  bool good_ = true;
};

}  // namespace lockstep::readers::nsys
