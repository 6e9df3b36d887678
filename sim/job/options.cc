// SPDX-License-Identifier: Apache-2.0
#include "job/options.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string_view>

namespace lockstep::sim::job {
namespace {

Error usage(std::string text) { return {ErrorCode::kUsage, std::move(text) + " (see --help)", ""}; }

template <class Number>
Result<void> number(std::string_view what, std::string_view text, Number least, Number most, Number* out) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most)
    return usage(std::string(what) + " takes a number from " + std::to_string(least) + " to " +
                 std::to_string(most));
  *out = value;
  return {};
}

// dp=2,tp=4
Result<void> layout(std::string_view text, LayoutSizes* out) {
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    const size_t equals = part.find('=');
    const std::string_view name = part.substr(0, equals);
    int* const size = name == "dp"   ? &out->dp
                      : name == "tp" ? &out->tp
                      : name == "pp" ? &out->pp
                      : name == "ep" ? &out->ep
                                     : nullptr;
    if (size == nullptr || equals == std::string_view::npos)
      return usage("--layout takes dp=N,tp=N,pp=N,ep=N, not '" + std::string(part) + "'");
    LOCKSTEP_TRY(number(name, part.substr(equals + 1), 1, 65536, size));
  }
  return {};
}

// AllReduce=1.1@210
Result<void> slow_func(std::string_view text, SlowFunc* out) {
  constexpr Func kFuncs[] = {Func::kAllReduce, Func::kAllGather, Func::kReduceScatter, Func::kBroadcast};
  const size_t equals = std::min(text.find('='), text.size()), at = std::min(text.find('@'), text.size());
  const auto* func = std::find_if(std::begin(kFuncs), std::end(kFuncs),
                                  [&](Func known) { return name_of(known) == text.substr(0, equals); });
  if (func == std::end(kFuncs) || equals >= at)
    return usage("--slow takes FUNC=FACTOR or FUNC=FACTOR@STEP, as in AllReduce=1.1@210");
  out->func = *func;
  LOCKSTEP_TRY(number("--slow", text.substr(equals + 1, at - equals - 1), 0.01, 100.0, &out->factor));
  if (at == text.size()) return {};
  return number("--slow", text.substr(at + 1), 0, 1'000'000, &out->from_step);
}

Result<void> mode(std::string_view text, format::Mode* out) {
  if (text == "lite")
    *out = format::Mode::kLite;
  else if (text == "default")
    *out = format::Mode::kDefault;
  else if (text == "deep")
    *out = format::Mode::kDeep;
  else
    return usage("--mode is lite, default or deep");
  return {};
}

Result<void> take_value(std::string_view option, const std::string& value, Options* out) {
  JobOptions& job = out->job;
  if (option == "--seed") return number(option, value, uint64_t{0}, UINT64_MAX, &job.seed);
  if (option == "--again") return number(option, value, uint64_t{0}, UINT64_MAX, &job.again);
  if (option == "--slow") return slow_func(value, &job.slow_funcs.emplace_back());
  if (option == "--ranks") return number(option, value, 2, 65536, &job.layout.ranks);
  if (option == "--ranks-per-host") return number(option, value, 1, 64, &job.layout.ranks_per_host);
  if (option == "--layout") return layout(value, &job.layout);
  if (option == "--steps") return number(option, value, 1, 1'000'000, &job.steps);
  if (option == "--ops-per-step") return number(option, value, 1, 100'000, &job.program.ops_per_step);
  if (option == "--compute-us") return number(option, value, 1.0, 1e7, &job.program.compute_us);
  if (option == "--mode") return mode(value, &job.mode);
  if (option == "--hang-seconds") return number(option, value, 0.0, 1e6, &job.hang_seconds);
  if (option == "--end-share") return number(option, value, 0.01, 1.0, &job.end_share);
  if (option == "--ring") return number(option, value, 0, 65536, &job.ring);
  if (option == "--threads") return number(option, value, 1u, 1024u, &out->threads);
  if (option == "--plugin") {
    out->plugin = value;
  } else if (option == "--fault") {
    job.fault = value;
  } else if (option == "-o" || option == "--output") {
    out->output = value;
  } else {
    return usage("unknown option " + std::string(option));
  }
  return {};
}

}  // namespace

Result<Options> parse_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--help" || word == "-h") {
      options.help = true;
    } else if (word == "--marks") {
      options.job.marks = true;
    } else if (word == "--live") {
      options.live = true;
    } else if (word.starts_with("-")) {
      const size_t equals = word.starts_with("--") ? word.find('=') : std::string_view::npos;
      const bool joined = equals != std::string_view::npos;
      if (!joined && i + 1 >= argc) return usage(std::string(word) + " needs a value");
      LOCKSTEP_TRY(take_value(word.substr(0, equals),
                              joined ? std::string(word.substr(equals + 1)) : argv[++i], &options));
    } else {
      return usage("unexpected '" + std::string(word) + "'");
    }
  }
  if (!options.help && options.output.empty()) return usage("-o RUN is missing");
  return options;
}

std::string help_text() {
  return R"(lockstep-sim-job: writes the run directory of a job that never ran

usage: lockstep-sim-job [options] -o RUN

Simulates a training job of N ranks and writes what the capture library would have left of it: RUN/*.lks, and
RUN/truth.json with what is really wrong and what the clocks really show. The same options give the same bytes.

  -o, --output RUN        run directory; new or empty
  --seed S                everything that is random (1)
  --again N               the same job run once more: only what varies from run to run is different (0: the first)
  --ranks N               processes, one GPU each (8)
  --layout dp=,tp=,pp=,ep=
                          sizes of the data, tensor, pipeline and expert groups; dp is what is left
  --ranks-per-host N      (8)
  --steps K               training steps (10)
  --ops-per-step N        operations of each rank and step, where the layout allows (40)
  --compute-us US         forward time of a layer (500)
  --mode MODE             lite, default or deep: what is captured (default)
  --marks                 also a mark at the start of each step, in a second file per process
  --fault CLASS[:VARIANT] one fault, its victims by the seed (none)
  --slow FUNC=FACTOR[@STEP]
                          a collective takes FACTOR times as long from a step on, beside the fault; may be repeated
  --hang-seconds T        how long ranks that are alive are recorded after the last event (60)
  --end-share X           all processes are killed at one moment, that part of the way through the job (1: they are not)
  --ring N                each thread of a process keeps its newest N chunks of 32 KiB, as ring retention does (0: all)
  --live                  run it instead, here and now: a process per rank that calls the capture library and waits for the
                          others; until all have ended, or this one is told to end
  --plugin LIB            of a live job (../lib/liblockstep-nccl.so beside this program)
  --threads N             that write files (one per processor)

Faults, each with its variants, the first being the default:
)" + fault_list();
}

}  // namespace lockstep::sim::job
