// SPDX-License-Identifier: Apache-2.0
// merge_export_bench [--ranks N] [--ops N] [--rounds N] [--dir DIR]: rows a second into trace.db, events a second into
// a timeline, plain and compressed. The run is made up in memory, in the thread that would read it, so the figures are
// those of the writers with that thread beside them. One line per measurement: medians, best and worst of the rounds.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "exporters/exporter.h"
#include "model/testing/synthetic_run.h"
#include "store/store.h"

namespace {

using namespace lockstep;

struct Round {
  double seconds = 0;
  uint64_t items = 0, bytes = 0;
};

// Median, best and worst rate. False if a round failed.
bool measure(const char* name, const char* unit, int rounds, const std::function<Result<Round>()>& once) {
  std::vector<double> rates;
  Round last;
  for (int i = 0; i < rounds; ++i) {
    auto begin = std::chrono::steady_clock::now();
    auto round = once();
    if (!round) {
      std::fprintf(stderr, "%s: %s\n", name, round.error().message().c_str());
      return false;
    }
    last = *round;
    last.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    rates.push_back(static_cast<double>(last.items) / last.seconds / 1e6);
  }
  std::sort(rates.begin(), rates.end());
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("%-16s %6.2f M %s/s (%.2f..%.2f of %d rounds)  %.1f M %s, %.0f bytes each, peak RSS %ld MiB\n",
              name, rates[rates.size() / 2], unit, rates.front(), rates.back(), rounds,
              static_cast<double>(last.items) / 1e6, unit,
              static_cast<double>(last.bytes) / static_cast<double>(last.items), usage.ru_maxrss >> 10);
  return true;
}

Result<Round> merge(const model::testing::SyntheticOptions& options, const std::string& path) {
  model::testing::SyntheticRun run(options);
  LOCKSTEP_ASSIGN(auto merged, store::write_trace_db(run, path, {}, nullptr));
  return Round{0, merged.rows, merged.bytes};
}

Result<Round> export_chrome(const model::testing::SyntheticOptions& options, const std::string& path) {
  model::testing::SyntheticRun run(options);
  LOCKSTEP_ASSIGN(auto written, exporters::find("chrome")->write(run, path, nullptr));
  return Round{0, written.events, written.bytes};
}

}  // namespace

int main(int argc, char** argv) {
  model::testing::SyntheticOptions options{.ranks = 8, .ranks_per_host = 8, .ops = 20000};
  int rounds = 5;
  std::filesystem::path dir = std::filesystem::temp_directory_path();
  for (int i = 1; i + 1 < argc; i += 2) {
    std::string name = argv[i];
    if (name == "--ranks") options.ranks = static_cast<uint32_t>(std::atoi(argv[i + 1]));
    if (name == "--ops") options.ops = static_cast<uint32_t>(std::atoi(argv[i + 1]));
    if (name == "--rounds") rounds = std::max(1, std::atoi(argv[i + 1]));
    if (name == "--dir") dir = argv[i + 1];
  }
  std::string stem = (dir / "lockstep_merge_export_bench").string();
  auto fresh = [](const std::string& path, auto write) {
    return [path, write] {
      std::filesystem::remove(path);
      return write(path);
    };
  };
  auto into_db = [&](const std::string& path) { return merge(options, path); };
  auto into_json = [&](const std::string& path) { return export_chrome(options, path); };
  bool good = measure("merge", "rows", rounds, fresh(stem + ".db", into_db)) &&
              measure("timeline", "events", rounds, fresh(stem + ".json", into_json)) &&
              measure("timeline gzip", "events", rounds, fresh(stem + ".json.gz", into_json));
  for (const char* ending : {".db", ".json", ".json.gz"}) std::filesystem::remove(stem + ending);
  return good ? 0 : 1;
}
