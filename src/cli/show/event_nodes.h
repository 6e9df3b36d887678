// SPDX-License-Identifier: Apache-2.0
// What the parts of an operation's tree are made with.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/show/event_tree.h"
#include "model/trace.h"

namespace lockstep::cli::show {

// Both texts with a comma between; one of them alone if the other is empty.
std::string comma(const std::string& text, const std::string& more);

// `thread`: row of threads, or kNoRow; times in RunNs of the process' host, 0 none.
EventNode event_node(const model::Trace& trace, uint8_t kind, uint32_t thread, int64_t begin_ns,
                     int64_t end_ns);
// Does nothing if `ns` is 0: the state was not reached, or is not known.
void add_state(EventNode& into, const char* name, int64_t ns);
// Has `node` stand for one more event.
void widen(EventNode& node, int64_t begin_ns, int64_t end_ns);
// Siblings of one kind: each by itself, or those that ended as one.
void add_folded(EventNode& into, std::vector<EventNode> siblings, size_t most);

}  // namespace lockstep::cli::show
