// SPDX-License-Identifier: Apache-2.0
// gzip and zstd are libarchive's. Snappy is written out: it is one loop, and libarchive does not read the
// bare blocks that pages hold. Sizes come from the file, so each copy is checked against the size that the
// block promised.
#include "readers/nsys/packing.h"

#include <archive.h>

#include <cstdint>
#include <memory>

namespace lockstep::readers::nsys {

bool unpack_archive(std::span<const std::byte> page, size_t size, std::vector<std::byte>& plain) {
  const std::unique_ptr<archive, int (*)(archive*)> in(archive_read_new(), archive_read_free);
  if (in == nullptr) return false;
  // Only these two, so that a hostile page reaches none of libarchive's other decoders.
  archive_read_support_filter_gzip(in.get());
  archive_read_support_filter_zstd(in.get());
  archive_read_support_format_raw(in.get());
  archive_entry* entry = nullptr;
  if (archive_read_open_memory(in.get(), page.data(), page.size()) != ARCHIVE_OK ||
      archive_read_next_header(in.get(), &entry) != ARCHIVE_OK)
    // libarchive finds no entry in an empty page.
    return size == 0;
  plain.resize(size);
  return archive_read_data(in.get(), plain.data(), plain.size()) == static_cast<la_ssize_t>(size);
}

bool unpack_snappy(std::span<const std::byte> packed, size_t most, std::vector<std::byte>& out) {
  size_t at = 0;
  uint64_t size = 0;
  // The unpacked size is a varint of at most five bytes.
  for (int shift = 0;; shift += 7) {
    if (at >= packed.size() || shift > 28) return false;
    const auto next = static_cast<uint8_t>(packed[at++]);
    size |= static_cast<uint64_t>(next & 0x7f) << shift;
    if ((next & 0x80) == 0) break;
  }
  if (size > most) return false;
  out.clear();
  out.reserve(size);
  // Little-endian; whoever calls has checked that the bytes are there.
  const auto number = [&](size_t bytes) {
    uint32_t value = 0;
    for (size_t i = 0; i < bytes; ++i) value |= static_cast<uint32_t>(packed[at + i]) << (8 * i);
    at += bytes;
    return value;
  };
  while (at < packed.size()) {
    const auto tag = static_cast<uint8_t>(packed[at++]);
    // The low two bits of a tag: 0 a literal, 1 to 3 a copy with an offset of 11, 16 or 32 bits.
    if ((tag & 3) == 0) {
      size_t length = tag >> 2;
      // 60 to 63: the length stands in the next one to four bytes.
      if (length >= 60) {
        const size_t bytes = length - 59;
        if (packed.size() - at < bytes) return false;
        length = number(bytes);
      }
      ++length;
      if (length > packed.size() - at || length > size - out.size()) return false;
      out.insert(out.end(), packed.begin() + static_cast<ptrdiff_t>(at),
                 packed.begin() + static_cast<ptrdiff_t>(at + length));
      at += length;
      continue;
    }
    const size_t bytes = (tag & 3) == 1 ? 1 : (tag & 3) == 2 ? 2 : 4;
    if (packed.size() - at < bytes) return false;
    size_t length = (tag >> 2) + 1, offset = 0;
    if ((tag & 3) == 1) {
      length = ((tag >> 2) & 7) + 4;
      offset = static_cast<size_t>(tag >> 5) << 8;
    }
    offset |= number(bytes);
    if (offset == 0 || offset > out.size() || length > size - out.size()) return false;
    // Byte by byte, as a copy may reach into what it writes: that is how runs are packed.
    for (size_t i = 0; i < length; ++i) out.push_back(out[out.size() - offset]);
  }
  return out.size() == size;
}

}  // namespace lockstep::readers::nsys
