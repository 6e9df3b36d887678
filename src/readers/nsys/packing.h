// SPDX-License-Identifier: Apache-2.0
// What pages of Parquet are packed by.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

namespace lockstep::readers::nsys {

// The plain bytes of a block of Snappy; false: it is damaged, or longer than `most`.
bool unpack_snappy(std::span<const std::byte> packed, size_t most, std::vector<std::byte>& out);

// The `size` plain bytes of gzip or zstd; false: it is damaged, or has less.
// `plain` is replaced; `size` is bounded by whoever calls.
bool unpack_archive(std::span<const std::byte> page, size_t size, std::vector<std::byte>& plain);

}  // namespace lockstep::readers::nsys
