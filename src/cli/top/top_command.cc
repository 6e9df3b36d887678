// SPDX-License-Identifier: Apache-2.0
// `top` draws the live view, or with --once prints one table or JSON object and judges it: exit code 1 if a
// rank needs attention, 0 if none does, 2 if nothing can be read. It never waits for a job with --once, since
// scripts call it so. The live view does wait for a run directory that is still empty.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "base/text/json_text.h"
#include "base/text/style.h"
#include "cli/command.h"
#include "cli/kit/console.h"
#include "cli/kit/interrupt.h"
#include "cli/kit/memory_limit.h"
#include "cli/top/screen.h"
#include "cli/top/view.h"
#include "live/followed_view.h"
#include "run/adopt_run.h"
#include "store/fleet_now.h"

namespace lockstep::cli {
namespace {

constexpr Option kTopOptions[] = {
    {0, "once", "", "print one table, measured over one second, and exit"},
    {0, "json", "", "with --once: print one JSON object, with all ranks"},
    kMemoryOption,
};

// So many ranks are a table; of more, those that are good are one line.
constexpr size_t kMostRows = 64;
// Followers write every 2 s, and a state that has just been read must have a successor.
constexpr std::chrono::milliseconds kStorePeriod{2'500}, kStorePatience{2'000};

std::string table_text(const live::RankRows& seen) {
  const top::View view =
      top::make_view(seen, {.rows = kMostRows, .width = Style::of_stdout().room(), .cut = false});
  std::string text;
  for (const top::Line& line : view.verdict) text += line.text + '\n';
  text += view.sums.text + '\n';
  if (!view.hidden.text.empty()) text += view.hidden.text + '\n';
  text += '\n' + view.heading.text + '\n';
  for (const top::Line& line : view.table) text += line.text + '\n';
  if (view.more > 0) text += "... and " + std::to_string(view.more) + " more; --json has all\n";
  return text;
}

int once(const top::Watched& watched, bool json) {
  live::RankWatch watch;
  auto first = watched.look();
  if (!first) return fail(first.error());
  watch.look(*first);
  // Rates need two looks.
  Interrupt interrupt(Interrupt::Second::kEnds);
  // Nothing was printed, so an interrupt must not look like a healthy job.
  if (interrupt.wait(watched.period)) return kExitUsage;
  auto second = watched.look();
  if (!second) return fail(second.error());
  live::RankRows seen = watch.look(*second);
  int printed = print(json ? json_text(top::view_json(seen)) : table_text(seen));
  return printed != kExitOk ? printed : seen.alarming ? kExitFindings : kExitOk;
}

int watch(const top::Watched& watched, const Arguments& arguments, bool may_be_to_come) {
  if (arguments.has("once")) return once(watched, arguments.has("json"));
  if (arguments.has("json")) return fail("--json goes with --once; see lockstep top --help");
  // Keys are read from standard input, so a redirected one is no use either.
  if (isatty(STDOUT_FILENO) != 1 || isatty(STDIN_FILENO) != 1)
    return fail("the live view needs a terminal; --once prints a table");
  // What cannot be read at all is a mistake.
  if (!may_be_to_come) {
    if (auto seen = watched.look(); !seen) return fail(seen.error());
  }
  auto shown = top::run_screen(watched);
  return shown ? kExitOk : fail(shown.error());
}

// A store has the processes of all hosts, as of a few seconds ago.
int watch_store(const std::string& url, const Arguments& arguments) {
  // No longer: keys wait for a look.
  auto run =
      store::FollowedRun::open({.url = url, .key = store::key_of_environment(), .patience = kStorePatience});
  if (!run) return fail(run.error());
  live::FollowedView view;
  const auto look = [&]() -> Result<std::vector<live::SeenProcess>> {
    LOCKSTEP_ASSIGN(const auto processes, (*run)->look());
    return view.look(processes);
  };
  return watch({.name = (*run)->name(), .look = look, .period = kStorePeriod}, arguments, false);
}

int run_top(const Arguments& arguments) {
  if (auto limited = limit_memory(arguments); !limited) return fail(limited.error());
  const auto& paths = arguments.operands();
  if (std::any_of(paths.begin(), paths.end(), store::is_followed_run)) {
    if (paths.size() != 1) return fail("top takes one URL#NAME alone, or run directories and files");
    return watch_store(paths.front(), arguments);
  }
  // Files of processes that have died may lack what is still in memory: this finishes them first.
  for (const std::string& path : paths) run::adopt_run(path);
  live::LiveRun run(paths);
  // A run directory fills while the job starts.
  std::error_code error;
  const bool may_be_to_come = std::all_of(paths.begin(), paths.end(), [&](const std::string& path) {
    return std::filesystem::is_directory(path, error);
  });
  return watch({.name = paths.front(), .look = [&] { return run.look(); }}, arguments, may_be_to_come);
}

}  // namespace

const Command top_command = {
    .name = "top",
    .summary = "watch the ranks of a running job",
    .description =
        "Shows what each rank of a job does now: its last operation, what is in flight and for how long, how "
        "far it is "
        "behind the others of its communicators, its operations and bytes per second, what was dropped, and "
        "whether it is alive. It looks once a second, reads only what is new, and does not touch the job. "
        "Healthy ranks are folded if not all fit. Of a job that `lockstep trace --push` follows it shows what its hosts "
        "have written to the store, every 2.5 s.\n\n"
        "With --once the exit code is 0 if all ranks are healthy, 1 if one is gone, stopped, silent or late, "
        "and 2 if "
        "nothing can be read.",
    .operands = {.name = "RUN|FILE|URL#NAME",
                 .help = "the run directory of a job, process files, or a job whose hosts write to a store",
                 .least = 1,
                 .most = SIZE_MAX},
    .options = kTopOptions,
    .run = run_top,
};

}  // namespace lockstep::cli
