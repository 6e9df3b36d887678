// SPDX-License-Identifier: Apache-2.0
// `links` reads what a host says of its links, measures them unless told not to, and judges both. It changes
// no setting, and without --force moves no data over a GPU that is in use. Exit codes are those of a
// diagnosis: 1 for a warning or worse. What was read and measured can be recorded and judged elsewhere by the
// same code.
#include <filesystem>

#include "base/input_file.h"
#include "base/partial_path.h"
#include "base/unix_time.h"
#include "cli/command.h"
#include "cli/kit/console.h"
#include "cli/links/report.h"
#include "links/judge/judge.h"
#include "links/nvidia/nvml.h"
#include "links/printed/printed.h"
#include "verdict/outcome.h"

namespace lockstep::cli {
namespace {
using namespace lockstep::links;

constexpr Option kLinksOptions[] = {
    {0, "checks", "", "check states, settings and counters only; move no data"},
    {0, "deep", "", "also measure copies by kernels, for every pair"},
    {0, "force", "", "measure even if a GPU is in use: the job slows down, and so do the measurements"},
    {0, "baseline", "FILE", "compare with what --record wrote earlier on this host", {}, {}, true},
    {0, "record", "FILE", "write everything that was read and measured, to judge it elsewhere", {}, {}, true},
    {0,
     "from",
     "FILE",
     "judge what --record wrote, or what other tools printed (p2pBandwidthLatencyTest, nvbandwidth, ibstat, "
     "lspci, ethtool -S, nvidia-smi -q and nvlink, rdma statistic); check nothing here",
     {},
     {},
     true},
    {0, "sysfs-root", "DIR", "the folder that holds the host's sys and proc, for containers", {}, {}, true},
    {0, "json", "", "print one JSON object, with every sample"},
    {'v', "verbose", "", "show all evidence and advice"},
};

Result<Reading> read_now(const std::string& root) {
  Reading reading;
  reading.time_ns = unix_now_ns();
  LOCKSTEP_ASSIGN(reading.files, HostFiles::read(root));
  reading.gpus = nvidia::facts();
  return reading;
}

Result<LinksRecord> load(const std::string& path) {
  // The whole file is held in memory.
  constexpr size_t kMost = size_t{256} << 20;
  LOCKSTEP_ASSIGN(const InputFile file, InputFile::open(path));
  if (file.size() > kMost)
    return Error{ErrorCode::kInvalidInput, "is too large for a `lockstep links` record", path};
  std::string text(file.size(), '\0');
  text.resize(file.read_at(0, std::as_writable_bytes(std::span(text))));
  return parse_any(text, path);
}

// Why these GPUs are left alone; empty: nothing is in the way.
std::string in_use(const GpuFacts& facts) {
  for (const Gpu& gpu : facts.gpus) {
    if (gpu.is_mig)
      return "GPU " + std::to_string(gpu.index) + " is split by MIG; --force measures all the same";
    if (!gpu.processes.empty())
      return "GPU " + std::to_string(gpu.index) + " is in use by pid " + std::to_string(gpu.processes[0]) +
             "; --force measures all the same";
    if (is_at_work(gpu))
      return "GPU " + std::to_string(gpu.index) + " is busy (" + std::to_string(*gpu.utilization_percent) +
             " %); --force measures all the same";
  }
  return {};
}

Result<void> add_traffic(const Arguments& arguments, LinksRecord& record) {
  if (!arguments.has("force"))
    if (record.traffic_absent = in_use(record.before.gpus); !record.traffic_absent.empty()) return {};
  TrafficOptions options;
  options.deep = arguments.has("deep");
  // A host without CUDA, or with a driver that refuses, is still checked: the reason is part of the record.
  auto runtime = cuda_runtime(options.bytes);
  if (!runtime) {
    record.traffic_absent = runtime.error().message();
    return {};
  }
  const Machine machine = machine_of(record.before.files, record.before.gpus);
  auto traffic = measure(**runtime, machine, options);
  if (!traffic) {
    record.traffic_absent = traffic.error().message();
    return {};
  }
  record.traffic = std::move(*traffic);
  Result<Reading> under_load = Error{};
  // Links may lower their speed while idle, so states are read once more under load.
  keep_busy(**runtime, options, [&] { under_load = read_now(arguments.value("sysfs-root")); });
  if (under_load) record.under_load = std::move(*under_load);
  // Errors that the traffic caused show as the difference to `before`.
  LOCKSTEP_ASSIGN(record.after, read_now(arguments.value("sysfs-root")));
  return {};
}

Result<LinksRecord> look(const Arguments& arguments) {
  if (arguments.has("from")) return load(arguments.value("from"));
  LinksRecord record;
  LOCKSTEP_ASSIGN(record.before, read_now(arguments.value("sysfs-root")));
  if (!arguments.has("checks")) LOCKSTEP_TRY(add_traffic(arguments, record));
  return record;
}

int run_links(const Arguments& arguments) {
  // The options that would measure or record have nothing to do with a file that exists.
  if (arguments.has("from") && (arguments.has("record") || arguments.has("force") || arguments.has("deep")))
    return fail("--from judges a file: it goes only with --baseline, --json and --verbose");
  auto record = look(arguments);
  if (!record) return fail(record.error());
  std::optional<LinksRecord> baseline;
  if (arguments.has("baseline")) {
    auto loaded = load(arguments.value("baseline"));
    if (!loaded) return fail(loaded.error());
    baseline = std::move(*loaded);
  }
  // Written before it is judged: a record is worth keeping whatever comes of it.
  if (arguments.has("record"))
    if (auto written = write_whole(arguments.value("record"), record_text(*record)); !written)
      return fail(written.error());
  const analysis::Diagnosis diagnosis = analysis::in_order(judge(*record, baseline ? &*baseline : nullptr));
  const int printed =
      arguments.has("json")
          ? print(json_text(links::report_json(*record, diagnosis)))
          : print(links::report_text(*record, diagnosis, Style::of_stdout(), arguments.has("verbose")));
  return printed == kExitOk ? verdict::exit_code(diagnosis) : printed;
}

}  // namespace

const Command links_command = {
    .name = "links",
    .summary = "check this host's links, and measure how fast they are",
    .description =
        "Checks GPUs, network cards and the PCI tree between them: states, widths, speeds, which devices may access each other, ACS and the IOMMU, errors since boot, limits. Then it measures each pair of GPUs, all pairs at once, and each GPU against host memory, in about 3 s for 8 GPUs. A pair is slow if two measurements find it slower than its siblings, if it is below NCCL's model of the path, or if it is below --baseline.\n\n"
        "It changes no setting, clears no counter and needs no special rights; it names what only root may read. "
        "GPUs in use "
        "are left alone.\n\n"
        "The exit code is 1 if a finding is a warning or critical.",
    .operands = {},
    .options = kLinksOptions,
    .run = run_links,
};

}  // namespace lockstep::cli
