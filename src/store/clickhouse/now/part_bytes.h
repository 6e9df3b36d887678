// SPDX-License-Identifier: Apache-2.0
// A process' newest state as two kinds of bytes, which a store keeps in columns: of the process itself, and
// of each of its communicators with the operations. Bytes come back from a store and may be anything.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/process_part.h"

namespace lockstep::store::clickhouse {

// Times beyond are nobody's, and the distance of two within fits 64 bits.
constexpr bool is_time(int64_t ns) { return ns >= -(int64_t{1} << 61) && ns <= int64_t{1} << 61; }

// Rank, host, times, open calls and steps, losses. Its communicators are counted, and packed one by one.
std::string pack_process(const model::ProcessPart& part);
// Of the communicator that is this member.
std::string pack_member(const model::ProcessPart& part, uint32_t member);

// Into an empty part. How many communicators the process has; nothing: that is not what pack_process makes.
std::optional<uint64_t> unpack_process(std::string_view bytes, model::ProcessPart& part);
// Adds the next member, in the order of their numbers. False: it is not what pack_member makes.
bool unpack_member(std::string_view bytes, model::ProcessPart& part);

}  // namespace lockstep::store::clickhouse
