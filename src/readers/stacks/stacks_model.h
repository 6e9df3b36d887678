// SPDX-License-Identifier: Apache-2.0
// Where the main threads of processes were in their program, at about one moment. Plain data.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::readers::stacks {

// One process, by its main thread; of native code by the one that called NCCL, if one did.
struct Stack {
  std::string file;    // that it is from
  uint64_t line = 0;   // of the file, where it begins; from 1
  int32_t rank = -1;   // of the job; -1 unknown
  std::string host;    // empty unknown
  int64_t pid = -1;    // -1 unknown
  std::string place;   // as model/names/call_place.h words it, or a native function; empty: it had no frame
                       // with a name
  std::string called;  // the function that the place had called; empty: none
  bool is_launcher = false;  // it started ranks and waits for them
};

struct StacksModel {
  std::vector<Stack> stacks;                  // in the order of the files
  uint64_t left_out = 0;                      // beyond what is kept
  std::vector<std::string> unreadable_files;  // what is wrong, and with which
};

}  // namespace lockstep::readers::stacks
