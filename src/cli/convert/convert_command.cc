// SPDX-License-Identifier: Apache-2.0
// `convert` writes a run in another tool's format. Nothing that exists is replaced without --force, and
// evidence not even then. Losses are named first, as a timeline does not show what is missing. With --into
// the profiler's file stays as it is, and the declared operations of its rank are put into a copy.
#include <filesystem>

#include "base/text/units.h"
#include "cli/command.h"
#include "cli/convert/into_trace.h"
#include "cli/kit/console.h"
#include "cli/kit/output_place.h"
#include "cli/kit/progress.h"
#include "exporters/exporter.h"
#include "input/input.h"
#include "input/losses.h"

namespace lockstep::cli {
namespace {

namespace fs = std::filesystem;

constexpr Option kConvertOptions[] = {
    {'o', "output", "OUT",
     "the file or folder to write; compressed if its name ends in .gz (default: the input's name with the "
     "format's ending)",
     "", "", true},
    {'f', "format", "FORMAT", "the format to write: chrome, perfetto, csv, json or otf2", "chrome"},
    {0, "into", "PROFILE",
     "add the declared operations of its rank to this PyTorch profiler trace, and write the result"},
    {0, "force", "", "replace an existing output"},
};

// Only names that no reader takes as input: a .json in a run directory may be a profiler's trace.
constexpr std::string_view kTimelineNames[] = {".pftrace", ".pftrace.gz"};

std::string format_names() {
  std::string names;
  for (const exporters::Exporter* exporter : exporters::all()) {
    names += (names.empty() ? "" : ", ") + std::string(exporter->name);
    if (!exporter->off.empty()) names += " (off)";
  }
  return names;
}

// "run/trace.db" -> "run/trace.json"; a directory "run/" -> "run.json".
std::string default_output(const std::string& input, std::string_view extension) {
  fs::path path = fs::path(input).lexically_normal();
  // `run/` has an empty last part.
  if (path.filename().empty()) path = path.parent_path();
  fs::path stem = path.filename();
  for (std::string_view ending : {".db", ".lks", ".run"}) {
    if (stem.extension() == ending) stem.replace_extension();
  }
  return (path.parent_path() / (stem.string() + std::string(extension))).string();
}

Result<void> check_place(const Arguments& arguments, const std::string& output,
                         const std::vector<std::string>& inputs) {
  LOCKSTEP_TRY(check_output(output, inputs, kTimelineNames));
  std::error_code error;
  if (fs::exists(output, error) && !arguments.has("force"))
    return usage_error("exists; name another file with --output, or replace it with --force", output);
  return {};
}

// The profile may be packed; only one that stands alone is taken.
Result<convert::Inserted> insert(const std::string& profile, model::TraceSource& run,
                                 const std::string& output) {
  LOCKSTEP_ASSIGN(const readers::Inputs inputs, readers::sort({profile}));
  // A folder or an archive may hold several ranks, and one output can have one.
  const bool is_one = inputs.formats.size() == 1 && inputs.formats[0].format->name == "kineto" &&
                      inputs.formats[0].files.size() == 1;
  if (!is_one) return Error{ErrorCode::kInvalidInput, "is not a PyTorch profiler trace of one rank", profile};
  auto inserted = convert::write_into(inputs.formats[0].files[0], run, output);
  if (!inserted) {
    Error error = inserted.error();
    // A packed file lies in a temporary folder that the user never named.
    error.where = inputs.unpacker->shown(error.where);
    return error;
  }
  return inserted;
}

int run_into(const Arguments& arguments) {
  const std::string profile = arguments.value("into");
  std::vector<std::string> inputs = arguments.operands();
  const std::string output = arguments.value("output").empty() ? default_output(profile, ".declared.json.gz")
                                                               : arguments.value("output");
  inputs.push_back(profile);
  if (auto checked = check_place(arguments, output, inputs); !checked) return fail(checked.error());
  auto input = input::open_input(arguments.operands());
  if (!input) return fail(input.error());
  const auto inserted = insert(profile, *input->source, output);
  if (!inserted) return fail(inserted.error());
  const input::RunOverview overview = input->source->overview();
  std::string text;
  for (const std::string& line : input::loss_sentences(overview)) text += line + "\n";
  if (inserted->what.outside > 0)
    text +=
        plural(inserted->what.outside, "declared operation") + " outside the profiler's window left out\n";
  text += "wrote " + output + " (" + plural(inserted->what.operations, "declared operation") + " and " +
          plural(inserted->what.kernels, "kernel") + " of rank " + std::to_string(inserted->rank) + ", " +
          format_bytes(inserted->bytes) + ")\n";
  return print(text, exit_of_losses(overview));
}

int run_convert(const Arguments& arguments) {
  if (arguments.has("into")) return run_into(arguments);
  const exporters::Exporter* exporter = exporters::find(arguments.value("format"));
  if (exporter == nullptr) {
    return fail("unknown format '" + arguments.value("format") + "'; there are: " + format_names());
  }
  if (!exporter->off.empty())
    return fail("format '" + std::string(exporter->name) + "' is off: " + std::string(exporter->off));
  const std::vector<std::string>& inputs = arguments.operands();
  std::string output = arguments.value("output");
  if (output.empty()) output = default_output(inputs[0], exporter->extension);
  // Elsewhere the ending asks for compression, which a folder cannot have.
  if (exporter->is_folder && output.ends_with(".gz"))
    return fail(output + " would be a folder, which cannot be compressed; choose a name without .gz");
  if (auto checked = check_place(arguments, output, inputs); !checked) return fail(checked.error());
  auto input = input::open_input(inputs);
  if (!input) return fail(input.error());
  Result<exporters::ExportResult> written = [&] {
    Progress progress("converting");
    return exporter->write(*input->source, output, progress.callback());
  }();
  if (!written) return fail(written.error());
  const input::RunOverview overview = input->source->overview();
  std::string text;
  for (const std::string& line : input::loss_sentences(overview)) text += line + "\n";
  return print(text + "wrote " + output + " (" + plural(written->events, std::string(exporter->counts)) +
                   ", " + format_bytes(written->bytes) + ")\n",
               exit_of_losses(overview));
}

}  // namespace

const Command convert_command = {
    .name = "convert",
    .summary = "convert a run to another format, such as a timeline",
    .description =
        "Writes a run in another tool's format. `chrome` is the timeline that https://ui.perfetto.dev and "
        "chrome://tracing open; `perfetto` is the same for Perfetto's UI and trace_processor, in a tenth of the bytes. `csv` is a folder of tables for spreadsheets and data frames; `json` is those tables as JSON, one object per line. `otf2` is a folder too, the archive that Vampir, Scalasca and "
        "otf2-print open; a build without libotf2 says so. With --into, operations that a program declared through lockstep.h are added to the trace that torch.profiler wrote of the same rank, where tools show them beside the model. It first reports what the input has lost and what could not be read; the exit code is 3 if something you named was left out.",
    .operands = {.name = "RUN|TRACE.DB|FILE",
                 .help = "run directories, trace.dbs and process files, or other tools' files of one format",
                 .least = 1,
                 .most = SIZE_MAX},
    .options = kConvertOptions,
    .run = run_convert,
};

}  // namespace lockstep::cli
