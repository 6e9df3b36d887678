// SPDX-License-Identifier: Apache-2.0
// A file that grows beyond the limit of its process (ulimit -f) raises SIGXFSZ, which ends it. Here the error
// is enough, as that of a full disk is; a command that is run gets the signal as this program got it.
#pragma once
#include <csignal>

namespace lockstep::cli {

inline void (*g_size_signal_before)(int) = SIG_DFL;

inline void ignore_size_signal() { g_size_signal_before = std::signal(SIGXFSZ, SIG_IGN); }
inline void restore_size_signal() { std::signal(SIGXFSZ, g_size_signal_before); }

}  // namespace lockstep::cli
