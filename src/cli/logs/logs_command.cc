// SPDX-License-Identifier: Apache-2.0
// `logs` judges NCCL's logs alone and shows what they say of the set-up. Other evidence beside them is left
// to `diagnose`. Files without a line of NCCL's are an error: an empty report would read as good news. Exit
// codes are those of `diagnose`; 0 becomes 3 if something that was named could not be read.
#include <algorithm>

#include "analysis/log_rules/log_rules.h"
#include "cli/command.h"
#include "cli/kit/console.h"
#include "cli/logs/log_report.h"
#include "readers/nccl_log/nccl_log.h"
#include "readers/reader.h"
#include "verdict/log_input.h"
#include "verdict/outcome.h"

namespace lockstep::cli {
namespace {

constexpr Option kLogsOptions[] = {
    {0, "json", "", "print one JSON object, with all rows"},
    {'v', "verbose", "", "show all rows, and the first line of each kind that was not understood"},
};

Result<logs::LogReport> read_logs(const std::vector<std::string>& paths) {
  LOCKSTEP_ASSIGN(const readers::Inputs inputs, readers::sort(paths));
  for (const readers::FormatFiles& files : inputs.formats) {
    // A directory may hold anything else as well.
    if (files.format != &readers::nccl_log::kFormat) continue;
    LOCKSTEP_ASSIGN(auto model, verdict::read_logs(inputs, files));
    logs::LogReport report{std::move(model), {}, inputs.troubles};
    report.findings = analysis::log_rules::judge(report.model);
    return report;
  }
  return Error{ErrorCode::kInvalidInput,
               "no line of NCCL's log in " + std::string(paths.size() == 1 ? "it" : "them") +
                   "; run the job with NCCL_DEBUG=INFO",
               paths.size() == 1 ? paths[0] : std::string()};
}

int run_logs(const Arguments& arguments) {
  auto read_report = read_logs(arguments.operands());
  if (!read_report) return fail(read_report.error());
  const logs::LogReport& report = *read_report;
  const int printed = arguments.has("json")
                          ? print(json_text(logs::report_json(report)))
                          : print(logs::report_text(report, Style::of_stdout(), arguments.has("verbose")));
  if (printed != kExitOk) return printed;
  // As `diagnose` says it.
  const int code = verdict::exit_code(analysis::in_order(report.findings));
  return code == kExitOk && !report.troubles.empty() ? kExitCannotTell : code;
}

}  // namespace

const Command logs_command = {
    .name = "logs",
    .summary = "read NCCL's logs: what is wrong, and how NCCL was set up",
    .description =
        "Reads what NCCL or RCCL printed with NCCL_DEBUG=INFO, even behind the prefixes of a launcher, a framework or a log collector. It unpacks archives and compressed files; in a directory it reads the files that hold such lines.\n\n"
        "It lists what is wrong or slower than it need be, each with its lines: "
        "sockets "
        "instead of InfiniBand, GPUs that may not access each other, releases and settings that differ between ranks, network errors. From the lines of PyTorch's watchdogs and of launchers it names who never called an operation, who called a different one, and whose process ended. Then follow processes, communicators, "
        "hardware, "
        "rings, trees and connections, algorithms and settings.\n\n"
        "Give the logs of all ranks together. NCCL_DEBUG_FILE=nccl.%h.%p.log gives each process its own file; NCCL_DEBUG_SUBSYS=INIT,BOOTSTRAP,ENV,GRAPH,NET,TUNING prints most of what it needs.\n\n"
        "The exit code is 1 if a finding is a warning or critical.",
    .operands = {.name = "FILE|DIR", .help = "logs, or directories of logs", .least = 1, .most = SIZE_MAX},
    .options = kLogsOptions,
    .run = run_logs,
};

}  // namespace lockstep::cli
