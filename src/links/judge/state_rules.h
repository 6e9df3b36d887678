// SPDX-License-Identifier: Apache-2.0
// When the state of a port or of NVLinks is a trouble, and in which words: judge_state() makes findings of
// it, facts_of() facts.
#pragma once
#include <cstddef>
#include <optional>
#include <string>

#include "links/machine.h"

namespace lockstep::links {

inline constexpr const char* kSlowRateAdvice =
    "Check the cable: it may have lost lanes, or be made for a lower rate.";

// "is not active: DOWN, Polling"; nothing where it is active, or says nothing.
std::optional<std::string> inactive_words(const Nic& nic, const Port& port);
// "runs at 200 Gb/s, its siblings at up to 400". Siblings are the active ports of the card itself and of
// those of its type: cards of other types may be slower by design.
std::optional<std::string> slow_words(const Machine& machine, const Nic& nic, const Port& port);

// Links of the GPU that are known to be down.
size_t down_links(const Gpu& gpu);
// A board may leave links unconnected: so many are down on every GPU, and only more than these are a trouble.
size_t unconnected_links(const Machine& machine);

}  // namespace lockstep::links
