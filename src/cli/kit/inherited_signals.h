// SPDX-License-Identifier: Apache-2.0
// Two signals are set as the program needs them, and as it got them for a command that it runs. A file that
// grows beyond the limit of its process (ulimit -f) raises SIGXFSZ, which ends it; here the error is enough,
// as that of a full disk is. With SIGCHLD ignored, as some launchers leave it, children end without a word,
// and who waits for one waits for ever.
#pragma once
#include <csignal>

namespace lockstep::cli {

inline void (*g_size_signal_before)(int) = SIG_DFL;
inline void (*g_child_signal_before)(int) = SIG_DFL;

inline void set_signals() {
  g_size_signal_before = std::signal(SIGXFSZ, SIG_IGN);
  g_child_signal_before = std::signal(SIGCHLD, SIG_DFL);
}
inline void restore_signals() {
  std::signal(SIGXFSZ, g_size_signal_before);
  std::signal(SIGCHLD, g_child_signal_before);
}

}  // namespace lockstep::cli
