// SPDX-License-Identifier: Apache-2.0
#include "nccl_host/bench.h"

#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <cstdio>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

#include "nccl_host/adapt.h"
#include "nccl_host/stats.h"

namespace lockstep::sim {
namespace {

namespace abi = nccl_abi;

constexpr int kRounds = 21;  // after one that only warms up
constexpr int kChannelsA = 8, kChannelsB = 2, kStepsB = 4;
constexpr uint64_t kCallbacksA = 2 + 3 * kChannelsA;
constexpr uint64_t kCallbacksB = 2 + 3 * kChannelsB + 2 * kChannelsB * (3 + kStepsB * 5);

void quiet_log(int, unsigned long, const char*, int, const char*, ...) {}

// One comm of one plugin, driven by one thread.
template <class Plugin, class Descriptor, class Args>
class Driver {
 public:
  Driver(void* symbol, const Behaviour& behaviour) : plugin_(static_cast<Plugin*>(symbol)) {
    abi::v7::Descriptor d{};
    d.type = abi::kTypeColl;
    d.coll = {0,      "AllReduce", nullptr, nullptr, 1 << 20, 0, "ncclFloat32", kChannelsA, 16,
              "RING", "SIMPLE",    nullptr, nullptr, false,   0};
    adapt(d, behaviour, &coll_);
    for (int i = 0; i < kChannelsA; ++i) {
      d.type = abi::kTypeKernelCh;
      d.kernel_ch = {static_cast<uint8_t>(i), 1'795'202'725'000'000'000u};
      adapt(d, behaviour, &kernel_[i]);
    }
    for (int i = 0; i < 2 * kChannelsB; ++i) {
      d.type = abi::kTypeProxyOp;
      d.proxy_op = {getpid(), static_cast<uint8_t>(i / 2), 1, kStepsB, 1 << 20, i % 2};
      adapt(d, behaviour, &op_[i]);
    }
    for (int i = 0; i < kStepsB; ++i) {
      d.type = abi::kTypeProxyStep;
      d.proxy_step = {i};
      adapt(d, behaviour, &step_[i]);
    }
    if constexpr (requires(Args a) { a.kernel_ch; }) stop_args_.kernel_ch.ptimer = 1'795'202'725'000'100'000u;
    if constexpr (requires(Args a) { a.proxy_step; }) step_args_.proxy_step.trans_size = 1 << 20;
  }

  bool init(uint64_t id) {
    using Init = decltype(plugin_->init);
    if constexpr (std::is_same_v<Init, abi::InitV1>) {
      return plugin_->init(&context_, &mask_) == 0;
    } else if constexpr (std::is_same_v<Init, abi::InitV4>) {
      return plugin_->init(&context_, &mask_, "bench", id, 1, 8, 0, quiet_log) == 0;
    } else {
      return plugin_->init(&context_, id, &mask_, "bench", 1, 8, 0, quiet_log) == 0;
    }
  }
  void finalize() { plugin_->finalize(context_); }
  int mask() const { return mask_; }

  void stream_a(uint64_t collectives) {
    for (uint64_t n = 0; n < collectives; ++n) {
      void* coll = start_coll(n);
      void* open[kChannelsA];
      start_kernels(coll, open, kChannelsA);
      stop_kernels(open, kChannelsA);
    }
  }

  void stream_b(uint64_t collectives) {
    for (uint64_t n = 0; n < collectives; ++n) {
      void* coll = start_coll(n);
      void* open[kChannelsB];
      void* ops[2 * kChannelsB];
      start_kernels(coll, open, kChannelsB);
      for (int i = 0; i < 2 * kChannelsB; ++i) {
        op_[i].parent = coll;
        plugin_->start_event(context_, &ops[i], &op_[i]);
        plugin_->record_event_state(ops[i], abi::kProxyOpInProgress, &step_args_);
      }
      for (int step = 0; step < kStepsB; ++step)
        for (int i = 0; i < 2 * kChannelsB; ++i) network_step(ops[i], step, i % 2 != 0);
      for (void* op : ops) plugin_->stop_event(op);
      stop_kernels(open, kChannelsB);
    }
  }

 private:
  void* start_coll(uint64_t sequence) {
    void* coll = nullptr;
    coll_.coll.seq = sequence;
    plugin_->start_event(context_, &coll, &coll_);
    plugin_->stop_event(coll);
    return coll;
  }
  void start_kernels(void* coll, void** open, int count) {
    for (int i = 0; i < count; ++i) {
      kernel_[i].parent = coll;
      plugin_->start_event(context_, &open[i], &kernel_[i]);
    }
  }
  void stop_kernels(void** open, int count) {
    for (int i = 0; i < count; ++i) {
      plugin_->record_event_state(open[i], abi::kKernelChStop, &stop_args_);
      plugin_->stop_event(open[i]);
    }
  }
  void network_step(void* op, int step, bool is_send) {
    void* handle = nullptr;
    step_[step].parent = op;
    plugin_->start_event(context_, &handle, &step_[step]);
    const abi::State first = is_send ? abi::kProxyStepSendGpuWait : abi::kProxyStepRecvWait;
    const abi::State second = is_send ? abi::kProxyStepSendPeerWait : abi::kProxyStepRecvFlushWait;
    const abi::State third = is_send ? abi::kProxyStepSendWait : abi::kProxyStepRecvGpuWait;
    plugin_->record_event_state(handle, first, &step_args_);
    plugin_->record_event_state(handle, second, &step_args_);
    plugin_->record_event_state(handle, third, &step_args_);
    plugin_->stop_event(handle);
  }

  Plugin* plugin_;
  void* context_ = nullptr;
  int mask_ = 0;
  Descriptor coll_{}, kernel_[kChannelsA]{}, op_[2 * kChannelsB]{}, step_[kStepsB]{};
  Args stop_args_{}, step_args_{};
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

// ns per callback of every round.
struct Rounds {
  std::vector<double> plugin = std::vector<double>(kRounds + 1), empty = std::vector<double>(kRounds + 1);
};

template <class TheDriver>
struct Worker {
  std::unique_ptr<TheDriver> plugin, empty;
  Rounds rounds;
};

uint64_t callbacks_per_unit(const std::string& stream) {
  return stream == "init" ? 1 : stream == "A" ? kCallbacksA : kCallbacksB;
}

template <class TheDriver>
double timed_round(TheDriver* driver, const std::string& stream, uint64_t units) {
  const uint64_t begin = monotonic_ns();
  if (stream == "A") {
    driver->stream_a(units);
  } else if (stream == "B") {
    driver->stream_b(units);
  } else {
    for (uint64_t n = 0; n < units; ++n) {
      driver->init(0x10000 + n);
      driver->finalize();
    }
  }
  return static_cast<double>(monotonic_ns() - begin) /
         static_cast<double>(units * callbacks_per_unit(stream));
}

// Medians and best rounds of the threads' averages; round 0 only warmed up.
template <class Workers>
void summarise(const Workers& workers, BenchResult* result) {
  std::vector<double> plugin_ns, empty_ns;
  plugin_ns.reserve(kRounds);
  empty_ns.reserve(kRounds);
  for (size_t round = 1; round <= kRounds; ++round) {
    double plugin_sum = 0, empty_sum = 0;
    for (const auto& worker : workers) {
      plugin_sum += worker.rounds.plugin[round];
      empty_sum += worker.rounds.empty[round];
    }
    plugin_ns.push_back(plugin_sum / static_cast<double>(workers.size()));
    empty_ns.push_back(empty_sum / static_cast<double>(workers.size()));
  }
  result->plugin_ns = median(plugin_ns);
  result->empty_ns = median(empty_ns);
  result->plugin_min_ns = *std::min_element(plugin_ns.begin(), plugin_ns.end());
  result->empty_min_ns = *std::min_element(empty_ns.begin(), empty_ns.end());
}

template <class Plugin, class Descriptor, class Args>
Result<BenchResult> bench_version(const PluginLibrary& plugin, const PluginLibrary& empty,
                                  const BenchOptions& options) {
  using TheDriver = Driver<Plugin, Descriptor, Args>;
  Behaviour behaviour;
  behaviour.api = plugin.api();
  std::vector<Worker<TheDriver>> workers(options.threads);
  for (size_t i = 0; i < workers.size(); ++i) {
    workers[i].plugin = std::make_unique<TheDriver>(plugin.symbol(), behaviour);
    workers[i].empty = std::make_unique<TheDriver>(empty.symbol(), behaviour);
    const bool ready = workers[i].plugin->init(0x5eed + i) && workers[i].empty->init(0x5eed + i);
    if (!ready) return Error{ErrorCode::kInvalidInput, "the plugin's init failed", ""};
  }
  BenchResult result;
  result.mask = workers[0].plugin->mask();
  const uint64_t per_unit = callbacks_per_unit(options.stream);
  const uint64_t units = std::max<uint64_t>(1, options.events / per_unit / (kRounds + 1));
  result.callbacks = units * per_unit * (kRounds + 1);
  const uint64_t needed = abi::kTypeColl | abi::kTypeKernelCh |
                          (options.stream == "B" ? abi::kTypeProxyOp | abi::kTypeProxyStep : 0);
  result.masked_off = options.stream != "init" && (static_cast<uint64_t>(result.mask) & needed) != needed;

  std::barrier<> barrier(static_cast<std::ptrdiff_t>(workers.size()));
  std::vector<std::thread> threads;
  threads.reserve(workers.size());
  for (Worker<TheDriver>& worker : workers)
    threads.emplace_back([&] {
      for (size_t round = 0; round <= kRounds; ++round) {
        barrier.arrive_and_wait();
        worker.rounds.empty[round] = timed_round(worker.empty.get(), options.stream, units);
        worker.rounds.plugin[round] = timed_round(worker.plugin.get(), options.stream, units);
      }
    });
  for (std::thread& thread : threads) thread.join();

  summarise(workers, &result);
  for (auto& worker : workers) {
    worker.plugin->finalize();
    worker.empty->finalize();
  }
  return result;
}

}  // namespace

Result<BenchResult> run_bench(const PluginLibrary& plugin, const BenchOptions& options) {
  // A library like the plugin, not a part of this program: calls into near code are 0.8 ns cheaper on some
  // machines.
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  const std::string own(path, length > 0 ? static_cast<size_t>(length) : 0);
  const std::string beside = own.substr(0, own.rfind('/') + 1) + "../lib/libempty-plugin.so";
  LOCKSTEP_ASSIGN(const PluginLibrary empty, PluginLibrary::open(beside, plugin.api()));
  switch (plugin.api()) {
#define LOCKSTEP_VERSION(n)                                                                             \
  case n:                                                                                               \
    return bench_version<abi::v##n::Plugin, abi::v##n::Descriptor, abi::v##n::StateArgs>(plugin, empty, \
                                                                                         options);
    LOCKSTEP_VERSION(3)
    LOCKSTEP_VERSION(4)
    LOCKSTEP_VERSION(5)
    LOCKSTEP_VERSION(6)
    LOCKSTEP_VERSION(7)
#undef LOCKSTEP_VERSION
    default:
      return Error{ErrorCode::kUnsupported, "the benchmark needs v3 or newer: v1 and v2 have no KernelCh",
                   ""};
  }
}

std::string bench_text(const BenchOptions& options, const BenchResult& result) {
  char text[512];
  std::snprintf(
      text, sizeof text,
      "stream %s, %u thread%s, %llu callbacks each: plugin %.2f ns, empty %.2f ns, difference %.2f ns "
      "(best rounds: %.2f, %.2f)%s\n",
      options.stream.c_str(), options.threads, options.threads == 1 ? "" : "s",
      static_cast<unsigned long long>(result.callbacks), result.plugin_ns, result.empty_ns,
      result.plugin_ns - result.empty_ns, result.plugin_min_ns, result.empty_min_ns,
      result.masked_off ? "\n  note: under this plugin's mask NCCL would not make all of these calls" : "");
  return text;
}

std::string bench_json(const BenchOptions& options, const BenchResult& result, int api) {
  char text[512];
  std::snprintf(
      text, sizeof text,
      "{\"stream\":\"%s\",\"api\":%d,\"threads\":%u,\"callbacks\":%llu,\"mask\":%d,\"masked_off\":%s,"
      "\"plugin_ns\":%.3f,\"empty_ns\":%.3f,\"difference_ns\":%.3f,\"plugin_min_ns\":%.3f,"
      "\"empty_min_ns\":%.3f}\n",
      options.stream.c_str(), api, options.threads, static_cast<unsigned long long>(result.callbacks),
      result.mask, result.masked_off ? "true" : "false", result.plugin_ns, result.empty_ns,
      result.plugin_ns - result.empty_ns, result.plugin_min_ns, result.empty_min_ns);
  return text;
}

}  // namespace lockstep::sim
