// SPDX-License-Identifier: Apache-2.0
// `top` draws the live view, or with --once prints one table or JSON object and judges it: exit code 1 if a
// rank needs attention, 0 if none does, 2 if nothing can be read. It never waits for a job with --once, since
// scripts call it so. The live view does wait for a run directory that is still empty.
#include <unistd.h>

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
#include "run/adopt_run.h"

namespace lockstep::cli {
namespace {

constexpr Option kTopOptions[] = {
    {0, "once", "", "print one table, measured over one second, and exit"},
    {0, "json", "", "with --once: print one JSON object, with all ranks"},
    kMemoryOption,
};

// So many ranks are a table; of more, those that are good are one line.
constexpr size_t kMostRows = 64;

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

int once(live::LiveRun& run, bool json) {
  live::RankWatch watch;
  auto first = run.look();
  if (!first) return fail(first.error());
  watch.look(*first);
  // Rates need two looks.
  Interrupt interrupt(Interrupt::Second::kEnds);
  // Nothing was printed, so an interrupt must not look like a healthy job.
  if (interrupt.wait(std::chrono::seconds(1))) return kExitUsage;
  auto second = run.look();
  if (!second) return fail(second.error());
  live::RankRows seen = watch.look(*second);
  int printed = print(json ? json_text(top::view_json(seen)) : table_text(seen));
  return printed != kExitOk ? printed : seen.alarming ? kExitFindings : kExitOk;
}

int run_top(const Arguments& arguments) {
  if (auto limited = limit_memory(arguments); !limited) return fail(limited.error());
  // Files of processes that have died may lack what is still in memory: this finishes them first.
  for (const std::string& path : arguments.operands()) run::adopt_run(path);
  live::LiveRun run(arguments.operands());
  if (arguments.has("once")) return once(run, arguments.has("json"));
  if (arguments.has("json")) return fail("--json goes with --once; see lockstep top --help");
  // Keys are read from standard input, so a redirected one is no use either.
  if (isatty(STDOUT_FILENO) != 1 || isatty(STDIN_FILENO) != 1)
    return fail("the live view needs a terminal; --once prints a table");
  // A run directory fills while the job starts; what cannot be read at all is a mistake.
  std::error_code error;
  for (const std::string& path : arguments.operands()) {
    if (std::filesystem::is_directory(path, error)) continue;
    if (auto seen = run.look(); !seen) return fail(seen.error());
    break;
  }
  auto shown = top::run_screen(run, arguments.operands().front());
  return shown ? kExitOk : fail(shown.error());
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
        "Healthy ranks are folded if not all fit.\n\n"
        "With --once the exit code is 0 if all ranks are healthy, 1 if one is gone, stopped, silent or late, "
        "and 2 if "
        "nothing can be read.",
    .operands = {.name = "RUN|FILE",
                 .help = "the run directory of a job, or process files",
                 .least = 1,
                 .most = SIZE_MAX},
    .options = kTopOptions,
    .run = run_top,
};

}  // namespace lockstep::cli
