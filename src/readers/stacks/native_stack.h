// SPDX-License-Identifier: Apache-2.0
// Stacks of native code, as gdb and pstack print them, a thread after the other:
//
//   Thread 1 (Thread 0x7f04 (LWP 4242) "python"):
//   #0  0x00007f05 in poll () from /lib64/libc.so.6
//   #1  0x00007f06 in commReclaim (comm=0x55) at init.cc:2014
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::readers::stacks {

// Views into the line.
struct NativeFrame {
  int32_t number = -1;
  std::string_view function;  // without arguments; empty: not known
  bool has_address = false;
};
// A line that is one frame, without blanks at its ends.
std::optional<NativeFrame> native_frame(std::string_view line);

struct NativeHead {
  int32_t thread = -1;  // gdb's number; 1 is the main one
  int64_t lwp = -1;     // of the main thread that of the process; -1: unknown
};
std::optional<NativeHead> native_head(std::string_view line);

// One thread, frame by frame from the innermost on; keeps views.
class NativeStack {
 public:
  void add(const NativeFrame& frame);
  bool is_empty() const { return !has_frames_; }
  // The program's call of NCCL in which it is.
  bool is_in_nccl() const { return !nccl_.empty(); }
  // "ncclCommAbort": the outermost call of NCCL, else of CUDA or HIP, else the innermost function that has a
  // name.
  std::string_view place() const;
  // The function that this call had called, some way in; empty: none has a name.
  std::string_view called() const;

 private:
  bool has_frames_ = false;
  std::string_view innermost_, last_named_;
  std::string_view nccl_, nccl_called_, gpu_, gpu_called_;
};

}  // namespace lockstep::readers::stacks
