// SPDX-License-Identifier: Apache-2.0
// RCCL's v6 has structs and numbers of its own (capture/nccl/abi/rccl.h). Here a host passes exactly those,
// and NCCL's of every version, at the end of readable memory: alone, and with another plugin of any version
// behind ours.
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "tests/support/guarded.h"
#include "tests/support/nccl_test.h"

namespace lockstep::test {
namespace {

namespace rccl = abi::rccl_v6;

constexpr uint64_t kCommHash = 0xfeed'0000'0000'0001;
constexpr int kDiagBit = static_cast<int>(rccl::kTypeProxyDiag);

std::string library(const std::string& name) { return LOCKSTEP_LIB_DIR "/lib" + name + ".so"; }
std::string echo_of(int version) { return library("echo-plugin-v" + std::to_string(version)); }

void log_nothing(int, unsigned long, const char*, int, const char*, ...) {}

// Calls as RCCL does. What it passes dies with the call.
class RcclHost {
 public:
  RcclHost() {
    void* const handle = dlopen(library("lockstep-nccl").c_str(), RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(handle, nullptr) << dlerror();
    plugin_ = static_cast<rccl::Plugin*>(dlsym(handle, "ncclProfiler_v6"));
    EXPECT_NE(plugin_, nullptr);
    EXPECT_EQ(plugin_->init(&context_, kCommHash, &mask, "dp", 1, 2, 0, log_nothing), 0);
  }
  void* start(uint64_t type, void* parent, auto fill) {
    Guarded<rccl::Descriptor> d;
    memset(static_cast<void*>(d.get()), 0, sizeof *d.get());
    d->type = type;
    d->parent = parent;
    fill(d.get());
    void* handle = pointer(kPoison);
    EXPECT_EQ(plugin_->start_event(context_, &handle, d.get()), 0);
    EXPECT_NE(handle, pointer(kPoison));
    return handle;
  }
  void state(void* handle, int state, const rccl::StateArgs& args = {}) {
    const Guarded<rccl::StateArgs> copy(args);
    EXPECT_EQ(plugin_->record_event_state(handle, static_cast<abi::State>(state), copy.get()), 0);
  }
  void diagnose(void* handle, uint8_t kind, int64_t value) {
    rccl::StateArgs args{};
    args.proxy_diag = {kind, 0, 1, value, -value};
    state(handle, rccl::kProxyDiagUpdate, args);
  }
  void stop(void* handle) { plugin_->stop_event(handle); }
  void finalize() { plugin_->finalize(context_); }

  // The extra fields are there where diagnoses are asked for.
  void* start_proxy_op(void* parent) {
    return start(abi::kTypeProxyOp, parent, [this](rccl::Descriptor* d) {
      d->proxy_op = {getpid(), 3, 1, 4, 1 << 20, 1, 0, 0, 0, 0, 0, 0, 0, 0};
      if ((mask & kDiagBit) == 0) return;
      d->proxy_op.comm_hash = kCommHash, d->proxy_op.op_count = 77, d->proxy_op.func = 4;
      d->proxy_op.total_bytes = 1 << 22, d->proxy_op.raw_steps = 8;
    });
  }
  // An all-reduce over the network; the states in between may come from another thread.
  void all_reduce(bool other_thread = false) {
    void* const group = start(abi::kTypeGroupApi, nullptr, [](auto* d) { d->group_api = {false, 1}; });
    void* const call = start(abi::kTypeCollApi, group, [](auto* d) {
      d->coll_api = {"AllReduce", 1024, "ncclFloat32", 0, nullptr, false};
    });
    void* const coll = start(abi::kTypeColl, call, [](auto* d) {
      d->coll = {9, "AllReduce", nullptr, nullptr, 1024, 0, "ncclFloat32", 1, 4, "RING", "SIMPLE", nullptr};
    });
    const auto network = [&] {
      void* const op = start_proxy_op(coll);
      state(op, abi::kProxyOpInProgress);
      const auto rest = [&, op] {
        for (uint8_t kind = 0; kind < 4; ++kind) diagnose(op, kind, 1000 + kind);
      };
      if (other_thread)
        std::thread(rest).join();
      else
        rest();
      void* const step = start(abi::kTypeProxyStep, op, [](auto* d) { d->proxy_step.step = 0; });
      rccl::StateArgs args{};
      args.nccl.proxy_step.trans_size = 4096;
      state(step, abi::kProxyStepSendGpuWait, args);
      state(step, abi::kProxyStepSendWait, args);
      stop(step);
      stop(op);
    };
    network();
    // A reduction by copy engines, which RCCL has and NCCL does not.
    stop(start(abi::kTypeCeColl, call, [](auto* d) {
      d->ce_coll = {1, "AllReduce", nullptr, nullptr, 256, 0, "ncclFloat32", "None", false, 1, 1, 1, nullptr};
    }));
    for (void* handle : {coll, call, group}) stop(handle);
  }

  int mask = -1;

 private:
  rccl::Plugin* plugin_ = nullptr;
  void* context_ = nullptr;
};

class Rccl : public NcclCapture {
 protected:
  std::string log_path() const { return folder_ / "calls"; }
  Environment chained(const std::string& plugin, const char* mode, Environment more = {}) const {
    Environment all = settings(mode);
    all.insert(all.end(), {{"LOCKSTEP_CHAIN", plugin}, {"RCCL_LOG", log_path()}, {"ECHO_LOG", log_path()}});
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  std::vector<std::string> calls() const {
    std::vector<std::string> lines;
    std::ifstream in(log_path());
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }
  size_t count_calls(const std::string& part) const {
    const auto lines = calls();
    return static_cast<size_t>(std::count_if(lines.begin(), lines.end(), [&](const std::string& line) {
      return line.find(part) != std::string::npos;
    }));
  }
  size_t count_lines(const std::string& line) const {
    const auto lines = calls();
    return static_cast<size_t>(std::count(lines.begin(), lines.end(), line));
  }

  static void expect_whole(const LksFile& file) {
    EXPECT_EQ(file.lost(), 0u);
    for (const Entry& entry : file.records())
      if (entry.is(format::Kind::kState)) {
        EXPECT_NE(entry.head().link, rccl::kProxyDiagUpdate);
      }
    const auto ops = file.all<format::ProxyOpRecord>(format::Kind::kProxyOp);
    ASSERT_EQ(ops.size(), 1u);
    EXPECT_EQ(ops[0].peer, 1);
    EXPECT_EQ(ops[0].steps, 4);
    EXPECT_EQ(ops[0].chunk_size, 1 << 20);
    EXPECT_NE(ops[0].in_progress_after, 0u);
    const auto steps = file.all<format::ProxyStepRecord>(format::Kind::kProxyStep);
    ASSERT_EQ(steps.size(), 1u);
    EXPECT_EQ(steps[0].bytes, 4096u);
    EXPECT_EQ(file.count(format::Kind::kCeColl), 1u);
  }

 private:
  const TemporaryFolder folder_;
};

TEST_F(Rccl, DiagnosesAreNotAskedForAndAreNoLoss) {
  for (const bool other_thread : {false, true}) {
    SCOPED_TRACE(other_thread);
    RunDirectory run;
    const Exit exit = run_child({{"LOCKSTEP_DIR", run.path()}, {"LOCKSTEP_MODE", "deep"}}, [=] {
      RcclHost host;
      EXPECT_EQ(host.mask & kDiagBit, 0);
      host.all_reduce(other_thread);
      host.finalize();
    });
    EXPECT_TRUE(exit.ok()) << exit;
    expect_whole(run.file());
  }
}

TEST_F(Rccl, NoModeAsksForDiagnoses) {
  for (const char* mode : {"off", "lite", "default", "deep", "sample=1/2"}) {
    const Exit exit = run_child(settings(mode), [] {
      RcclHost host;
      EXPECT_EQ(host.mask & kDiagBit, 0);
      host.all_reduce();
    });
    EXPECT_TRUE(exit.ok()) << mode << ": " << exit;
  }
}

TEST_F(Rccl, ItsOwnPluginGetsAllOfItsOwnBehindOurs) {
  for (const char* mode : {"off", "lite", "deep"}) {
    SCOPED_TRACE(mode);
    std::filesystem::remove(log_path());
    RunDirectory run;
    Environment environment = chained(library("rccl-plugin"), mode);
    environment[0].second = run.path();
    const Exit exit = run_child(environment, [] {
      RcclHost host;
      EXPECT_EQ(host.mask & 0x8018, 0x8018);
      host.all_reduce();
      host.finalize();
    });
    EXPECT_TRUE(exit.ok()) << exit;
    EXPECT_EQ(count_calls("start 8 0x1"), 1u);
    EXPECT_EQ(count_calls(" feed000000000001 77 4 4194304 8"), 1u) << "what RCCL adds to a ProxyOp";
    EXPECT_EQ(count_lines("start 10"), 1u);
    for (int kind = 0; kind < 4; ++kind) {
      const std::string value = std::to_string(1000 + kind);
      EXPECT_EQ(count_calls(" " + std::to_string(kind) + " 1 " + value + " -" + value), 1u);
    }
    EXPECT_EQ(count_calls("state 31 0x1"), 4u) << "each with the plugin's own handle";
    if (std::string(mode) == "deep") expect_whole(run.file());
  }
}

// As RCCL does, which takes the bit alone for a wish for network operations.
TEST_F(Rccl, DiagnosesAloneBringNetworkOperations) {
  const Exit exit = run_child(chained(library("rccl-plugin"), "lite", {{"RCCL_MASK", "0x8000"}}), [] {
    RcclHost host;
    EXPECT_EQ(host.mask & kDiagBit, kDiagBit);
    host.all_reduce();
  });
  EXPECT_TRUE(exit.ok()) << exit;
  EXPECT_EQ(count_calls("start 8 "), 1u);
  EXPECT_EQ(count_lines("start 10"), 1u);
  EXPECT_EQ(count_calls("state 31 "), 4u);
  EXPECT_EQ(count_lines("start 2"), 0u) << "no tasks";
}

// NCCL's numbers of v7 are RCCL's of v6: a plugin of v7 must not take one for the other, nor switch
// diagnoses on when it asks for phases of kernels, at the start or later.
TEST_F(Rccl, PluginsOfNcclAreNotToldWhatTheyWouldMisread) {
  for (int version : {1, 2, 3, 4, 5, 7}) {
    for (const char* later : {"1000:0", "2:0xffff"}) {
      SCOPED_TRACE("v" + std::to_string(version) + ", later " + later);
      std::filesystem::remove(log_path());
      const Exit exit = run_child(
          chained(echo_of(version), "deep", {{"ECHO_MASK", "0xffff"}, {"ECHO_MASK_LATER", later}}), [] {
            RcclHost host;
            EXPECT_EQ(host.mask & kDiagBit, 0);
            host.all_reduce();
            EXPECT_EQ(host.mask & kDiagBit, 0);
            void* const op = host.start_proxy_op(nullptr);
            host.diagnose(op, 1, 5);
            host.stop(op);
            host.stop(host.start(rccl::kTypeProxyDiag, op, [](auto*) {}));
          });
      EXPECT_TRUE(exit.ok()) << exit;
      EXPECT_GT(count_calls("\"call\":\"start\""), 3u);
      EXPECT_EQ(count_calls("\"state\":31"), 0u);
      EXPECT_EQ(count_calls("\"type\":32768"), 0u);
    }
  }
}

// Whoever calls, and whoever is behind us.
template <class Version>
class AtTheEndOfMemory : public NcclCaptureOfVersion<Version> {};
TYPED_TEST_SUITE(AtTheEndOfMemory, AllVersions);

TYPED_TEST(AtTheEndOfMemory, NothingBehindAStructIsTouched) {
  using Plugin = typename TestFixture::Plugin;
  std::vector<std::string> others{"none", library("rccl-plugin")};
  for (int version = 1; version <= 7; ++version) others.push_back(echo_of(version));
  for (const std::string& other : others) {
    SCOPED_TRACE(other);
    Environment environment = this->settings();
    environment.insert(environment.end(), {{"LOCKSTEP_CHAIN", other}, {"ECHO_LOG", "/dev/null"}});
    const Exit exit = run_child(environment, [] {
      Plugin plugin;
      plugin.init(1, nullptr, 8, 3, log_nothing);
      // All bytes 0, so that any name is none.
      Guarded<typename Plugin::Descriptor> d;
      std::vector<void*> handles;
      for (uint64_t type = 1; type <= 0x8000; type <<= 1) {
        if (TestFixture::kApi <= 4 && type > 0x80) break;
        memset(static_cast<void*>(d.get()), 0, sizeof *d.get());
        d->type = static_cast<decltype(d->type)>(type);
        d->parent = handles.empty() ? nullptr : handles.back();
        handles.push_back(plugin.start(*d.get()));
      }
      const Guarded<typename Plugin::Args> args;
      memset(static_cast<void*>(args.get()), 0, sizeof *args.get());
      for (void* handle : handles) {
        for (int state = 0; state < 40; ++state) {
          if (TestFixture::kApi == 6 && state == rccl::kProxyDiagUpdate) continue;  // NCCL's has none
          plugin.state(handle, state, args.get());
        }
        plugin.stop(handle);
      }
    });
    EXPECT_TRUE(exit.ok()) << exit;
  }
}

}  // namespace
}  // namespace lockstep::test
