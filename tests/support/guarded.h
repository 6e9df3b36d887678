// SPDX-License-Identifier: Apache-2.0
// A struct that ends where its memory ends: a read or a write of one byte more kills the process.
#pragma once
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>

namespace lockstep::test {

template <class Type>
class Guarded {
 public:
  Guarded() {
    void* const pages = mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(pages, MAP_FAILED);
    pages_ = static_cast<char*>(pages);
    memset(pages_, 0xa5, kPage);
    EXPECT_EQ(mprotect(pages_ + kPage, kPage, PROT_NONE), 0);
  }
  explicit Guarded(const Type& value) : Guarded() { memcpy(static_cast<void*>(get()), &value, sizeof value); }
  ~Guarded() { munmap(pages_, 2 * kPage); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  Type* get() const { return reinterpret_cast<Type*>(pages_ + kPage - sizeof(Type)); }
  Type* operator->() const { return get(); }

 private:
  static constexpr size_t kPage = 4096;
  static_assert(sizeof(Type) % alignof(Type) == 0 && sizeof(Type) <= kPage);
  char* pages_;
};

}  // namespace lockstep::test
