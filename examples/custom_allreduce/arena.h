// SPDX-License-Identifier: Apache-2.0
// The memory that all ranks share: flags, and for each rank an input that its peers read, and a scratch
// buffer in which it leaves partial results for them. It is mapped before the ranks are forked, or found by
// its name by ranks that a launcher has started on one machine.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "signals.h"

namespace custom_allreduce {

class Arena {
 public:
  // `elements`: the largest message. Under a name it is shared with whoever gives the same one: each rank of
  // the job does so once, and waits for the others. ok() is false when there is no memory, or they do not
  // come (errno ETIMEDOUT).
  Arena(int ranks, size_t elements, const std::string& name = {});
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
