// SPDX-License-Identifier: Apache-2.0
// exporters_bench [--ranks N] [--ops N] [--rounds N] [--dir DIR]: what each format of `lockstep convert`
// costs: events a second by the clock and of one core's time, bytes, and bytes against the plain JSON
// timeline. The run is made up in memory, beside the writer, and that is in the figures. One line per format:
// medians.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "exporters/exporter.h"
#include "model/testing/synthetic_run.h"

namespace {

using namespace lockstep;
namespace fs = std::filesystem;

struct Cost {
  uint64_t events = 0, bytes = 0;
  double seconds = 0, cpu_seconds = 0;
};

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

Result<Cost> convert(const exporters::Exporter& exporter, const model::testing::SyntheticOptions& options,
                     const std::string& path, int rounds) {
  std::vector<double> wall, cpu;
  Cost cost;
  for (int i = 0; i < rounds; ++i) {
    fs::remove_all(path);
    model::testing::SyntheticRun run(options);
    const double cpu_before = cpu_seconds();
    const auto begin = std::chrono::steady_clock::now();
    LOCKSTEP_ASSIGN(auto written, exporter.write(run, path, nullptr));
    wall.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    cpu.push_back(cpu_seconds() - cpu_before);
    cost.events = written.events;
    cost.bytes = written.bytes;
  }
  fs::remove_all(path);
  cost.seconds = median(wall);
  cost.cpu_seconds = median(cpu);
  return cost;
}

}  // namespace

int main(int argc, char** argv) {
  model::testing::SyntheticOptions options{.ranks = 8, .ranks_per_host = 8, .ops = 20000};
  int rounds = 5;
  fs::path dir = fs::temp_directory_path();
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--ranks") options.ranks = static_cast<uint32_t>(std::atoi(argv[i + 1]));
    if (name == "--ops") options.ops = static_cast<uint32_t>(std::atoi(argv[i + 1]));
    if (name == "--rounds") rounds = std::max(1, std::atoi(argv[i + 1]));
    if (name == "--dir") dir = argv[i + 1];
  }
  double json_bytes = 0;
  for (const exporters::Exporter* exporter : exporters::all()) {
    if (exporter->write == nullptr) continue;
    for (const char* ending : {"", ".gz"}) {
      if (exporter->is_folder && *ending != 0) continue;
      const std::string path = (dir / ("lockstep_exporters_bench." + std::string(exporter->name) + ending));
      const auto cost = convert(*exporter, options, path, rounds);
      if (!cost) {
        std::fprintf(stderr, "%s: %s\n", path.c_str(), cost.error().message().c_str());
        return 1;
      }
      const auto events = static_cast<double>(cost->events), bytes = static_cast<double>(cost->bytes);
      if (json_bytes == 0) json_bytes = bytes;
      std::printf(
          "convert %-12s %6.2f M events/s, %.2f M of one core's time; %.1f M events, %.1f bytes each, "
          "%.1f MB: the JSON timeline / %.1f\n",
          (std::string(exporter->name) + ending).c_str(), events / cost->seconds / 1e6,
          events / cost->cpu_seconds / 1e6, events / 1e6, bytes / events, bytes / 1e6, json_bytes / bytes);
      std::fflush(stdout);
    }
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("convert peak RSS     %ld MiB\n", usage.ru_maxrss >> 10);
  return 0;
}
