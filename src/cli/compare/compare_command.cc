// SPDX-License-Identifier: Apache-2.0
// `compare` says whether run B is slower than run A. With gates the exit code is theirs alone: 1 if one
// regressed, else 3 if one cannot tell. Without gates 1 means that some figure got worse, and 3 that no
// figure could be compared. Gates are parsed before the runs are read, which may take minutes.
#include <algorithm>
#include <optional>

#include "cli/command.h"
#include "cli/compare/compared_runs.h"
#include "cli/compare/gate.h"
#include "cli/compare/report.h"
#include "cli/kit/console.h"
#include "cli/kit/memory_limit.h"
#include "cli/kit/progress.h"

namespace lockstep::cli {
namespace {

constexpr Option kCompareOptions[] = {
    {.letter = 0,
     .name = "gate",
     .value = "GATES",
     .help = "conditions, such as 'busbw:allreduce>=0.97,step<=1.03'; the exit code says whether they hold"},
    {'n', "limit", "N", "rows of the table", "20"},
    {0, "all", "", "also show what did not change and what is uncertain"},
    {0, "json", "", "print one JSON object, with all rows"},
    kMemoryOption,
};

int exit_code(const compare::ComparedRuns& runs, const compare::GateReport& gates) {
  // Who names conditions wants those judged and no others.
  if (!gates.gates.empty()) {
    switch (compare::worst(gates.results)) {
      case compare::GateResult::State::kPass:
        return kExitOk;
      case compare::GateResult::State::kRegressed:
        return kExitFindings;
      case compare::GateResult::State::kCannotTell:
        return kExitCannotTell;
    }
  }
  const auto& rows = runs.comparison.rows;
  if (std::any_of(rows.begin(), rows.end(),
                  [](const auto& row) { return row.change == analysis::compare::Change::kWorse; }))
    return kExitFindings;
  return std::any_of(rows.begin(), rows.end(), [](const auto& row) { return row.ratio.has_value(); })
             ? kExitOk
             : kExitCannotTell;
}

int run_compare(const Arguments& arguments) {
  compare::GateReport gates;
  if (arguments.has("gate")) {
    auto parsed = compare::parse_gates(arguments.value("gate"));
    if (!parsed) return fail(parsed.error());
    gates.gates = *std::move(parsed);
  }
  auto limit = arguments.number("limit");
  if (!limit) return fail(limit.error());
  if (auto limited = limit_memory(arguments); !limited) return fail(limited.error());
  // Ended by hand, as the bar has to be gone before a report is printed.
  std::optional<Progress> progress(std::in_place, "reading");
  auto runs = compare::compare_runs(arguments.operands()[0], arguments.operands()[1], progress->callback());
  progress.reset();
  if (!runs) return fail(runs.error());
  for (const compare::Gate& gate : gates.gates)
    gates.results.push_back(compare::judge(gate, runs->comparison));
  const int printed =
      print(arguments.has("json") ? json_text(report_json(*runs, gates))
                                  : report_text(*runs, gates, Style::of_stdout(),
                                                {.limit = *limit, .all = arguments.has("all")}));
  return printed != kExitOk ? printed : exit_code(*runs, gates);
}

}  // namespace

const Command compare_command = {
    .name = "compare",
    .summary = "compare two runs: what got faster or slower",
    .description =
        "Compares run B with run A, the baseline: step times; bandwidths by function, size and communicator; times of operations; lateness and exposed communication of each rank. Each ratio B / A comes with its 95 % confidence interval; a difference that chance alone would show among so many ratios is not called a change. For what got worse, it says since which step.\n\n"
        "A gate is METRIC[:FUNCTION[:SIZE]]>=RATIO or <=RATIO, several separated by commas; METRIC is step, "
        "busbw, "
        "duration, lateness or exposed. It passes if the whole interval is on the good side of RATIO.\n\n"
        "Exit code: 0 nothing got worse, or all gates passed; 1 something got worse, or a gate has "
        "regressed; 2 wrong "
        "usage or unreadable input; 3 no answer, usually because of too few steps.",
    .operands = {.name = "A B",
                 .help =
                     "two runs: each a run directory, a trace.db, a file or an archive that `diagnose` reads",
                 .least = 2,
                 .most = 2},
    .options = kCompareOptions,
    .run = run_compare,
};

}  // namespace lockstep::cli
