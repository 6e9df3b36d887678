// SPDX-License-Identifier: Apache-2.0
// A library of roctx: numbers ranges from 1000 on, and counts how deep each thread is.
#include <atomic>
#include <cstdint>

namespace {
thread_local int t_depth = 0;
std::atomic<uint64_t> g_next{1000};
}  // namespace

extern "C" {
int roctxRangePushA(const char*) { return t_depth++; }
int roctxRangePop() { return --t_depth; }
uint64_t roctxRangeStartA(const char*) { return g_next++; }
void roctxRangeStop(uint64_t) {}
}
