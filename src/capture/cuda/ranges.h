// SPDX-License-Identifier: Apache-2.0
// Ranges that a program marks, as records of the thread that marks them. A started range's number is its
// record's handle, so that any thread may end it without a table; pushed ones wait on a stack of their thread
// and domain. Threads: any. Ranges cost a record, without a lock; the first of a name also a definition, and
// now and then memory, as tables of names grow by mapping more. Domains and registered texts are made under a
// lock, seldom. In a forked child nothing is recorded, and no lock is taken. Bounded: kMostOpen pushed ranges
// of a thread at a time, kMostDomains, kMostText bytes of registered texts, names as in
// capture/core/log/thread_log.h; what is beyond is counted.
#pragma once
#include <cstddef>
#include <cstdint>

namespace lockstep::capture::cuda {

// A name, or where it is cut. No NUL behind it.
struct RangeName {
  const char* text = "";
  size_t bytes = 0;
  bool is_cut = false;
};
// At most a name's bytes of it, and whole characters; nullptr is empty.
RangeName range_name_of(const char* text);
// The same of wide text, which becomes UTF-8 in `buffer`.
RangeName range_name_of(const wchar_t* text, char (&buffer)[256]);

// How programs know a domain: 0 is the default one, others are ours to give.
using Domain = uintptr_t;
inline constexpr uint32_t kMostDomains = 128, kMostOpen = 128, kMostNumbered = 1024;
// The domain of a name, the same for equal ones. That of NCCL is known, and nothing in it recorded: the
// profiler plugin records those calls, and more of them.
Domain make_domain(RangeName name);
// A text that stays, the same for equal ones; nullptr where there is no room (counted).
const char* register_range_text(RangeName name);

// Whether ranges are recorded, by the mode in force. Those that are open then may end.
void record_ranges(bool wanted);
// The level of the range in its domain, from 0, or one of nvtx_abi.h's words.
int push_range(Domain domain, RangeName name);
int pop_range(Domain domain);
// The range's number; 0: not recorded.
uint64_t start_range(Domain domain, RangeName name);
void end_range(uint64_t range);
// The same where another library numbers its ranges, counting up: at most kMostNumbered are open at a time,
// the others are counted.
void start_numbered_range(uint64_t number, RangeName name);
void end_numbered_range(uint64_t number);

}  // namespace lockstep::capture::cuda
