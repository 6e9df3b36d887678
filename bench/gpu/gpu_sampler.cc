// SPDX-License-Identifier: Apache-2.0
// What watching this host's GPUs beside a job costs, and what NVML answers: `gpu_sampler [SECONDS]` (60)
// reads them as `lockstep trace` does and prints, by pace, the CPU time and the length of a reading in all,
// and each counter's first and last value. Built where it runs: `g++ -std=c++20 -O2 -Isrc
// bench/gpu/gpu_sampler.cc src/links/nvidia/watched_gpus.cc src/links/shared_library.cc -ldl`.
#include <time.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>

#include "links/nvidia/watched_gpus.h"

namespace {

namespace links = lockstep::links;
using Clock = std::chrono::steady_clock;

double cpu_ms() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}
double wall_ms() {
  return std::chrono::duration<double, std::milli>(Clock::now().time_since_epoch()).count();
}

struct Cost {
  int readings = 0;
  double cpu = 0, wall = 0, longest = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const int seconds = argc > 1 ? std::atoi(argv[1]) : 60;
  const double begin = wall_ms(), begin_cpu = cpu_ms();
  links::nvidia::WatchedGpus gpus;
  std::printf("start: %.1f ms, of CPU %.1f ms; %zu counters\n", wall_ms() - begin, cpu_ms() - begin_cpu,
              gpus.size());
  std::map<size_t, std::pair<std::string, std::string>> values;
  std::map<links::Pace, Cost> costs;
  double all_cpu = 0;
  for (int second = 0; second <= seconds; ++second) {
    const links::Pace due = second == 0 || second == seconds ? links::Pace::kTenMinutes
                            : second % 10 == 0               ? links::Pace::kTenSeconds
                                                             : links::Pace::kSecond;
    const double at = wall_ms(), at_cpu = cpu_ms();
    gpus.read(due, [&](size_t i, std::optional<uint64_t> value) {
      const std::string text = value ? std::to_string(*value) : "-";
      values.try_emplace(i, text, text).first->second.second = text;
    });
    Cost& cost = costs[due];
    const double wall = wall_ms() - at, cpu = cpu_ms() - at_cpu;
    ++cost.readings;
    cost.cpu += cpu;
    cost.wall += wall;
    cost.longest = std::max(cost.longest, wall);
    if (due != links::Pace::kTenMinutes) all_cpu += cpu;
    if (second < seconds) std::this_thread::sleep_for(std::chrono::seconds(1));
  }
  constexpr const char* kNames[] = {"each second", "each ten seconds", "each ten minutes"};
  for (const auto& [pace, cost] : costs)
    std::printf("%-17s %3d readings: %.3f ms of CPU each, %.3f ms long, %.3f at most\n",
                kNames[static_cast<int>(pace)], cost.readings, cost.cpu / cost.readings,
                cost.wall / cost.readings, cost.longest);
  std::printf("%.4f %% of a core without the first and the last\n", all_cpu / (seconds * 10.0));
  for (const auto& [i, value] : values)
    std::printf("%s %s: %s %s\n", gpus.key(i).device.c_str(), gpus.key(i).name.c_str(), value.first.c_str(),
                value.second.c_str());
  return gpus.size() > 0 ? 0 : 3;
}
