// SPDX-License-Identifier: Apache-2.0
// Rates are taken over whole spans between two readings, never over the job: a port that is full for a minute
// an hour is full when it matters. Spans shorter than readings are usually apart say little, as a reading
// itself takes time. InfiniBand's MTU is in no file, so packets are judged by their mean size alone.
#include "links/judge/use.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "base/text/units.h"
#include "base/text/wording.h"
#include "links/judge/rise.h"

namespace lockstep::links {
namespace {

using analysis::FindingId;
using analysis::Severity;

constexpr int64_t kShortestMs = 5000, kLongUseMs = 30'000;
constexpr uint64_t kBytesOfWord = 4;
// More than its rate is no rate: the counter or the rate does not mean what it should.
constexpr double kFull = 0.9, kImpossible = 1.1, kBulk = 0.3;
// A path whose MTU is 1,024 bytes, with all headers. One of 2,048 stays above it even if a quarter of all
// packets are answers to what arrives.
constexpr double kSmallPacket = 1150, kNoPacket = 256;

struct Span {
  int64_t begin_ms = 0, end_ms = 0;
  double bytes = 0;
};

// Between two readings of which both are known. Those that are less than kShortestMs apart are passed over:
// a watched run is read each second.
template <class Visit>
void for_rises(const SampledCounter& counter, const Visit& visit) {
  const Sample* before = nullptr;
  for (const Sample& sample : counter.samples) {
    const bool rises =
        before != nullptr && before->is_known && sample.is_known && sample.value >= before->value;
    if (rises && sample.ms - before->ms < kShortestMs) continue;
    if (rises) visit(Span{before->ms, sample.ms, static_cast<double>(sample.value - before->value)});
    before = &sample;
  }
}

// One reading, as of a job that still runs, shows no use.
bool was_read_twice(const SampledCounter& counter) {
  return std::count_if(counter.samples.begin(), counter.samples.end(),
                       [](const Sample& sample) { return sample.is_known; }) >= 2;
}

// The value that holds at a moment, in a gauge that is logged when it changes.
std::optional<uint64_t> held(const SampledCounter& gauge, int64_t ms) {
  std::optional<uint64_t> value;
  for (const Sample& sample : gauge.samples) {
    if (sample.ms > ms) break;
    value = sample.is_known ? std::optional(sample.value) : std::nullopt;
  }
  return value;
}

struct PortCounters {
  const SampledCounter *data = nullptr, *packets = nullptr, *rate = nullptr;
};

// Spans of one port that are alike, together.
struct Together {
  int64_t ms = 0, first_ms = 0, last_ms = 0;
  double bytes = 0, most_bytes = 0, packets = 0;
  std::vector<int64_t> times_ms;
  void add(const Span& span, double most, double sent) {
    if (ms == 0) first_ms = span.begin_ms;
    last_ms = span.end_ms;
    ms += span.end_ms - span.begin_ms;
    bytes += span.bytes;
    most_bytes += most;
    packets += sent;
    constexpr size_t kMostTimes = 4096;
    if (times_ms.size() < kMostTimes) times_ms.push_back(span.end_ms);
  }
};

class UseJudge {
 public:
  UseJudge(const SampleLog& log, HostSamples& host) : log_(log), host_(host) {}

  void run() {
    std::map<std::string, PortCounters> ports;
    for (const SampledCounter& counter : log_.counters) {
      const std::string& name = counter.key.name;
      if (counter.key.kind == DeviceKind::kGpu && name.starts_with("nvlink_") && name.ends_with("_bytes"))
        add_nvlink(counter);
      if (counter.key.kind != DeviceKind::kPort) continue;
      PortCounters& port = ports[counter.key.device];
      if (name == "port_xmit_data") port.data = &counter;
      if (name == "port_xmit_packets") port.packets = &counter;
      if (name == "rate") port.rate = &counter;
    }
    for (const auto& [device, port] : ports)
      if (port.data != nullptr) judge_port(device, port);
  }

 private:
  void add_nvlink(const SampledCounter& counter) {
    if (was_read_twice(counter)) host_.nvlink_moved[counter.key.device] += rise_of(counter).total;
  }

  std::string card_of(const std::string& device) const {
    const auto card = log_.cards.find(device.substr(0, device.rfind('/')));
    return card == log_.cards.end() ? std::string() : card->second;
  }

  void judge_port(const std::string& device, const PortCounters& port) {
    if (was_read_twice(*port.data))
      host_.sent[device.substr(0, device.rfind('/'))] += rise_of(*port.data).total * kBytesOfWord;
    if (port.rate == nullptr) return;
    std::map<int64_t, Span> packets;
    if (port.packets != nullptr)
      for_rises(*port.packets, [&packets](const Span& span) { packets.emplace(span.begin_ms, span); });
    Together full, small;
    for_rises(*port.data, [&](Span span) {
      const int64_t ms = span.end_ms - span.begin_ms;
      const auto rate = held(*port.rate, span.begin_ms);
      if (!rate || *rate == 0 || held(*port.rate, span.end_ms) != rate) return;
      span.bytes *= static_cast<double>(kBytesOfWord);
      // The rate is in Mb/s: 125 bytes a millisecond.
      const double most = static_cast<double>(*rate) * 125 * static_cast<double>(ms);
      if (span.bytes > most * kImpossible) return;
      if (span.bytes >= most * kFull) full.add(span, most, 0);
      const auto sent = packets.find(span.begin_ms);
      if (sent == packets.end() || sent->second.end_ms != span.end_ms || span.bytes < most * kBulk) return;
      const double each = span.bytes / std::max(sent->second.bytes, 1.0);
      if (each < kSmallPacket && each > kNoPacket) small.add(span, most, sent->second.bytes);
    });
    if (full.ms >= kLongUseMs)
      add(FindingId::kImbalanceLinkBound, device, "sent as much as its link can carry",
          "The link is well. Only fewer bytes, more cards or another algorithm make this faster.", full,
          format_decimal(full.bytes / full.most_bytes * 100, 0) + " % of its rate");
    if (small.ms >= kLongUseMs)
      add(FindingId::kSlowNicPackets, device, "sent much data in small packets",
          "Check the MTU of the port, of its peers and of the switches: 4,096 bytes (InfiniBand), 4,200 or "
          "more of the interface (RoCE).",
          small,
          "packets of " + format_count(static_cast<uint64_t>(small.bytes / small.packets)) +
              " bytes on average");
  }

  void add(FindingId id, const std::string& device, std::string says, std::string remedy, const Together& of,
           const std::string& how) {
    LinkTrouble use;
    use.id = id;
    use.device = device;
    use.card = card_of(device);
    use.severity = Severity::kNote;
    use.says = std::move(says);
    use.remedy = std::move(remedy);
    use.evidence.push_back(wording::name(device) + " sent " + how + " for " +
                           format_count(static_cast<uint64_t>(of.ms / 1000)) + " s between " +
                           format_time(log_.time_ns(of.first_ms)) + " and " +
                           format_time(log_.time_ns(of.last_ms)));
    for (const int64_t ms : of.times_ms) use.times_ns.push_back(log_.time_ns(ms));
    host_.uses.push_back(std::move(use));
  }

  const SampleLog& log_;
  HostSamples& host_;
};

}  // namespace

void judge_use(const SampleLog& log, HostSamples& host) { UseJudge(log, host).run(); }

}  // namespace lockstep::links
