// SPDX-License-Identifier: Apache-2.0
// The plugin as Score-P loads and asks it, beside the NCCL library in the same process.
#include <dlfcn.h>

#include <latch>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "capture/scorep/metric_plugin_abi.h"
#include "sim/nccl_host/core.h"
#include "sim/nccl_host/player.h"
#include "sim/nccl_host/scripts.h"
#include "tests/support/nccl_test.h"
#include "tests/support/places.h"

namespace lockstep::test {
namespace {

namespace scorep = capture::scorep;

// Score-P's side: what it checks of a plugin, and the order in which it calls.
class ScorepHost {
 public:
  explicit ScorepHost(const std::vector<std::string>& tokens, const std::string& plugin = "lockstep_plugin") {
    library_ = dlopen((LOCKSTEP_LIB_DIR "/lib" + plugin + ".so").c_str(), RTLD_NOW);
    EXPECT_NE(library_, nullptr) << dlerror();
    const auto get_info = reinterpret_cast<scorep::PluginInfo (*)()>(
        dlsym(library_, ("SCOREP_MetricPlugin_" + plugin + "_get_info").c_str()));
    EXPECT_NE(get_info, nullptr);
    info_ = get_info();
    EXPECT_LE(info_.plugin_version, 1u);
    EXPECT_NE(info_.initialize, nullptr);
    EXPECT_NE(info_.add_counter, nullptr);
    EXPECT_NE(info_.get_event_info, nullptr);
    EXPECT_NE(info_.finalize, nullptr);
    EXPECT_EQ(info_.run_per, scorep::Per::kProcess);
    EXPECT_EQ(info_.sync, scorep::Synchronicity::kSync);
    EXPECT_NE(info_.get_optional_value, nullptr);
    for (uint64_t word : info_.reserved) EXPECT_EQ(word, 0u);
    EXPECT_EQ(info_.initialize(), 0);
    for (std::string token : tokens) add(token.data());
  }
  ~ScorepHost() {
    info_.finalize();
    dlclose(library_);
  }
  ScorepHost(const ScorepHost&) = delete;
  ScorepHost& operator=(const ScorepHost&) = delete;

  // At an event of the program: the metrics that have something new.
  void event() {
    for (const auto& [name, id] : ids_) {
      uint64_t value = 0;
      if (info_.get_optional_value(id, &value)) values[name] = value;
    }
  }
  // Events until it holds; the keeper and the plugin take their time.
  template <class Condition>
  bool wait(Condition condition) {
    return LiveHeader::wait([&] {
      event();
      return condition();
    });
  }
  const scorep::PluginInfo& info() const { return info_; }
  size_t metrics() const { return ids_.size(); }
  std::map<std::string, uint64_t> values;  // the last of each
  std::map<std::string, std::string> units;

 private:
  void add(char* token) {
    scorep::MetricProperties* const list = info_.get_event_info(token);
    ASSERT_NE(list, nullptr);
    for (scorep::MetricProperties* metric = list; metric->name != nullptr; ++metric) {
      EXPECT_EQ(metric->value_type, scorep::ValueType::kUint64);
      EXPECT_EQ(metric->base, scorep::Base::kDecimal);
      const int32_t id = info_.add_counter(metric->name);
      EXPECT_GE(id, 0) << metric->name;
      ids_[metric->name] = id;
      units[metric->name] = std::to_string(metric->exponent) + " " + metric->unit;
      for (char* text : {metric->name, metric->description, metric->unit}) free(text);
    }
    free(list);
  }
  void* library_ = nullptr;
  scorep::PluginInfo info_{};
  std::map<std::string, int32_t> ids_;
};

class ScorepPlugin : public NcclCapture {};

TEST_F(ScorepPlugin, NamesItsMetrics) {
  const Exit exit = run_child(settings(), [] {
    ScorepHost all({"*"});
    EXPECT_EQ(all.metrics(), 7u);
    EXPECT_EQ(all.units.at("lockstep::bytes"), "0 B");
    EXPECT_EQ(all.units.at("lockstep::oldest_open"), "-9 s");
    ScorepHost some({"bytes", "lockstep::operations", "no such metric"});
    EXPECT_EQ(some.metrics(), 2u);
    char unknown[] = "lockstep::";
    EXPECT_LT(some.info().add_counter(unknown), 0);
    uint64_t value = 0;
    EXPECT_FALSE(some.info().get_optional_value(-1, &value));
    EXPECT_FALSE(some.info().get_optional_value(7, &value));
  });
  EXPECT_TRUE(exit.ok()) << exit;
}

TEST_F(ScorepPlugin, HasNothingToTellWithoutACapture) {
  const Exit exit = run_child(settings(), [] {
    ScorepHost host({"*"});
    host.event();
    EXPECT_TRUE(host.values.empty());
  });
  EXPECT_TRUE(exit.ok()) << exit;
}

TEST_F(ScorepPlugin, CountsWhatTheProcessCalls) {
  const Exit exit = run_child(settings(), [] {
    ScorepHost host({"*"});
    NcclPlugin<5> plugin;
    plugin.init();
    for (uint64_t n = 0; n < 100; ++n) plugin.stop(plugin.start_coll(n));
    auto p2p = NcclPlugin<5>::p2p(6);
    plugin.stop(plugin.start(p2p));
    EXPECT_TRUE(host.wait([&] { return host.values["lockstep::operations"] == 101; }));
    EXPECT_EQ(host.values["lockstep::bytes"], 100u * 1024 * 4 + 64 * 4);
    EXPECT_EQ(host.values["lockstep::dropped"], 0u);
    EXPECT_EQ(host.values["lockstep::losses"], 0u);
    EXPECT_GE(host.values["lockstep::recorded"], format::kHeaderBytes + 2ull * format::kChunkBytes);
    plugin.stop(pointer(0x1234567));
    EXPECT_TRUE(host.wait([&] { return host.values["lockstep::losses"] == 1; })) << "a handle never issued";
    for (uint64_t n = 0; n < 5000; ++n) plugin.stop(plugin.start_coll(100 + n));
    EXPECT_TRUE(host.wait([&] { return host.values["lockstep::operations"] == 5101; }))
        << "over several chunks";
    EXPECT_EQ(host.values["lockstep::bytes"], 5100u * 1024 * 4 + 64 * 4);
  });
  EXPECT_TRUE(exit.ok()) << exit;
}

// There may be hours to read when Score-P asks for the first time.
TEST_F(ScorepPlugin, ReadsAPartOfMuchWithEachLook) {
  const Exit exit = run_child(settings("lite"), [] {
    constexpr uint64_t kOperations = 300'000;
    ScorepHost host({"operations", "bytes", "dropped"});
    NcclPlugin<5> plugin;
    plugin.init();
    for (uint64_t n = 0; n < kOperations; ++n) {
      plugin.stop(plugin.start_coll(n));
      if (n % 2000 == 0) sleep_ms(1);  // the keeper makes room
    }
    const auto reported = [&] {
      return host.values["lockstep::operations"] + host.values["lockstep::dropped"];
    };
    host.event();
    EXPECT_LT(reported(), kOperations);
    uint64_t before = 0;
    EXPECT_TRUE(host.wait([&] {
      EXPECT_GE(host.values["lockstep::operations"], before);
      before = host.values["lockstep::operations"];
      return reported() == kOperations;
    }));
    EXPECT_EQ(host.values["lockstep::bytes"], host.values["lockstep::operations"] * 1024 * 4);
  });
  EXPECT_TRUE(exit.ok()) << exit;
}

TEST_F(ScorepPlugin, BytesNeverFall) {
  const Exit exit = run_child(settings(), [] {
    ScorepHost host({"operations", "bytes"});
    NcclPlugin<5> plugin;
    plugin.init();
    for (uint64_t n = 0; n < 10; ++n) plugin.stop(plugin.start_coll(n));
    EXPECT_TRUE(host.wait([&] { return host.values["lockstep::operations"] == 10; }));
    EXPECT_EQ(host.values["lockstep::bytes"], 10u * 1024 * 4);
    for (int n = 0; n < 20; ++n) {  // more calls than tasks, of less
      auto call = NcclPlugin<5>::descriptor(abi::kTypeCollApi);
      call.coll_api = {"AllReduce", 5, "ncclInt8", 0, nullptr, false};
      plugin.stop(plugin.start(call));
    }
    EXPECT_TRUE(host.wait([&] { return host.values["lockstep::operations"] == 20; }));
    EXPECT_EQ(host.values["lockstep::bytes"], 10u * 1024 * 4);
  });
  EXPECT_TRUE(exit.ok()) << exit;
}

TEST_F(ScorepPlugin, TellsEachValueOnce) {
  const Exit exit = run_child(settings(), [] {
    ScorepHost host({"operations"});
    NcclPlugin<5> plugin;
    plugin.init();
    EXPECT_TRUE(host.wait([&] { return host.values.size() == 1; }));
    host.values.clear();
    host.event();
    EXPECT_TRUE(host.values.empty()) << "10 ms have hardly passed";
  });
  EXPECT_TRUE(exit.ok()) << exit;
}

TEST_F(ScorepPlugin, SaysHowLongSomethingIsOpen) {
  const Exit exit = run_child(settings(), [] {
    ScorepHost host({"open", "oldest_open"});
    NcclPlugin<5> plugin;
    plugin.init();
    const double before = seconds_now();
    void* const group = plugin.start_group_api();
    void* const task = plugin.start_coll(1);
    void* const work = plugin.start_kernel_ch(task);
    EXPECT_TRUE(host.wait([&] { return host.values["lockstep::open"] == 2; }));
    sleep_ms(120);
    EXPECT_TRUE(host.wait([&] { return host.values["lockstep::oldest_open"] >= 120'000'000; }));
    EXPECT_LE(static_cast<double>(host.values["lockstep::oldest_open"]) * 1e-9,
              (seconds_now() - before) * 1.2);
    std::thread([&] { plugin.stop(work); }).join();  // on another thread: in another log
    EXPECT_TRUE(host.wait([&] { return host.values["lockstep::open"] == 1; }));
    plugin.stop(group);
    EXPECT_TRUE(host.wait([&] { return host.values["lockstep::open"] == 0; }));
    EXPECT_EQ(host.values["lockstep::oldest_open"], 0u);
  });
  EXPECT_TRUE(exit.ok()) << exit;
}

// A watcher's log comes first, and has more stops than are kept until their events are read.
TEST_F(ScorepPlugin, NothingStaysOpenWhoseStopWasReadBefore) {
  const Exit exit = run_child(settings(), [] {
    constexpr int kEvents = 1000;
    NcclPlugin<5> plugin;
    plugin.init();
    std::vector<void*> works;
    std::latch has_log(1), are_begun(1);
    std::thread watcher([&] {
      plugin.stop(plugin.start_coll(0));
      has_log.count_down();
      are_begun.wait();
      for (void* work : works) plugin.stop(work);
    });
    has_log.wait();
    void* const task = plugin.start_coll(1);
    for (int n = 0; n < kEvents; ++n) works.push_back(plugin.start_kernel_ch(task));
    are_begun.count_down();
    watcher.join();
    ScorepHost host({"open", "operations"});
    EXPECT_TRUE(host.wait([&] { return host.values["lockstep::operations"] == 2; }));
    EXPECT_EQ(host.values["lockstep::open"], 0u);
    void* const group = plugin.start_group_api();
    EXPECT_TRUE(host.wait([&] { return host.values["lockstep::open"] == 1; }));
    plugin.stop(group);
  });
  EXPECT_TRUE(exit.ok()) << exit;
}

TEST_F(ScorepPlugin, CountsInRingRetentionWhatWasOverwritten) {
  const Environment ring = settings("deep", "ring:1M");
  const Exit exit = run_child(ring, [] {
    ScorepHost host({"*"});
    NcclPlugin<5> plugin;
    plugin.init();
    for (uint64_t n = 0; n < 100'000; ++n) plugin.stop(plugin.start_coll(n));
    EXPECT_TRUE(host.wait([&] { return host.values["lockstep::operations"] == 100'000; }));
    EXPECT_EQ(host.values["lockstep::bytes"], 100'000ull * 1024 * 4);
  });
  EXPECT_TRUE(exit.ok()) << exit;
}

TEST_F(ScorepPlugin, CountsWhatTheSimulatedHostPlays) {
  for (const char* const name : {"allreduce", "group_sendrecv", "alltoall", "net_allreduce", "split"}) {
    SCOPED_TRACE(name);
    const Exit exit = run_child(settings(), [name] {
      const sim::Program program = sim::find_script(name)->build(0);
      uint64_t calls = 0, tasks = 0, bytes = 0;
      for (const sim::Start& start : program.starts) {
        const auto& descriptor = start.descriptor;
        calls += descriptor.type == abi::kTypeCollApi || descriptor.type == abi::kTypeP2pApi;
        tasks += descriptor.type == abi::kTypeColl || descriptor.type == abi::kTypeP2p;
        if (descriptor.type == abi::kTypeColl) bytes += descriptor.coll.count * 4;
        if (descriptor.type == abi::kTypeP2p) bytes += descriptor.p2p.count * 4;
      }
      ASSERT_GT(tasks, 0u);
      ScorepHost host({"operations", "bytes", "open"});
      auto library = sim::PluginLibrary::open(LOCKSTEP_LIB_DIR "/liblockstep-nccl.so", 0);
      ASSERT_TRUE(library);
      sim::Behaviour behaviour;
      behaviour.api = library->api();
      behaviour.recorded_api = program.recorded_api;
      sim::Core core(program, behaviour, LOCKSTEP_LIB_DIR "/liblockstep-nccl.so", std::move(*library));
      sim::play(program, {}, &core);
      EXPECT_TRUE(host.wait([&] {
        return host.values["lockstep::operations"] == std::max(calls, tasks) &&
               host.values["lockstep::bytes"] == bytes && host.values["lockstep::open"] == 0;
      })) << host.values["lockstep::operations"]
          << " of " << calls << " calls, " << tasks << " tasks; " << host.values["lockstep::bytes"] << " of "
          << bytes << " bytes; open " << host.values["lockstep::open"];
    });
    EXPECT_TRUE(exit.ok()) << exit;
  }
}

}  // namespace
}  // namespace lockstep::test
