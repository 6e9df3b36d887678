// SPDX-License-Identifier: Apache-2.0
// lockstep-roctx-job: a program linked with roctx, which is fake_roctx.cc. Marks ranges, and prints what
// roctx returned.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <thread>

extern "C" {
int roctxRangePushA(const char* text);
int roctxRangePop();
uint64_t roctxRangeStartA(const char* text);
void roctxRangeStop(uint64_t range);
}

int main() {
  const uint64_t data = roctxRangeStartA("data");
  const int step = roctxRangePushA("step"), forward = roctxRangePushA("forward");
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  const int of_forward = roctxRangePop(), of_step = roctxRangePop();
  std::thread([&] { roctxRangeStop(data); }).join();
  std::printf("%d %d %d %d %d\n", step, forward, of_forward, of_step, static_cast<int>(data));
}
