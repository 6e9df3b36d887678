// SPDX-License-Identifier: Apache-2.0
#include "cli/exporter/exporter.h"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <thread>

#include "base/partial_path.h"
#include "base/unix_time.h"
#include "cli/command.h"
#include "cli/http/http_server.h"
#include "cli/http/machine_names.h"
#include "cli/kit/console.h"
#include "cli/kit/interrupt.h"
#include "exporters/prometheus/exposition.h"
#include "exporters/prometheus/served_metrics.h"
#include "readers/link_samples/live_counters.h"
#include "readers/native/launch_join.h"

namespace lockstep::cli::exporter {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Looks take at most a twentieth of a core, but for runs that are too large to be reported often enough so.
constexpr milliseconds kLeastPause{1000}, kMostPause{15'000};
constexpr int kShareOfTime = 20;

// Of this thread alone: the server answers on another, and a diagnosis is another process.
std::chrono::nanoseconds cpu_time() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

class Exporter {
 public:
  explicit Exporter(const Settings& settings)
      : settings_(settings),
        live_(settings.paths, live::LiveRun::Depth::kAll),
        links_(settings.paths),
        metrics_({.ranks = settings.ranks, .comms = settings.comms}),
        diagnoses_(settings.paths, settings.diagnose) {
    own_.start_s = static_cast<double>(unix_now_ns()) / 1e9;
  }

  // What is there and is neither a directory nor readable is a mistake; what is not there may come.
  Result<void> check() {
    for (const std::string& path : settings_.paths) {
      std::error_code error;
      if (!std::filesystem::exists(path, error) || std::filesystem::is_directory(path, error)) continue;
      // Only to see whether it can be read: live_ counts what each of its own looks reads.
      live::LiveRun file({path});
      if (auto seen = file.look(); !seen) return seen.error();
    }
    return {};
  }

  // True if there is more to read at once.
  bool look() {
    const Clock::time_point begun = Clock::now();
    // Clocks of hosts come from the last diagnosis; they are set once for each.
    if (const exporters::metrics::Findings& findings = diagnoses_.findings();
        findings.ended_s != clocks_of_s_) {
      metrics_.set_clocks(findings.clocks);
      clocks_of_s_ = findings.ended_s;
    }
    const std::chrono::nanoseconds used = cpu_time();
    auto seen = live_.look();
    links_.look();
    if (seen) {
      metrics_.look(*seen, watch_.look(*seen));
      has_reported_ = false;
    } else {
      metrics_.look_in_vain();
      error_ = seen.error();
    }
    cost_ = cpu_time() - used;
    ++own_.looks;
    own_.look_seconds += std::chrono::duration<double>(Clock::now() - begun).count();
    own_.unreadable_files = live_.unreadable_files();
    return seen && live_.behind();
  }

  void report_if_waiting() {
    if (metrics_.present() || has_reported_) return;
    // Once until the run is there again, and not at every look.
    warn("waiting: " + error_.message());
    has_reported_ = true;
  }

  std::vector<prometheus::MetricFamily> families() const {
    return exporters::metrics::families(metrics_, diagnoses_.findings(), own_, links_.risen());
  }
  std::string text() const {
    auto all = families();
    all.push_back(exporters::metrics::look_age_family(0));
    return exporters::metrics::text_of(all);
  }
  bool present() const { return metrics_.present(); }
  const Error& error() const { return error_; }
  exporters::metrics::Diagnoses& diagnoses() { return diagnoses_; }
  milliseconds pause() const {
    return std::clamp(std::chrono::duration_cast<milliseconds>(kShareOfTime * cost_), kLeastPause,
                      kMostPause);
  }

 private:
  const Settings& settings_;
  live::LiveRun live_;
  readers::link_samples::LiveCounters links_;
  live::RankWatch watch_;
  exporters::metrics::RunMetrics metrics_;
  exporters::metrics::Diagnoses diagnoses_;
  exporters::metrics::OwnFigures own_;
  double clocks_of_s_ = 0;           // the end of the diagnosis that the clocks are of
  std::chrono::nanoseconds cost_{};  // of the last look, on the CPU
  Error error_;
  bool has_reported_ = false;
};

int print_once(Exporter& exporter, const std::string& textfile, const Interrupt& interrupt) {
  exporter.diagnoses().wait_for_one();  // first, for the clocks
  while (exporter.look()) {
    if (interrupt.wanted()) return kExitUsage;
  }
  if (!exporter.present()) return fail(exporter.error());
  // Kernels that wait for the calls that launched them wait no longer.
  for (uint32_t i = 0; i <= readers::native::LaunchJoin::kPatience; ++i) exporter.look();
  if (textfile.empty()) return print(exporter.text());
  auto written = write_whole(textfile, exporter.text());
  return written ? kExitOk : fail(written.error());
}

int write_files(Exporter& exporter, const Settings& settings, const Interrupt& interrupt) {
  bool was_written = false, has_warned = false;
  do {
    // A look reads a part of a large file; the text is written when all of it has been counted.
    while (exporter.look() && !interrupt.wanted()) {
    }
    if (interrupt.wanted()) break;
    exporter.report_if_waiting();
    exporter.diagnoses().go_on();
    auto written = write_whole(settings.textfile, exporter.text());
    // At first a wrong path; later a disk that is full, and may not stay so.
    if (!written && !was_written) return fail(written.error());
    if (!written && !has_warned) warn(written.error().message() + "; trying again");
    has_warned = !written;
    was_written = true;
  } while (!interrupt.wait(settings.interval));
  return kExitOk;
}

int serve(Exporter& exporter, const exporters::metrics::Address& address, const Interrupt& interrupt) {
  auto server = http::HttpServer::listen(address.host, address.port, "--listen");
  if (!server) return fail(server.error());
  if (!address.loopback)
    warn("anybody who can reach this address can read the metrics: there is no password");
  if (int printed = print(server->url() + "metrics\n"); printed != kExitOk) return printed;
  exporters::metrics::ServedMetrics metrics;
  const http::Served served{
      .pages = {{"/metrics", "text/plain; version=0.0.4; charset=utf-8", [&] { return metrics.text(); }}},
      .names = http::machine_names};
  // Declared after all that it uses, so that it is stopped and joined before that is destroyed.
  const std::jthread answers([&](const std::stop_token& stop) { server->run(served, interrupt, stop); });
  // No pause while there is more to read, so that a large run is caught up with soon.
  for (bool more = true; !interrupt.wait(more ? milliseconds(0) : exporter.pause());) {
    more = exporter.look();
    exporter.report_if_waiting();
    exporter.diagnoses().go_on();
    metrics.set(exporter.families());
  }
  return kExitOk;
}

}  // namespace

std::optional<std::string> missing() { return std::nullopt; }

int run(const Settings& settings) {
  auto address = exporters::metrics::parse_address(settings.listen);
  if (!address) return fail(address.error());
  Exporter exporter(settings);
  if (auto checked = exporter.check(); !checked) return fail(checked.error());
  Interrupt interrupt(Interrupt::Second::kEnds);
  if (settings.once) return print_once(exporter, settings.textfile, interrupt);
  if (!settings.textfile.empty()) return write_files(exporter, settings, interrupt);
  return serve(exporter, *address, interrupt);
}

}  // namespace lockstep::cli::exporter
