// SPDX-License-Identifier: Apache-2.0
#include "nccl_host/report.h"

#include <cinttypes>
#include <cstdarg>
#include <cstdio>

namespace lockstep::sim {
namespace {

__attribute__((format(printf, 2, 3))) void append(std::string* out, const char* format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  *out += text;
}

// Mean time of a call without the two clock reads around it.
double mean_ns(const Timing& timing) {
  if (timing.calls == 0) return 0;
  const double mean = static_cast<double>(timing.ticks) / static_cast<double>(timing.calls);
  const double cost = static_cast<double>(tick_cost());
  return mean > cost ? (mean - cost) * ns_per_tick() : 0;
}

Timing callbacks(const Stats& stats) {
  Timing sum = stats.start;
  sum.merge(stats.state);
  sum.merge(stats.stop);
  return sum;
}

void append_counts(std::string* out, const char* key, const std::array<uint64_t, kEventKinds>& counts) {
  append(out, "\"%s\":{", key);
  const char* separator = "";
  for (size_t i = 0; i < kEventKinds; ++i) {
    append(out, "%s\"%s\":%" PRIu64, separator, kEventNames[i], counts[i]);
    separator = ",";
  }
  append(out, "},");
}

void append_timing(std::string* out, const char* key, const Timing& timing) {
  append(out, "\"%s\":{\"calls\":%" PRIu64 ",\"mean_ns\":%.1f,\"max_ns\":%.0f},", key, timing.calls,
         mean_ns(timing), static_cast<double>(timing.max_ticks) * ns_per_tick());
}

}  // namespace

std::string json_quote(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      append(&out, "\\u%04x", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string text_report(const Program& program, const PlayReport& report) {
  const Stats& s = report.result.stats;
  std::string out;
  append(&out,
         "lockstep-nccl-host: plugin '%s' v%d, mask 0x%x: %" PRIu64 " comms, %" PRIu64
         " callbacks on %zu threads",
         report.plugin_name.c_str(), report.api, static_cast<unsigned>(report.mask), s.inits, s.callbacks(),
         program.threads.size());
  append(&out, " in %.3f s, %.1f ns each%s\n ", report.result.seconds, mean_ns(callbacks(s)),
         program.torn ? " (torn tape)" : "");
  for (size_t i = 0; i < kEventKinds; ++i)
    if (s.starts[i] != 0) append(&out, " %s %" PRIu64, kEventNames[i], s.starts[i]);
  append(&out, "; states %" PRIu64 ", stops %" PRIu64 "\n", s.states, s.stops);
  append(&out,
         "  held back by mask or NULL handle: %" PRIu64 " starts, %" PRIu64 " states, %" PRIu64 " stops",
         s.gated_starts, s.gated_states, s.gated_stops);
  append(&out, "; declined by the plugin: %" PRIu64 "\n", s.null_handles);
  if (s.violations() != 0)
    append(&out,
           "  PLUGIN ERROR: %" PRIu64 " handles never written, %" PRIu64 " inits failed, %" PRIu64
           " contexts NULL\n",
           s.unwritten_handles, s.failed_inits, s.null_contexts);
  return out;
}

std::string json_report(const Program& program, const PlayReport& report) {
  const Stats& s = report.result.stats;
  std::string out =
      "{\"plugin\":" + json_quote(report.plugin_name) + ",\"input\":" + json_quote(program.name) + ",";
  append(&out, "\"api\":%d,\"mask\":%d,\"loads\":%" PRIu64 ",\"repeat\":%" PRIu64 ",\"threads\":%zu,",
         report.api, report.mask, report.loads, report.repeat, program.threads.size());
  append(&out, "\"torn\":%s,\"all_finalized\":%s,\"seconds\":%.6f,", program.torn ? "true" : "false",
         report.all_finalized ? "true" : "false", report.result.seconds);
  append(&out,
         "\"inits\":%" PRIu64 ",\"finalizes\":%" PRIu64 ",\"states\":%" PRIu64 ",\"stops\":%" PRIu64 ",",
         s.inits, s.finalizes, s.states, s.stops);
  append_counts(&out, "recorded", program.starts_per_kind());
  append_counts(&out, "events", s.starts);
  append_counts(&out, "dropped", s.dropped);
  append(&out,
         "\"dropped_states\":%" PRIu64 ",\"gated_starts\":%" PRIu64 ",\"gated_states\":%" PRIu64
         ",\"gated_stops\":%" PRIu64 ",",
         s.dropped_states, s.gated_starts, s.gated_states, s.gated_stops);
  append(&out,
         "\"null_handles\":%" PRIu64 ",\"unwritten_handles\":%" PRIu64 ",\"null_contexts\":%" PRIu64
         ",\"failed_inits\":%" PRIu64 ",",
         s.null_handles, s.unwritten_handles, s.null_contexts, s.failed_inits);
  append(&out, "\"failed_calls\":%" PRIu64 ",\"after_unload\":%" PRIu64 ",", s.failed_calls, s.after_unload);
  append_timing(&out, "init", s.init);
  append_timing(&out, "start", s.start);
  append_timing(&out, "state", s.state);
  append_timing(&out, "stop", s.stop);
  append_timing(&out, "finalize", s.finalize);
  append(&out, "\"ns_per_callback\":%.1f}\n", mean_ns(callbacks(s)));
  return out;
}

}  // namespace lockstep::sim
