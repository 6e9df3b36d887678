// SPDX-License-Identifier: Apache-2.0
// `merge` writes one trace.db from all that is named. The output is checked first, as a slip may name
// evidence. Logs and dumps of other tools beside the process files are attached. What an older trace.db has
// attached is taken out and attached again. Exit code 3 says that something that was named is left out.
#include "cli/command.h"
#include "cli/kit/console.h"
#include "cli/kit/output_place.h"
#include "cli/kit/progress.h"
#include "cli/merge/merge_report.h"
#include "cli/trace/capture_environment.h"
#include "input/input.h"
#include "input/losses.h"
#include "store/store.h"

namespace lockstep::cli {
namespace {

constexpr Option kMergeOptions[] = {
    {'o', "output", "OUT", "the file to write; an older trace.db there is replaced", "trace.db", "", true},
    {0, "json", "", "print the report as one JSON object"},
};

constexpr std::string_view kTraceNames[] = {".db"};

int run_merge(const Arguments& arguments) {
  std::string output = arguments.value("output");
  auto input = input::open_input(arguments.operands());
  if (!input) return fail(input.error());
  if (auto checked = check_output(output, arguments.operands(), kTraceNames); !checked)
    return fail(checked.error());
  std::vector<std::string> attachments;
  for (const std::string& path : arguments.operands()) {
    const auto files = trace::files_to_attach(path);
    attachments.insert(attachments.end(), files.begin(), files.end());
  }
  int exit = kExitOk;
  // It owns the folder of the extracted files, so it lives until they are attached.
  readers::Unpacker unpacker;
  for (const std::string& path : input->databases) {
    const auto files = store::extract_attachments(path, [&] { return unpacker.make_folder(path); });
    if (!files) {
      warn(files.error().message() + "; what is attached to it is left out");
      exit = kExitCannotTell;
      continue;
    }
    attachments.insert(attachments.end(), files->begin(), files->end());
  }
  Result<store::MergeResult> merged = [&] {
    Progress progress("merging");
    return store::write_trace_db(*input->source, output, attachments, progress.callback());
  }();
  if (!merged) return fail(merged.error());
  input::RunOverview overview = input->source->overview();
  // A database whose attachments could not be read has set the code already.
  if (exit == kExitOk) exit = exit_of_losses(overview);
  if (arguments.has("json"))
    return print(json_text(merge_json(overview, *merged, output, input->files)), exit);
  std::string text;
  for (const std::string& line : merge_sentences(overview, *merged, output, input->files))
    text += line + "\n";
  return print(text, exit);
}

}  // namespace

const Command merge_command = {
    .name = "merge",
    .summary = "merge the files of a run into one trace.db",
    .description =
        "Reads the process files of a run, or other tools' files of one format, and writes one trace.db, a "
        "plain SQLite file; it also merges several trace.dbs, and process files named beside them, into one. The inputs are never changed or removed, and merging again gives the same result. Unreadable parts of "
        "a damaged file are counted; the rest is merged. The exit code is 3 if an input was left out.",
    .operands = {.name = "RUN|TRACE.DB|FILE",
                 .help = "run directories, trace.dbs and process files, or other tools' files of one format",
                 .least = 1,
                 .most = SIZE_MAX},
    .options = kMergeOptions,
    .run = run_merge,
};

}  // namespace lockstep::cli
