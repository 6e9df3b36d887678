// SPDX-License-Identifier: Apache-2.0
// adapt(): derives the descriptor of one API version from the newest one, with the losses of NCCL's own
// adapters. The target arrives filled as the core leaves it: zeroed, or with garbage where an adapter does
// not initialise it.
#pragma once
#include "nccl_host/binding.h"

namespace lockstep::sim {

void adapt(const nccl_abi::v7::Descriptor& from, const Behaviour& behaviour, nccl_abi::v1::Descriptor* to);
void adapt(const nccl_abi::v7::Descriptor& from, const Behaviour& behaviour, nccl_abi::v2::Descriptor* to);
void adapt(const nccl_abi::v7::Descriptor& from, const Behaviour& behaviour, nccl_abi::v3::Descriptor* to);
void adapt(const nccl_abi::v7::Descriptor& from, const Behaviour& behaviour, nccl_abi::v4::Descriptor* to);
void adapt(const nccl_abi::v7::Descriptor& from, const Behaviour& behaviour, nccl_abi::v5::Descriptor* to);
void adapt(const nccl_abi::v7::Descriptor& from, const Behaviour& behaviour, nccl_abi::v6::Descriptor* to);
void adapt(const nccl_abi::v7::Descriptor& from, const Behaviour& behaviour, nccl_abi::v7::Descriptor* to);

}  // namespace lockstep::sim
