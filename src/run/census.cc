// SPDX-License-Identifier: Apache-2.0
// Samples /proc instead of tracing the children: ptrace would slow the job down and change how it dies, and
// process events of the kernel need a privilege. What lives shorter than a period goes unseen, which is right
// for helpers; a rank lives longer. A process is looked at again in doubling intervals, as its program is
// exec'ed and its libraries are mapped some time after it began.
#include "run/census.h"

#include <bit>
#include <chrono>
#include <filesystem>

#include "base/partial_path.h"
#include "base/start_thread.h"
#include "run/json_fields.h"
#include "run/small_file.h"

namespace lockstep::run {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

// Dense while jobs start, then sparse: reading /proc of a large job ten times a second would be felt.
constexpr auto kDense = milliseconds(200), kSparse = milliseconds(1000);
constexpr uint32_t kDenseSamples = 150;
constexpr auto kTick = std::chrono::seconds(10);
constexpr size_t kMostProcesses = 16384;
constexpr size_t kMapsLimit = size_t{4} << 20;

// Nothing where its environment reads empty: a process that ends has none any more, and some write over it.
std::optional<JobPlace> place_of(int64_t pid) {
  const std::string environment = read_small(proc_path(pid, "environ"), size_t{1} << 20).value_or("");
  if (environment.find_first_not_of('\0') == std::string::npos) return std::nullopt;
  const std::vector<std::string> words = split_words(environment);
  return job_place([&](const char* name) -> const char* {
    std::string key = std::string(name) + "=";
    for (const std::string& word : words) {
      if (word.starts_with(key)) return word.c_str() + key.size();
    }
    return nullptr;
  });
}

// liblockstep-cuda.so is loaded into every process, and says nothing.
void look_at_maps(int64_t pid, SeenProcess& seen) {
  const std::string maps = read_small(proc_path(pid, "maps"), kMapsLimit).value_or("");
  const auto holds = [&](const char* library) { return maps.find(library) != std::string::npos; };
  seen.maps_nccl = seen.maps_nccl || holds("/libnccl.so") || holds("/librccl.so");
  seen.captures = seen.captures || holds("/liblockstep-nccl.so") || holds("/liblockstep.so");
  seen.maps_hsa = seen.maps_hsa || holds("/libhsa-runtime64.so");
}

std::string census_path(const std::string& run, const ProcessIdentity& launcher) {
  return run + "/census." + launcher.host + "." + std::to_string(launcher.pid) + ".json";
}

std::optional<CensusReport> read_census(const std::string& path) {
  auto document = read_document(path);
  if (!document) return std::nullopt;
  CensusReport report;
  report.launcher.host = text_field(*document, "host");
  report.launcher.boot_id = text_field(*document, "boot_id");
  report.launcher.pid = number_field(*document, "launcher_pid", 0);
  report.unseen = static_cast<uint64_t>(number_field(*document, "unseen", 0));
  report.expects_hsa = number_field(*document, "expects_hsa", 0) != 0;
  auto list = document->find("processes");
  if (list == document->end() || !list->is_array()) return report;
  for (const auto& row : *list) {
    if (!row.is_object()) continue;
    SeenProcess seen;
    seen.pid = number_field(row, "pid", 0);
    seen.parent = number_field(row, "parent", 0);
    seen.start_ticks = static_cast<uint64_t>(number_field(row, "start_ticks", 0));
    seen.argv = words_field(row, "argv");
    seen.rank = number_field(row, "rank", -1);
    seen.world = number_field(row, "world", -1);
    seen.maps_nccl = number_field(row, "maps_nccl", 0) != 0;
    seen.captures = number_field(row, "captures", 0) != 0;
    seen.maps_hsa = number_field(row, "maps_hsa", 0) != 0;
    report.processes.push_back(std::move(seen));
  }
  return report;
}

}  // namespace

Result<void> write_census(const std::string& run, const CensusReport& report) {
  nlohmann::ordered_json document = {{"host", report.launcher.host},
                                     {"boot_id", report.launcher.boot_id},
                                     {"launcher_pid", report.launcher.pid},
                                     {"unseen", report.unseen},
                                     {"expects_hsa", report.expects_hsa ? 1 : 0},
                                     {"processes", nlohmann::ordered_json::array()}};
  for (const SeenProcess& seen : report.processes) {
    document["processes"].push_back({{"pid", seen.pid},
                                     {"parent", seen.parent},
                                     {"start_ticks", seen.start_ticks},
                                     {"argv", seen.argv},
                                     {"rank", seen.rank},
                                     {"world", seen.world},
                                     {"maps_nccl", seen.maps_nccl ? 1 : 0},
                                     {"captures", seen.captures ? 1 : 0},
                                     {"maps_hsa", seen.maps_hsa ? 1 : 0}});
  }
  return write_whole(census_path(run, report.launcher), to_text(document));
}

std::vector<CensusReport> read_censuses(const std::string& run) {
  std::vector<CensusReport> reports;
  std::error_code error;
  for (fs::directory_iterator it(run, error), end; !error && it != end; it.increment(error)) {
    std::string name = it->path().filename().string();
    if (!name.starts_with("census.") || !name.ends_with(".json")) continue;
    if (auto report = read_census(it->path().string())) reports.push_back(*std::move(report));
  }
  return reports;
}

Census::Census(ProcessIdentity launcher, std::function<bool(int64_t pid)> ignored,
               std::function<void()> on_tick)
    : ignored_(std::move(ignored)), on_tick_(std::move(on_tick)) {
  report_.launcher = std::move(launcher);
  thread_ = start_thread([this] { run(); });
}

void Census::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Census::run() {
  auto last_tick = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  for (uint32_t samples = 0; !stopping_; ++samples) {
    lock.unlock();
    if (!attempt([this] { sample(); })) report_.unseen = 1;  // who was there meanwhile is not known
    if (auto now = std::chrono::steady_clock::now(); now - last_tick >= kTick) {
      last_tick = now;
      attempt(on_tick_);
    }
    lock.lock();
    wake_.wait_for(lock, samples < kDenseSamples ? kDense : kSparse, [this] { return stopping_; });
  }
}

void Census::sample() {
  std::vector<std::pair<int64_t, int64_t>> todo;  // pid, parent
  for (int64_t child : children_of(report_.launcher.pid)) {
    // Breadth first from the launcher: a tree that grows while it is walked is cut at the bound and not at a
    // branch.
    if (!ignored_(child)) todo.emplace_back(child, report_.launcher.pid);
  }
  for (size_t i = 0; i < todo.size() && i < kMostProcesses; ++i) {
    auto [pid, parent] = todo[i];
    look(pid, parent);
    for (int64_t child : children_of(pid)) todo.emplace_back(child, pid);
  }
}

void Census::look(int64_t pid, int64_t parent) {
  auto stat = read_stat(pid);
  if (!stat || stat->zombie) return;
  // A pid alone would take a later process for the one before.
  const auto found = entries_.try_emplace({pid, stat->start_ticks}).first;
  if (found->second.looks == 0) {
    if (report_.processes.size() >= kMostProcesses) {
      entries_.erase(found);
      report_.unseen = 1;  // how many more there were is not known
      return;
    }
    report_.processes.push_back(SeenProcess{pid, parent, stat->start_ticks, {}, -1, -1, false, false, false});
    found->second.row = report_.processes.size() - 1;
  }
  // Programs are exec'ed and libraries mapped some time after the start: looks 1, 2, 4, 8, ... are thorough.
  uint32_t looks = ++found->second.looks;
  if (!std::has_single_bit(looks)) return;
  SeenProcess& seen = report_.processes[found->second.row];
  if (auto argv = split_words(read_small(proc_path(pid, "cmdline"), 65536).value_or("")); !argv.empty())
    seen.argv = kept_words(argv);
  if (const auto place = place_of(pid)) {
    seen.rank = place->rank;
    seen.world = place->world;
  }
  look_at_maps(pid, seen);
}

}  // namespace lockstep::run
