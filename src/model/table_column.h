// SPDX-License-Identifier: Apache-2.0
// One column of a table. It does not know how many rows it has: its table does, once for all its columns, so
// that appending a row costs each column one store.
#pragma once
#include <algorithm>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

#include "base/column_memory.h"

namespace lockstep::model {

// For values that copy as bytes. Nothing checks `row`: rows are those that the table has, and values behind
// them are whatever memory holds. Addresses change when room is made.
template <class T>
class TableColumn {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  TableColumn() = default;
  TableColumn(TableColumn&& other) noexcept
      : values_(std::exchange(other.values_, nullptr)), room_(std::exchange(other.room_, 0)) {}
  TableColumn& operator=(TableColumn&& other) noexcept {
    std::swap(values_, other.values_);
    std::swap(room_, other.room_);
    return *this;
  }
  ~TableColumn() {
    if (values_ != nullptr) Memory().deallocate(values_, room_);
  }

  T& operator[](size_t row) { return values_[row]; }
  const T& operator[](size_t row) const { return values_[row]; }
  T* data() { return values_; }
  const T* data() const { return values_; }

  // For the table: room for `room` rows, of which `size` are there and stay.
  void make_room(size_t size, size_t room) {
    T* const values = Memory().allocate(room);
    std::copy_n(values_, size, values);
    if (values_ != nullptr) Memory().deallocate(values_, room_);
    values_ = values;
    room_ = room;
  }

 private:
  using Memory = ColumnAllocator<T, kLeastPassingBytes>;

  T* values_ = nullptr;
  size_t room_ = 0;
};

}  // namespace lockstep::model
