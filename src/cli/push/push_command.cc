// SPDX-License-Identifier: Apache-2.0
// `push` diagnoses a finished run and sends its operations, findings and sums to a ClickHouse store. The URL
// is checked before the run is read, which may take minutes. Exit code 0 means that all is stored, 1 that the
// store holds something else. It is 2 for a wrong input or a store that refuses, 3 if it did not answer.
// After 3 the same command goes on.
#include "base/text/units.h"
#include "cli/command.h"
#include "cli/kit/console.h"
#include "cli/kit/memory_limit.h"
#include "cli/kit/progress.h"
#include "cli/push/follow.h"
#include "cli/push/pushed_run.h"
#include "cli/push/target.h"
#include "store/fleet.h"

namespace lockstep::cli {
namespace {

constexpr Option kPushOptions[] = {
    {0, "to", "URL", push::kTargetHelp},
    {0, "follow", "",
     "write what the processes of this host do now, every 2 s, until all have ended; --to takes URL#NAME, "
     "with the same name on all hosts; without #NAME the job's id is its name"},
    push::patience_option("1m"),
    kMemoryOption,
};

std::string push_text(const store::PushResult& pushed) {
  std::string text;
  for (const std::string& difference : pushed.differences) text += "DIFFERENCE: " + difference + "\n";
  text += "run " + std::to_string(pushed.run) + " in " + pushed.database + ": " + plural(pushed.rows, "row");
  if (pushed.sent_batches == 0) return text + ", all of them there already\n";
  text += ", " + format_count(pushed.sent_rows) + " of them sent now (" + format_bytes(pushed.sent_bytes) +
          " in " + plural(pushed.sent_batches, "batch") + ")\n";
  return text;
}

int fail_to_push(const Error& error) {
  const int code = fail(error);
  // Only a store that does not answer is worth another try with the same command.
  if (error.code != ErrorCode::kIo) return code;
  warn("what the store has confirmed stays there: the same command sends the rest");
  return kExitCannotTell;
}

int run_push(const Arguments& arguments) {
  if (auto limited = limit_memory(arguments); !limited) return fail(limited.error());
  if (!arguments.has("to"))
    return fail("--to is missing: the URL of a ClickHouse server; see lockstep push --help");
  const auto target = push::target_of(arguments, "to");
  if (!target) return fail(target.error());
  if (arguments.has("follow")) return push::follow(arguments, target->patience);
  if (auto checked = store::check_target(*target); !checked) return fail(checked.error());
  const auto run = push::pushed_run(arguments.operands());
  if (!run) return fail(run.error());
  auto pushed = [&] {
    Progress progress("sending");
    return store::push(run->run, *target, progress.callback());
  }();
  if (!pushed) return fail_to_push(pushed.error());
  const int code = pushed->differences.empty() ? kExitOk : kExitFindings;
  return print(push_text(*pushed), code);
}

}  // namespace

const Command push_command = {
    .name = "push",
    .summary = "send a finished run to a ClickHouse store",
    .description =
        "Sends the operations, their sums per minute, processes, communicators, losses and findings of a finished run to an existing ClickHouse, where you can query the runs of many jobs together: docs/fleet.md has the tables and some questions. It "
        "creates missing tables. A password is taken from the environment variable LOCKSTEP_PUSH_KEY, "
        "else from the URL, where other users of the machine can see it.\n\n"
        "What the store has confirmed is not sent again: after a kill, a restart or a store that was down, the same "
        "command sends the rest, and no row counts twice. At the end it compares what is stored. The exit code "
        "is 0 if all of the run is there, 1 if the store holds something else, 2 for wrong usage, a run that cannot be read, or "
        "a store that refuses, and 3 if the store did not answer.\n\n"
        "With --follow it writes the newest state of each process and communicator that this host sees in a run directory "
        "which is still being written, or does not exist yet: run one beside the job on each host, or one for all hosts if they share the directory. It goes on while a `lockstep trace` of this host may start ranks again. It sends no run: push it when the job has ended. While the store does not answer, it keeps trying and blocks nobody. On any machine, `lockstep diagnose URL#NAME` says who is stuck.",
    .operands = {.name = "RUN|TRACE.DB|FILE",
                 .help = "run directories, trace.dbs, process files or other tools' files, in any mix",
                 .least = 1,
                 .most = SIZE_MAX},
    .options = kPushOptions,
    .run = run_push,
};

}  // namespace lockstep::cli
