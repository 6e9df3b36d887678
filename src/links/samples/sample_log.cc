// SPDX-License-Identifier: Apache-2.0
// Reads a log that may still grow and may be damaged. Only whole lines count, and a line without sense is
// counted and passed over, since one that was torn must not cost the hour behind it.
#include "links/samples/sample_log.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <span>

#include "base/input_file.h"

namespace lockstep::links {
namespace {

// A sampler writes at most 64 MiB (sampler.cc).
constexpr uint64_t kMostLogBytes = uint64_t{128} << 20, kHeadBytes = 4096;
constexpr size_t kMostCounters = 65'536, kMostSamples = 16'000'000, kMostName = 256, kMostCards = 4096;
// Of a job, and so that times in ns stay within 64 bits.
constexpr int64_t kMostMs = int64_t{1000} * 3600 * 24 * 366;
constexpr int64_t kMostStartNs = int64_t{1} << 62;

template <class Number>
std::optional<Number> whole_number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Takes the next word off the line; empty at its end.
std::string_view next_word(std::string_view& line) {
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(std::min(line.size(), word.size() + 1));
  return word;
}

std::optional<DeviceKind> kind_of(std::string_view word) {
  for (const DeviceKind kind :
       {DeviceKind::kPort, DeviceKind::kNic, DeviceKind::kNetDevice, DeviceKind::kPci, DeviceKind::kGpu})
    if (kind_word(kind) == word) return kind;
  return std::nullopt;
}

class SampleParser {
 public:
  explicit SampleParser(SampleLog& log) : log_(log) {}

  // False: the line means nothing.
  bool line(std::string_view rest) {
    const std::string_view word = next_word(rest);
    if (word == "at") return at(rest);
    if (word == "counter") return counter(rest);
    if (word == "card") return place(rest, log_.cards);
    if (word == "gpu") return place(rest, log_.gpus);
    if (word == "host") return text(rest, log_.host);
    if (word == "boot") return text(rest, log_.boot_id);
    if (word == "pid") return number(rest, log_.pid);
    if (word == "start") return start(rest);
    if (word == "full") return log_.is_full = true;
    if (word == "end") return log_.has_ended = true;
    // Another release's word, or what a torn write has left.
    return !word.empty() && word.find_first_not_of("abcdefghijklmnopqrstuvwxyz") == std::string_view::npos;
  }

 private:
  bool start(std::string_view value) {
    const auto ns = whole_number<int64_t>(value);
    if (!ns || *ns < 0 || *ns > kMostStartNs) return false;
    log_.start_ns = *ns;
    return true;
  }

  static bool text(std::string_view value, std::string& to) {
    if (value.empty() || value.size() > kMostName) return false;
    to = value;
    return true;
  }

  static bool number(std::string_view value, int64_t& to) {
    const auto read = whole_number<int64_t>(value);
    if (read) to = *read;
    return read.has_value();
  }

  static bool place(std::string_view rest, std::map<std::string, std::string>& to) {
    const std::string_view name = next_word(rest);
    if (name.empty() || name.size() > kMostName || rest.empty() || rest.size() > 1024 ||
        to.size() >= kMostCards)
      return false;
    to.insert_or_assign(std::string(name), std::string(rest));
    return true;
  }

  bool counter(std::string_view rest) {
    const auto id = whole_number<size_t>(next_word(rest));
    const auto kind = kind_of(next_word(rest));
    const std::string_view device = next_word(rest), name = next_word(rest);
    // Numbers are given in order: one that skips would shift the values of all that follow.
    if (!id || !kind || *id != log_.counters.size() || *id >= kMostCounters || device.empty() ||
        name.empty() || device.size() > kMostName || name.size() > kMostName || !rest.empty())
      return false;
    log_.counters.push_back({{*kind, std::string(device), std::string(name)}, {}});
    return true;
  }

  bool at(std::string_view rest) {
    const auto ms = whole_number<int64_t>(next_word(rest));
    // Time never goes back: readers search in it. A line from a clock that did is left out as a whole.
    if (!ms || *ms < log_.last_ms || *ms > kMostMs) return false;
    log_.last_ms = *ms;
    bool is_whole = true;
    // One value without sense does not cost the others of its line.
    while (!rest.empty()) is_whole = value(*ms, next_word(rest)) && is_whole;
    return is_whole;
  }

  bool value(int64_t ms, std::string_view word) {
    const size_t equals = word.find('=');
    if (equals == std::string_view::npos || samples_ >= kMostSamples) return false;
    const auto id = whole_number<size_t>(word.substr(0, equals));
    const std::string_view digits = word.substr(equals + 1);
    const auto number = whole_number<uint64_t>(digits);
    // "-" says that the counter could not be read, which is a value of its own.
    if (!id || *id >= log_.counters.size() || (!number && digits != "-")) return false;
    log_.counters[*id].samples.push_back({ms, number.value_or(0), number.has_value()});
    ++samples_;
    return true;
  }

  SampleLog& log_;
  size_t samples_ = 0;
};

}  // namespace

bool is_gauge(const CounterKey& key) {
  constexpr std::string_view kGauges[] = {"state",        "rate",          "throttle",
                                          "sm_clock_mhz", "temperature_c", "power_mw"};
  return std::find(std::begin(kGauges), std::end(kGauges), key.name) != std::end(kGauges);
}

std::string_view kind_word(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::kPort:
      return "port";
    case DeviceKind::kNic:
      return "nic";
    case DeviceKind::kNetDevice:
      return "net";
    case DeviceKind::kPci:
      return "pci";
    case DeviceKind::kGpu:
      return "gpu";
  }
  return "?";
}

Result<void> check_sample_head(std::string_view line, const std::string& where) {
  const auto version =
      line.starts_with(kSampleLogHead) ? whole_number<int>(line.substr(kSampleLogHead.size())) : std::nullopt;
  if (!version || *version < 1)
    return Error{ErrorCode::kInvalidInput, "holds no samples of a host's links", where};
  if (*version > kSampleLogVersion)
    return Error{ErrorCode::kUnsupported,
                 "holds samples of links in version " + std::to_string(*version) +
                     ", and this program reads " + std::to_string(kSampleLogVersion) +
                     "; use the release that wrote it",
                 where};
  return {};
}

void parse_sample_line(std::string_view line, SampleLog& log) {
  if (!line.empty() && !SampleParser(log).line(line)) ++log.damaged;
}

Result<SampleLog> parse_sample_log(std::string_view text, const std::string& where) {
  SampleLog log;
  SampleParser parser(log);
  bool is_first = true;
  for (size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    if (is_first) {
      is_first = false;
      LOCKSTEP_TRY(check_sample_head(line, where));
    } else if (!line.empty() && !parser.line(line)) {
      ++log.damaged;
    }
  }
  if (is_first) return Error{ErrorCode::kInvalidInput, "holds no samples of a host's links", where};
  return log;
}

namespace {

Result<SampleLog> read_beginning(const std::string& path, uint64_t most) {
  LOCKSTEP_ASSIGN(const InputFile file, InputFile::open(path));
  if (file.size() > kMostLogBytes)
    return Error{ErrorCode::kUnsupported, "is larger than 128 MiB, which no sampler writes", path};
  std::string bytes(std::min(file.size(), most), '\0');
  // Once and in one piece: the log may grow meanwhile, and what comes later is not looked at.
  bytes.resize(file.read_at(0, std::as_writable_bytes(std::span(bytes))));
  return parse_sample_log(bytes, path);
}

}  // namespace

Result<SampleLog> read_sample_log(const std::string& path) { return read_beginning(path, kMostLogBytes); }

Result<SampleLog> read_sample_log_head(const std::string& path) { return read_beginning(path, kHeadBytes); }

}  // namespace lockstep::links
