// SPDX-License-Identifier: Apache-2.0
// `report` writes one HTML file, prints its data, or serves the page while a job runs. The file is complete
// in itself, so it can be sent to others. Serving keeps the newest data in memory and makes them anew on a
// thread of its own, only while a browser asks: a page that nobody looks at costs nothing. The exit code does
// not judge the run.
#include <chrono>
#include <condition_variable>
#include <exception>
#include <filesystem>
#include <mutex>
#include <thread>

#include "base/partial_path.h"
#include "base/start_thread.h"
#include "base/text/units.h"
#include "base/unix_time.h"
#include "cli/command.h"
#include "cli/compare/compared_runs.h"
#include "cli/compare/report.h"
#include "cli/http/http_server.h"
#include "cli/http/machine_names.h"
#include "cli/kit/console.h"
#include "cli/kit/interrupt.h"
#include "cli/kit/memory_limit.h"
#include "cli/kit/output_place.h"
#include "cli/kit/progress.h"
#include "report/page.h"
#include "report/report_data.h"

namespace lockstep::cli {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr Option kReportOptions[] = {
    {'o', "output", "OUT", "the file to write", "report.html", "", true},
    {0, "force", "", "replace an existing file"},
    {.letter = 0,
     .name = "serve",
     .value = "PORT",
     .help = "write no file: show the page at http://127.0.0.1:PORT/ and refresh it",
     .fallback = "8457",
     .value_optional = true},
    {.letter = 0,
     .name = "listen",
     .value = "ADDRESS",
     .help = "with --serve: listen on this address of this machine",
     .fallback = "127.0.0.1"},
    {.letter = 0,
     .name = "against",
     .value = "RUN",
     .help = "add a page with the differences from this run, as `lockstep compare` prints them"},
    {0, "json", "", "print the page's data as one JSON object, and write no file"},
    kMemoryOption,
};

constexpr auto kRefresh = std::chrono::seconds(2);
constexpr int kShareOfTime = 4;  // a large run is not read for more than a fourth of the time

constexpr std::string_view kPageNames[] = {".html"};
constexpr size_t kComparedRows = 300;  // of hundreds; `lockstep compare --all` has all

// `against`: a run to compare with; empty none.
Result<Json> data_of(const std::vector<std::string>& paths, const std::string& against,
                     const std::function<void(double)>& progress) {
  Json data;
  {
    // In a block, so that the job is freed before two more runs are read.
    LOCKSTEP_ASSIGN(const auto run, verdict::diagnose(paths, progress));
    data = report::report_data(run, {.paths = paths, .made_ns = unix_now_ns(), .refresh_ns = std::nullopt});
  }
  if (against.empty()) return data;
  LOCKSTEP_ASSIGN(const auto runs, compare::compare_runs(against, paths[0], progress));
  data["comparison"] = compare::comparison_json(runs, kComparedRows);
  return data;
}

// The data of a run, made anew while somebody looks and the run goes on.
class FreshData {
 public:
  explicit FreshData(const std::vector<std::string>& paths) : paths_(paths) {}
  ~FreshData() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  // An error where there is nothing to show and waiting would not help.
  // The first data are made before the server answers, so that mistakes end the command.
  Result<void> begin() {
    LOCKSTEP_TRY(make());
    if (!live_) return {};
    thread_ = start_thread([this] { refresh(); });
    if (!thread_.joinable()) return Error{ErrorCode::kIo, "the system cannot start a thread", {}};
    return {};
  }
  // Never waits for data to be made.
  // Shared, since a slow client may still be sent what has been replaced.
  std::shared_ptr<const std::string> latest() {
    const std::lock_guard lock(mutex_);
    asked_ = true;
    changed_.notify_all();
    return data_;
  }

 private:
  bool all_directories() const {
    std::error_code error;
    return std::all_of(paths_.begin(), paths_.end(),
                       [&](const std::string& path) { return fs::is_directory(path, error); });
  }

  // Runs without the lock; only the result is put into place under it.
  Result<void> make() {
    const Clock::time_point begin = Clock::now();
    report::DataRequest request{
        .paths = paths_, .made_ns = unix_now_ns(), .refresh_ns = std::chrono::nanoseconds(pause_).count()};
    auto run = verdict::diagnose(paths_, [](double) {});
    // A run directory fills while the job starts; anything else is a mistake.
    if (!run && !all_directories()) return run.error();
    const Json data =
        run ? report::report_data(*run, request)
            : report::waiting_data(run.error().message() + "; waiting for the job to start.", request);
    auto text = std::make_shared<const std::string>(json_line(data));
    const std::lock_guard lock(mutex_);
    data_ = std::move(text);
    live_ = data["live"].get<bool>();
    pause_ = std::max<Clock::duration>(kRefresh, (Clock::now() - begin) * (kShareOfTime - 1));
    return {};
  }

  void refresh() {
    std::unique_lock lock(mutex_);
    while (!ended_ && live_) {
      asked_ = false;
      // First the pause, then the wait for a request: a request in between counts, since asked_ was cleared
      // before.
      if (changed_.wait_for(lock, pause_, [this] { return ended_; })) return;
      changed_.wait(lock, [this] { return asked_ || ended_; });
      if (ended_) return;
      lock.unlock();
      try {
        if (auto made = make(); !made) warn(made.error().message());
      } catch (const std::exception& failed) {  // a run that grows past memory: what was made last stays
        warn(failed.what());
      }
      lock.lock();
    }
  }

  const std::vector<std::string> paths_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<const std::string> data_;
  bool live_ = false, asked_ = false, ended_ = false;
  Clock::duration pause_ = kRefresh;
  std::thread thread_;
};

int serve(const Arguments& arguments) {
  auto port = arguments.number("serve");
  if (!port) return fail(port.error());
  if (*port > UINT16_MAX) return fail("--serve takes a port from 0 to 65535; 0 is any that is free");
  auto page = std::make_shared<const std::string>(report::built_page());
  auto server =
      http::HttpServer::listen(arguments.value("listen"), static_cast<uint16_t>(*port), "--serve=PORT");
  if (!server) return fail(server.error());
  const Interrupt interrupt{Interrupt::Second::kEnds};
  FreshData data(arguments.operands());
  if (auto begun = data.begin(); !begun) return fail(begun.error());
  warn("the report is at " + server->url() + "; press Ctrl-C to stop");
  server->run({.pages = {{"/", "text/html; charset=utf-8", [&] { return page; }},
                         {"/data.json", "application/json", [&] { return data.latest(); }}},
               .names = http::machine_names},
              interrupt);
  return kExitOk;
}

int write_page(const Arguments& arguments) {
  const std::string output = arguments.value("output");
  std::vector<std::string> inputs = arguments.operands();
  if (arguments.has("against")) inputs.push_back(arguments.value("against"));
  if (auto checked = check_output(output, inputs, kPageNames); !checked) return fail(checked.error());
  std::error_code error;
  if (fs::exists(output, error) && !arguments.has("force"))
    return fail(output + " exists; name another file with --output, or replace it with --force");
  Result<Json> data = [&] {
    Progress progress("reading");
    return data_of(arguments.operands(), arguments.value("against"), progress.callback());
  }();
  if (!data) return fail(data.error());
  auto page = report::page_with(report::built_page(), *data);
  if (!page) return fail(page.error());
  if (auto written = write_whole(output, *page); !written) return fail(written.error());
  return print("wrote " + output + " (" + format_bytes(page->size()) + ")\n" +
               (*data)["verdict"]["headline"].get<std::string>() + "\n");
}

int run_report(const Arguments& arguments) {
  if (auto limited = limit_memory(arguments); !limited) return fail(limited.error());
  const bool serves = arguments.has("serve"), prints = arguments.has("json");
  if (serves + prints + arguments.has("output") > 1)
    return fail("--serve, --json and --output exclude each other; choose one");
  if (arguments.has("listen") && !serves) return fail("--listen goes with --serve");
  if (arguments.has("against") && (serves || arguments.operands().size() != 1))
    return fail("--against compares one RUN that has ended: name one, without --serve");
  if (prints) {
    Progress progress("reading");
    auto data = data_of(arguments.operands(), arguments.value("against"), progress.callback());
    return data ? print(json_line(*data)) : fail(data.error());
  }
  // The data alone need no page, so --json works in a build without it.
  if (report::built_page().empty()) return fail(report::page_absent_because());
  return serves ? serve(arguments) : write_page(arguments);
}

}  // namespace

const Command report_command = {
    .name = "report",
    .summary = "write one page that shows a run, or serve it while the job runs",
    .description =
        "Writes one HTML file that shows a run: the verdict and why, who was late and who waited over time, "
        "single "
        "operations rank by rank, bandwidths, the topology, network waits, steps, processes and losses. The "
        "file needs "
        "nothing from the network, and opens in any browser.\n\n"
        "It takes what `lockstep diagnose` takes, in any mix. Large runs are summarised: a page of 1,024 "
        "ranks is a few "
        "MB.\n\n"
        "With --serve it writes no file: it shows the page at an address of this machine, which other machines cannot reach, until Ctrl-C. While the job runs, the page refreshes every few seconds.",
    .operands = {.name = "RUN|TRACE.DB|FILE",
                 .help =
                     "run directories, trace.db, dumps, profiler traces, logs, archives: any mix of one job",
                 .least = 1,
                 .most = SIZE_MAX},
    .options = kReportOptions,
    .run = run_report,
};

}  // namespace lockstep::cli
