// SPDX-License-Identifier: Apache-2.0
// Ctrl-C, SIGTERM and SIGHUP as a wish that a loop asks for, instead of the end of the program. One object at
// a time, in the main thread.
#pragma once
#include <signal.h>

#include <array>
#include <chrono>

namespace lockstep::cli {

class Interrupt {
 public:
  enum class Second {
    kEnds,
    kIsNoted
  };  // a second signal: ends the program, in case the loop is slow to ask, or not
  explicit Interrupt(Second second);
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  ~Interrupt();
  bool wanted() const;
  // Waits this long, or until the wish comes; true if it has.
  bool wait(std::chrono::milliseconds time) const;
  // Readable once the wish has come, for poll().
  int descriptor() const;

 private:
  static constexpr std::array<int, 3> kSignals = {SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, kSignals.size()> before_{};
};

}  // namespace lockstep::cli
