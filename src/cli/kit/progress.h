// SPDX-License-Identifier: Apache-2.0
// A progress bar on stderr, for work that takes longer than a second on a terminal. Elsewhere it prints
// nothing. Use from one thread; the bar goes when the object does.
#pragma once
#include <chrono>
#include <functional>
#include <string>

namespace lockstep::cli {

class Progress {
 public:
  explicit Progress(std::string label);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();
  // `fraction`: of the work that is done, 0 to 1. Cheap enough for every step: it draws 10 times a second at
  // most.
  void update(double fraction);
  // For interfaces that take a function; valid as long as the object is.
  std::function<void(double)> callback() {
    return [this](double fraction) { update(fraction); };
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::string label_;
  bool terminal_;
  bool drawn_ = false;
  Clock::time_point start_ = Clock::now(), last_ = start_;
};

// The line drawn for a fraction: "merging [#####.....] 50 %  3 s left".
std::string progress_line(const std::string& label, double fraction, double elapsed_seconds);

}  // namespace lockstep::cli
