// SPDX-License-Identifier: Apache-2.0
// The head that NCCL puts before what it says, wherever it stands in a line: launchers, frameworks and log
// collectors write before it.
//
//   [time] host:pid:tid [device] file:line (function) NCCL WARN body
#pragma once
#include <cstdint>
#include <string_view>

namespace lockstep::readers::nccl_log {

enum class Level : uint8_t { kVersion, kWarn, kInfo, kAbort, kTrace, kCall };  // kWarn: ERROR of RCCL as well

// Views into the line.
struct Head {
  std::string_view prefix;    // what stands before the host: time, launcher's marks
  std::string_view host_pid;  // "node7:4242": names the process within a file
  std::string_view host;
  int64_t pid = 0, tid = 0;
  int32_t device = -1;  // the calling thread's current device, not the communicator's; -1: not said
  Level level = Level::kInfo;
  std::string_view body;  // without blanks at its ends
};

// The first head in `line`. False when there is none.
bool find_head(std::string_view line, Head& head);

// What is left of a head whose host and process were cut off or taken out: "[0] NCCL INFO body", "file.cc:80
// NCCL WARN body", "NCCL INFO body", "include/socket.h:344 WARN body". Host and process are empty. False
// where there is none.
bool find_weak_head(std::string_view line, Head& head);

// Where in `body` (of a head that was found) another process' line begins: ranks that share a stream tear
// each other's lines. npos: nowhere. `next` is that line's head.
size_t find_torn_head(std::string_view body, Head& next);

// A line without a head that looks as if it had lost part of one.
bool looks_torn(std::string_view line);

// The rank that a launcher's mark names: `[1,9]<stdout>:` of Open MPI, `[rank9]:` of PyTorch, `9: ` of srun
// -l; -1: none.
int32_t rank_of_prefix(std::string_view prefix);

// How many lines Ray left out and counted in the mark at the end of this one; cuts the mark off. 0: none.
uint64_t cut_repeat_mark(std::string_view& body);

}  // namespace lockstep::readers::nccl_log
