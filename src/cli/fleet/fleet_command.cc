// SPDX-License-Identifier: Apache-2.0
// `fleet` asks the store one of a fixed set of questions, or prints its SQL for people who want to change it.
// Free SQL is left to the store's own client. Exit code 2 means wrong usage or a store that refuses, 3 that
// it did not answer. An answer without rows is an answer: 0.
#include <algorithm>

#include "base/text/style.h"
#include "base/text/units.h"
#include "base/text/wrap.h"
#include "cli/command.h"
#include "cli/fleet/answer_text.h"
#include "cli/kit/console.h"
#include "cli/kit/memory_limit.h"
#include "cli/kit/progress.h"
#include "cli/kit/table.h"
#include "cli/push/pushed_run.h"
#include "cli/push/target.h"
#include "store/fleet_questions.h"

namespace lockstep::cli {
namespace {

constexpr Option kFleetOptions[] = {
    {0, "from", "URL", push::kTargetHelp},
    {0, "days", "N", "ask about the last N days", "30"},
    {0, "host", "NAME", "with jobs: the host"},
    {0, "runs", "A,B", "with compare: two runs, by name or number; of several with one name the newest"},
    {0, "comms-id", "ID", "with op: PyTorch's Comms Id of the operation"},
    {0, "json", "", "print the answer as JSON"},
    {0, "sql", "", "print the SQL of the question, and do not run it"},
    push::patience_option("10s"),
    kMemoryOption,
};
constexpr const char* kNoUrl = "--from is missing: the URL of a ClickHouse server; see lockstep fleet --help";

std::string list_text() {
  Table table({"<question", "<lists"});
  for (const store::FleetQuestion& question : store::fleet_questions())
    table.add({std::string(question.name), std::string(question.title)});
  table.add({"check RUN", "what of a run the store does not have as it is"});
  return table.text("");
}

const store::FleetQuestion* find_question(const std::string& name) {
  const auto all = store::fleet_questions();
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& of) { return of.name == name; });
  return found == all.end() ? nullptr : &*found;
}

// What the question is about. An option of another question would be ignored, and is refused.
Result<store::FleetSubject> subject_of(const Arguments& arguments, const store::FleetQuestion& question) {
  LOCKSTEP_ASSIGN(const uint64_t days, arguments.number("days"));
  if (days == 0 || days > store::kMostFleetDays)
    return usage_error("--days takes 1 to " + format_count(store::kMostFleetDays) + " days");
  store::FleetSubject subject{.days = static_cast<uint32_t>(days)};
  for (const store::FleetQuestion& of : store::fleet_questions()) {
    if (of.about.empty()) continue;
    const std::string option(of.about);
    if (arguments.has(option) != (of.about == question.about))
      return usage_error("--" + option +
                         (arguments.has(option) ? " goes with " : " is missing: it says what is asked of ") +
                         std::string(of.name));
  }
  if (question.about.empty()) return subject;
  const std::string value = arguments.value(question.about);
  if (question.about == "runs") {
    const size_t comma = value.find(',');
    if (comma == 0 || comma >= value.size() - 1)
      return usage_error("--runs takes two runs, by name or number, such as job-17,job-18");
    subject.names = {value.substr(0, comma), value.substr(comma + 1)};
  } else {
    subject.names = {value};
  }
  if (question.about == "comms-id" && (value.empty() || value.find_first_not_of("0123456789") != value.npos))
    return usage_error("--comms-id takes a number, as Comms Id is printed");
  return subject;
}

int fail_to_ask(const Error& error) {
  const int code = fail(error);
  return error.code == ErrorCode::kIo ? kExitCannotTell : code;
}

// `fleet check RUN...`
int check(const Arguments& arguments) {
  const auto& operands = arguments.operands();
  if (operands.size() < 2) return fail("check takes the run that was pushed");
  for (const char* option : {"json", "sql"})
    if (arguments.has(option))
      return fail("--" + std::string(option) + " goes with a question, not with check");
  if (!arguments.has("from")) return fail(kNoUrl);
  const auto target = push::target_of(arguments, "from");
  if (!target) return fail(target.error());
  // Before the run is read, which may take minutes.
  if (auto checked = store::check_target(*target); !checked) return fail(checked.error());
  const auto run = push::pushed_run({operands.begin() + 1, operands.end()});
  if (!run) return fail(run.error());
  const auto found = [&] {
    Progress progress("comparing");
    return store::check_pushed(run->run, *target, progress.callback());
  }();
  if (!found) return fail_to_ask(found.error());
  std::string text;
  for (const std::string& difference : found->differences) text += "DIFFERENCE: " + difference + "\n";
  text += "run " + std::to_string(found->run) + " in " + found->database + ": " + plural(found->rows, "row") +
          " in " + plural(found->batches, "batch") +
          (found->differences.empty() ? ", all of them there\n" : "\n");
  return print(text, found->differences.empty() ? kExitOk : kExitFindings);
}

int run_fleet(const Arguments& arguments) {
  if (auto limited = limit_memory(arguments); !limited) return fail(limited.error());
  if (arguments.operands().empty()) return print(list_text());
  const std::string& name = arguments.operands()[0];
  if (name == "check") return check(arguments);
  if (arguments.operands().size() > 1) return fail("fleet takes one question; only check takes a run");
  const store::FleetQuestion* const question = find_question(name);
  if (question == nullptr)
    return fail("there is no question '" + name + "'; `lockstep fleet` alone lists all");
  const auto subject = subject_of(arguments, *question);
  if (!subject) return fail(subject.error());
  const auto target = push::target_of(arguments, "from");
  if (!target) return fail(target.error());
  // Asks nobody, so it needs no URL; the database's name is in the SQL.
  if (arguments.has("sql")) {
    const auto database =
        store::fleet_database(arguments.has("from") ? arguments.value("from") : "http://localhost/fleet");
    if (!database) return fail(database.error());
    return print(store::fleet_sql(*question, *database, *subject) + "\n");
  }
  if (!arguments.has("from")) return fail(kNoUrl);
  const auto answer = store::ask_fleet(*question, *target, *subject);
  if (!answer) return fail_to_ask(answer.error());
  if (arguments.has("json")) return print(json_text(fleet::answer_json(*question, *answer, subject->days)));
  return print(within(fleet::answer_text(*question, *answer, subject->days), Style::of_stdout().room()));
}

}  // namespace

const Command fleet_command = {
    .name = "fleet",
    .summary = "query the runs of many jobs in a ClickHouse store",
    .description =
        "Answers questions about the runs that `lockstep push` sent to a ClickHouse: which hosts are blamed again and again, and since "
        "when; which NCCL version is slower; how many GPU-hours were lost waiting. Without a question it lists all. "
        "docs/fleet.md says what they mean.\n\n"
        "`check RUN` compares what the store holds of a run with the run itself: rows and sums of each table, and the digest "
        "of each batch. It exits with 1 if they differ.\n\n"
        "It only reads, for at most two minutes, and shows at most 1,000 rows. A password is taken from the environment "
        "variable LOCKSTEP_PUSH_KEY, else from the URL. The exit code is 0 if the store answered, 2 for wrong usage or "
        "a store that refuses, and 3 if it did not answer.",
    .operands =
        {.name = "QUESTION|check RUN",
         .help =
             "what to ask: hosts, versions, busbw, lost, verdicts, findings, links, jobs, compare or op; or the run to compare",
         .least = 0,
         .most = SIZE_MAX,
         .choices = "hosts versions busbw lost verdicts findings links jobs compare op check"},
    .options = kFleetOptions,
    .run = run_fleet,
};

}  // namespace lockstep::cli
