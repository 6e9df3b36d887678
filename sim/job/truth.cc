// SPDX-License-Identifier: Apache-2.0
#include "job/truth.h"

#include <cinttypes>
#include <cstdio>

namespace lockstep::sim::job {
namespace {

template <class... Args>
std::string format_text(const char* format, Args... args) {
  char text[512];
  std::snprintf(text, sizeof text, format, args...);
  return text;
}

// A killed job is watched for a while after its last event.
constexpr int64_t kAfterNs = 60'000'000'000;

std::string quoted(const std::string& text) {
  return '"' + text + '"';
}  // names and words: nothing to escape

template <class Values, class Text>
std::string list(const Values& values, Text&& text) {
  std::string out;
  for (const auto& value : values) out += (out.empty() ? "" : ", ") + text(value);
  return "[" + out + "]";
}
std::string list(const std::vector<int>& values) {
  return list(values, [](int v) { return std::to_string(v); });
}

std::string boot_id_text(const HostClock& clock) {
  std::string text;
  for (size_t i = 0; i < clock.boot_id().size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += format_text("%02x", clock.boot_id()[i]);
  }
  return text;
}

// As the reader of process files places a time of the first host.
int64_t run_ns(const Job& job, int64_t true_ns) { return kEpochNs + job.hosts.front().wall().at(true_ns); }

std::string fault_text(const Job& job, const Timeline& timeline) {
  const Truth& truth = job.fault.truth;
  if (truth.classes.empty()) return "null";
  std::vector<int> hosts;
  for (int rank : truth.ranks) {
    if (const int host = job.layout.host_of(rank); hosts.empty() || hosts.back() != host)
      hosts.push_back(host);
  }
  std::string comm = "null";
  if (truth.group >= 0 || truth.comm_is_new) {
    const Group& group =
        truth.comm_is_new ? job.fault.disturbance.new_group.group : job.layout.group(truth.group);
    comm = format_text("{\"id\": \"%016" PRIx64 "\", \"name\": ", group.comm_id) + quoted(group.name) +
           ", \"ranks\": " + list(group.ranks) + "}";
  }
  int64_t since_ns = 0;
  const auto step = static_cast<size_t>(truth.since_step);
  if (truth.since_step >= 0 && step < timeline.ranks[0].step_began.size())
    since_ns = run_ns(job, timeline.ranks[0].step_began[step]);
  return "{\n    \"class\": " + quoted(truth.classes.front()) +
         ",\n    \"variant\": " + quoted(truth.variant) +
         ",\n    \"classes\": " + list(truth.classes, quoted) + ",\n    \"ranks\": " + list(truth.ranks) +
         ",\n    \"also\": " + list(truth.also) + ",\n    \"any_of\": " + (truth.any_of ? "true" : "false") +
         ",\n    \"ranks_known\": " + (truth.ranks_known ? "true" : "false") +
         ",\n    \"hosts\": " + list(hosts, [&](int h) { return quoted(job.host_name(h)); }) +
         ",\n    \"comm\": " + comm + ",\n    \"func\": " + quoted(truth.func) +
         ",\n    \"op_index\": " + std::to_string(truth.op_index) +
         ",\n    \"since_step\": " + std::to_string(truth.since_step) +
         ",\n    \"since_ns\": " + std::to_string(since_ns) + ",\n    \"pattern\": " + quoted(truth.pattern) +
         ",\n    \"until_step\": " + std::to_string(truth.until_step) +
         ",\n    \"period\": " + std::to_string(truth.period) +
         format_text(",\n    \"cost_share\": %.4f", truth.cost_share) +
         format_text(",\n    \"effect\": {\"value\": %.3f, \"unit\": \"ms\"}", truth.effect_ms) +
         ",\n    \"hangs\": " + (truth.hangs ? "true" : "false") + ",\n    \"note\": " + quoted(truth.note) +
         "\n  }";
}

// Clocks against the first host's, at two instants that span the job; straight in between and beyond.
std::string clocks_text(const Job& job, const Timeline& timeline) {
  std::string text =
      "{\n    \"reference\": " + quoted(boot_id_text(job.hosts.front())) + ",\n    \"hosts\": [";
  for (size_t h = 0; h < job.hosts.size(); ++h) {
    const HostClock& clock = job.hosts[h];
    text += (h == 0 ? "\n" : ",\n") + std::string("      {\"host\": ") +
            quoted(job.host_name(static_cast<int>(h))) + ", \"boot_id\": " + quoted(boot_id_text(clock)) +
            ", \"ranks\": " + list(job.layout.ranks_of_host(static_cast<int>(h))) + ", \"instants\": [";
    for (const int64_t t : {int64_t{0}, timeline.last + kAfterNs}) {
      text += format_text("%s{\"reference_ns\": %" PRId64 ", \"host_ns\": %" PRId64 "}", t == 0 ? "" : ", ",
                          run_ns(job, t), kEpochNs + clock.wall().at(t));
    }
    text += "]}";
  }
  return text + "\n    ]\n  }";
}

}  // namespace

std::string truth_json(const Job& job, const Timeline& timeline, const JobResult& result) {
  const LayoutSizes& s = job.layout.sizes();
  return "{\n  \"seed\": " + std::to_string(job.options.seed) + ",\n  \"ranks\": " + std::to_string(s.ranks) +
         format_text(
             ",\n  \"layout\": {\"dp\": %d, \"tp\": %d, \"pp\": %d, \"ep\": %d, \"ranks_per_host\": %d}",
             s.dp, s.tp, s.pp, s.ep, s.ranks_per_host) +
         ",\n  \"steps\": " + std::to_string(job.options.steps) + ",\n  \"mode\": " +
         quoted(job.deep()                                ? "deep"
                : job.options.mode == format::Mode::kLite ? "lite"
                                                          : "default") +
         ",\n  \"ops\": " + std::to_string(result.ops) +
         format_text(",\n  \"seconds\": %.3f", result.job_seconds) +
         ",\n  \"scenario\": " + quoted(job.options.fault) + ",\n  \"killed_ns\": " +
         (timeline.killed == kNever ? "null" : std::to_string(run_ns(job, timeline.killed))) +
         ",\n  \"fault\": " + fault_text(job, timeline) + ",\n  \"clock\": " + clocks_text(job, timeline) +
         "\n}\n";
}

}  // namespace lockstep::sim::job
