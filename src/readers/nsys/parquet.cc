// SPDX-License-Identifier: Apache-2.0
// Reads the part of Parquet that Nsight Systems writes: flat columns, plain or with a dictionary, packed by
// Snappy, gzip or Zstandard or not at all. A library for all of Parquet would be a large dependency for one
// reader. Every length in the file is checked against what is left of it, and what it may unpack to is
// bounded by its size, as pages name their own unpacked size. So are its cells: a few bytes can repeat a
// value, or say that there is none, for any number of rows.
#include "readers/nsys/parquet.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "readers/nsys/packing.h"
#include "readers/nsys/thrift.h"

namespace lockstep::readers::nsys {
namespace {

constexpr std::string_view kMagic = "PAR1";
// Far beyond any export: what lies above is damage, and memory is asked for by these numbers.
constexpr uint64_t kLargestFooter = 64 << 20, kLargestPage = 256 << 20;
constexpr uint64_t kMostRowsOfGroup = 1 << 24;
constexpr size_t kMostColumns = 4096, kMostGroups = 1 << 16, kLongestText = 1024;
// What a file may unpack to: as much as what users pack may.
constexpr uint64_t kMostTimesPacked = 200, kAlwaysUnpacked = 64 << 20;

// The format's numbers.
enum : int32_t { kInt32 = 1, kInt64 = 2, kByteArray = 6 };
enum : int32_t { kRequired = 0, kOptional = 1 };
enum : int32_t { kUncompressed = 0, kSnappy = 1, kGzip = 2, kZstd = 6 };
enum : int32_t { kPlain = 0, kPlainDictionary = 2, kRleDictionary = 8 };
enum : int32_t { kDataPage = 0, kDictionaryPage = 2, kDataPageV2 = 3 };

using Bytes = std::span<const std::byte>;

uint32_t little32(Bytes bytes) {
  uint32_t value = 0;
  std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

struct SchemaElement {
  std::string name;
  int32_t type = -1, repetition = kRequired, children = 0;
};

struct PageHead {
  int32_t kind = -1, encoding = -1;
  int64_t unpacked = -1, packed = -1;
  int64_t values = -1;
  int64_t level_bytes = 0;  // version 2: of definition levels, which stand unpacked before the values
  bool is_packed = true;    // version 2 may say that a page is not
};

// Walks a struct: `take(field)` returns whether it read the field.
template <class Take>
void walk(ThriftReader& in, const Take& take) {
  int32_t last = 0;
  while (in.is_good()) {
    const ThriftReader::Field field = in.next_field(last);
    if (field.type == ThriftReader::Type::kStop) return;
    if (!take(field)) in.skip(field.type);
  }
}

bool is_number(const ThriftReader::Field& field) {
  return field.type == ThriftReader::Type::kI32 || field.type == ThriftReader::Type::kI64 ||
         field.type == ThriftReader::Type::kI16;
}

SchemaElement schema_element(ThriftReader& in) {
  SchemaElement element;
  walk(in, [&](const ThriftReader::Field& field) {
    if (field.id == 4 && field.type == ThriftReader::Type::kBinary) {
      element.name = in.binary();
      return true;
    }
    if (!is_number(field) || (field.id != 1 && field.id != 3 && field.id != 5)) return false;
    const auto value = static_cast<int32_t>(in.integer());
    (field.id == 1 ? element.type : field.id == 3 ? element.repetition : element.children) = value;
    return true;
  });
  return element;
}

ParquetChunk column_chunk(ThriftReader& in) {
  ParquetChunk chunk;
  int64_t data = -1, dictionary = -1;
  walk(in, [&](const ThriftReader::Field& outer) {
    if (outer.id != 3 || outer.type != ThriftReader::Type::kStruct) return false;
    walk(in, [&](const ThriftReader::Field& field) {
      if (!is_number(field)) return false;
      switch (field.id) {
        case 4:
          chunk.codec = static_cast<int32_t>(in.integer());
          return true;
        case 5:
          chunk.values = static_cast<uint64_t>(in.integer());
          return true;
        case 7:
          chunk.bytes = static_cast<uint64_t>(in.integer());
          return true;
        case 9:
          data = in.integer();
          return true;
        case 11:
          dictionary = in.integer();
          return true;
        default:
          return false;
      }
    });
    return true;
  });
  // Writers of old put 0 where there is no dictionary.
  chunk.offset = static_cast<uint64_t>(dictionary > 0 ? std::min(data, dictionary) : data);
  return chunk;
}

ParquetGroup row_group(ThriftReader& in) {
  ParquetGroup group;
  walk(in, [&](const ThriftReader::Field& field) {
    if (field.id == 1 && field.type == ThriftReader::Type::kList) {
      const ThriftReader::List list = in.list();
      const size_t most = std::min<size_t>(list.size, kMostColumns);
      for (size_t i = 0; i < most && in.is_good(); ++i) group.chunks.push_back(column_chunk(in));
      return true;
    }
    if (field.id != 3 || !is_number(field)) return false;
    group.rows = static_cast<uint64_t>(in.integer());
    return true;
  });
  return group;
}

PageHead page_head(ThriftReader& in) {
  PageHead head;
  walk(in, [&](const ThriftReader::Field& field) {
    if (is_number(field) && field.id <= 3) {
      const int64_t value = in.integer();
      if (field.id == 1) head.kind = static_cast<int32_t>(value);
      if (field.id == 2) head.unpacked = value;
      if (field.id == 3) head.packed = value;
      return true;
    }
    const bool is_kind =
        field.type == ThriftReader::Type::kStruct && (field.id == 5 || field.id == 7 || field.id == 8);
    if (!is_kind) return false;
    const bool is_second = field.id == 8;
    walk(in, [&](const ThriftReader::Field& of) {
      if (is_second && of.id == 7) {
        head.is_packed = of.type == ThriftReader::Type::kTrue;
        return false;
      }
      if (!is_number(of)) return false;
      const int64_t value = in.integer();
      if (of.id == 1) head.values = value;
      if (of.id == (is_second ? 4 : 2)) head.encoding = static_cast<int32_t>(value);
      if (is_second && of.id == 5) head.level_bytes = value;
      return true;
    });
    return true;
  });
  return head;
}

// Numbers of `width` bits, packed by eight or repeated, as levels and places in dictionaries are written.
class HybridReader {
 public:
  HybridReader(Bytes bytes, uint32_t width) : bytes_(bytes), width_(width) {}
  // False: there are no more.
  bool next(uint32_t& value) {
    while (left_ == 0) {
      if (!begin_run()) return false;
    }
    --left_;
    if (is_repeated_) {
      value = repeated_;
      return true;
    }
    uint64_t bits = 0;
    const size_t first = bit_ / 8;
    for (size_t i = 0; i < 5 && first + i < bytes_.size(); ++i)
      bits |= static_cast<uint64_t>(bytes_[first + i]) << (8 * i);
    value = static_cast<uint32_t>((bits >> (bit_ % 8)) & ((uint64_t{1} << width_) - 1));
    bit_ += width_;
    if (left_ == 0) bytes_ = bytes_.subspan(std::min(bytes_.size(), (bit_ + 7) / 8));
    return true;
  }

 private:
  bool begin_run() {
    uint64_t head = 0;
    size_t at = 0;
    for (int shift = 0;; shift += 7) {
      if (at >= bytes_.size() || shift > 28) return false;
      const auto next = static_cast<uint8_t>(bytes_[at++]);
      head |= static_cast<uint64_t>(next & 0x7f) << shift;
      if ((next & 0x80) == 0) break;
    }
    bytes_ = bytes_.subspan(at);
    is_repeated_ = (head & 1) == 0;
    if (is_repeated_) {
      const size_t size = (width_ + 7) / 8;
      if (bytes_.size() < size) return false;
      repeated_ = 0;
      for (size_t i = 0; i < size; ++i) repeated_ |= static_cast<uint32_t>(bytes_[i]) << (8 * i);
      bytes_ = bytes_.subspan(size);
      left_ = head >> 1;
    } else {
      bit_ = 0;
      left_ = (head >> 1) * 8;
      // The last bytes of a run of eights may be left out with the values that nobody needs.
      if (width_ > 0) left_ = std::min<uint64_t>(left_, bytes_.size() * 8 / width_);
      if (left_ == 0 && (head >> 1) != 0) return false;
    }
    return true;
  }

  Bytes bytes_;
  uint32_t width_;
  uint64_t left_ = 0;
  uint32_t repeated_ = 0;
  bool is_repeated_ = false;
  size_t bit_ = 0;
};

// The values of one column of a row group.
struct ColumnValues {
  std::vector<std::vector<std::byte>> pages;  // that the cells point into
  std::vector<Cell> cells;                    // by row
};

// What a file may still take.
class Allowance {
 public:
  explicit Allowance(uint64_t bytes) : left_(bytes) {}
  bool take(uint64_t bytes) {
    if (bytes > left_) return false;
    left_ -= bytes;
    return true;
  }
  bool take_cells(uint64_t cells) { return cells <= left_ / sizeof(Cell) && take(cells * sizeof(Cell)); }

 private:
  uint64_t left_;
};

class ChunkReader {
 public:
  ChunkReader(const InputFile& file, const ParquetColumn& column, const ParquetChunk& chunk, uint64_t rows,
              Allowance& allowance)
      : file_(file), column_(column), chunk_(chunk), rows_(rows), allowance_(allowance) {}

  Result<ColumnValues> read() {
    if (chunk_.offset > file_.size() || chunk_.bytes > file_.size() - chunk_.offset)
      return bad("lies outside the file");
    // Before the memory is asked for: both numbers come from the footer.
    if (!allowance_.take(chunk_.bytes) || !allowance_.take_cells(rows_))
      return bad("has more rows than its file can hold");
    std::vector<std::byte> bytes(chunk_.bytes);
    if (file_.read_at(chunk_.offset, bytes) != bytes.size()) return bad("cannot be read");
    Bytes left(bytes);
    // A page's head has no length of its own: it is parsed, and the page begins where the parser stands.
    while (!left.empty() && out_.cells.size() < rows_) {
      ThriftReader in(left.first(std::min<size_t>(left.size(), 1 << 20)));
      const PageHead head = page_head(in);
      const auto packed = static_cast<uint64_t>(head.packed);
      if (!in.is_good() || head.packed < 0 || packed > left.size() - in.offset())
        return bad("has a damaged page");
      LOCKSTEP_TRY(take_page(head, left.subspan(in.offset(), packed)));
      left = left.subspan(in.offset() + packed);
    }
    if (out_.cells.size() < rows_) return bad("ends before its last row");
    return std::move(out_);
  }

 private:
  Error bad(const std::string& why) const {
    return {ErrorCode::kInvalidInput, "column " + column_.name + " " + why, file_.path()};
  }

  Result<void> take_page(const PageHead& head, Bytes page) {
    if (head.kind != kDataPage && head.kind != kDictionaryPage && head.kind != kDataPageV2) return {};
    if (head.values < 0 || head.unpacked < 0 || static_cast<uint64_t>(head.unpacked) > kLargestPage)
      return bad("has a damaged page");
    Bytes levels;
    if (head.kind == kDataPageV2) {
      if (head.level_bytes < 0 || static_cast<uint64_t>(head.level_bytes) > page.size())
        return bad("has a damaged page");
      levels = page.first(static_cast<size_t>(head.level_bytes));
      page = page.subspan(levels.size());
    }
    LOCKSTEP_ASSIGN(std::vector<std::byte> plain, unpack(head, page));
    out_.pages.push_back(std::move(plain));
    Bytes values(out_.pages.back());
    if (head.kind == kDictionaryPage) {
      dictionary_.clear();
      const auto entries = static_cast<uint64_t>(head.values);
      if (entries > values.size() || !allowance_.take_cells(entries)) return bad("has a damaged dictionary");
      return plain_values(values, entries, dictionary_);
    }
    if (head.kind == kDataPage && column_.is_optional) {
      if (values.size() < 4 || little32(values) > values.size() - 4) return bad("has damaged levels");
      levels = values.subspan(4, little32(values));
      values = values.subspan(4 + levels.size());
    }
    return take_values(head, levels, values);
  }

  Result<void> take_values(const PageHead& head, Bytes levels, Bytes values) {
    const uint64_t rows = std::min<uint64_t>(static_cast<uint64_t>(head.values), rows_ - out_.cells.size());
    std::vector<bool> is_there(rows, true);
    uint64_t there = rows;
    if (column_.is_optional) {
      // Flat columns have one level: 0 for a row without a value, for which nothing is stored.
      HybridReader reader(levels, 1);
      there = 0;
      for (uint64_t i = 0; i < rows; ++i) {
        uint32_t level = 0;
        if (!reader.next(level)) return bad("has damaged levels");
        is_there[i] = level != 0;
        there += is_there[i];  // a repeated level may be any byte
      }
    }
    std::vector<Cell> cells;
    LOCKSTEP_TRY(values_of(head, values, there, cells));
    auto next = cells.begin();
    for (uint64_t i = 0; i < rows; ++i) out_.cells.push_back(is_there[i] ? *next++ : Cell{});
    return {};
  }

  Result<void> values_of(const PageHead& head, Bytes values, uint64_t count, std::vector<Cell>& cells) const {
    if (head.encoding == kPlain) return plain_values(values, count, cells);
    if (head.encoding != kPlainDictionary && head.encoding != kRleDictionary)
      return bad("has an unknown encoding (" + std::to_string(head.encoding) + ")");
    if (count == 0) return {};
    if (values.empty()) return bad("has a damaged page");
    const auto width = static_cast<uint32_t>(values.front());
    if (width > 32) return bad("has a damaged page");
    HybridReader places(values.subspan(1), width);
    cells.reserve(count);
    for (uint64_t i = 0; i < count; ++i) {
      uint32_t place = 0;
      if (!places.next(place) || place >= dictionary_.size()) return bad("has a damaged dictionary");
      cells.push_back(dictionary_[place]);
    }
    return {};
  }

  Result<void> plain_values(Bytes values, uint64_t count, std::vector<Cell>& cells) const {
    const size_t width = column_.type == kInt32 ? 4 : column_.type == kInt64 ? 8 : 0;
    if (column_.type != kByteArray && width == 0) {
      cells.resize(count);  // nothing asks for other types
      return {};
    }
    if (count > values.size() / std::max<size_t>(width, 4)) return bad("has a damaged page");
    cells.reserve(count);
    for (uint64_t i = 0; i < count; ++i) {
      Cell cell;
      if (width != 0) {
        cell.kind = Cell::Kind::kInteger;
        int32_t small = 0;
        if (width == 4) {
          std::memcpy(&small, values.data(), 4);
          cell.integer = small;
        } else {
          std::memcpy(&cell.integer, values.data(), 8);
        }
        values = values.subspan(width);
      } else {
        if (values.size() < 4 || little32(values) > values.size() - 4) return bad("has a damaged page");
        const size_t size = little32(values);
        cell.kind = Cell::Kind::kBytes;
        cell.bytes = {reinterpret_cast<const char*>(values.data()) + 4, std::min(size, kLongestText)};
        values = values.subspan(4 + size);
      }
      cells.push_back(cell);
    }
    return {};
  }

  Result<std::vector<std::byte>> unpack(const PageHead& head, Bytes page) {
    const bool is_packed = head.is_packed && chunk_.codec != kUncompressed;
    if (!is_packed) return std::vector<std::byte>(page.begin(), page.end());
    const auto size = static_cast<uint64_t>(head.unpacked) -
                      (head.kind == kDataPageV2 ? static_cast<uint64_t>(head.level_bytes) : 0);
    if (size > kLargestPage || !allowance_.take(size)) return bad("unpacks to more than its file can hold");
    std::vector<std::byte> plain;
    if (chunk_.codec == kSnappy) {
      if (!unpack_snappy(page, size, plain)) return bad("has a page that cannot be unpacked");
    } else if (chunk_.codec == kGzip || chunk_.codec == kZstd) {
      if (!unpack_archive(page, size, plain)) return bad("has a page that cannot be unpacked");
    } else {
      return bad("has an unknown compression (codec " + std::to_string(chunk_.codec) + ")");
    }
    return plain;
  }

  const InputFile& file_;
  const ParquetColumn& column_;
  const ParquetChunk& chunk_;
  uint64_t rows_;
  Allowance& allowance_;
  ColumnValues out_;
  std::vector<Cell> dictionary_;
};

}  // namespace

bool ParquetFile::is_parquet(Bytes first_bytes) {
  return std::string_view(reinterpret_cast<const char*>(first_bytes.data()), first_bytes.size())
      .starts_with(kMagic);
}

Result<ParquetFile> ParquetFile::open(const std::string& path) {
  LOCKSTEP_ASSIGN(InputFile file, InputFile::open(path));
  const auto bad = [&](const char* why) {
    return Error{ErrorCode::kInvalidInput, std::string("is not a complete Parquet file: ") + why, path};
  };
  constexpr uint64_t kEnd = 8;
  std::byte end[kEnd];
  if (file.size() < kMagic.size() + kEnd || file.read_at(file.size() - kEnd, end) != kEnd ||
      std::memcmp(end + 4, kMagic.data(), kMagic.size()) != 0)
    return bad("its end is missing");
  const uint64_t size = little32(end);
  if (size > kLargestFooter || size > file.size() - kEnd) return bad("its footer cannot be");
  std::vector<std::byte> footer(size);
  if (file.read_at(file.size() - kEnd - size, footer) != size) return bad("its footer cannot be read");

  ThriftReader in(footer);
  std::vector<SchemaElement> schema;
  std::vector<ParquetGroup> groups;
  walk(in, [&](const ThriftReader::Field& field) {
    if (field.type != ThriftReader::Type::kList || (field.id != 2 && field.id != 4)) return false;
    const ThriftReader::List list = in.list();
    const size_t most = std::min<size_t>(list.size, (field.id == 2 ? kMostColumns : kMostGroups) + 1);
    for (size_t i = 0; i < most && in.is_good(); ++i) {
      if (field.id == 2) {
        schema.push_back(schema_element(in));
      } else {
        groups.push_back(row_group(in));
      }
    }
    return true;
  });
  if (!in.is_good() || schema.empty() || schema.size() > kMostColumns || groups.size() > kMostGroups)
    return bad("its footer is damaged");
  ParquetFile out(std::move(file));
  for (size_t i = 1; i < schema.size(); ++i) {
    if (schema[i].children > 0)
      return Error{ErrorCode::kUnsupported,
                   "holds nested columns, which an export of Nsight Systems does not", path};
    // A column that repeats is offered as none: its name is not asked for.
    const bool is_flat = schema[i].repetition == kRequired || schema[i].repetition == kOptional;
    out.columns_.push_back(
        {is_flat ? schema[i].name : std::string(), schema[i].type, schema[i].repetition == kOptional});
  }
  for (const ParquetGroup& group : groups) {
    if (group.chunks.size() != out.columns_.size() || group.rows > kMostRowsOfGroup)
      return bad("its footer is damaged");
  }
  out.groups_ = std::move(groups);
  return out;
}

Result<void> ParquetFile::read(std::span<const std::string_view> columns, const TakeRow& take) const {
  std::vector<std::optional<size_t>> places;
  for (const std::string_view name : columns) {
    const auto at = std::find_if(columns_.begin(), columns_.end(),
                                 [&](const ParquetColumn& column) { return column.name == name; });
    places.push_back(at == columns_.end()
                         ? std::nullopt
                         : std::optional<size_t>(static_cast<size_t>(at - columns_.begin())));
  }
  Allowance allowance(file_.size() * kMostTimesPacked + kAlwaysUnpacked);
  std::vector<Cell> row(columns.size());
  for (const ParquetGroup& group : groups_) {
    if (!allowance.take_cells(group.rows))
      return Error{ErrorCode::kInvalidInput, "has more rows than it can hold", file_.path()};
    std::vector<ColumnValues> values(columns.size());
    for (size_t i = 0; i < columns.size(); ++i) {
      if (!places[i]) continue;
      LOCKSTEP_ASSIGN(
          values[i],
          ChunkReader(file_, columns_[*places[i]], group.chunks[*places[i]], group.rows, allowance).read());
    }
    // Columns of a group are unpacked whole before its first row is given: pages of columns have other
    // borders.
    for (uint64_t r = 0; r < group.rows; ++r) {
      for (size_t i = 0; i < columns.size(); ++i) row[i] = places[i] ? values[i].cells[r] : Cell{};
      take(row);
    }
  }
  return {};
}

}  // namespace lockstep::readers::nsys
