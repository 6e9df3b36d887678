// SPDX-License-Identifier: Apache-2.0
// The network's part of an operation's tree.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cli/show/event_tree.h"
#include "model/trace.h"

namespace lockstep::cli::show {

// ProxyOp > ProxyStep > NetPlugin of these rows of `trace.proxy_ops`; `most` as of event_tree().
std::vector<EventNode> network_tree(const model::Trace& trace, const std::vector<uint32_t>& proxy_ops,
                                    size_t most);

}  // namespace lockstep::cli::show
