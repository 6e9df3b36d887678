// SPDX-License-Identifier: Apache-2.0
// Columns are built in the layout that Arrow's C data interface hands over, so that a consumer takes them
// without a copy. A consumer may take single children out of a batch and keep them: each child holds the
// whole batch alive.
#include "library/arrow_batch.h"

#include "base/utf8.h"

#include <array>
#include <cstring>

namespace lockstep::library {

using exporters::common::CellType;
using exporters::common::TableColumn;

struct BatchBuilder::Column {
  bool is_text = false;
  // Offsets of texts have 64 bits as well: those of 32 bits end at 2 GiB of text.
  std::vector<uint64_t> values;  // numbers; of texts, where each begins and the last ends
  std::string texts;
  std::vector<uint8_t> valid;  // a bit a row
  int64_t rows = 0, nulls = 0;
  std::array<const void*, 3> buffers{};
  ArrowArray array{};

  void add(bool is_valid) {
    // Arrow counts bits from the lowest one of each byte.
    if (rows % 8 == 0) valid.push_back(0);
    if (is_valid)
      valid.back() = static_cast<uint8_t>(valid.back() | (1u << (rows % 8)));
    else
      ++nulls;
    ++rows;
  }
};

// What a released batch frees: its columns, whether or not a consumer took some of them for its own.
struct BatchBuilder::Batch {
  std::vector<std::unique_ptr<Column>> columns;
  std::vector<ArrowArray*> children;
  const void* no_validity = nullptr;  // the only buffer of a struct without nulls
};

namespace {

// Children may be taken out of a batch and live longer: each holds the whole.
template <class T>
void release_shared(T* object) {
  // `object` outlives this. In place a child is released by its parent, which still holds the batch; one that
  // was moved out lies with its consumer.
  delete static_cast<std::shared_ptr<void>*>(object->private_data);
  object->release = nullptr;
}
template <class T>
void release_parent(T* object) {
  for (int64_t i = 0; i < object->n_children; ++i) {
    if (object->children[i]->release != nullptr) object->children[i]->release(object->children[i]);
  }
  release_shared(object);
}

struct Schema {
  struct Field {
    std::string name, metadata;
    ArrowSchema schema{};
  };
  std::vector<std::unique_ptr<Field>> fields;
  std::vector<ArrowSchema*> children;
};

// As the C data interface packs it: native 32-bit counts and lengths.
std::string metadata_of(std::string_view key, std::string_view value) {
  std::string out;
  const auto put = [&](size_t number) {
    const auto count = static_cast<int32_t>(number);
    out.append(reinterpret_cast<const char*>(&count), sizeof count);
  };
  put(1);
  for (const std::string_view text : {key, value}) {
    put(text.size());
    out += text;
  }
  return out;
}

const char* format_of(CellType type) {
  switch (type) {
    case CellType::kNumber:
      return "l";
    case CellType::kUnsigned:
      return "L";
    case CellType::kText:
      break;
  }
  return "U";
}

}  // namespace

BatchBuilder::BatchBuilder(std::span<const TableColumn> columns, size_t rows)
    : batch_(std::make_unique<Batch>()) {
  for (const TableColumn& column : columns) {
    auto made = std::make_unique<Column>();
    made->is_text = column.type == CellType::kText;
    made->values.reserve(rows + 1);
    if (made->is_text) made->values.push_back(0);
    made->valid.reserve(rows / 8 + 1);
    batch_->columns.push_back(std::move(made));
  }
}
BatchBuilder::~BatchBuilder() = default;

BatchBuilder::Column& BatchBuilder::next() {
  LOCKSTEP_CHECK(at_ < batch_->columns.size());
  return *batch_->columns[at_++];
}

void BatchBuilder::put(uint64_t value) {
  Column& column = next();
  LOCKSTEP_CHECK(!column.is_text);
  column.values.push_back(value);
  column.add(true);
}

void BatchBuilder::text(std::string_view value) {
  Column& column = next();
  LOCKSTEP_CHECK(column.is_text);
  // Texts of Arrow are UTF-8 by definition. Names in a trace may be anything.
  column.texts += valid_utf8(value);
  column.values.push_back(column.texts.size());
  column.add(true);
}

void BatchBuilder::none() {
  Column& column = next();
  // A null has a place among the values, too: a text of no bytes, or a number that nobody reads.
  column.values.push_back(column.is_text ? column.texts.size() : 0);
  column.add(false);
}

void BatchBuilder::finish(ArrowArray* out) && {
  const std::shared_ptr<Batch> batch = std::move(batch_);
  const auto held = [&] { return new std::shared_ptr<void>(batch); };
  for (const std::unique_ptr<Column>& column : batch->columns) {
    // Arrow lets a column without nulls leave out which rows are valid.
    column->buffers = {column->nulls > 0 ? column->valid.data() : nullptr, column->values.data(),
                       column->texts.data()};
    ArrowArray& array = column->array;
    array.length = column->rows;
    array.null_count = column->nulls;
    array.n_buffers = column->is_text ? 3 : 2;
    array.buffers = column->buffers.data();
    batch->children.push_back(&array);
  }
  for (ArrowArray* child : batch->children) {
    child->private_data = held();
    child->release = release_shared<ArrowArray>;
  }
  *out = {};
  out->length = length_;
  out->n_buffers = 1;
  out->buffers = &batch->no_validity;
  out->n_children = static_cast<int64_t>(batch->children.size());
  out->children = batch->children.data();
  out->private_data = held();
  out->release = release_parent<ArrowArray>;
}

void make_schema(std::span<const TableColumn> columns, ArrowSchema* out) {
  const auto schema = std::make_shared<Schema>();
  for (const TableColumn& column : columns) {
    auto field = std::make_unique<Schema::Field>();
    field->name = column.name;
    field->metadata = metadata_of("meaning", column.meaning);
    field->schema.format = format_of(column.type);
    field->schema.name = field->name.c_str();
    field->schema.metadata = field->metadata.data();
    field->schema.flags = ARROW_FLAG_NULLABLE;
    schema->children.push_back(&field->schema);
    schema->fields.push_back(std::move(field));
  }
  for (ArrowSchema* child : schema->children) {
    child->private_data = new std::shared_ptr<void>(schema);
    child->release = release_shared<ArrowSchema>;
  }
  *out = {};
  out->format = "+s";
  out->name = "";
  out->n_children = static_cast<int64_t>(schema->children.size());
  out->children = schema->children.data();
  out->private_data = new std::shared_ptr<void>(schema);
  out->release = release_parent<ArrowSchema>;
}

}  // namespace lockstep::library
