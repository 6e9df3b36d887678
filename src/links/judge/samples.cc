// SPDX-License-Identifier: Apache-2.0
// Judges what counters did while a job ran, rather than what they stand at: hosts carry old errors for
// months. A rate that a rule allows is looked for in a sliding window, so that a burst of a minute is not
// thinned out over a day, nor single events of a day added up to a burst. Counters are set back and wrap,
// which is no rise. What a port did is said together with whether its card moved data, since an error of an
// idle port slows nobody.
#include "links/judge/samples.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>

#include "base/text/units.h"
#include "base/text/wording.h"
#include "links/judge/gpu_samples.h"
#include "links/judge/rise.h"
#include "links/judge/rules.h"
#include "links/judge/use.h"

namespace lockstep::links {
namespace {

using analysis::FindingId;
using analysis::Severity;

constexpr size_t kMostTimes = 4096;
constexpr int64_t kSecondMs = 1000, kLongEnoughMs = 60'000;
constexpr double kMinute = 60, kHour = 3600;
// A rate that a minute can tell from single events is looked for in each minute, others in each hour.
constexpr double kEnoughOfAMinute = 4;
constexpr uint64_t kSomeBytes = 1'000'000, kSomeBytesPerSecond = 10'000;
constexpr uint64_t kActive = 4, kActiveDeferred = 5;
constexpr int64_t kOverlapNs = 1'000'000'000;

// The events that are more than the rule allows.
std::vector<RiseEvent> beyond(const Rule& rule, const Rise& rise, double job_seconds) {
  // A rule without a rate allows nothing: every rise is one too many.
  if (rule.per_second <= 0) return rise.events;
  // A minute in which less than four events are allowed cannot tell a rate from chance.
  const double longest = rule.per_second * kMinute >= kEnoughOfAMinute ? kMinute : kHour;
  const double window = std::clamp(job_seconds, kMinute, longest), most = rule.per_second * window;
  std::vector<RiseEvent> found;
  size_t first = 0, taken = 0;
  double sum = 0;
  for (size_t i = 0; i < rise.events.size(); ++i) {
    sum += static_cast<double>(rise.events[i].amount);
    // The window slides over events alone: quiet hours cost nothing.
    for (; static_cast<double>(rise.events[i].ms - rise.events[first].ms) > window * kSecondMs; ++first)
      sum -= static_cast<double>(rise.events[first].amount);
    if (sum <= most) continue;
    for (taken = std::max(taken, first); taken <= i; ++taken) found.push_back(rise.events[taken]);
  }
  return found;
}

bool is_active(uint64_t state) { return state == kActive || state == kActiveDeferred; }

class LogJudge {
 public:
  LogJudge(const SampleLog& log, HostSamples& host) : log_(log), host_(host) {}

  void run() {
    for (const SampledCounter& counter : log_.counters) {
      // States and rates first, and all bytes: what is said of a counter depends on them.
      if (counter.key.name == "state") states_[counter.key.device] = &counter;
      if (counter.key.name == "rate") rates_[counter.key.device] = &counter;
      count_bytes(counter);
    }
    count_devices();
    for (const SampledCounter& counter : log_.counters)
      if (!is_gauge(counter.key)) judge(counter);
    for (const auto& [device, states] : states_) judge_state(*states);
    for (const auto& [device, rates] : rates_) judge_rate(*rates);
    judge_gone();
    judge_gpus(log_, host_);
    judge_use(log_, host_);
  }

 private:
  double seconds() const { return static_cast<double>(log_.last_ms) / kSecondMs; }

  std::string card_of(const CounterKey& key) const {
    // Ports are "card/number" and lie where their card does; a GPU's device is its address already.
    std::string name = key.device;
    if (key.kind == DeviceKind::kGpu) {
      const auto found = log_.gpus.find(name);
      return found == log_.gpus.end() ? std::string() : found->second;
    }
    if (key.kind == DeviceKind::kPci) {
      for (const auto* const places : {&log_.cards, &log_.gpus})
        for (const auto& [of, path] : *places)
          // A bridge on the way to a card is that card's trouble, too.
          if (path.ends_with("/" + name) || path.find("/" + name + "/") != std::string::npos) return path;
      return {};
    }
    if (key.kind == DeviceKind::kPort) name.resize(std::min(name.size(), name.rfind('/')));
    const auto found = log_.cards.find(name);
    return found == log_.cards.end() ? std::string() : found->second;
  }

  // What says which card it is: its place, else its name.
  std::string unit_of(const CounterKey& key) const {
    std::string card = card_of(key);
    return card.empty() ? std::string(kind_word(key.kind)) + " " + key.device.substr(0, key.device.rfind('/'))
                        : card;
  }

  void count_bytes(const SampledCounter& counter) {
    const std::string& name = counter.key.name;
    const bool words = name == "port_xmit_data" || name == "port_rcv_data";
    if (!words && name != "rx_bytes" && name != "tx_bytes") return;
    const Rise rise = rise_of(counter);
    if (counter.samples.empty()) return;
    // InfiniBand's data counters count words of four bytes.
    bytes_[unit_of(counter.key)] += rise.total * (words ? 4 : 1);
  }

  std::optional<bool> moved(const CounterKey& key) const {
    if (key.kind == DeviceKind::kGpu) return std::nullopt;  // by which of its links is not known
    const std::string unit = unit_of(key);
    const auto found = bytes_.find(unit);
    if (found == bytes_.end()) return std::nullopt;
    if (found->second > kSomeBytes &&
        static_cast<double>(found->second) > static_cast<double>(kSomeBytesPerSecond) * seconds())
      return true;
    // Bytes are read each ten seconds, and what is down moves none however much it is needed.
    int64_t active_ms = log_.last_ms;
    for (const auto& [device, states] : states_)
      if (unit_of(states->key) == unit) active_ms = std::min(active_ms, active_ms_of(*states));
    return active_ms < kLongEnoughMs ? std::nullopt : std::optional(false);
  }

  int64_t active_ms_of(const SampledCounter& states) const {
    int64_t active_ms = 0;
    for (size_t i = 0; i < states.samples.size(); ++i) {
      const Sample& sample = states.samples[i];
      const int64_t end = i + 1 < states.samples.size() ? states.samples[i + 1].ms : log_.last_ms;
      if (sample.is_known && is_active(sample.value)) active_ms += end - sample.ms;
    }
    return active_ms;
  }

  // A device is watched only if a counter could be read that may prove a fault: bytes alone prove nothing.
  static bool counts_errors(const CounterKey& key) {
    const auto all = rules();
    return std::any_of(all.begin(), all.end(),
                       [&](const Rule& rule) { return is_fault(rule) && matches(rule, key); });
  }

  void count_devices() {
    std::map<std::pair<DeviceKind, std::string>, bool> readable;
    for (const SampledCounter& counter : log_.counters) {
      if (!counts_errors(counter.key)) continue;
      bool& is_readable = readable[{counter.key.kind, counter.key.device}];
      const auto known = std::count_if(counter.samples.begin(), counter.samples.end(),
                                       [](const Sample& sample) { return sample.is_known; });
      // What is read seldom shows nothing before it is read again.
      const bool is_rare = counter.key.kind == DeviceKind::kGpu && counter.key.name.starts_with("nvlink_");
      is_readable = is_readable || known > (is_rare ? 1 : 0);
    }
    size_t watched = 0;
    for (const auto& [device, is_readable] : readable) watched += is_readable;
    // Logs of one host are of the same devices: the fullest counts.
    host_.watched = std::max(host_.watched, watched);
    host_.unreadable = std::max(host_.unreadable, readable.size() - watched);
  }

  void judge(const SampledCounter& counter) {
    const Rise rise = rise_of(counter);
    if (rise.total == 0) return;
    for (const Rule& rule : rules()) {
      if (!matches(rule, counter.key)) continue;
      const std::vector<RiseEvent> events = beyond(rule, rise, seconds());
      if (events.empty()) continue;
      if (!is_fault(rule)) {
        host_.congestion.push_back(line(counter.key, rise, events) + ": " + std::string(rule.says));
        continue;
      }
      LinkTrouble& trouble =
          trouble_of(counter.key, rule.finding, rule.severity, says(rule, counter.key, rise), rule.remedy);
      trouble.evidence.push_back(line(counter.key, rise, events));
      for (const RiseEvent& event : events) add_time(event.ms, trouble);
    }
  }

  std::string says(const Rule& rule, const CounterKey& key, const Rise& rise) const {
    // It changes once when the link is lost and once when it is back.
    if (rule.name == "carrier_changes" && rise.total % 2 == 1) return "the link was lost or came back";
    if (rule.name == "link_downed")
      if (const auto states = states_.find(key.device);
          states != states_.end() && is_down_now(*states->second))
        return "the link went down";
    return std::string(rule.says);
  }

  static bool is_down_now(const SampledCounter& states) {
    return !states.samples.empty() && states.samples.back().is_known &&
           !is_active(states.samples.back().value);
  }

  std::string line(const CounterKey& key, const Rise& rise, const std::vector<RiseEvent>& events) const {
    const int64_t first = log_.time_ns(events.front().ms), last = log_.time_ns(events.back().ms);
    std::string text = wording::name(key.device) + " " + wording::name(key.name) + ": +" +
                       (rise.is_at_least ? "at least " : "") + format_count(rise.total) + ", " +
                       (first / 1'000'000'000 == last / 1'000'000'000
                            ? "at " + format_time(first)
                            : "from " + format_time(first) + " to " + format_time(last));
    if (rise.resets > 0) text += "; reset to zero meanwhile: " + wording::count(rise.resets, "time");
    if (rise.wraps > 0)
      text += "; wrapped around at its largest value: " + wording::count(rise.wraps, "time");
    return text;
  }

  void judge_state(const SampledCounter& states) {
    bool was_active = false, is_active_now = false;
    std::vector<int64_t> lost;
    for (const Sample& sample : states.samples) {
      if (!sample.is_known) continue;
      is_active_now = is_active(sample.value);
      // A port that was down before the job has lost nothing during it.
      if (was_active && !is_active_now) lost.push_back(sample.ms);
      was_active = is_active_now;
    }
    if (lost.empty()) return;
    LinkTrouble& trouble =
        is_active_now
            ? trouble_of(states.key, FindingId::kTransportErrorLinkFlapped, Severity::kWarning,
                         "the link went down and came back",
                         "Check the cable and the optic at both ends; replace them if it happens again.")
            : trouble_of(states.key, FindingId::kSlowNicPort, Severity::kWarning,
                         "the port is no longer active", "Check the cable and the switch's port.");
    trouble.evidence.push_back(wording::name(states.key.device) + ": not active from " +
                               format_time(log_.time_ns(lost.front())) + " on" +
                               (lost.size() > 1 ? ", " + wording::count(lost.size(), "time") : "") +
                               (is_active_now ? "; active again" : ""));
    for (const int64_t ms : lost) add_time(ms, trouble);
  }

  bool was_active_at(const std::string& device, int64_t ms) const {
    const auto states = states_.find(device);
    if (states == states_.end()) return false;
    bool active = false;
    for (const Sample& sample : states->second->samples) {
      if (sample.ms > ms) break;
      active = sample.is_known && is_active(sample.value);
    }
    return active;
  }

  void judge_rate(const SampledCounter& rates) {
    std::optional<uint64_t> before;
    for (const Sample& sample : rates.samples) {
      // A port without a link says a rate that means nothing; the two files are read one after the other.
      if (!sample.is_known || !was_active_at(rates.key.device, sample.ms) ||
          !was_active_at(rates.key.device, std::min(sample.ms + 2 * kSecondMs, log_.last_ms)))
        continue;
      if (before && sample.value < *before) {
        LinkTrouble& trouble =
            trouble_of(rates.key, FindingId::kSlowNicRate, Severity::kWarning,
                       "the port runs at a lower rate", "Check the cable: it may have lost lanes.");
        trouble.evidence.push_back(wording::name(rates.key.device) + ": " + gigabits(sample.value) +
                                   " from " + format_time(log_.time_ns(sample.ms)) + " on, " +
                                   gigabits(*before) + " before");
        add_time(sample.ms, trouble);
      }
      before = sample.value;
    }
  }

  static std::string gigabits(uint64_t megabits) {
    return format_decimal(static_cast<double>(megabits) / 1000, megabits % 1000 == 0 ? 0 : 1) + " Gb/s";
  }

  // All that could be read of a port cannot be read any more.
  void judge_gone() {
    std::map<std::string, std::pair<size_t, size_t>>
        ports;  // counters that were known, and those that still are
    std::map<std::string, int64_t> since;
    std::map<std::string, CounterKey> keys;
    for (const SampledCounter& counter : log_.counters) {
      if (counter.key.kind != DeviceKind::kPort) continue;
      const bool was_known = std::any_of(counter.samples.begin(), counter.samples.end(),
                                         [](const Sample& sample) { return sample.is_known; });
      if (!was_known) continue;
      auto& [known, left] = ports[counter.key.device];
      ++known;
      left += counter.samples.back().is_known;
      keys.emplace(counter.key.device, counter.key);
      // Gone from when the last of them was lost: one file that cannot be read is not the port.
      int64_t& at = since[counter.key.device];
      at = std::max(at, counter.samples.back().ms);
    }
    for (const auto& [device, count] : ports) {
      if (count.second > 0) continue;
      LinkTrouble& trouble =
          trouble_of(keys.at(device), FindingId::kSlowNicPort, Severity::kWarning, "the port is gone",
                     "Check dmesg of the host for the card: a reset, a lost PCIe link.");
      trouble.evidence.push_back(wording::name(device) + ": none of its files can be read from " +
                                 format_time(log_.time_ns(since[device])) + " on");
      add_time(since[device], trouble);
    }
  }

  // One trouble for each finding and device: counters that say the same are its lines of evidence.
  LinkTrouble& trouble_of(const CounterKey& key, FindingId id, Severity severity, std::string says,
                          std::string_view remedy) {
    for (LinkTrouble& known : host_.troubles) {
      if (known.id != id || known.device != key.device) continue;
      known.severity = std::max(known.severity, severity);
      return known;
    }
    return host_.troubles.emplace_back(LinkTrouble{.id = id,
                                                   .device = key.device,
                                                   .card = card_of(key),
                                                   .severity = severity,
                                                   .says = std::move(says),
                                                   .remedy = std::string(remedy),
                                                   .evidence = {},
                                                   .times_ns = {},
                                                   .moved_data = moved(key)});
  }

  void add_time(int64_t ms, LinkTrouble& trouble) const {
    if (trouble.times_ns.size() >= kMostTimes) return;
    const int64_t ns = log_.time_ns(ms);
    // Several counters of one trouble each ascend, and readers of the times search in them.
    trouble.times_ns.insert(std::upper_bound(trouble.times_ns.begin(), trouble.times_ns.end(), ns), ns);
  }

  const SampleLog& log_;
  HostSamples& host_;
  std::map<std::string, const SampledCounter*> states_, rates_;  // by device
  std::map<std::string, uint64_t> bytes_;                        // by card
};

}  // namespace

bool SamplesJudge::add(const SampleLog& log) {
  if (log.host.empty() || log.start_ns <= 0 || log.counters.empty()) return false;
  const int64_t end = log.time_ns(log.last_ms);
  const bool is_known = !hosts_.empty() && hosts_.back().host == log.host;
  // Two launchers of one host read the same counters: both logs would count every event twice.
  if (is_known && end <= hosts_.back().last_ns + kOverlapNs) return false;
  if (!is_known) {
    hosts_.emplace_back();
    hosts_.back().host = log.host;
    hosts_.back().first_ns = log.start_ns;
  }
  HostSamples& host = hosts_.back();
  host.boot_id = log.boot_id;
  host.last_ns = std::max(host.last_ns, end);
  host.is_full = host.is_full || log.is_full;
  host.cards.insert(log.cards.begin(), log.cards.end());
  host.gpus.insert(log.gpus.begin(), log.gpus.end());
  LogJudge(log, host).run();
  return true;
}

std::vector<HostSamples> judge_samples(const std::vector<SampleLog>& logs) {
  std::vector<const SampleLog*> ordered;
  for (const SampleLog& log : logs) ordered.push_back(&log);
  std::stable_sort(ordered.begin(), ordered.end(), [](const SampleLog* a, const SampleLog* b) {
    return std::tie(a->host, a->start_ns) < std::tie(b->host, b->start_ns);
  });
  SamplesJudge judge;
  for (const SampleLog* const log : ordered) judge.add(*log);
  return judge.take();
}

}  // namespace lockstep::links
