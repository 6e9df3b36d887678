// SPDX-License-Identifier: Apache-2.0
// `exporter` serves a run's metrics over HTTP, writes them to a file for node_exporter, or prints them once.
// Combinations of options that would leave one without effect are refused. Labels are bounded, because each
// one is a time series in Prometheus for as long as that keeps data.
#include "base/text/units.h"
#include "cli/command.h"
#include "cli/exporter/exporter.h"
#include "cli/kit/console.h"

namespace lockstep::cli {
namespace {

constexpr Option kExporterOptions[] = {
    {0, "listen", "ADDRESS:PORT", "serve /metrics here; port 0: any free port", "127.0.0.1:9464"},
    {.letter = 0,
     .name = "textfile",
     .value = "FILE",
     .help = "write them to this file instead, for node_exporter; its name must end in .prom",
     .takes_path = true},
    {0, "interval", "TIME", "with --textfile: time between two writes, such as 15s", "15s"},
    {0, "once", "", "write the metrics once, to the file or to stdout, and end"},
    {0, "diagnose", "TIME", "diagnose the run at most this often, such as 60s; off: never", "60s"},
    {0, "ranks", "N", "ranks that get a label of their own", "64"},
    {0, "comms", "N", "communicators that get a label of their own", "16"},
};

constexpr uint64_t kMostLabels = 4096;

int usage(const std::string& text) { return fail(text + "; see lockstep exporter --help"); }

Result<size_t> label_limit(const Arguments& arguments, std::string_view option) {
  LOCKSTEP_ASSIGN(uint64_t number, arguments.number(option));
  if (number >= 1 && number <= kMostLabels) return static_cast<size_t>(number);
  return usage_error("--" + std::string(option) + " takes a number from 1 to 4096");
}

std::optional<std::chrono::milliseconds> time_of(const Arguments& arguments, std::string_view option) {
  auto ns = parse_duration(arguments.value(option));
  if (!ns) return std::nullopt;
  return std::chrono::milliseconds(*ns / 1'000'000);
}

int run_exporter(const Arguments& arguments) {
  exporter::Settings settings;
  settings.paths = arguments.operands();
  settings.listen = arguments.value("listen");
  settings.textfile = arguments.value("textfile");
  settings.once = arguments.has("once");
  // A file that nobody reads would look as if the run had no metrics.
  if (arguments.has("textfile") && !settings.textfile.ends_with(".prom"))
    return usage("--textfile takes a file whose name ends in .prom: node_exporter reads no other");
  if (arguments.has("listen") && (arguments.has("textfile") || settings.once))
    return usage("--listen does not go with --textfile or --once");
  if (arguments.has("interval") && (!arguments.has("textfile") || settings.once))
    return usage("--interval goes with --textfile, and not with --once");
  auto interval = time_of(arguments, "interval");
  if (!interval || interval->count() < 100)
    return usage("--interval takes a time of at least 100ms, such as 15s, not '" +
                 arguments.value("interval") + "'");
  settings.interval = *interval;
  if (arguments.value("diagnose") != "off") {
    auto pause = time_of(arguments, "diagnose");
    if (!pause)
      return usage("--diagnose takes a time, such as 60s, or off, not '" + arguments.value("diagnose") + "'");
    settings.diagnose = *pause;
  }
  auto ranks = label_limit(arguments, "ranks"), comms = label_limit(arguments, "comms");
  if (!ranks) return fail(ranks.error());
  if (!comms) return fail(comms.error());
  settings.ranks = *ranks;
  settings.comms = *comms;
  return exporter::run(settings);
}

}  // namespace

const Command exporter_command = {
    .name = "exporter",
#ifdef LOCKSTEP_PROMETHEUS
    .summary = "serve the metrics of a run for Prometheus",
#else
    .summary = "serve the metrics of a run for Prometheus (off: built without prometheus-cpp)",
#endif
    .description =
        "Serves what the ranks of a run do as metrics for Prometheus: operations and bytes, durations and "
        "bus "
        "bandwidth, how late ranks are and how long they wait, what is in flight and for how long, which processes are alive, what was lost, and what `diagnose` finds. It reads the process files of the run while they grow, "
        "each "
        "record once, and does not touch the job. It waits for a run that does not exist yet, prints where it listens, and ends on Ctrl-C or SIGTERM.\n\n"
        "Ranks and communicators beyond --ranks and --comms are counted together, as `other`. "
        "docs/prometheus.md "
        "lists the metrics, and says what to do with them.",
    .operands = {.name = "RUN|FILE",
                 .help = "the run directory of a job, or process files",
                 .least = 1,
                 .most = SIZE_MAX},
    .options = kExporterOptions,
    .run = run_exporter,
};

}  // namespace lockstep::cli
