// SPDX-License-Identifier: Apache-2.0
// Rows become the columns of an Arrow record batch.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "exporters/common/run_tables.h"
#include "lockstep/diagnose.h"

namespace lockstep::library {

// A row is begin_row(), one cell for each of `columns` in their order and of their type, end_row(). `rows`:
// how many to make room for. One thread; only memory can fail.
class BatchBuilder : public exporters::common::TableWriter {
 public:
  BatchBuilder(std::span<const exporters::common::TableColumn> columns, size_t rows);
  void begin_row() override { at_ = 0; }
  void number(int64_t value) override { put(static_cast<uint64_t>(value)); }
  void unsigned_number(uint64_t value) override { put(value); }
  void text(std::string_view value) override;
  void none() override;
  void end_row() override { ++length_; }

  // Hands the columns over; the builder is spent.
  void finish(ArrowArray* out) &&;

 private:
  struct Column;
  struct Batch;
  void put(uint64_t value);
  Column& next();

  std::unique_ptr<Batch> batch_;
  size_t at_ = 0;
  int64_t length_ = 0;

 public:
  ~BatchBuilder() override;
};

// The schema of such batches: a struct with a field for each column. Whoever gets it releases it.
void make_schema(std::span<const exporters::common::TableColumn> columns, ArrowSchema* out);

}  // namespace lockstep::library
