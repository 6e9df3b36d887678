// SPDX-License-Identifier: Apache-2.0
// The manual page in roff, from the same table as `--help`. Environment, exit status and examples stand here
// as text, as no command owns them.
#include "cli/manual/man_page.h"

#include "cli/manual/help_text.h"

namespace lockstep::cli::manual {
namespace {

// Text in which roff sees no markup of its own: backslashes, dashes, and lines that begin with a dot or
// quote.
std::string escape(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '\\') {
      out += "\\e";
      // roff may print a bare dash as a hyphen, which a shell does not take when it is copied.
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  if (!out.empty() && (out[0] == '.' || out[0] == '\'')) out.insert(0, "\\&");
  return out;
}

std::string roff_paragraphs(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    size_t end = text.find("\n\n");
    out += ".PP\n" + escape(text.substr(0, end)) + "\n";
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 2);
  }
  return out;
}

std::string tagged(std::string_view heading, std::string_view text) {
  return ".TP\n\\fB" + escape(heading) + "\\fR\n" + escape(text) + "\n";
}

std::string option_entry(const Option& option) {
  std::string heading = option_heading(option);
  return tagged(heading.substr(heading.find_first_not_of(' ')), option_text(option));
}

std::string section(const Command& command) {
  std::string out = ".SS " + escape(usage_line(command)) + "\n" + roff_paragraphs(command.description);
  if (!command.operands.help.empty()) out += tagged(command.operands.name, command.operands.help);
  for (const Option& option : command.options) out += option_entry(option);
  return out;
}

constexpr std::string_view kEnvironment =
    ".SH ENVIRONMENT\n"
    "Capture works without the launcher when these are set for the job.\n"
    ".TP\n\\fBNCCL_PROFILER_PLUGIN\\fR\nThe path of liblockstep\\-nccl.so; NCCL and RCCL load it.\n"
    ".TP\n\\fBLOCKSTEP_DIR\\fR\nThe run directory; %p, %h, %r, %n and %j stand for process id, host, rank, "
    "node rank and "
    "job id.\n"
    ".TP\n\\fBLOCKSTEP_MODE\\fR\nlite, default, deep, sample=K/N or off.\n"
    ".TP\n\\fBLOCKSTEP_RETAIN\\fR\nstream, stream:CAP or ring:SIZE, for each process.\n"
    ".TP\n\\fBLOCKSTEP_CHAIN\\fR\na second NCCL profiler plugin, which gets every call; none leaves it out.\n";

constexpr std::string_view kExitStatus =
    ".SH EXIT STATUS\n"
    "0 success; 1 findings, for commands that judge a run; 2 wrong usage, or input that cannot be read; 3 no "
    "answer, or an input left out.\n"
    ".PP\n\\fBlockstep trace\\fR ends with the exit code of the traced command, with 128 plus the number of "
    "the signal that "
    "ended it, with 127 when the command was not found and 126 when it cannot be executed.\n";

constexpr std::string_view kExamples =
    ".SH EXAMPLES\n"
    ".nf\nlockstep trace \\-o trace.db torchrun \\-\\-nproc_per_node=8 train.py\n"
    "srun lockstep trace \\-o trace.db \\-\\-dir /shared/runs/%j python train.py\n"
    "lockstep summary trace.db\n"
    "lockstep convert \\-f chrome trace.db\n.fi\n";

}  // namespace

std::string man_page() {
  std::string out =
      ".\\\" SPDX-License-Identifier: Apache-2.0\n.TH LOCKSTEP 1 \"\" \"lockstep " LOCKSTEP_VERSION
      "\" \"User Commands\"\n.SH NAME\nlockstep \\- " +
      escape(kProgramSummary) + "\n.SH SYNOPSIS\n";
  for (const Command* command : all_commands()) out += ".B " + escape(usage_line(*command)) + "\n.br\n";
  out += ".SH DESCRIPTION\n";
  out += escape(
             "Lockstep records what NCCL, RCCL and custom communication kernels do in every process of a "
             "job, puts it together, and says which rank, call or link holds the job back.") +
         "\n";
  out += ".SH COMMANDS\n";
  for (const Command* command : all_commands()) out += section(*command);
  out += ".SH OPTIONS\n";
  for (const Option& option : common_options()) out += option_entry(option);
  out += tagged("-V, --version", "print the version and exit");
  out += kEnvironment;
  out += kExitStatus;
  out += kExamples;
  return out;
}

}  // namespace lockstep::cli::manual
