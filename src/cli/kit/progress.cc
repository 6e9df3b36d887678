// SPDX-License-Identifier: Apache-2.0
// Draws a progress bar on a terminal's stderr. Short work draws nothing, and a redraw waits 0.1 s: terminals
// are slow, and callers report far more often than eyes can follow.
#include "cli/kit/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace lockstep::cli {
namespace {

constexpr auto kQuiet = std::chrono::seconds(1);
constexpr auto kRedraw = std::chrono::milliseconds(100);
constexpr size_t kBar = 30;

}  // namespace

std::string progress_line(const std::string& label, double fraction, double elapsed_seconds) {
  fraction = fraction >= 0 ? std::min(fraction, 1.0) : 0;  // also for NaN
  auto filled = static_cast<size_t>(fraction * kBar);
  char tail[64];
  // Before that an estimate of what is left would jump too much to be of use.
  if (fraction > 0.02) {
    std::snprintf(tail, sizeof tail, "%3.0f %%  %.0f s left", fraction * 100,
                  std::min(elapsed_seconds / fraction * (1 - fraction), 999999.0));
  } else {
    std::snprintf(tail, sizeof tail, "%3.0f %%", fraction * 100);
  }
  return label + " [" + std::string(filled, '#') + std::string(kBar - filled, '.') + "] " + tail;
}

Progress::Progress(std::string label) : label_(std::move(label)), terminal_(isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  // The line is cleared, as a report may follow on the same terminal.
  if (drawn_) std::fputs("\r\033[K", stderr);
}

void Progress::update(double fraction) {
  if (!terminal_) return;
  auto now = Clock::now();
  if (now - start_ < kQuiet || (drawn_ && now - last_ < kRedraw)) return;
  last_ = now;
  drawn_ = true;
  double elapsed = std::chrono::duration<double>(now - start_).count();
  std::fprintf(stderr, "\r\033[K%s", progress_line(label_, fraction, elapsed).c_str());
  std::fflush(stderr);
}

}  // namespace lockstep::cli
