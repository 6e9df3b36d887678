// SPDX-License-Identifier: Apache-2.0
// The memory that all ranks share, mapped before they are forked: flags, and for each rank an input that its peers
// read, and a scratch buffer in which it leaves partial results for them.
#pragma once
#include <cstddef>
#include <cstdint>

#include "signals.h"

namespace custom_allreduce {

class Arena {
 public:
  // `elements`: the largest message. ok() is false when there is no memory.
  Arena(int ranks, size_t elements);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  bool ok() const { return base_ != nullptr; }
  int ranks() const { return ranks_; }
  size_t elements() const { return elements_; }
  // Raised by `from`, waited for by `to`.
  Flag& flag(int to, int from) const { return flags_[to * ranks_ + from]; }
  float* input(int rank) const { return data_ + 2 * static_cast<size_t>(rank) * elements_; }
  float* scratch(int rank) const { return input(rank) + elements_; }

 private:
  int ranks_;
  size_t elements_, bytes_;
  void* base_ = nullptr;
  Flag* flags_ = nullptr;
  float* data_ = nullptr;
};

}  // namespace custom_allreduce
