// SPDX-License-Identifier: Apache-2.0
// The writer thread: puts what is recorded into the process file, fetches from it what a tool asks for, and
// finishes it at exit. A ring that outlives the process is written when it is asked for and at exit. It waits
// for storage as long as that likes; nobody waits for it, but for a second at exit.
#pragma once
#include <atomic>
#include <cstdint>

#include "capture/core/file/file_writer.h"
#include "capture/core/file/process_file.h"
#include "capture/core/own_thread.h"

namespace lockstep::capture {

// How old the file may be while storage keeps up, where memory does not outlive the process.
inline int64_t write_every_ns(const ProcessFile& file) { return file.ring() ? 1'000'000'000 : 200'000'000; }

class WriteBehind {
 public:
  // Writes the file's begin, and starts the thread; one more finishes what processes before left on this
  // host. `asked` is called when a tool has asked for something, on the writer's thread. False: no thread,
  // and what is recorded is written at exit.
  bool start(ProcessFile* file, void (*asked)());
  // Places are short. Any thread.
  void wake() { bell_.ring(); }
  // There is an answer in the header, for which somebody waits, behind all that is in memory if that is to be
  // saved. Any thread.
  void answer(bool save);
  // Why nothing is written at present; false if nothing stands in the way. Any thread.
  bool trouble(Loss* why) const { return writer_.trouble(why); }
  // After the last claim, when the session is closed: all goes into the file and the segment is removed. If
  // that takes until the deadline (CLOCK_MONOTONIC), the segment waits for an adopter.
  void finish(int64_t deadline_ns);

 private:
  static void* run(void* self);
  static void* adopt(void*);
  void write();

  ProcessFile* file_ = nullptr;
  void (*asked_)() = nullptr;
  FileWriter writer_;
  Bell bell_, end_;
  bool has_thread_ = false;
  std::atomic<bool> is_ending_{false}, has_answer_{false}, is_saving_{false}, is_written_{false};
};

}  // namespace lockstep::capture
