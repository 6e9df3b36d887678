// SPDX-License-Identifier: Apache-2.0
#include "nccl_host/options.h"

#include <charconv>
#include <string_view>

#include "nccl_host/faults.h"
#include "nccl_host/scripts.h"

namespace lockstep::sim {
namespace {

Error usage(std::string text) { return {ErrorCode::kUsage, std::move(text) + " (see --help)", ""}; }

Result<uint64_t> number(std::string_view option, std::string_view text, uint64_t least, uint64_t most) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most)
    return usage(std::string(option) + " takes a number from " + std::to_string(least) + " to " +
                 std::to_string(most));
  return value;
}

struct NamedSearch {
  std::string_view name;
  Search search;
};
constexpr NamedSearch kSearches[] = {{"2.23", Search::k2_23},
                                     {"2.26", Search::k2_26},
                                     {"2.27.3", Search::k2_27_3},
                                     {"2.27.5", Search::k2_27_5},
                                     {"2.28.3", Search::k2_28_3}};

Result<Search> search_of(std::string_view text) {
  std::string names;
  for (const NamedSearch& known : kSearches) {
    if (known.name == text) return known.search;
    names += (names.empty() ? "" : ", ") + std::string(known.name);
  }
  return usage("--search is one of " + names);
}

Result<void> take_value(std::string_view option, const std::string& value, Options* out) {
  if (option == "--plugin") {
    out->plugin = value;
  } else if (option == "--search") {
    LOCKSTEP_ASSIGN(out->search, search_of(value));
  } else if (option == "--script") {
    if (find_script(value) == nullptr) return usage("no script '" + value + "'; --list shows them");
    out->script = value;
  } else if (option == "--fault") {
    if (!is_fault(value)) return usage("no fault '" + value + "'; --list shows them");
    out->faults.push_back(value);
  } else if (option == "--pace") {
    if (value != "max" && value != "recorded") return usage("--pace is max or recorded");
    out->recorded_pace = value == "recorded";
  } else if (option == "--shift") {
    LOCKSTEP_ASSIGN(const uint64_t shift, number(option, value, 1, INT64_MAX));
    out->shift_ns = static_cast<int64_t>(shift);
  } else if (option == "--late") {
    out->late = value;
  } else if (option == "--report") {
    if (value != "text" && value != "json") return usage("--report is text or json");
    out->json = value == "json";
  } else if (option == "--bench") {
    if (value != "A" && value != "B" && value != "init") return usage("--bench is A, B or init");
    out->bench.stream = value;
  } else if (option == "--api") {
    LOCKSTEP_ASSIGN(const uint64_t api, number(option, value, 1, 7));
    out->api = static_cast<int>(api);
  } else if (option == "--repeat") {
    LOCKSTEP_ASSIGN(out->repeat, number(option, value, 1, 1'000'000));
  } else if (option == "--events") {
    LOCKSTEP_ASSIGN(out->events, number(option, value, 1, 1'000'000'000'000));
  } else if (option == "--threads") {
    LOCKSTEP_ASSIGN(const uint64_t threads, number(option, value, 1, 256));
    out->bench.threads = static_cast<unsigned>(threads);
  } else {
    return usage("unknown option " + std::string(option));
  }
  return {};
}

Result<void> check(const Options& options) {
  if (options.help || options.list) return {};
  if (!options.plugin) return usage("--plugin LIB is missing");
  const int inputs = !options.tape.empty() + !options.script.empty() + !options.bench.stream.empty();
  if (options.shift_ns != 0 && (options.tape.empty() || !options.recorded_pace || options.repeat != 1))
    return usage("--shift is for one tape at --pace recorded");
  if (!options.late.empty() && options.shift_ns == 0) return usage("--late goes with --shift");
  if (inputs != 1) return usage("give one of: a tape, --script NAME, --bench STREAM");
  return {};
}

}  // namespace

Result<Options> parse_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--help" || word == "-h") {
      options.help = true;
    } else if (word == "--list") {
      options.list = true;
    } else if (word.starts_with("--")) {
      const size_t equals = word.find('=');
      const bool joined = equals != std::string_view::npos;
      if (!joined && i + 1 >= argc) return usage(std::string(word) + " needs a value");
      LOCKSTEP_TRY(take_value(word.substr(0, equals),
                              joined ? std::string(word.substr(equals + 1)) : argv[++i], &options));
    } else if (options.tape.empty()) {
      options.tape = word;
    } else {
      return usage("more than one tape: " + std::string(word));
    }
  }
  LOCKSTEP_TRY(check(options));
  if (options.events != 0) options.bench.events = options.events;
  return options;
}

std::string help_text() {
  return "Drives an NCCL profiler plugin the way NCCL does, without a GPU.\n"
         "\n"
         "  lockstep-nccl-host --plugin LIB [options] TAPE           play a recording (.jsonl or .jsonl.gz)\n"
         "  lockstep-nccl-host --plugin LIB [options] --script NAME  play a built-in script\n"
         "  lockstep-nccl-host --plugin LIB --bench A|B|init         ns per callback beside an empty plugin\n"
         "\n"
         "  --plugin LIB      the plugin library, as in NCCL_PROFILER_PLUGIN; an empty text is that unset\n"
         "  --search RELEASE  look for it as NCCL 2.23, 2.26, 2.27.3, 2.27.5 or 2.28.3 (default) and later "
         "do\n"
         "  --api N           use ncclProfiler_v<N>, as the NCCL of that version does (default: the newest "
         "exported)\n"
         "  --pace max|recorded   as fast as possible (default), or at the times of the recording\n"
         "  --shift NS        with --pace recorded: so many ns after the recording by the wall clock, so "
         "that "
         "tapes\n"
         "                    of several ranks keep their distances; otherwise the first call is made at "
         "once\n"
         "  --late FILE       with --shift: 8 bytes that the processes of a job share; who is late delays "
         "all\n"
         "  --repeat N        play N times back to back, every time with new comms\n"
         "  --fault NAME      inject a fault; may be given several times\n"
         "  --events N        size of a script that has one, or callbacks per thread of a benchmark\n"
         "  --threads T       threads of a benchmark, each with a comm of its own\n"
         "  --report text|json    text on stderr (default), or JSON on stdout\n"
         "  --list            the scripts and faults\n"
         "\n"
         "A recording that ends without finalize ends this process the same way: no finalize, no exit "
         "handlers.\n"
         "Exit status: 0 played, 2 bad usage, plugin or tape, 3 the plugin broke a rule of the interface (a "
         "handle\n"
         "left unwritten, an init that failed or left its context NULL).\n";
}

}  // namespace lockstep::sim
