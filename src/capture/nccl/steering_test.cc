// SPDX-License-Identifier: Apache-2.0
// Sampling, and requests that a tool writes into the header of a live process' file: what NCCL's mask holds
// when, and whose deep events are kept.
#include <cstdarg>
#include <set>
#include <thread>

#include "tests/support/nccl_test.h"

// Stands for NCCL's own; the library asks the process for it.
extern "C" __attribute__((visibility("default"))) int ncclGetVersion(int* version);
int ncclGetVersion(int* version) {
  *version = 22809;
  return 0;
}

namespace lockstep::test {
namespace {

using format::ControlRequest;
using format::Kind;
using format::Mode;

// A tool's end of the control words.
class Tool {
 public:
  explicit Tool(const RunDirectory& run) {
    const int fd = open(run.files().at(0).c_str(), O_RDWR | O_CLOEXEC);
    void* memory = mmap(nullptr, format::kHeaderBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    EXPECT_NE(memory, MAP_FAILED);
    close(fd);
    header_ = static_cast<format::FileHeader*>(memory);
  }
  static ControlRequest mode(Mode mode, uint32_t keep = 0, uint32_t of = 0) {
    ControlRequest request{};
    request.what = format::kControlSetMode;
    request.mode = static_cast<uint32_t>(mode);
    request.keep = keep;
    request.of = of;
    return request;
  }
  static int64_t now_ns() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  }
  // Returns when the process has taken, or refused, the request.
  void ask(ControlRequest request) {
    const uint32_t number = header_->control + 1;
    request.check = control_check(request, number);
    put(request);
    put_number(number);
  }
  void ask(Mode mode, uint32_t keep = 0, uint32_t of = 0) { ask(this->mode(mode, keep, of)); }
  void save() {
    ControlRequest request{};
    request.what = format::kControlSave;
    ask(request);
  }
  void put(const ControlRequest& request) {
    const auto* from = reinterpret_cast<const uint32_t*>(&request);
    auto* to = reinterpret_cast<uint32_t*>(&header_->request);
    for (size_t i = 0; i < sizeof request / sizeof *to; ++i)
      __atomic_store_n(to + i, from[i], __ATOMIC_RELAXED);
  }
  void put_number(uint32_t number) {
    __atomic_store_n(&header_->control, number, __ATOMIC_RELEASE);
    LiveHeader::wait([&] { return __atomic_load_n(&header_->in_force.taken, __ATOMIC_ACQUIRE) == number; });
  }
  Mode in_force() const {
    return static_cast<Mode>(__atomic_load_n(&header_->in_force.mode, __ATOMIC_RELAXED));
  }

 private:
  format::FileHeader* header_;
};

// NCCL's part: what it would call with the mask that it read when the operation was called.
template <int kApi>
class Nccl {
 public:
  explicit Nccl(NcclPlugin<kApi>& plugin, void* context) : plugin_(plugin), context_(context) {}

  uint64_t mask() const { return static_cast<uint32_t>(__atomic_load_n(&plugin_.mask, __ATOMIC_RELAXED)); }
  bool is_deep() const { return (mask() & abi::kTypeProxyOp) != 0; }
  uint64_t deep_operations() const { return deep_; }

  void all_reduce(uint64_t seq, uint64_t count = 1024) {
    plugin_.context = context_;
    const uint64_t snapshot = mask();
    void* api = nullptr;
    if constexpr (kApi >= 5) {
      void* group_api = plugin_.start_group_api();
      auto call = plugin_.descriptor(abi::kTypeCollApi, group_api);
      call.coll_api.func = "AllReduce";
      call.coll_api.datatype = "ncclFloat32";
      call.coll_api.count = count;
      call.coll_api.stream = nullptr;
      call.coll_api.graph_captured = false;
      if constexpr (kApi >= 7) call.coll_api.user_tag = 0;
      api = plugin_.start(call);
      plugin_.stop(api);
      plugin_.stop(group_api);
    }
    void* group = plugin_.start(abi::kTypeGroup);
    if ((snapshot & (abi::kTypeColl | abi::kTypeProxyOp)) == 0) return;
    auto task = plugin_.coll(seq, kApi >= 5 ? api : group, count);
    if constexpr (kApi >= 5) task.coll.parent_group = group;
    void* coll = plugin_.start(task);
    plugin_.stop(coll);
    plugin_.stop(group);
    below(coll, snapshot);
  }
  // One transfer; `queued` is called between the call and the launch.
  template <class Queued>
  void transfer(bool send, int peer, Queued queued) {
    plugin_.context = context_;
    const uint64_t snapshot = mask();
    void* api = nullptr;
    if constexpr (kApi >= 5) {
      auto call = plugin_.descriptor(abi::kTypeP2pApi);
      call.p2p_api.func = send ? "Send" : "Recv";
      call.p2p_api.datatype = "ncclFloat32";
      call.p2p_api.count = 64;
      call.p2p_api.stream = nullptr;
      call.p2p_api.graph_captured = false;
      if constexpr (kApi >= 7) call.p2p_api.user_tag = 0;
      api = plugin_.start(call);
      plugin_.stop(api);
    }
    queued();
    void* group = plugin_.start(abi::kTypeGroup);
    auto task = plugin_.p2p(peer, kApi >= 5 ? api : group);
    if constexpr (kApi == 1)
      task.p2p.func = send ? 6 : 7;
    else
      task.p2p.func = send ? "Send" : "Recv";
    if constexpr (kApi >= 5) task.p2p.parent_group = group;
    void* p2p = plugin_.start(task);
    plugin_.stop(p2p);
    plugin_.stop(group);
    below(p2p, snapshot);
  }
  void transfer(bool send, int peer) {
    transfer(send, peer, [] {});
  }

 private:
  void below(void* task, uint64_t snapshot) {
    if ((snapshot & abi::kTypeProxyOp) == 0) return;
    ++deep_;
    void* op = plugin_.start_proxy_op(task);
    void* step = plugin_.start_proxy_step(op, 0);
    plugin_.state_with(step, 8, 0);
    plugin_.stop(step);
    plugin_.stop(op);
    if (kApi < 3 || (snapshot & abi::kTypeKernelCh) == 0) return;
    void* kernel = plugin_.start_kernel_ch(task);
    plugin_.state_with(kernel, 22, 2000);
    plugin_.stop(kernel);
  }

  NcclPlugin<kApi>& plugin_;
  void* context_;
  uint64_t deep_ = 0;
};

// Which collectives have proxy operations, by comm and number.
std::set<std::pair<uint32_t, uint64_t>> deep_collectives(const LksFile& file) {
  std::set<std::pair<uint32_t, uint64_t>> found;
  for (const auto& op : file.all<format::ProxyOpRecord>(Kind::kProxyOp)) {
    const Entry parent = file.at(op.parent);
    EXPECT_TRUE(parent.is(Kind::kColl)) << std::hex << op.parent;
    if (!parent.is(Kind::kColl)) continue;
    const auto coll = parent.as<format::CollRecord>();
    found.emplace(coll.comm, coll.seq);
  }
  return found;
}

template <class Version>
class Sampling : public NcclCaptureOfVersion<Version> {};
TYPED_TEST_SUITE(Sampling, AllVersions);

// NCCL is asked for deep events of just these operations, and the records are whole.
TYPED_TEST(Sampling, AsksForTheChosenOperationsOnly) {
  LksFile file = this->record(this->settings("sample=1/4"), [] {
    typename TestFixture::Plugin plugin;
    Nccl<TestFixture::kApi> nccl(plugin, plugin.init());
    for (uint64_t i = 0; i < 40; ++i) {
      EXPECT_EQ(nccl.is_deep(), i % 4 == 3) << i;
      nccl.all_reduce(i);
    }
    EXPECT_EQ(nccl.deep_operations(), 10u);
  });
  EXPECT_TRUE(file.problems().empty());
  EXPECT_EQ(file.lost(), 0u);
  std::set<std::pair<uint32_t, uint64_t>> expected;
  for (uint64_t i = 3; i < 40; i += 4) expected.emplace(0, i);
  EXPECT_EQ(deep_collectives(file), expected);
  EXPECT_EQ(file.count(Kind::kColl), 40u);
  EXPECT_EQ(file.count(Kind::kProxyStep), 10u);
  EXPECT_EQ(file.count(Kind::kKernelCh), TestFixture::kApi >= 3 ? 10u : 0u);
  for (const auto& coll : file.all<format::CollRecord>(Kind::kColl)) {
    EXPECT_NE(coll.head.flags & format::kFlagStopped, 0);
    EXPECT_NE(coll.head.link, format::kFarLink) << "parents are still found in place";
  }
}

// The mask is one for the process: an operation of another communicator may be watched, but is not kept.
TYPED_TEST(Sampling, ChoosesByTheNumberOnTheCommunicator) {
  LksFile file = this->record(this->settings("sample=1/5"), [] {
    typename TestFixture::Plugin plugin;
    Nccl<TestFixture::kApi> a(plugin, plugin.init(1)), b(plugin, plugin.init(2));
    for (uint64_t i = 0; i < 30; ++i) {
      a.all_reduce(i);
      if (i % 3 != 0) b.all_reduce(i / 3 * 2 + i % 3 - 1);
    }
  });
  std::set<std::pair<uint32_t, uint64_t>> expected;
  for (uint64_t i = 4; i < 30; i += 5) expected.emplace(0, i);
  for (uint64_t i = 4; i < 20; i += 5) expected.emplace(1, i);
  EXPECT_EQ(deep_collectives(file), expected);
  EXPECT_EQ(file.lost(), 0u);
}

class Steering : public NcclCapture {
 protected:
  // Comm and number on its pair of each transfer with a proxy operation.
  static std::set<std::pair<uint32_t, uint64_t>> deep_transfers(const LksFile& file) {
    std::map<std::tuple<uint32_t, int32_t, std::string>, uint64_t> numbers;
    std::map<uint64_t, std::pair<uint32_t, uint64_t>> by_handle;
    for (const Entry& entry : file.records(Kind::kP2p)) {
      const auto p2p = entry.as<format::P2pRecord>();
      by_handle[entry.handle()] = {p2p.comm,
                                   numbers[{p2p.comm, p2p.peer, file.shape(entry.log, p2p.shape).func}]++};
    }
    std::set<std::pair<uint32_t, uint64_t>> found;
    for (const auto& op : file.all<format::ProxyOpRecord>(Kind::kProxyOp)) {
      if (by_handle.contains(op.parent)) found.insert(by_handle[op.parent]);
    }
    return found;
  }
  std::vector<Mode> modes(const LksFile& file) const {
    std::vector<Mode> modes;
    for (const auto& def : file.all<format::ModeDef>(format::Def::kMode))
      modes.push_back(static_cast<Mode>(def.mode));
    return modes;
  }
};

// Two ends of a pair see different traffic otherwise, and choose the same transfers.
TEST_F(Steering, ASendAndItsReceiveAreChosenAlike) {
  LksFile file = record(settings("sample=1/4"), [] {
    NcclPlugin<6> plugin;
    Nccl<6> sender(plugin, plugin.init(1, nullptr, 8, 0)), receiver(plugin, plugin.init(1, nullptr, 8, 5));
    for (uint64_t i = 0; i < 24; ++i) {
      sender.transfer(true, 5);
      if (i % 2 == 0) sender.transfer(true, 6);
      if (i % 5 == 0) sender.all_reduce(i);
      receiver.transfer(false, 0);
    }
  });
  std::set<uint64_t> sent, received;
  for (auto [comm, number] : deep_transfers(file)) (comm == 0 ? sent : received).insert(number);
  for (uint64_t i = 3; i < 24; i += 4) {
    EXPECT_TRUE(sent.contains(i)) << i;
    EXPECT_TRUE(received.contains(i)) << i;
  }
  EXPECT_EQ(received.size(), 6u);
}

TEST_F(Steering, ADeepWindowOpensAndClosesInALiteProcess) {
  LksFile file = record(settings("lite"), [&] {
    NcclPlugin<6> plugin;
    Nccl<6> nccl(plugin, plugin.init());
    Tool tool(run_);
    nccl.all_reduce(0);
    EXPECT_FALSE(nccl.is_deep());
    ControlRequest request = Tool::mode(Mode::kDeep);
    request.until_monotonic_ns = Tool::now_ns() + 300'000'000;
    tool.ask(request);
    EXPECT_EQ(nccl.mask(), 0x7fffu);
    nccl.all_reduce(1);
    LiveHeader::wait([&] { return tool.in_force() == Mode::kLite && !nccl.is_deep(); });
    nccl.all_reduce(2);
  });
  EXPECT_EQ(deep_collectives(file), (std::set<std::pair<uint32_t, uint64_t>>{{0, 1}}));
  EXPECT_EQ(modes(file), (std::vector{Mode::kLite, Mode::kDeep, Mode::kLite}));
  EXPECT_EQ(file.all<format::ModeDef>(format::Def::kMode)[2].reason, format::ModeReason::kWindowEnd);
  EXPECT_EQ(file.header().mode, Mode::kLite);
  EXPECT_EQ(file.count(Kind::kGroup), 1u) << "lite keeps no plans";
}

TEST_F(Steering, DeepEventsOfOneCommunicatorAndOfLargeOperations) {
  LksFile file = record(settings("default"), [&] {
    NcclPlugin<6> plugin;
    Nccl<6> a(plugin, plugin.init(0xa)), b(plugin, plugin.init(0xb));
    Tool tool(run_);
    ControlRequest request = Tool::mode(Mode::kDeep);
    request.comms = 1;
    request.comm_ids[0] = 0xb;
    request.min_bytes = 4096;
    tool.ask(request);
    a.all_reduce(0, 1 << 20);
    b.all_reduce(0, 1024);  // 4096 bytes
    b.all_reduce(1, 1023);
    request.comm_ids[0] = 0xc;  // nobody here
    tool.ask(request);
    EXPECT_FALSE(a.is_deep()) << "NCCL pays nothing in a process without such a communicator";
    b.all_reduce(2, 1024);
    Nccl<6> c(plugin, plugin.init(0xc));
    LiveHeader::wait([&] { return c.is_deep(); });
    c.all_reduce(0, 1024);
  });
  EXPECT_EQ(deep_collectives(file), (std::set<std::pair<uint32_t, uint64_t>>{{1, 0}, {2, 0}}));
  EXPECT_EQ(file.lost(), 0u);
}

// What is read is the file, without what is in memory.
TEST_F(Steering, ARingIsWrittenWhenThatIsAskedFor) {
  const Exit exit = run_child(settings("lite", "ring:1M"), [&] {
    NcclPlugin<5> plugin;
    plugin.init();
    for (uint64_t i = 0; i < 100; ++i) plugin.stop(plugin.start_coll(i));
    const std::string path = run_.files().at(0), copy = run_.path() + "/copy";
    EXPECT_EQ(std::filesystem::file_size(path) == format::kHeaderBytes, LksFile::has_segment(path));
    for (uint64_t asked = 1; asked <= 2; ++asked) {
      Tool(run_).save();
      std::filesystem::copy_file(path, copy, std::filesystem::copy_options::overwrite_existing);
      LksFile::forget_segment(copy);
      EXPECT_EQ(LksFile(copy).count(Kind::kColl), 100 * asked);
      for (uint64_t i = 0; i < 100; ++i) plugin.stop(plugin.start_coll(i));
    }
  });
  EXPECT_TRUE(exit.ok()) << exit;
  EXPECT_EQ(run_.file().count(Kind::kColl), 300u);
}

TEST_F(Steering, OffCountsOnAndRecordsNothing) {
  LksFile file = record(settings("default"), [&] {
    NcclPlugin<6> plugin;
    Nccl<6> nccl(plugin, plugin.init());
    Tool tool(run_);
    nccl.all_reduce(0);
    tool.ask(Mode::kOff);
    for (uint64_t i = 1; i < 6; ++i) nccl.all_reduce(i);
    nccl.transfer(true, 1);
    tool.ask(Mode::kSample, 1, 4);
    for (uint64_t i = 6; i < 16; ++i) nccl.all_reduce(i);
  });
  EXPECT_EQ(file.count(Kind::kColl), 11u);
  EXPECT_EQ(file.count(Kind::kP2p), 0u);
  EXPECT_EQ(deep_collectives(file), (std::set<std::pair<uint32_t, uint64_t>>{{0, 7}, {0, 11}, {0, 15}}));
  EXPECT_EQ(modes(file), (std::vector{Mode::kDefault, Mode::kOff, Mode::kSample}));
}

// NCCL 2.27 to 2.30: with a receive queued and its send not, the kernel bits must stay as they are.
template <int kApi>
void expect_kernel_bits_wait(const RunDirectory& run, bool waits) {
  NcclPlugin<kApi> plugin;
  Nccl<kApi> nccl(plugin, plugin.init());
  Tool tool(run);
  nccl.transfer(false, 1);
  nccl.transfer(false, 1, [&] {
    tool.ask(Mode::kDeep);
    EXPECT_EQ((nccl.mask() & abi::kTypeKernelCh) == 0, waits);
    EXPECT_TRUE(nccl.is_deep()) << "the others need not wait";
  });
  EXPECT_NE(nccl.mask() & abi::kTypeKernelCh, 0u) << "at the launch they change";
}
TEST_F(Steering, KernelBitsDoNotChangeWhileAReceiveIsQueued) {
  record(settings("default"), [&] { expect_kernel_bits_wait<6>(run_, true); });
  std::filesystem::remove_all(run_.path());
  record(settings("default"), [&] { expect_kernel_bits_wait<4>(run_, true); });
  std::filesystem::remove_all(run_.path());
  record(settings("default"), [&] { expect_kernel_bits_wait<7>(run_, false); });
}

// A thread that samples must not change them under another one that sends.
TEST_F(Steering, SamplesNoKernelsUnderAnotherThreadsSends) {
  LksFile file = record(settings("sample=1/4"), [] {
    NcclPlugin<6> plugin;
    void* context = plugin.init();
    Nccl<6> nccl(plugin, context);
    nccl.all_reduce(0);
    std::atomic<bool> sent{false}, done{false};
    std::thread sends([&] {
      Nccl<6>(plugin, context).transfer(true, 1);
      sent = true;
      LiveHeader::wait([&] { return done.load(); });
    });
    LiveHeader::wait([&] { return sent.load(); });
    for (uint64_t i = 1; i < 16; ++i) {
      EXPECT_EQ(nccl.mask() & abi::kTypeKernelCh, 0u);
      nccl.all_reduce(i);
    }
    done = true;
    sends.join();
  });
  EXPECT_EQ(file.count(Kind::kKernelCh), 0u);
  EXPECT_EQ(file.lost(capture::kLoss_sample_missed), 4u) << "said, not hidden";
  EXPECT_EQ(deep_collectives(file).size(), 4u) << "network events are there";
}

// A communicator that stops just before its sampled operation does not keep NCCL slow for the others.
TEST_F(Steering, AnIdleCommunicatorIsNotWaitedForForEver) {
  record(settings("sample=1/10"), [] {
    NcclPlugin<6> plugin;
    Nccl<6> idle(plugin, plugin.init(1)), busy(plugin, plugin.init(2));
    for (uint64_t i = 0; i < 9; ++i) idle.all_reduce(i);
    for (uint64_t i = 0; i < 5000; ++i) busy.all_reduce(i);
    EXPECT_LT(busy.deep_operations(), 2000u);
  });
}

TEST_F(Steering, MarksAreRecordedWithTheirText) {
  LksFile file = record([&] {
    NcclPlugin<6> plugin;
    plugin.init();
    Tool tool(run_);
    for (const char* text : {"before", "after"}) {
      ControlRequest request{};
      request.what = format::kControlMark;
      memcpy(request.text, text, strlen(text));
      tool.ask(request);
    }
  });
  std::vector<std::string> names;
  for (const Entry& entry : file.records(Kind::kMark))
    names.emplace_back(file.shape(entry.log, entry.as<format::MarkRecord>().shape).func);
  EXPECT_EQ(names, (std::vector<std::string>{"before", "after"}));
}

TEST_F(Steering, GarbageChangesNothingAndIsCounted) {
  LksFile file = record(settings("default"), [&] {
    NcclPlugin<6> plugin;
    Nccl<6> nccl(plugin, plugin.init());
    Tool tool(run_);
    const uint64_t before = nccl.mask();
    tool.put_number(0xdeadbeef);
    ControlRequest garbage;
    memset(static_cast<void*>(&garbage), 0xa5, sizeof garbage);
    tool.put(garbage);
    tool.put_number(2);
    EXPECT_EQ(nccl.mask(), before);
    nccl.all_reduce(0);
  });
  EXPECT_EQ(file.lost(capture::kLoss_bad_control), 2u);
  EXPECT_EQ(file.lost(), 2u);
  EXPECT_EQ(modes(file), (std::vector{Mode::kDefault}));
}

// NCCL may be unloaded with its last communicator, and its word with it.
TEST_F(Steering, TheMaskIsLeftAloneOnceNobodyReadsIt) {
  record(settings("default"), [&] {
    NcclPlugin<6> plugin;
    void* context = plugin.init();
    plugin.finalize(context);
    plugin.mask = 12345;
    Tool tool(run_);
    tool.ask(Mode::kDeep);
    EXPECT_EQ(plugin.mask, 12345);
    plugin.init();
    EXPECT_EQ(plugin.mask, 0x7fff) << "and is right again for the next";
  });
}

int g_warnings = 0;
void count_warnings(int level, unsigned long, const char*, int, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  g_warnings += level == abi::kLogWarn && strstr(va_arg(arguments, const char*), "slows down") != nullptr;
  va_end(arguments);
}

TEST_F(Steering, WarnsOnceOfWhatDeepCostsThisNccl) {
  for (const char* mode : {"deep", "default", "sample=1/100"}) {
    record(settings(mode), [&] {
      NcclPlugin<5> plugin;
      plugin.init(1, nullptr, 8, 0, count_warnings);
      plugin.init(2, nullptr, 8, 0, count_warnings);
      EXPECT_EQ(g_warnings, strcmp(mode, "deep") == 0 ? 1 : 0) << mode;
    });
    std::filesystem::remove_all(run_.path());
  }
}

// Threads of several communicators while requests come in; for the thread sanitizer, and so that nothing is
// lost.
TEST_F(Steering, ManyThreadsWhileModesChange) {
  constexpr uint64_t kOperations = 3000;
  LksFile file = record(settings("default", "stream"), [&] {
    NcclPlugin<7> plugin;
    void* contexts[] = {plugin.init(1), plugin.init(2), plugin.init(3)};
    Tool tool(run_);
    std::atomic<bool> done{false};
    std::vector<std::thread> threads;
    for (void* context : contexts) {
      threads.emplace_back([&, context] {
        NcclPlugin<7> own;  // descriptors and context of its own; the library is the same
        own.context = context;
        for (uint64_t i = 0; i < kOperations; ++i) {
          void* api = own.start_group_api();
          void* coll = own.start_coll(i, api);
          void* kernel = own.start_kernel_ch(coll);
          own.stop(kernel);
          own.stop(coll);
          own.stop(api);
        }
      });
    }
    std::thread steers([&] {
      for (int i = 0; !done || i < 6; ++i) {
        constexpr Mode kModes[] = {Mode::kSample, Mode::kDeep, Mode::kLite};
        const Mode mode = kModes[i % 3];
        tool.ask(mode, mode == Mode::kSample ? 1 : 0, mode == Mode::kSample ? 3 : 0);
      }
      tool.ask(Mode::kDeep);
    });
    for (std::thread& thread : threads) thread.join();
    done = true;
    steers.join();
  });
  EXPECT_TRUE(file.problems().empty());
  EXPECT_EQ(file.count(Kind::kColl), 3 * kOperations);
  EXPECT_EQ(file.lost(capture::kLoss_unknown_handle), 0u);
}

}  // namespace
}  // namespace lockstep::test
