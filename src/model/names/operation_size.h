// SPDX-License-Identifier: Apache-2.0
// Sizes and bandwidths as nccl-tests defines them: the size S of an operation is the larger of its whole
// input and output, algbw = S / time, busbw = algbw x a factor by operation and ranks, which makes it
// comparable to a link's speed.
#pragma once
#include <cstdint>
#include <string_view>

namespace lockstep::model {

// S from the bytes that the caller named for one rank. `ranks` < 2: unknown, S is those bytes. A declared
// operation (lockstep.h) names its whole input. Functions in NCCL's, PyTorch's or a caller's spelling.
uint64_t operation_size(std::string_view func, uint64_t bytes, int64_t ranks, bool declared);
// Elements of the whole input and output of one rank, from the count that NCCL's caller passed (that of one
// rank's part). Functions in NCCL's spelling; `ranks` < 1: unknown, taken for 1.
struct Elements {
  uint64_t in = 0, out = 0;
};
Elements elements_of(std::string_view func, uint64_t count, int32_t ranks);
// busbw / algbw; 1 for broadcasts, reduces and sends, and for fewer than two ranks.
double bus_factor(std::string_view func, int64_t ranks);
// One rank sends to all or receives from all: members may leave at different times.
bool has_root(std::string_view func);

}  // namespace lockstep::model
