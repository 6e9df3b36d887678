// SPDX-License-Identifier: Apache-2.0
// Threads that the work can do without.
//
// The program goes on without such a thread, later or with less. Nothing here throws but what copying `work`
// throws.
#pragma once
#include <exception>
#include <system_error>
#include <thread>
#include <utility>

namespace lockstep {

// Not joinable where the system starts no more threads.
template <class Work>
std::thread start_thread(Work work) {
  try {
    return std::thread(std::move(work));
  } catch (const std::system_error&) {
    return {};
  }
}

// A piece of such work. False where it failed, for want of memory or else, which would end the program with
// the thread.
template <class Work>
bool attempt(const Work& work) {
  try {
    work();
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace lockstep
