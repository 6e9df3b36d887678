// SPDX-License-Identifier: Apache-2.0
// `control` writes a request into the header of each process file on this host and waits for the processes to
// take it. Exit code 0 means that every process does as asked, 1 that some do not or could not be reached. It
// is 2 if there was nobody to ask. Every file is resolved before the first is written: a job half of which
// changed its mode is worse than an error.
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>

#include "base/text/units.h"
#include "cli/command.h"
#include "cli/control/live_header.h"
#include "cli/kit/console.h"
#include "cli/kit/table.h"
#include "format/source_name.h"
#include "readers/native/tail/live_tail.h"
#include "run/liveness.h"
#include "run/mode_text.h"

namespace lockstep::cli {
namespace {

using control::LiveHeader;
using model::Liveness;
using run::ProcessFile;

constexpr Option kControlOptions[] = {
    {'m', "mode", "MODE",
     "record this from now on: lite, default, deep, sample=K/N (deep for K of every N), off", "",
     run::kModeChoices},
    {0, "for", "TIME", "for this long, then back to the mode before: 30s, 5m, 1h"},
    {.letter = 0,
     .name = "comm",
     .value = "NAME|ID",
     .help = "with deep or sample: deep events of this communicator only; may be repeated",
     .repeatable = true},
    {0, "min-bytes", "SIZE",
     "with deep or sample: deep events of operations of at least this size, such as 1M"},
    {0, "mark", "TEXT", "make every process record a mark with this name now"},
    {0, "save", "",
     "make every process write what it has in memory to its file now: with --retain ring it otherwise does so only at its end"},
    {0, "show", "", "say what each process records now"},
};

constexpr int64_t kSecond = 1'000'000'000;
// A process looks every 50 ms; one that does not answer is stopped, or its machine is overloaded.
constexpr int64_t kAnswerWithin = 2 * kSecond, kSavedWithin = 60 * kSecond;

int64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * kSecond + now.tv_nsec;
}

std::optional<uint64_t> parse_id(std::string_view text) {
  // Without 0x a hex number could be a communicator's name.
  if (!text.starts_with("0x")) return std::nullopt;
  uint64_t id = 0;
  auto [end, error] = std::from_chars(text.data() + 2, text.data() + text.size(), id, 16);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return id;
}

struct Wish {
  format::ControlRequest request{};
  std::vector<std::string> comms;
  std::string description;  // what it asks for, in words
};

Result<void> read_mode(const Arguments& arguments, Wish* wish) {
  auto mode = run::parse_mode(arguments.value("mode"));
  if (!mode)
    return usage_error("--mode takes lite, default, deep, off, or sample=K/N with K at most N; not '" +
                       arguments.value("mode") + "'");
  wish->request.what |= format::kControlSetMode;
  wish->request.mode = static_cast<uint32_t>(mode->mode);
  wish->request.keep = mode->keep;
  wish->request.of = mode->of;
  wish->description = run::mode_text(*mode);
  return {};
}

Result<void> read_window(const Arguments& arguments, Wish* wish) {
  auto length = parse_duration(arguments.value("for"));
  if (!length)
    return usage_error("--for takes a time such as 30s, 5m or 1h; not '" + arguments.value("for") + "'");
  // An end and not a length: the window ends on time even if a process takes the request late.
  wish->request.until_monotonic_ns = monotonic_ns() + *length;
  wish->description += " for " + arguments.value("for");
  return {};
}

Result<void> read_mark(const std::string& text, Wish* wish) {
  // One byte stays for the NUL.
  if (text.empty() || text.size() >= format::kControlTextBytes)
    return usage_error("--mark takes a text of 1 to " + std::to_string(format::kControlTextBytes - 1) +
                       " bytes");
  wish->request.what |= format::kControlMark;
  std::memcpy(wish->request.text, text.data(), text.size());
  return {};
}

Result<Wish> read_wish(const Arguments& arguments) {
  Wish wish;
  if (arguments.has("mode")) {
    if (auto read = read_mode(arguments, &wish); !read) return read.error();
  } else if (arguments.has("for") || arguments.has("comm") || arguments.has("min-bytes")) {
    return usage_error("--for, --comm and --min-bytes go with --mode");
  }
  const auto mode = static_cast<format::Mode>(wish.request.mode);
  if ((arguments.has("comm") || arguments.has("min-bytes")) && mode != format::Mode::kDeep &&
      mode != format::Mode::kSample)
    return usage_error("--comm and --min-bytes go with --mode deep or --mode sample=K/N");
  wish.comms = arguments.values("comm");
  if (wish.comms.size() > format::kControlComms)
    return usage_error("at most " + std::to_string(format::kControlComms) + " communicators can be named");
  if (arguments.has("min-bytes")) {
    auto bytes = parse_bytes(arguments.value("min-bytes"));
    if (!bytes)
      return usage_error("--min-bytes takes a size such as 1M; not '" + arguments.value("min-bytes") + "'");
    wish.request.min_bytes = *bytes;
    wish.description += ", operations from " + format_bytes(*bytes);
  }
  if (arguments.has("for")) {
    if (auto read = read_window(arguments, &wish); !read) return read.error();
  }
  if (arguments.has("mark")) {
    if (auto read = read_mark(arguments.value("mark"), &wish); !read) return read.error();
  }
  if (arguments.has("save")) wish.request.what |= format::kControlSave;
  if (wish.request.what == 0) return usage_error("nothing to do: give --mode, --mark, --save or --show");
  return wish;
}

std::vector<ProcessFile> files_of(const std::vector<std::string>& paths) {
  std::vector<ProcessFile> files;
  for (const std::string& path : paths) {
    for (ProcessFile& file : run::process_files_at(path)) files.push_back(std::move(file));
  }
  return files;
}

std::string rank_text(const ProcessFile& file) {
  const std::string who = " (" + file.process.host + ", pid " + std::to_string(file.process.pid) + ")";
  return (file.rank < 0 ? "process" : "rank " + std::to_string(file.rank)) + who;
}

// Ids of the named communicators as this process knows them. One that it is not in gets an id that nothing
// has. More of them than a request holds is an error: part of what was asked for is not what was asked for.
Result<void> resolve_comms(const std::string& path, const Wish& wish, format::ControlRequest* request,
                           std::vector<bool>* found) {
  constexpr uint64_t kNobody = ~uint64_t{0};
  // A tail that cannot be opened knows no communicators, and an id still works.
  auto tail = readers::native::LiveTail::open(path);
  std::vector<uint64_t> ids;
  for (size_t i = 0; i < wish.comms.size(); ++i) {
    const auto id = parse_id(wish.comms[i]);
    for (const auto& comm : tail ? (*tail)->process().comms : std::vector<readers::native::LiveComm>{}) {
      if (comm.ended || comm.comm_id == 0 || (id ? comm.comm_id != *id : comm.name != wish.comms[i]))
        continue;
      (*found)[i] = true;
      if (!id) ids.push_back(comm.comm_id);
    }
    if (id) ids.push_back(*id);
  }
  std::sort(ids.begin(), ids.end());  // a process with several devices is in a communicator several times
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  if (ids.size() > format::kControlComms)
    return usage_error(path + " has " + plural(ids.size(), "communicator") + " of these names; at most " +
                       std::to_string(format::kControlComms) +
                       " can be chosen: name them by id, as lockstep info does");
  // No ids would mean all communicators.
  if (ids.empty()) ids.push_back(kNobody);
  request->comms = static_cast<uint32_t>(ids.size());
  std::copy(ids.begin(), ids.end(), request->comm_ids);
  return {};
}

struct Target {
  ProcessFile file;
  std::unique_ptr<LiveHeader> header;
  Liveness liveness;
  uint32_t number = 0, refused_before = 0;
  bool answered = false, unasked = false;
  bool overtaken = false;  // another `lockstep control` has asked since, and was answered
};

struct Reached {
  std::vector<Target> targets;
  size_t elsewhere = 0, failed = 0, ended = 0;
};

Reached reach(const std::vector<ProcessFile>& files) {
  Reached reached;
  for (const ProcessFile& file : files) {
    if (!file.valid) {
      warn(file.path + ": is not a process file; left out");
      ++reached.failed;
      continue;
    }
    const Liveness liveness = run::look_at(file.process);
    // Ranks that have ended are not a failure: a job may be over in part.
    if (!file.open || liveness == Liveness::kGone) {
      ++reached.ended;
      continue;
    }
    if (liveness == Liveness::kUnknown) {
      warn(rank_text(file) + ": is on another host, or cannot be seen from here; run lockstep control there");
      ++reached.elsewhere;
      continue;
    }
    auto header = LiveHeader::open(file.path);
    if (!header) {
      warn(header.error().message());
      ++reached.failed;
      continue;
    }
    // A stopped process stays a target; it takes the request when it goes on.
    reached.targets.push_back({file, std::move(*header), liveness});
  }
  return reached;
}

std::string key_of(const ProcessFile& file) {
  return std::to_string(file.process.pid) + "." + std::to_string(file.process.start_ticks);
}

// A process with a file of each of several libraries records a mark once.
std::map<std::string, const Target*> first_of_each_process(const std::vector<Target>& targets) {
  std::map<std::string, const Target*> first;
  for (const Target& target : targets) {
    const Target*& known = first[key_of(target.file)];
    // The lowest source, so that the choice does not depend on the order of files.
    if (known == nullptr || target.header->source() < known->header->source()) known = &target;
  }
  return first;
}

Result<void> ask_all(const Wish& wish, std::vector<Target>& targets) {
  std::vector<format::ControlRequest> requests;
  std::vector<bool> found(wish.comms.size(), false);
  for (const Target& target : targets) {
    format::ControlRequest& request = requests.emplace_back(wish.request);
    if (wish.comms.empty()) continue;
    if (auto resolved = resolve_comms(target.file.path, wish, &request, &found); !resolved) return resolved;
  }
  for (size_t i = 0; i < found.size(); ++i) {
    if (!found[i])
      return usage_error("no process on this host is in a communicator '" + wish.comms[i] +
                         "'; lockstep info lists names and ids");
  }
  // After the loop above, in which nothing was asked yet and an error could still end it all.
  const auto first = first_of_each_process(targets);
  for (size_t i = 0; i < targets.size(); ++i) {
    Target& target = targets[i];
    const bool marks =
        std::any_of(first.begin(), first.end(), [&](const auto& entry) { return entry.second == &target; });
    if (!marks) {
      requests[i].what &= ~format::kControlMark;
      std::memset(requests[i].text, 0, sizeof requests[i].text);
    }
    // A count, since earlier requests of others may have been refused.
    target.refused_before = target.header->in_force().state.refused;
    // Only a mark was wanted, and another file of the process makes it.
    if (requests[i].what == 0) {
      target.answered = true;
      continue;
    }
    auto number = target.header->ask(requests[i]);
    if (number) {
      target.number = *number;
    } else {  // the others are to be alike all the same
      warn(number.error().message());
      target.answered = target.unasked = true;
    }
  }
  return {};
}

void await_answers(std::vector<Target>& targets, int64_t patience_ns) {
  const int64_t end = monotonic_ns() + patience_ns;
  for (;;) {
    bool all = true;
    for (Target& target : targets) {
      // Taken or refused: the process stores the number either way. Numbers wrap around.
      if (!target.answered) {
        const auto ahead = static_cast<int32_t>(target.header->in_force().state.taken - target.number);
        target.answered = ahead >= 0;
        target.overtaken = ahead > 0;
      }
      all &= target.answered || target.liveness == Liveness::kStopped;
    }
    if (all) return;
    if (monotonic_ns() > end) break;
    usleep(5000);
  }
  // Who was asked while it ran may have been stopped since.
  for (Target& target : targets)
    if (!target.answered) target.liveness = run::look_at(target.file.process);
}

// What came of a request, the worst last. Whoever has refused it has answered, too.
enum class Outcome : uint8_t { kDone, kWaits, kRefused, kOvertaken, kUnasked, kStopped, kSilent };

std::string_view outcome_text(Outcome outcome) {
  constexpr std::string_view kTexts[] = {"done",
                                         "changes at its next launch, where it is safe",
                                         "refused the request; its library may have another version",
                                         "got another request meanwhile: see --show",
                                         "could not be reached",
                                         "is stopped, and will do it when it continues",
                                         "has not answered; it may be overloaded, or has ended"};
  return kTexts[static_cast<size_t>(outcome)];
}

Outcome outcome_of(const Target& target) {
  const auto state = target.header->in_force().state;
  if (!target.answered) return target.liveness == Liveness::kStopped ? Outcome::kStopped : Outcome::kSilent;
  if (target.unasked) return Outcome::kUnasked;
  // It may have come to see the later request alone.
  if (target.overtaken) return Outcome::kOvertaken;
  if (state.refused != target.refused_before) return Outcome::kRefused;
  return state.waiting != 0 ? Outcome::kWaits : Outcome::kDone;
}

std::string description_of(const Wish& wish) {
  std::vector<std::string> parts;
  if ((wish.request.what & format::kControlSetMode) != 0) parts.push_back(wish.description);
  if ((wish.request.what & format::kControlMark) != 0)
    parts.push_back("marked '" + std::string(reinterpret_cast<const char*>(wish.request.text)) + "'");
  if ((wish.request.what & format::kControlSave) != 0) parts.emplace_back("saved");
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : "; ") + part;
  return text;
}

// What came of it, for each process; false if one did not do as asked. Of a process with several libraries
// the worst one counts.
bool report(const Wish& wish, const std::vector<Target>& targets) {
  std::map<std::string, Outcome> worst;
  for (const Target& target : targets) {
    Outcome& of = worst.try_emplace(key_of(target.file), Outcome::kDone).first->second;
    of = std::max(of, outcome_of(target));
  }
  const auto count = [&](Outcome last) {
    return std::count_if(worst.begin(), worst.end(), [&](const auto& of) { return of.second <= last; });
  };
  const size_t done = static_cast<size_t>(count(Outcome::kWaits)), all = worst.size();
  const std::string processes = plural(all, "process");
  const std::string who = done == all                     ? processes
                          : count(Outcome::kRefused) == 0 ? "none of " + processes + " has answered"
                                                          : std::to_string(done) + " of " + processes;
  print(who + ": " + description_of(wish) + "\n");
  for (const Target& target : targets) {
    const auto of = worst.find(key_of(target.file));
    if (of == worst.end()) continue;  // said
    const std::string text = rank_text(target.file) + ": " + std::string(outcome_text(of->second));
    if (of->second <= Outcome::kWaits)
      print(text + "\n");
    else
      warn(text);
    worst.erase(of);
  }
  return done == all;
}

std::string until_text(const format::ControlState& state, bool here) {
  if (state.until_monotonic_ns == 0) return "-";
  const run::ModeChoice after{static_cast<format::Mode>(state.mode_after), state.keep_after, state.of_after};
  // The end can be compared with no other clock than this host's CLOCK_MONOTONIC.
  if (!here) return "a window, then " + run::mode_text(after);
  const int64_t now_ns = monotonic_ns();
  // Compared first: the end may be any number in a damaged file.
  const int64_t left_ns = state.until_monotonic_ns > now_ns ? state.until_monotonic_ns - now_ns : 0;
  return format_duration(static_cast<double>(left_ns)) + ", then " + run::mode_text(after);
}

int show(const std::vector<ProcessFile>& files) {
  Table table({"rank", "<host", "~pid", "~<library", "<process", "<mode", "<for", "~~comms", "~~min bytes",
               "refused"});
  for (const ProcessFile& file : files) {
    const auto header = control::look_at_header(file.path);
    if (!header) {
      warn(header.error().message());
      continue;
    }
    const format::ControlState& state = header->in_force.state;
    const Liveness liveness = run::look_at(file.process);
    const run::ModeChoice mode{static_cast<format::Mode>(state.mode), state.keep, state.of};
    std::string mode_now = run::mode_text(mode);
    // NCCL gets the new mode at a launch only: see docs/control.md.
    if (state.waiting != 0) mode_now += " (waits for a launch)";
    if (header->in_force.asked != state.taken) mode_now += " (got another request)";
    table.add({file.rank < 0 ? "-" : std::to_string(file.rank), file.process.host,
               std::to_string(file.process.pid), format::source_name(header->source, "?"),
               file.open ? std::string(run::liveness_text(liveness)) : "ended", mode_now,
               until_text(state, liveness == Liveness::kRunning),
               state.comms == 0 ? "all" : std::to_string(state.comms),
               state.min_bytes == 0 ? "-" : format_bytes(state.min_bytes), std::to_string(state.refused)});
  }
  if (table.empty()) return fail("there is nothing to show");
  return print(table.text());
}

int run_control(const Arguments& arguments) {
  const std::vector<ProcessFile> files = files_of(arguments.operands());
  if (files.empty()) return fail("no process file in it; is this the run directory of the job?");
  if (arguments.has("show")) {
    for (const char* other : {"mode", "for", "comm", "min-bytes", "mark", "save"})
      if (arguments.has(other)) return fail(usage_error("--show goes alone"));
    return show(files);
  }
  auto wish = read_wish(arguments);
  if (!wish) return fail(wish.error());
  Reached reached = reach(files);
  if (reached.targets.empty()) {
    return fail(reached.ended > 0 && reached.elsewhere + reached.failed == 0
                    ? "all processes of " + arguments.operands()[0] + " have ended"
                    : "no process of " + arguments.operands()[0] + " runs on this host");
  }
  if (auto asked = ask_all(*wish, reached.targets); !asked) return fail(asked.error());
  const bool saves = (wish->request.what & format::kControlSave) != 0;
  await_answers(reached.targets, saves ? kSavedWithin : kAnswerWithin);
  const bool all = report(*wish, reached.targets);
  return all && reached.elsewhere + reached.failed == 0 ? kExitOk : kExitFindings;
}

}  // namespace

const Command control_command = {
    .name = "control",
    .summary = "change what a running job records",
    .description =
        "Tells the processes of a run on this host what to record from now on, and does not touch the job otherwise: each process checks its own file every 50 ms. A window set by --for ends by itself, even if this program is gone. Every change is recorded; `lockstep info` lists them.\n\n"
        "It lists processes on other hosts; run the command there, too. The exit code is 0 if every process "
        "does as asked, 1 if some could not be reached or did not answer, and 2 if none could, or on wrong "
        "usage.",
    .operands = {.name = "RUN|FILE",
                 .help = "the run directory of a job, or process files",
                 .least = 1,
                 .most = SIZE_MAX},
    .options = kControlOptions,
    .run = run_control,
};

}  // namespace lockstep::cli
