// SPDX-License-Identifier: Apache-2.0
// Asks cheap questions each second (about 10 us each on an H100) and the links' own counters seldom. What a
// GPU does not answer at the start is asked again each ten seconds: we begin before the job does, and links
// or the fabric may come up later.
#include "links/nvidia/watched_gpus.h"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <map>
#include <vector>

#include "links/nvidia/nvml_library.h"

namespace lockstep::links::nvidia {
namespace {
using namespace nvml;

constexpr size_t kMostCounters = 512, kMostEvents = 64;
// NVML's numbers of a kind of error and of a counter: over the GPU's life, not since the last start.
constexpr int kUncorrected = 1, kAggregate = 1;

using Answer = std::optional<uint64_t>;

// An error is "not read now" and nothing more: a GPU that is being reset answers again later.
template <class Value, class... Arguments>
Answer asked(const Library& library, Device device, const char* name, Arguments... arguments) {
  Value value{};
  if (library.call(name, device, arguments..., &value) != kSuccess) return std::nullopt;
  return value;
}

Answer field(const Library& library, Device device, Field field, uint32_t scope, uint64_t unit) {
  FieldValue value = question(field, scope);
  if (library.call("nvmlDeviceGetFieldValues", device, 1, &value) != kSuccess) return std::nullopt;
  const Answer read = number(value);
  return read ? Answer(*read * unit) : std::nullopt;
}

struct Question {
  const char* name;
  Pace pace;
  Answer (*ask)(const Library&, Device);
};
constexpr Question kQuestions[] = {
    {"throttle", Pace::kSecond,
     [](const Library& library, Device device) {
       return asked<unsigned long long>(library, device, "nvmlDeviceGetCurrentClocksThrottleReasons");
     }},
    {"sm_clock_mhz", Pace::kSecond,
     [](const Library& library, Device device) {
       return asked<unsigned>(library, device, "nvmlDeviceGetClockInfo", static_cast<int>(kSmClock));
     }},
    {"ecc_uncorrected", Pace::kSecond,
     [](const Library& library, Device device) {
       return asked<unsigned long long>(library, device, "nvmlDeviceGetTotalEccErrors", kUncorrected,
                                        kAggregate);
     }},
    {"temperature_c", Pace::kTenSeconds,
     [](const Library& library, Device device) {
       return asked<unsigned>(library, device, "nvmlDeviceGetTemperature", 0);
     }},
    {"power_mw", Pace::kTenSeconds,
     [](const Library& library, Device device) {
       return asked<unsigned>(library, device, "nvmlDeviceGetPowerUsage");
     }},
    {"pcie_replay", Pace::kTenSeconds,
     [](const Library& library, Device device) { return field(library, device, kPcieReplay, 0, 1); }},
    {"nvlink_tx_bytes", Pace::kNvlinkBytes,
     [](const Library& library, Device device) {
       return field(library, device, kNvLinkDataTx, kAllLinks, 1024);
     }},
    {"nvlink_rx_bytes", Pace::kNvlinkBytes,
     [](const Library& library, Device device) {
       return field(library, device, kNvLinkDataRx, kAllLinks, 1024);
     }},
};

constexpr std::pair<const char*, Field> kLinkErrors[] = {
    {"nvlink_replay", kLinkReplay}, {"nvlink_recovery", kLinkRecovery}, {"nvlink_crc", kLinkCrc}};
constexpr size_t kKindsOfLinkErrors = std::size(kLinkErrors);
using LinkErrors = std::array<Answer, kKindsOfLinkErrors>;  // each over all links

// One call for all: the first field of a link costs as much as all of it.
LinkErrors link_errors(const Library& library, Device device, uint32_t links) {
  LinkErrors sums;
  std::vector<FieldValue> values;
  for (uint32_t link = 0; link < links; ++link)
    for (const auto& [name, of] : kLinkErrors) values.push_back(question(of, link));
  if (values.empty() || library.call("nvmlDeviceGetFieldValues", device, static_cast<int>(values.size()),
                                     values.data()) != kSuccess)
    return sums;
  std::array<bool, kKindsOfLinkErrors> is_torn{};  // a sum that lacks a link would fall and rise again
  for (size_t i = 0; i < values.size(); ++i) {
    const Answer count = number(values[i]);
    Answer& sum = sums[i % kKindsOfLinkErrors];
    if (count)
      sum = sum.value_or(0) + *count;
    else
      // Fields are link by link, and of each link in the order of kLinkErrors.
      is_torn[i % kKindsOfLinkErrors] = true;
  }
  for (size_t kind = 0; kind < kKindsOfLinkErrors; ++kind)
    if (is_torn[kind]) sums[kind].reset();
  return sums;
}

}  // namespace

class WatchedGpus::Watch {
 public:
  explicit Watch(Library library) : library_(library) {
    unsigned count = 0;
    library_.call("nvmlDeviceGetCount_v2", &count);
    for (unsigned i = 0; i < std::min(count, kMostGpus); ++i) add_gpu(i);
    listen();
  }
  ~Watch() {
    if (events_ != nullptr) library_.call("nvmlEventSetFree", events_);
    library_.call("nvmlShutdown");
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  struct Counter {
    CounterKey key;
    Pace pace = Pace::kSecond;
    size_t gpu = 0;
    const Question* question = nullptr;  // else:
    std::optional<size_t> link_error;    // its place in kLinkErrors; else a Xid
    uint64_t xids = 0;
  };
  const std::vector<Counter>& counters() const { return counters_; }

  void read(Pace due, const Visit& visit) {
    // Events and new answers may add counters below, which this separates from those of the last reading.
    const size_t known = counters_.size();
    take_events();
    if (due >= Pace::kTenSeconds) ask_again();
    std::map<size_t, LinkErrors> of_links;  // by GPU
    for (size_t i = 0; i < counters_.size(); ++i) {
      const Counter& counter = counters_[i];
      const Gpu& gpu = gpus_[counter.gpu];
      // What is new has its first value now, from which it may rise.
      if (counter.pace > due && i < known) continue;
      if (counter.question != nullptr) {
        visit(i, counter.question->ask(library_, gpu.device));
      } else if (counter.link_error) {
        const auto [at, is_new] = of_links.try_emplace(counter.gpu);
        if (is_new) at->second = link_errors(library_, gpu.device, gpu.links);
        visit(i, at->second[*counter.link_error]);
      } else {
        visit(i, counter.xids);
      }
    }
  }

 private:
  struct Gpu {
    Device device = nullptr;
    std::string pci;
    uint32_t links = 0;
    std::vector<const Question*> unanswered;
    bool has_link_errors = false;
  };

  void add_gpu(unsigned index) {
    Gpu gpu;
    PciInfo pci{};
    if (library_.call("nvmlDeviceGetHandleByIndex_v2", index, &gpu.device) != kSuccess ||
        library_.call("nvmlDeviceGetPciInfo_v3", gpu.device, &pci) != kSuccess)
      return;
    gpu.pci = address(pci);
    // The address becomes a word of a log: anything else in it would break the line.
    if (gpu.pci.find_first_not_of("0123456789abcdef:.") != std::string::npos || gpu.pci.size() < 12) return;
    for (const Question& question : kQuestions) gpu.unanswered.push_back(&question);
    gpus_.push_back(std::move(gpu));
    ask_again();
  }

  void ask_again() {
    for (size_t at = 0; at < gpus_.size(); ++at) {
      Gpu& gpu = gpus_[at];
      std::erase_if(gpu.unanswered, [&](const Question* question) {
        if (!question->ask(library_, gpu.device)) return false;
        add(at, question->name, question->pace).question = question;
        return true;
      });
      // A fabric may come up only after the manager has started, and its links with it.
      if (!gpu.has_link_errors) ask_for_links(at);
    }
  }

  void ask_for_links(size_t at) {
    Gpu& gpu = gpus_[at];
    gpu.links = 0;
    // NVML has no count of links that all drivers answer, so they are asked for until one is refused.
    for (unsigned active = 0; gpu.links < kMostLinks; ++gpu.links)
      if (library_.call("nvmlDeviceGetNvLinkState", gpu.device, gpu.links, &active) != kSuccess) break;
    const LinkErrors errors = link_errors(library_, gpu.device, gpu.links);
    for (size_t kind = 0; kind < kKindsOfLinkErrors; ++kind) {
      if (!errors[kind]) continue;
      add(at, kLinkErrors[kind].first, Pace::kTenMinutes).link_error = kind;
      gpu.has_link_errors = true;
    }
  }

  Counter& add(size_t gpu, const std::string& name, Pace pace) {
    Counter counter;
    counter.key = {DeviceKind::kGpu, gpus_[gpu].pci, name};
    counter.pace = pace;
    counter.gpu = gpu;
    return counters_.emplace_back(std::move(counter));
  }

  void listen() {
    if (gpus_.empty() || library_.call("nvmlEventSetCreate", &events_) != kSuccess) {
      events_ = nullptr;
      return;
    }
    for (const Gpu& gpu : gpus_) library_.call("nvmlDeviceRegisterEvents", gpu.device, kXidEvent, events_);
  }

  void take_events() {
    if (events_ == nullptr) return;
    // A GPU that reports without end must not hold up the sampling of all others.
    for (size_t taken = 0; taken < kMostEvents; ++taken) {
      EventData event{};
      // Without waiting: 0 ms. A time-out means that there is no event.
      if (library_.call("nvmlEventSetWait_v2", events_, &event, 0u) != kSuccess) return;
      if (event.type == kXidEvent) count_xid(event);
    }
  }

  void count_xid(const EventData& event) {
    const auto gpu = std::find_if(gpus_.begin(), gpus_.end(),
                                  [&](const Gpu& candidate) { return candidate.device == event.device; });
    if (gpu == gpus_.end()) return;
    const size_t at = static_cast<size_t>(gpu - gpus_.begin());
    const std::string name = "xid_" + std::to_string(event.data);
    const auto known = std::find_if(counters_.begin(), counters_.end(), [&](const Counter& counter) {
      return counter.gpu == at && counter.key.name == name;
    });
    // Each number of a Xid becomes a counter, so there is a bound, should the driver give numbers without
    // end.
    if (known != counters_.end())
      ++known->xids;
    else if (counters_.size() < kMostCounters + kMostGpus * std::size(kQuestions))
      add(at, name, Pace::kSecond).xids = 1;
  }

  const Library library_;
  EventSet events_ = nullptr;
  std::vector<Gpu> gpus_;
  std::vector<Counter> counters_;
};

bool may_have_gpus() { return getenv("LOCKSTEP_NVML") != nullptr || access("/dev/nvidiactl", F_OK) == 0; }

WatchedGpus::WatchedGpus() {
  auto loaded = SharedLibrary::load("LOCKSTEP_NVML", "libnvidia-ml.so.1");
  if (!loaded) return;
  const Library library(*loaded);
  // Ended by the watch's destructor. Starting NVML takes no rights and changes nothing.
  if (library.call("nvmlInit_v2") == kSuccess) watch_ = std::make_unique<Watch>(library);
}
WatchedGpus::~WatchedGpus() = default;

size_t WatchedGpus::size() const { return watch_ ? watch_->counters().size() : 0; }
const CounterKey& WatchedGpus::key(size_t i) const { return watch_->counters()[i].key; }
Pace WatchedGpus::pace(size_t i) const { return watch_->counters()[i].pace; }
void WatchedGpus::read(Pace due, const Visit& visit) {
  if (watch_) watch_->read(due, visit);
}

}  // namespace lockstep::links::nvidia
