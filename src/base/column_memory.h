// SPDX-License-Identifier: Apache-2.0
// Where long columns lie. Short ones are malloc's; long ones share extents of huge pages, which costs a
// fraction of the page faults. Past a limit, extents are files without a name: the kernel writes them out
// when memory gets short, so that a run larger than memory is read with the same code, and more slowly.
#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <string>
#include <vector>

#include "base/result.h"

namespace lockstep {

inline constexpr size_t kLeastExtentBytes = size_t{16} << 10;  // of what is kept for long
inline constexpr size_t kLeastPassingBytes = size_t{32}
                                             << 20;  // of what is soon freed, and better comes from malloc

// Memory of at least 16 bytes' alignment, not cleared. Any thread. Throws ColumnMemoryError. `bytes` >=
// kLeastExtentBytes.
void* allocate_extent(size_t bytes);
// Memory of allocate_extent(), on any thread, once.
void free_extent(void* memory) noexcept;

// The limit is met, and the directory takes no more.
class ColumnMemoryError : public std::bad_alloc {
 public:
  explicit ColumnMemoryError(std::string text) : text_(std::move(text)) {}
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

struct ColumnLimit {
  uint64_t bytes =
      std::numeric_limits<uint64_t>::max();  // of extents in memory; what lies there already stays
  std::string directory;                     // of the files; on a disk
};
// For extents made from now on. Call it before work begins: any thread, but what others allocate at that
// moment may count to the old limit or the new one.
void set_column_limit(ColumnLimit limit);

// Bytes of extents at present: with and without a file behind them.
struct ColumnUse {
  uint64_t memory = 0, files = 0;
};
ColumnUse column_use();

template <class T, size_t kLeastBytes = kLeastExtentBytes>
struct ColumnAllocator {
  using value_type = T;
  template <class Other>
  struct rebind {
    using other = ColumnAllocator<Other, kLeastBytes>;
  };
  ColumnAllocator() = default;
  template <class Other>
  ColumnAllocator(const ColumnAllocator<Other, kLeastBytes>&) {}  // NOLINT(google-explicit-constructor)

  T* allocate(size_t count) {
    if (count > std::numeric_limits<size_t>::max() / sizeof(T)) throw std::bad_array_new_length();
    const size_t bytes = count * sizeof(T);
    return static_cast<T*>(bytes < kLeastBytes ? ::operator new(bytes) : allocate_extent(bytes));
  }
  void deallocate(T* memory, size_t count) noexcept {
    if (count * sizeof(T) < kLeastBytes)
      ::operator delete(memory);
    else
      free_extent(memory);
  }
  bool operator==(const ColumnAllocator&) const = default;
};

// One value for each row of something.
template <class T>
using Column = std::vector<T, ColumnAllocator<T>>;
// One that does not outlive the function.
template <class T>
using PassingColumn = std::vector<T, ColumnAllocator<T, kLeastPassingBytes>>;

}  // namespace lockstep
