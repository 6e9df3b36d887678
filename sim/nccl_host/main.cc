// SPDX-License-Identifier: Apache-2.0
// lockstep-nccl-host: drives a profiler plugin the way NCCL does.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>

#include "nccl_host/bench.h"
#include "nccl_host/core.h"
#include "nccl_host/faults.h"
#include "nccl_host/options.h"
#include "nccl_host/player.h"
#include "nccl_host/report.h"
#include "nccl_host/scripts.h"
#include "nccl_host/tape.h"

namespace lockstep::sim {
namespace {

constexpr int kExitBadInput = 2, kExitViolation = 3;

int fail(const Error& error) {
  std::fprintf(stderr, "lockstep-nccl-host: %s\n", error.message().c_str());
  return kExitBadInput;
}

int bench(const Options& options) {
  auto library = PluginLibrary::open(*options.plugin, options.api, options.search);
  if (!library) return fail(library.error());
  auto result = run_bench(*library, options.bench);
  if (!result) return fail(result.error());
  const std::string report =
      options.json ? bench_json(options.bench, *result, library->api()) : bench_text(options.bench, *result);
  std::fputs(report.c_str(), stdout);
  return 0;
}

// Stays until the process ends.
Result<std::atomic<uint64_t>*> map_late(const std::string& path) {
  static_assert(std::atomic<uint64_t>::is_always_lock_free);
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  struct stat status {};
  void* memory = MAP_FAILED;
  if (file >= 0 && fstat(file, &status) == 0 && status.st_size >= static_cast<off_t>(sizeof(uint64_t)))
    memory = mmap(nullptr, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (file >= 0) close(file);
  if (memory == MAP_FAILED)
    return Error{ErrorCode::kUsage, "--late: not a file of 8 bytes that can be written", path};
  return static_cast<std::atomic<uint64_t>*>(memory);
}

int play_program(const Options& options, Program program) {
  auto library = PluginLibrary::open(*options.plugin, options.api, options.search);
  if (!library) return fail(library.error());
  Behaviour behaviour;
  behaviour.api = library->api();
  behaviour.search = options.search;
  behaviour.recorded_api = program.recorded_api;
  PlayOptions play_options;
  play_options.recorded_pace = options.recorded_pace;
  play_options.repeat = options.repeat;
  if (!options.late.empty()) {
    auto late = map_late(options.late);
    if (!late) return fail(late.error());
    play_options.late_ns = *late;
  }
  if (options.shift_ns != 0) {
    if (program.recorded_realtime_ns == 0)
      return fail({ErrorCode::kUsage, "the tape does not tell the wall clock, so that it cannot be shifted",
                   options.tape});
    play_options.tape_zero_ns =
        program.recorded_realtime_ns + options.shift_ns - realtime_less_monotonic_ns();
  }
  for (const std::string& fault : options.faults) apply_fault(fault, &program, &behaviour, &play_options);

  Core core(program, behaviour, *options.plugin, std::move(*library));
  PlayReport report;
  report.result = play(program, play_options, &core);
  report.plugin_name = core.plugin_name();
  report.api = behaviour.api;
  report.mask = core.first_mask();
  report.loads = core.loads();
  report.repeat = options.repeat;
  report.all_finalized = core.all_finalized();
  std::fputs(options.json ? json_report(program, report).c_str() : text_report(program, report).c_str(),
             options.json ? stdout : stderr);
  const int status = report.result.stats.violations() != 0 ? kExitViolation : 0;
  if (!report.all_finalized) {
    // The recorded process ended without destroying its comms: neither exit handlers nor the plugin's
    // destructors ran.
    std::fflush(nullptr);
    _exit(status);
  }
  return status;
}

int run(int argc, char** argv) {
  const auto options = parse_options(argc, argv);
  if (!options) return fail(options.error());
  if (options->help || options->list) {
    const std::string lists = "Scripts:\n" + script_list() + "\nFaults:\n" + fault_list();
    std::fputs(options->help ? help_text().c_str() : lists.c_str(), stdout);
    return 0;
  }
  if (!options->bench.stream.empty()) return bench(*options);
  if (!options->script.empty())
    return play_program(*options, find_script(options->script)->build(options->events));
  auto program = read_tape(options->tape);
  if (!program) return fail(program.error());
  return play_program(*options, std::move(*program));
}

}  // namespace
}  // namespace lockstep::sim

int main(int argc, char** argv) { return lockstep::sim::run(argc, argv); }
