// SPDX-License-Identifier: Apache-2.0
// `diagnose` prints the verdict of a run and ends with its exit code: 0 no problem, 1 a problem, 2 nothing
// can be read, 3 cannot tell. With --watch it diagnoses again and again, and ends with the code of the last
// verdict. On a terminal it redraws; elsewhere it prints only when findings change, so a log of it stays
// short.
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "base/text/units.h"
#include "base/text/wrap.h"
#include "base/unix_time.h"
#include "cli/command.h"
#include "cli/diagnose/report_text.h"
#include "cli/kit/console.h"
#include "cli/kit/interrupt.h"
#include "cli/kit/memory_limit.h"
#include "cli/kit/progress.h"
#include "cli/kit/standard_input.h"
#include "report/diagnosis_json.h"

namespace lockstep::cli {
namespace {

using verdict::DiagnosedRun;

constexpr Option kDiagnoseOptions[] = {
    {0, "json", "", "print one JSON object"},
    {.letter = 'w',
     .name = "watch",
     .value = "SECONDS",
     .help = "diagnose again and again, with this pause in between",
     .fallback = "2",
     .value_optional = true},
    {'v', "verbose", "", "print every finding and every loss in full"},
    kMemoryOption,
};

Result<DiagnosedRun> look(const std::vector<std::string>& paths) {
  Progress progress("reading");
  return verdict::diagnose(paths, progress.callback());
}

// From the top left, cut to the terminal: what stands first matters most.
std::string screen(const std::string& text, const std::string& last_line) {
  struct winsize size {};
  // Asked each time, as the window may change its size.
  size_t rows = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 2 ? size.ws_row : 24;
  std::string out = "\033[H";
  size_t shown = 0;
  for (std::string_view line : lines(text)) {
    // The last line needs a row, and one stays empty below it, so that nothing scrolls.
    if (++shown + 1 < rows) out += std::string(line) + "\033[K\r\n";
  }
  return out + last_line + "\033[K\033[J";
}

class Watch {
 public:
  Watch(const Arguments& arguments, std::chrono::seconds pause)
      : paths_(arguments.operands()),
        json_(arguments.has("json")),
        verbose_(arguments.has("verbose")),
        on_terminal_(!json_ && isatty(STDOUT_FILENO) == 1),
        pause_(pause) {}

  int run() {
    // Interrupted before the first verdict, it has none to report.
    int code = kExitUsage;
    bool seen = false;
    do {
      auto diagnosed = look(paths_);
      if (interrupt_.wanted()) break;
      if (!diagnosed) {
        // A run directory fills while the job starts; anything else is a mistake.
        if (!seen && !all_directories()) return fail(diagnosed.error());
        warn_once(diagnosed.error().message());
      } else {
        seen = true;
        code = verdict::exit_code(diagnosed->diagnosis);
        if (int failed = show(*diagnosed); failed != kExitOk) return failed;
      }
    } while (!interrupt_.wait(pause_));
    if (on_terminal_) print("\n");
    return code;
  }

 private:
  bool all_directories() const {
    std::error_code error;
    return std::all_of(paths_.begin(), paths_.end(),
                       [&](const std::string& path) { return std::filesystem::is_directory(path, error); });
  }
  void warn_once(const std::string& message) {
    if (message != last_message_) warn(message + "; waiting");
    last_message_ = message;
  }

  int show(const DiagnosedRun& run) {
    Style style = Style::of_stdout();
    std::string at = format_time(unix_now_ns());
    if (on_terminal_) {
      return draw(screen(
          tamed(diagnose::report_text(run, style, verbose_)),
          style.faint("Seen at " + at + "; again " + plural(static_cast<uint64_t>(pause_.count()), "second") +
                      " later; press Ctrl-C to stop")));
    }
    std::string essence = verdict::essence(run.diagnosis);
    // Ages in a report change at every look while the job stands still; essence() leaves them out.
    if (shown_ && essence == last_essence_) return kExitOk;
    std::string gap = shown_ ? "\n" : "";
    shown_ = true;
    last_essence_ = std::move(essence);
    return print(json_ ? json_line(report::diagnosis_json(run))
                       : gap + "== " + at + "\n" + diagnose::report_text(run, style, verbose_));
  }

  Interrupt interrupt_{Interrupt::Second::kEnds};
  const std::vector<std::string> paths_;
  const bool json_, verbose_, on_terminal_;
  const std::chrono::seconds pause_;
  bool shown_ = false;
  std::string last_essence_, last_message_;
};

int run_diagnose(const Arguments& arguments) {
  if (auto limited = limit_memory(arguments); !limited) return fail(limited.error());
  if (arguments.has("watch")) {
    auto seconds = arguments.number("watch");
    if (!seconds) return fail(seconds.error());
    if (*seconds < 1 || *seconds > 86'400) return fail("--watch takes 1 to 86400 seconds");
    return Watch(arguments, std::chrono::seconds(*seconds)).run();
  }
  const std::vector<std::string>& operands = arguments.operands();
  // Read once, also if `-` is named twice: a pipe has nothing left for a second time.
  std::optional<StandardInput> piped;
  if (std::find(operands.begin(), operands.end(), "-") != operands.end()) {
    auto read = StandardInput::read();
    if (!read) return fail(read.error());
    piped = *std::move(read);
  }
  auto diagnosed = look(piped ? piped->in_place_of_dash(operands) : operands);
  if (!diagnosed) {
    Error error = diagnosed.error();
    // The user named `-` and never the temporary file.
    if (piped) error.where = piped->shown(std::move(error.where));
    return fail(error);
  }
  if (piped) {
    // What was piped in is not there for another command.
    for (analysis::Finding& finding : diagnosed->diagnosis.findings)
      std::erase_if(finding.next, [&](const std::string& command) { return piped->is_in(command); });
  }
  std::string report = arguments.has("json")
                           ? json_text(report::diagnosis_json(*diagnosed))
                           : diagnose::report_text(*diagnosed, Style::of_stdout(), arguments.has("verbose"));
  const int printed = print(piped ? piped->shown(std::move(report)) : report);
  return printed != kExitOk ? printed : verdict::exit_code(diagnosed->diagnosis);
}

}  // namespace

const Command diagnose_command = {
    .name = "diagnose",
    .summary = "say which rank, call or link holds the job back",
    .description =
        "Compares what the ranks of a job did and says first what is wrong: which rank, on which host and "
        "GPU, in "
        "which operation of which communicator; then why it thinks so, and what to do next. It also lists "
        "what it could not see.\n\n"
        "Point it at whatever you have of a job, in any mix, for one verdict: what Lockstep "
        "captured, "
        "Flight Recorder dumps, traces of PyTorch's profiler, logs of NCCL and PyTorch; directories and "
        "archives of them. `-` reads standard input: `pbpaste | lockstep diagnose -`.\n\n"
        "It works after a run, and while a job runs or hangs: it reads the files that the job writes, and checks in /proc whether its processes on this machine still run. It does not touch the job.\n\n"
        "Exit code: 0 no problem found, 1 a problem was found, 2 wrong usage or nothing that can be read, 3 Lockstep cannot tell: too little input, files of two jobs, a run that broke off.",
    .operands = {.name = "RUN|TRACE.DB|FILE",
                 .help =
                     "run directories, trace.db, dumps, profiler traces, logs, archives: any mix of one job",
                 .least = 1,
                 .most = SIZE_MAX},
    .options = kDiagnoseOptions,
    .run = run_diagnose,
};

}  // namespace lockstep::cli
