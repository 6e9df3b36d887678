// SPDX-License-Identifier: Apache-2.0
// Times, not values, are judged: a GPU at its thermal limit for a second says nothing, for minutes it is the
// slowest of the job. The driver lowers clocks for many reasons; those of idleness and of the power cap are
// no trouble.
#include "links/judge/gpu_samples.h"

#include <algorithm>
#include <optional>

#include "base/ascii.h"
#include "base/text/units.h"
#include "base/text/wording.h"
#include "links/judge/rise.h"
#include "links/judge/words.h"

namespace lockstep::links {
namespace {

using analysis::FindingId;
using analysis::Severity;

constexpr int64_t kSlowedLongMs = 10'000;
constexpr size_t kMostMoments = 4096;
constexpr std::string_view kXidPrefix = "xid_";

struct Spell {
  int64_t begin = 0, end = 0;  // ms
};

struct Slowed {
  std::vector<Spell> spells;
  uint64_t reasons = 0;
  int64_t ms = 0;
};

// A value holds until the next one: only changes are in the log.
template <class Visit>
void for_spans(const SampledCounter& counter, int64_t last_ms, const Visit& visit) {
  for (size_t i = 0; i < counter.samples.size(); ++i) {
    const Sample& sample = counter.samples[i];
    // The last value holds until the newest sample of the log, of whichever counter.
    const int64_t end = i + 1 < counter.samples.size() ? counter.samples[i + 1].ms : last_ms;
    if (sample.is_known && end > sample.ms) visit(sample.value, Spell{sample.ms, end});
  }
}

Slowed slowed_of(const SampledCounter& throttle, int64_t last_ms) {
  Slowed slowed;
  for_spans(throttle, last_ms, [&](uint64_t reasons, const Spell& span) {
    if (throttle_words(reasons).empty()) return;
    slowed.reasons |= reasons;
    slowed.ms += span.end - span.begin;
    if (!slowed.spells.empty() && slowed.spells.back().end == span.begin)
      slowed.spells.back().end = span.end;
    else
      slowed.spells.push_back(span);
  });
  return slowed;
}

// The value that held, or a lower one, in half of the time: while slowed, else, or all of it.
enum class When : uint8_t { kSlowed, kElse, kAlways };
std::optional<uint64_t> gauge_median(const SampledCounter& gauge, int64_t last_ms,
                                     const std::vector<Spell>& slowed, When when) {
  std::vector<std::pair<uint64_t, int64_t>> held;
  int64_t total = 0;
  size_t next = 0;
  for_spans(gauge, last_ms, [&](uint64_t value, const Spell& span) {
    int64_t within = 0;
    // Both lists ascend, so spells that are over never come back: linear in both together.
    while (next < slowed.size() && slowed[next].end <= span.begin) ++next;
    for (size_t i = next; i < slowed.size() && slowed[i].begin < span.end; ++i)
      within += std::min(span.end, slowed[i].end) - std::max(span.begin, slowed[i].begin);
    const int64_t all = span.end - span.begin;
    const int64_t ms = when == When::kAlways ? all : when == When::kSlowed ? within : all - within;
    if (ms > 0) held.emplace_back(value, ms);
    total += ms;
  });
  std::sort(held.begin(), held.end());
  for (int64_t before = 0; const auto& [value, ms] : held)
    if ((before += ms) * 2 >= total) return value;
  return std::nullopt;
}

struct XidMeaning {
  uint64_t number;
  Severity severity;
  std::string_view says;
};
constexpr XidMeaning kXids[] = {
#define XID(number, severity, says) {number, Severity::severity, says},
#include "links/judge/xids.def"
#undef XID
};

class GpuJudge {
 public:
  GpuJudge(const SampleLog& log, HostSamples& host) : log_(log), host_(host) {}

  void run() {
    // Clocks first: a log may list the reasons of a GPU before its clock.
    std::map<std::string, const SampledCounter*> clocks;
    for (const SampledCounter& counter : log_.counters)
      if (is_gpus(counter) && counter.key.name == "sm_clock_mhz") clocks[counter.key.device] = &counter;
    for (const auto& [device, clock] : clocks)
      if (const auto mhz = gauge_median(*clock, log_.last_ms, {}, When::kAlways))
        host_.sm_clocks[device] = *mhz;
    for (const SampledCounter& counter : log_.counters) {
      if (!is_gpus(counter)) continue;
      const auto clock = clocks.find(counter.key.device);
      if (counter.key.name == "throttle")
        judge_clock(counter, clock == clocks.end() ? nullptr : clock->second);
      if (counter.key.name == "ecc_uncorrected") judge_memory(counter);
      judge_xid(counter);
    }
  }

 private:
  static bool is_gpus(const SampledCounter& counter) { return counter.key.kind == DeviceKind::kGpu; }

  void judge_clock(const SampledCounter& throttle, const SampledCounter* clock) {
    const Slowed slowed = slowed_of(throttle, log_.last_ms);
    if (slowed.spells.empty()) return;
    // Ten seconds, and a tenth of the time: gpu_samples.h says why.
    const bool is_long = slowed.ms >= kSlowedLongMs && slowed.ms * 10 >= log_.last_ms;
    LinkTrouble& trouble =
        add(throttle.key.device, FindingId::kGpuLateThrottled, is_long ? Severity::kWarning : Severity::kNote,
            "its clock was slowed down (" + throttle_words(slowed.reasons) + ")",
            "Check cooling and power of this host: `nvidia-smi -q -d PERFORMANCE`.");
    std::string line = wording::name(throttle.key.device) + ": slowed in " + seconds(slowed.ms) + " of " +
                       seconds(log_.last_ms) + ", from " + time(slowed.spells.front().begin) + " to " +
                       time(slowed.spells.back().end);
    if (clock != nullptr) {
      const auto then = gauge_median(*clock, log_.last_ms, slowed.spells, When::kSlowed),
                 otherwise = gauge_median(*clock, log_.last_ms, slowed.spells, When::kElse);
      if (then) line += "; SM clock then " + std::to_string(*then) + " MHz";
      if (then && otherwise) line += ", else " + std::to_string(*otherwise) + " MHz";
    }
    trouble.evidence.push_back(std::move(line));
    for (const Spell& spell : slowed.spells) add_times({spell.begin, spell.end}, trouble);
  }

  void judge_memory(const SampledCounter& errors) {
    const Rise rise = rise_of(errors);
    if (rise.total == 0) return;
    LinkTrouble& trouble = add(
        errors.key.device, FindingId::kGpuLateMemory, Severity::kWarning,
        "its memory had errors that could not be corrected",
        "Drain the host and see `nvidia-smi -q -d ECC,ROW_REMAPPER`; replace the GPU if it happens again.");
    trouble.evidence.push_back(wording::name(errors.key.device) + ": +" + format_count(rise.total) +
                               " uncorrected, from " + time(rise.events.front().ms) + " to " +
                               time(rise.events.back().ms));
    for (const RiseEvent& event : rise.events) add_times({event.ms}, trouble);
  }

  // Of other counters nothing.
  void judge_xid(const SampledCounter& counter) {
    std::string_view rest = counter.key.name;
    uint64_t number = 0;
    // Names come from a file: "xid_" and a whole number, and nothing else.
    if (!take(rest, kXidPrefix) || !take_number(rest, number) || !rest.empty() || counter.samples.empty())
      return;
    const auto meaning = std::find_if(std::begin(kXids), std::end(kXids),
                                      [&](const XidMeaning& xid) { return xid.number == number; });
    const bool is_known = meaning != std::end(kXids);
    const std::string xid = "Xid " + std::to_string(number);
    LinkTrouble& trouble =
        add(counter.key.device, FindingId::kAbortedXid, is_known ? meaning->severity : Severity::kWarning,
            "the driver reported " + xid + (is_known ? ": " + std::string(meaning->says) : std::string()),
            "See that host's `dmesg` for " + xid + ", and NVIDIA's list of Xids for what to do.");
    // It counts from 0 since sampling began, and is written when it rises.
    trouble.evidence.push_back(wording::name(counter.key.device) + ": " + xid + ", " +
                               wording::count(counter.samples.back().value, "time") + ", first at " +
                               time(counter.samples.front().ms));
    for (const Sample& sample : counter.samples) add_times({sample.ms}, trouble);
  }

  LinkTrouble& add(const std::string& device, FindingId id, Severity severity, std::string says,
                   std::string_view remedy) {
    // A host has a log for each launcher that sampled it in turn.
    for (LinkTrouble& known : host_.gpu_troubles) {
      if (known.id != id || known.device != device || known.says != says) continue;
      known.severity = std::max(known.severity, severity);
      return known;
    }
    LinkTrouble trouble;
    trouble.id = id;
    trouble.device = device;
    if (const auto path = log_.gpus.find(device); path != log_.gpus.end()) trouble.card = path->second;
    trouble.severity = severity;
    trouble.says = std::move(says);
    trouble.remedy = remedy;
    return host_.gpu_troubles.emplace_back(std::move(trouble));
  }

  void add_times(std::initializer_list<int64_t> moments, LinkTrouble& trouble) const {
    for (const int64_t ms : moments)
      if (trouble.times_ns.size() < kMostMoments) trouble.times_ns.push_back(log_.time_ns(ms));
  }
  std::string time(int64_t ms) const { return format_time(log_.time_ns(ms)); }
  static std::string seconds(int64_t ms) { return std::to_string(ms / 1000) + " s"; }

  const SampleLog& log_;
  HostSamples& host_;
};

}  // namespace

void judge_gpus(const SampleLog& log, HostSamples& host) { GpuJudge(log, host).run(); }

}  // namespace lockstep::links
