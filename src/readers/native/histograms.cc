// SPDX-License-Identifier: Apache-2.0
// Adds up what ring retention overwrote. A cell names its shape by the number of the log that defined it,
// which need not be the log that counted, so cells wait for the definitions of that log. They change while
// they are read: sums may be of slightly different moments, and nothing is concluded from a difference of
// one.
#include "readers/native/histograms.h"

#include <algorithm>
#include <memory>

namespace lockstep::readers::native {

using format::HistogramCell;

HistogramReader::HistogramReader(const FileView& view, TickClock& clock, const CommRows& comms,
                                 uint32_t process, model::Trace& trace)
    : view_(view), clock_(clock), comms_(comms), process_(process), trace_(trace) {
  auto buffer = std::make_unique<ChunkBuffer>();
  for (uint16_t log : view.logs()) {
    for (const Chunk& chunk : view.chunks(format::Purpose::kHistogram, log)) {
      // Not read_checked: these chunks have no seal.
      if (!view.read(chunk, *buffer)) continue;
      for (uint32_t i = 0; i < format::kHistogramCells; ++i) {
        HistogramCell cell;
        std::memcpy(&cell, buffer->bytes.data() + sizeof(format::ChunkHeader) + i * sizeof cell, sizeof cell);
        if (cell.key != 0) cells_.push_back(cell);
      }
    }
  }
  std::stable_sort(cells_.begin(), cells_.end(),
                   [](const HistogramCell& a, const HistogramCell& b) { return a.shape_log < b.shape_log; });
}

void HistogramReader::add_shapes_of(uint16_t log, LogDefinitions& definitions) {
  auto first =
      std::lower_bound(cells_.begin(), cells_.end(), log,
                       [](const HistogramCell& cell, uint32_t wanted) { return cell.shape_log < wanted; });
  for (; first != cells_.end() && first->shape_log == log; ++first) {
    bool known = false;
    add(*first, definitions.shape_row(static_cast<uint16_t>(first->key >> 16), trace_, &known));
  }
}

void HistogramReader::add(const HistogramCell& cell, uint32_t shape) {
  ++added_;
  uint32_t comm = comms_.row(static_cast<uint32_t>(cell.key >> 32));
  // The key: comm, shape, size bucket and kind, from the high bits down.
  auto kind = static_cast<uint8_t>(cell.key), bucket = static_cast<uint8_t>(cell.key >> 8);
  int64_t first = clock_.to_ns(cell.first_ticks), last = clock_.to_ns(cell.last_ticks);
  auto [at, is_new] =
      // By the row of the shape and not by its number: two logs may number one shape differently.
      rows_.try_emplace({comm, kind, shape, bucket}, static_cast<uint32_t>(trace_.histograms.size()));
  if (is_new) {
    trace_.histograms.append({.process = process_,
                              .comm = comm,
                              .kind = kind,
                              .shape = shape,
                              .size_bucket = bucket,
                              .ops = cell.ops,
                              .bytes = cell.bytes,
                              .timed = cell.timed,
                              .sum_ns = cell.sum_ns,
                              .min_ns = cell.min_ns,
                              .max_ns = cell.max_ns,
                              .first_ns = first,
                              .last_ns = last});
    return;
  }
  model::HistogramTable& h = trace_.histograms;
  uint32_t row = at->second;
  h.ops[row] += cell.ops;
  h.bytes[row] += cell.bytes;
  h.timed[row] += cell.timed;
  h.sum_ns[row] += cell.sum_ns;
  // 0 is a cell without any duration.
  if (cell.min_ns != 0 && (h.min_ns[row] == 0 || cell.min_ns < h.min_ns[row])) h.min_ns[row] = cell.min_ns;
  h.max_ns[row] = std::max(h.max_ns[row], cell.max_ns);
  h.first_ns[row] = std::min(h.first_ns[row], first);
  h.last_ns[row] = std::max(h.last_ns[row], last);
}

void HistogramReader::finish(ReadLosses& losses) {
  losses.add("unknown_histogram", cells_.size() - added_,
             [&] { return "histogram cells whose function and types are not in the file: " + view_.path(); });
}

}  // namespace lockstep::readers::native
