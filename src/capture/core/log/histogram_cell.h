// SPDX-License-Identifier: Apache-2.0
// Adding to a cell of the ring-mode histograms (format::HistogramCell). Owner thread of the cell's log only.
#pragma once
#include <cstdint>

#include "format/definitions.h"

namespace lockstep::capture {

// Log2 of the bytes, rounded up.
inline uint64_t size_bucket(uint64_t bytes) {
  return bytes <= 1 ? 0 : 64 - static_cast<uint64_t>(__builtin_clzll(bytes - 1));
}

inline void add_operation(format::HistogramCell* cell, uint64_t bytes, uint64_t ticks) {
  ++cell->ops;
  cell->bytes += bytes;
  cell->last_ticks = ticks;
}

// In ns. Buckets are powers of two from 1,024 ns on, the last without an upper bound.
inline void add_duration(format::HistogramCell* cell, uint64_t ns) {
  if (cell->timed == 0 || ns < cell->min_ns) cell->min_ns = ns;
  if (ns > cell->max_ns) cell->max_ns = ns;
  cell->sum_ns += ns;
  ++cell->timed;
  uint32_t log2 = ns < 1024 ? 0 : 54 - static_cast<uint32_t>(__builtin_clzll(ns));
  ++cell->buckets[log2 < format::kHistogramBuckets ? log2 : format::kHistogramBuckets - 1];
}

}  // namespace lockstep::capture
