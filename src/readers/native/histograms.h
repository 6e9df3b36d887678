// SPDX-License-Identifier: Apache-2.0
// Statistics that ring retention keeps over the whole life of a process. Cells of equal (comm, kind, shape,
// size) of all logs become one row. A cell's shape number belongs to the log in which the operation started,
// which need not be the log that holds the cell: so cells are collected first and added log by log, as their
// definitions are at hand.
#pragma once
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "format/definitions.h"
#include "model/trace.h"
#include "readers/native/file/definitions.h"
#include "readers/native/file/tick_clock.h"

namespace lockstep::readers::native {

// One file, one thread. All references outlive it.
class HistogramReader {
 public:
  // Reads all cells of the file, as only a cell itself tells which log defines its shape. They may be of
  // slightly different moments.
  HistogramReader(const FileView& view, TickClock& clock, const CommRows& comms, uint32_t process,
                  model::Trace& trace);

  // Adds the cells whose shapes are defined in `log`.
  void add_shapes_of(uint16_t log, LogDefinitions& definitions);
  // After the last log: counts the cells that no log defines.
  void finish(ReadLosses& losses);

 private:
  using RowKey = std::tuple<uint32_t, uint8_t, uint32_t, uint8_t>;  // comm, kind, shape, bucket
  void add(const format::HistogramCell& cell, uint32_t shape);

  const FileView& view_;
  TickClock& clock_;
  const CommRows& comms_;
  uint32_t process_;
  model::Trace& trace_;
  std::vector<format::HistogramCell> cells_;  // by shape_log
  size_t added_ = 0;
  std::map<RowKey, uint32_t> rows_;
};

}  // namespace lockstep::readers::native
