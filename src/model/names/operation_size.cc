// SPDX-License-Identifier: Apache-2.0
// NCCL's callers name the part of one rank, a declared operation the whole input, and bandwidth needs the
// whole of the larger side (nccl-tests' S). So the factor depends on who named the number. Sizes come from
// files: the largest number stands for one that overflows, instead of a small wrong one.
#include "model/names/operation_size.h"

#include <algorithm>
#include <string>

namespace lockstep::model {
namespace {

// NCCL's "AllGather", PyTorch's "_allgather_base" and a caller's "all_gather" are one.
std::string plain(std::string_view func) {
  std::string text;
  for (char c : func) {
    if (c >= 'A' && c <= 'Z')
      text += static_cast<char>(c - 'A' + 'a');
    else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
      text += c;
  }
  for (std::string_view word : {"coalesced", "base", "intotensor", "tensor"}) {
    if (size_t at = text.find(word); at != std::string::npos) text.erase(at, word.size());
  }
  return text == "alltoallv" ? "alltoall" : text;
}

// Each rank contributes or receives a part of the whole.
bool in_parts(std::string_view name) {
  return name == "allgather" || name == "reducescatter" || name == "alltoall" || name == "gather" ||
         name == "scatter";
}

}  // namespace

uint64_t operation_size(std::string_view func, uint64_t bytes, int64_t ranks, bool declared) {
  std::string name = plain(func);
  if (ranks < 2 || !in_parts(name)) return bytes;
  // NCCL's callers name the part of one rank. A declared operation names its whole input.
  if (declared && name != "allgather" && name != "gather") return bytes;
  uint64_t size = 0;
  return __builtin_mul_overflow(bytes, static_cast<uint64_t>(ranks), &size) ? UINT64_MAX : size;
}

Elements elements_of(std::string_view func, uint64_t count, int32_t ranks) {
  const bool grows = func == "AllGather" || func == "Gather" || func == "AlltoAll";
  const bool shrinks = func == "ReduceScatter" || func == "Scatter" || func == "AlltoAll";
  uint64_t all = 0;
  if (__builtin_mul_overflow(count, static_cast<uint64_t>(std::max(ranks, 1)), &all)) all = UINT64_MAX;
  return {shrinks ? all : count, grows ? all : count};
}

// As nccl-tests defines it: an all-reduce moves 2(n-1)/n of its size over each rank's link, an operation in
// parts half of that.
double bus_factor(std::string_view func, int64_t ranks) {
  if (ranks < 2) return 1;
  std::string name = plain(func);
  auto w = static_cast<double>(ranks);
  if (name == "allreduce") return 2 * (w - 1) / w;
  return in_parts(name) ? (w - 1) / w : 1;
}

bool has_root(std::string_view func) {
  std::string name = plain(func);
  return name == "broadcast" || name == "reduce" || name == "gather" || name == "scatter";
}

}  // namespace lockstep::model
