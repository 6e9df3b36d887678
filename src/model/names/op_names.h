// SPDX-License-Identifier: Apache-2.0
// How other tools spell what an operation is: names that trace viewers and HTA recognise, PyTorch's words.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "model/trace.h"

namespace lockstep::model {

// "ncclKernel_AllReduce_RING_LL_ncclFloat32": the form of NCCL's kernel names before 2.19, which every tool
// knows as communication. Work that was declared through lockstep.h has "Custom" before its function.
std::string kernel_name(const Trace& trace, uint32_t shape, bool custom);
// "ncclAllReduce"; a declared function keeps its own name.
std::string api_name(const Trace& trace, uint32_t shape, bool custom);
// "allreduce", "_allgather_base", ...: `Collective name` of PyTorch; the function in lower case if it has
// none.
std::string torch_collective(std::string_view func);
// "Float" for "ncclFloat32", ...; the text itself if it is no NCCL type.
std::string_view torch_dtype(std::string_view datatype);
// The other way: "AllReduce" for "nccl:all_reduce", "allreduce" and "nccl:allreduce_coalesced"; without its
// prefix, the text itself if NCCL has no such function.
std::string nccl_func(std::string_view torch_name);
// "ncclFloat32" for "Float"; the text itself if NCCL has no such type.
std::string_view nccl_dtype(std::string_view torch_dtype);

}  // namespace lockstep::model
