// SPDX-License-Identifier: Apache-2.0
// Tables between the spellings of NCCL and PyTorch. Names come from files and may be anything: what no table
// has is passed on as it is, since a renamed operation is still one that people know.
#include "model/names/op_names.h"

namespace lockstep::model {
namespace {

struct Spelling {
  std::string_view nccl, torch;
};
// Both ways take the first row that fits: the last one is only ever read.
constexpr Spelling kDtypes[] = {
    {"ncclInt8", "Char"},
    {"ncclUint8", "Byte"},
    {"ncclInt32", "Int"},
    {"ncclUint32", "UInt32"},
    {"ncclInt64", "Long"},
    {"ncclUint64", "UInt64"},
    {"ncclFloat16", "Half"},
    {"ncclFloat32", "Float"},
    {"ncclFloat64", "Double"},
    {"ncclBfloat16", "BFloat16"},
    {"ncclFloat8e4m3", "Float8_e4m3fn"},
    {"ncclFloat8e5m2", "Float8_e5m2"},
    {"Unknown", "Byte"},  // NCCL has no name for ncclUint8
};
constexpr Spelling kCollectives[] = {
    {"AllReduce", "allreduce"},
    {"AllGather", "_allgather_base"},
    {"ReduceScatter", "_reduce_scatter_base"},
    {"Broadcast", "broadcast"},
    {"Reduce", "reduce"},
    {"Send", "send"},
    {"Recv", "recv"},
    {"AlltoAll", "all_to_all"},
    {"Gather", "gather"},
    {"Scatter", "scatter"},
};

// PyTorch's names without '_' and the words that say how tensors are passed.
constexpr Spelling kFunctions[] = {
    {"AllReduce", "allreduce"},
    {"AllReduce", "allreducesparse"},
    {"Barrier", "allreducebarrier"},
    {"Barrier", "barrier"},
    {"Broadcast", "broadcast"},
    {"Broadcast", "broadcastoop"},
    {"Reduce", "reduce"},
    {"Reduce", "reduceoop"},
    {"AllGather", "allgather"},
    {"ReduceScatter", "reducescatter"},
    {"AlltoAll", "alltoall"},
    {"AlltoAll", "alltoallsingle"},
    {"AlltoAll", "alltoallv"},
    {"Gather", "gather"},
    {"Scatter", "scatter"},
    {"Send", "send"},
    {"Recv", "recv"},
};

void remove_all(std::string& text, std::string_view part) {
  for (size_t at; (at = text.find(part)) != std::string::npos;) text.erase(at, part.size());
}

}  // namespace

std::string kernel_name(const Trace& trace, uint32_t shape, bool custom) {
  const ShapeTable& shapes = trace.shapes;
  std::string name = custom ? "ncclKernel_Custom" : "ncclKernel";
  for (StringId part :
       {shapes.func[shape], shapes.algo[shape], shapes.proto[shape], shapes.datatype[shape]}) {
    if (part == 0) continue;
    name += '_';
    name += trace.strings[part];
  }
  return name;
}

std::string api_name(const Trace& trace, uint32_t shape, bool custom) {
  std::string name = custom ? "" : "nccl";
  name += trace.strings[trace.shapes.func[shape]];
  return name;
}

std::string torch_collective(std::string_view func) {
  for (const Spelling& s : kCollectives) {
    if (s.nccl == func) return std::string(s.torch);
  }
  std::string lower(func);
  // By hand: what <cctype> says depends on the locale.
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
}

std::string nccl_func(std::string_view torch_name) {
  // The backend's name before the function and ranks behind a blank, as in "nccl:send 0->1", are no part of
  // it. Nor are the words that say how tensors are passed.
  if (const size_t colon = torch_name.find(':'); colon != std::string_view::npos)
    torch_name.remove_prefix(colon + 1);
  torch_name = torch_name.substr(0, torch_name.find(' '));
  std::string key(torch_name);
  for (char& c : key) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  for (const std::string_view part : {"_", "coalesced", "base", "intotensor", "tensor"})
    remove_all(key, part);
  for (const Spelling& s : kFunctions) {
    if (s.torch == key) return std::string(s.nccl);
  }
  return std::string(torch_name);
}

std::string_view torch_dtype(std::string_view datatype) {
  for (const Spelling& s : kDtypes) {
    if (s.nccl == datatype) return s.torch;
  }
  return datatype;
}

std::string_view nccl_dtype(std::string_view torch_dtype) {
  for (const Spelling& s : kDtypes) {
    if (s.torch == torch_dtype) return s.nccl;
  }
  return torch_dtype;
}

}  // namespace lockstep::model
