// SPDX-License-Identifier: Apache-2.0
// What a profiler plugin owes to NCCL (docs/nccl-events.md), a test per promise, at every version of the
// interface.
#include <malloc.h>
#include <string.h>

#include <set>

#include "tests/support/nccl_test.h"

namespace lockstep::test {
namespace {

using format::Kind;

template <class Version>
class Conformance : public NcclCaptureOfVersion<Version> {};
TYPED_TEST_SUITE(Conformance, AllVersions);

int g_messages;
void count_message(int, unsigned long, const char*, int, const char*, ...) { ++g_messages; }

TYPED_TEST(Conformance, ExportsAWholePlugin) {
  this->record([] {
    typename TestFixture::Plugin plugin;
    EXPECT_STREQ(plugin.vtable().name, "lockstep");
    EXPECT_NE(plugin.vtable().init, nullptr);
    EXPECT_NE(plugin.vtable().start_event, nullptr);
    EXPECT_NE(plugin.vtable().stop_event, nullptr);
    EXPECT_NE(plugin.vtable().record_event_state, nullptr);
    EXPECT_NE(plugin.vtable().finalize, nullptr);
    plugin.init();
  });
}

TYPED_TEST(Conformance, InitSucceedsAndCopiesTheName) {
  LksFile file = this->record([] {
    typename TestFixture::Plugin plugin;
    char name[] = "data-parallel";
    EXPECT_NE(plugin.init(0x77, name), nullptr);
    memset(name, 'x', sizeof name - 1);
    EXPECT_NE(plugin.init(0x78, nullptr), nullptr);
  });
  auto comms = file.template all<format::CommDef>(format::Def::kComm);
  ASSERT_EQ(comms.size(), 2u);
  EXPECT_EQ(comms[0].api_version, static_cast<uint32_t>(TestFixture::kApi));
  EXPECT_EQ(comms[1].head.id, 1u);
  if (TestFixture::kApi >= 4) {
    EXPECT_STREQ(comms[0].name, "data-parallel");
    EXPECT_STREQ(comms[1].name, "");
    EXPECT_EQ(comms[0].comm_id, 0x77u);
    EXPECT_EQ(comms[0].ranks, 8);
    EXPECT_EQ(comms[0].rank, 3);
    EXPECT_EQ(comms[0].nodes, 2);
  } else {
    EXPECT_EQ(comms[0].comm_id, 0u);
    EXPECT_EQ(comms[0].rank, -1);
  }
}

TYPED_TEST(Conformance, InitSucceedsWhereNoFileCanBeMade) {
  Environment settings = this->settings();
  settings[0].second = "/proc/no-such-place";
  Exit exit = run_child(settings, [] {
    typename TestFixture::Plugin plugin;
    EXPECT_NE(plugin.init(1, nullptr, 8, 3, count_message), nullptr);
    EXPECT_EQ(plugin.mask, 0);
    void* handle = plugin.start_coll(0);
    plugin.stop(handle);
    plugin.finalize(plugin.context);
    EXPECT_NE(plugin.init(2, nullptr, 8, 3, count_message), nullptr);
    EXPECT_EQ(g_messages, TestFixture::kApi >= 4 ? 1 : 0);
  });
  EXPECT_TRUE(exit.ok()) << exit;
}

TYPED_TEST(Conformance, EveryInitWritesItsOwnMask) {
  this->record([] {
    typename TestFixture::Plugin first, second;
    first.init();
    EXPECT_GT(first.mask, 0);
    EXPECT_EQ(second.mask, -1);
    second.init();
    EXPECT_EQ(first.mask, second.mask);
  });
}

TYPED_TEST(Conformance, TheHandleIsAlwaysWritten) {
  LksFile file = this->record([] {
    typename TestFixture::Plugin plugin;
    plugin.init();
    for (uint64_t type = 1; type < (uint64_t{1} << (TestFixture::kApi <= 4 ? 8 : 18)); type <<= 1) {
      auto d = TestFixture::Plugin::descriptor(type);
      memset(static_cast<void*>(&d), 0, sizeof d);
      d.type = static_cast<decltype(d.type)>(type);
      plugin.start(d);
      plugin.start(d, nullptr);
      plugin.start(d, unmapped());
    }
    plugin.start(uint64_t{0});
    plugin.start(uint64_t{3});
  });
  EXPECT_GE(file.lost(capture::kLoss_unknown_type), 2u);
  EXPECT_GT(file.lost(capture::kLoss_unknown_context), 0u);
}

TYPED_TEST(Conformance, StrangeHandlesAreCountedAndHarmless) {
  constexpr uint64_t kForeign = format::make_handle(6, 900, 12345);
  LksFile file = this->record([] {
    typename TestFixture::Plugin plugin;
    plugin.init();
    void* open = plugin.start_coll(1);
    uint64_t ahead = number(open) + 1000;  // of our log, not yet issued
    for (uint64_t strange :
         {uint64_t{0}, kPoison, kForeign, number(unmapped()), ahead, ~uint64_t{0}, uint64_t{1}}) {
      plugin.stop(pointer(strange));
      for (int state = 0; state < 32; ++state) plugin.state(pointer(strange), state);
    }
    plugin.state(open, -5);
    plugin.state(open, 99);
  });
  EXPECT_EQ(file.records().size() - file.count(Kind::kState), 1u);
  auto coll = file.template one<format::CollRecord>(Kind::kColl);
  EXPECT_EQ(coll.head.stop_after, 0u);
  EXPECT_EQ(coll.seq, 1u);
  EXPECT_EQ(file.lost(capture::kLoss_unknown_state), 2u);
  // Of v6, state 31 is RCCL's and none of ours (rccl_test.cc).
  constexpr uint64_t kCalls = TestFixture::kApi == 6 ? 32 : 33;
  EXPECT_EQ(file.lost(capture::kLoss_unknown_handle) + file.count(Kind::kState), 6 * kCalls);
}

TYPED_TEST(Conformance, HandlesAreNeverUsedAgain) {
  this->record([] {
    typename TestFixture::Plugin plugin;
    void* context = plugin.init();
    std::set<void*> seen;
    for (uint64_t i = 0; i < 5000; ++i) {
      void* handle = plugin.start_coll(i);
      EXPECT_TRUE(seen.insert(handle).second);
      plugin.stop(handle);
    }
    plugin.finalize(context);
    EXPECT_TRUE(seen.insert(plugin.start_coll(0)).second);
  });
}

TYPED_TEST(Conformance, ForeignContextsAndParentsAreRecordedByValue) {
  LksFile file = this->record([] {
    typename TestFixture::Plugin plugin;
    plugin.init();
    auto d = TestFixture::Plugin::proxy_op(pointer(0x000003ad'0000'1000), 4242, false);
    void* op = plugin.start(d, unmapped());
    void* step = plugin.start_proxy_step(op, 0);
    plugin.state_with(step, 10, 7);
    plugin.stop(step);
    plugin.stop(op);
  });
  auto op = file.template one<format::ProxyOpRecord>(Kind::kProxyOp);
  EXPECT_EQ(op.parent, 0x000003ad'0000'1000u);
  EXPECT_EQ(op.context, number(unmapped()));
  EXPECT_EQ(op.pid, 4242);
  EXPECT_EQ(op.rank, 5);
  EXPECT_EQ(op.channel, 2);
  EXPECT_EQ(op.peer, 7);
  EXPECT_EQ(op.steps, 12);
  EXPECT_EQ(op.head.flags, format::kFlagForeign | format::kFlagStopped);
  EXPECT_EQ(file.template one<format::ProxyStepRecord>(Kind::kProxyStep).parent,
            file.records(Kind::kProxyOp)[0].handle());
  EXPECT_EQ(file.lost(), 0u);
}

TYPED_TEST(Conformance, OwnProxyOpsAreNotForeign) {
  LksFile file = this->record([] {
    typename TestFixture::Plugin plugin;
    plugin.init();
    plugin.start_proxy_op(nullptr);
    auto other_pid = TestFixture::Plugin::proxy_op(nullptr, 1);
    plugin.start(other_pid);
  });
  auto ops = file.template all<format::ProxyOpRecord>(Kind::kProxyOp);
  ASSERT_EQ(ops.size(), 2u);
  EXPECT_EQ(ops[0].head.flags, format::kFlagSend);
  EXPECT_EQ(ops[1].head.flags, format::kFlagSend | format::kFlagForeign);
}

TYPED_TEST(Conformance, EventsAfterFinalizeAreKept) {
  LksFile file = this->record([] {
    typename TestFixture::Plugin plugin;
    void* context = plugin.init();
    void* before = plugin.start_coll(0);
    plugin.finalize(context);
    plugin.stop(before);
    plugin.stop(plugin.start_coll(1));
    plugin.stop(plugin.start(abi::kTypeProxyCtrl));
    plugin.finalize(context);
    plugin.finalize(nullptr);
    plugin.finalize(unmapped());
  });
  auto colls = file.template all<format::CollRecord>(Kind::kColl);
  ASSERT_EQ(colls.size(), 2u);
  for (const auto& coll : colls) {
    EXPECT_EQ(coll.comm, 0u);
    EXPECT_NE(coll.head.stop_after, 0u);
  }
  EXPECT_EQ(file.template one<format::ProxyCtrlRecord>(Kind::kProxyCtrl).comm, 0u);
  EXPECT_EQ(file.count(format::Def::kCommEnd), 2u);
  EXPECT_EQ(file.lost(), 0u);
}

TYPED_TEST(Conformance, TheEventPathAllocatesNothing) {
  this->record([] {
    typename TestFixture::Plugin plugin;
    plugin.init();
    plugin.stop(plugin.start_coll(0));
    size_t before = mallinfo2().uordblks;
    for (uint64_t i = 0; i < 50000; ++i) plugin.stop(plugin.start_coll(i));
    EXPECT_EQ(mallinfo2().uordblks, before);
  });
}

TYPED_TEST(Conformance, EveryEventIsKeptOrCounted) {
  constexpr uint64_t kEvents = 300000;
  LksFile file = this->record([] {
    typename TestFixture::Plugin plugin;
    plugin.init();
    for (uint64_t i = 0; i < kEvents; ++i) plugin.stop(plugin.start_coll(i));
  });
  EXPECT_EQ(file.count(Kind::kColl) + file.lost_without_a_place(), kEvents);
  EXPECT_EQ(file.lost(), file.lost_without_a_place());
}

TYPED_TEST(Conformance, SizesComeOnlyFromTheStatesThatCarryThem) {
  LksFile file = this->record([] {
    typename TestFixture::Plugin plugin;
    plugin.init();
    void* op = plugin.start_proxy_op();
    void* send = plugin.start_proxy_step(op, 0);
    for (auto [state, size] : {std::pair{8, 111}, {20, 222}, {9, 4096}})
      plugin.state_with(send, state, static_cast<uint64_t>(size));
    void* receive = plugin.start_proxy_step(op, 1);
    for (auto [state, size] : {std::pair{10, 333}, {11, 8192}, {12, 444}})
      plugin.state_with(receive, state, static_cast<uint64_t>(size));
    void* waiting = plugin.start_proxy_step(op, 2);
    plugin.state_with(waiting, 8, 555);
    plugin.state_with(waiting, 20, 555);
    plugin.state_with(waiting, 20, 555);
    plugin.state_with(plugin.start_proxy_step(op, 3), 9, 0x1'0000'0001);
  });
  auto steps = file.template all<format::ProxyStepRecord>(Kind::kProxyStep);
  ASSERT_EQ(steps.size(), 4u);
  bool sized = TestFixture::kApi >= 4;  // v1 to v3 see no sizes
  EXPECT_EQ(steps[0].bytes, sized ? 4096u : 0u);
  EXPECT_EQ(steps[1].bytes, sized ? 8192u : 0u);
  EXPECT_EQ(steps[2].bytes, 0u);
  EXPECT_EQ(steps[3].bytes, sized ? 0xffffffffu : 0u);
  EXPECT_EQ(file.lost(capture::kLoss_clamped), sized ? 1u : 0u);
  EXPECT_EQ(steps[0].head.flags & format::kFlagSend, format::kFlagSend);
  EXPECT_EQ(steps[1].head.flags & format::kFlagSend, 0);
  EXPECT_GT(steps[0].wait1_after, 0u);
  EXPECT_LE(steps[0].wait1_after, steps[0].wait2_after);
  EXPECT_LE(steps[0].wait2_after, steps[0].wait3_after);
  EXPECT_EQ(steps[2].peer_waits, 2);
  EXPECT_EQ(file.lost(), file.lost(capture::kLoss_clamped)) << "a wait that comes again is no loss";
}

TYPED_TEST(Conformance, ChildrenComeAfterTheParentsStop) {
  LksFile file = this->record([] {
    typename TestFixture::Plugin plugin;
    plugin.init();
    void* coll = plugin.start_coll(9);
    plugin.stop(coll);
    plugin.stop(plugin.start_proxy_op(coll));
    if (TestFixture::kApi >= 3) plugin.stop(plugin.start_kernel_ch(coll));
    plugin.stop(plugin.start_coll(10, coll));
  });
  uint64_t coll = file.records(Kind::kColl)[0].handle();
  EXPECT_EQ(file.template one<format::ProxyOpRecord>(Kind::kProxyOp).parent, coll);
  if (TestFixture::kApi >= 3) {
    EXPECT_EQ(file.template one<format::KernelChRecord>(Kind::kKernelCh).parent, coll);
  }
  Entry child = file.records(Kind::kColl)[1];
  EXPECT_EQ(child.position - child.head().link, file.records(Kind::kColl)[0].position);
  EXPECT_EQ(file.lost(), 0u);
}

TYPED_TEST(Conformance, RepeatedStartsOfAStepAreOneRecord) {
  LksFile file = this->record([] {
    typename TestFixture::Plugin plugin;
    plugin.init();
    void* op = plugin.start_proxy_op();
    void* step = plugin.start_proxy_step(op, 4);
    for (int poll = 0; poll < 100; ++poll) EXPECT_EQ(plugin.start_proxy_step(op, 4), step);
    plugin.stop(step);
    EXPECT_NE(plugin.start_proxy_step(op, 4), step);
  });
  auto steps = file.template all<format::ProxyStepRecord>(Kind::kProxyStep);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].restarts, 100);
  EXPECT_EQ(file.lost(capture::kLoss_duplicate_step), 100u);
}

// Many receives wait at once, each polled in turn: none may fill the file.
TYPED_TEST(Conformance, RepeatedStartsOfManyStepsStayBounded) {
  LksFile file = this->record([] {
    typename TestFixture::Plugin plugin;
    plugin.init();
    void* ops[32];
    for (void*& op : ops) op = plugin.start_proxy_op();
    for (int poll = 0; poll < 1000; ++poll) {
      for (void* op : ops) plugin.start_proxy_step(op, 3);
    }
  });
  EXPECT_EQ(file.count(Kind::kProxyStep), 32u);
  EXPECT_EQ(file.lost(capture::kLoss_duplicate_step), 32u * 999u);
}

TYPED_TEST(Conformance, StepsWithoutAParentAreNotFolded) {
  LksFile file = this->record([] {
    typename TestFixture::Plugin plugin;
    plugin.init();
    void* one = plugin.start_proxy_step(nullptr, 0);
    EXPECT_NE(plugin.start_proxy_step(nullptr, 0), one);
  });
  EXPECT_EQ(file.count(Kind::kProxyStep), 2u);
}

TYPED_TEST(Conformance, OpenEventsStayOpen) {
  LksFile file = this->record([] {
    typename TestFixture::Plugin plugin;
    void* context = plugin.init();
    plugin.start_coll(0);
    void* op = plugin.start_proxy_op();
    plugin.state_with(plugin.start_proxy_step(op, 0), 8, 0);
    plugin.finalize(context);
  });
  for (const Entry& entry : file.records()) {
    EXPECT_EQ(entry.head().stop_after, 0u);
    EXPECT_EQ(entry.head().flags & format::kFlagStopped, 0);
  }
  EXPECT_EQ(file.records().size(), 3u);
  EXPECT_EQ(file.lost(), 0u);
}

TYPED_TEST(Conformance, ReadableWithoutFinalizeOrExitHandlers) {
  LksFile file = this->record([] {
    typename TestFixture::Plugin plugin;
    plugin.init();
    for (uint64_t i = 0; i < 1000; ++i) plugin.stop(plugin.start_coll(i));
    _exit(::testing::Test::HasFailure() ? 99 : 0);
  });
  EXPECT_EQ(file.state(), format::FileState::kOpen);
  EXPECT_EQ(file.count(Kind::kColl), 1000u);
}

TYPED_TEST(Conformance, UnloadingKeepsTheLibraryAndItsState) {
  LksFile file = this->record([] {
    typename TestFixture::Plugin plugin;
    void* context = plugin.init();
    void* open = plugin.start_coll(0);
    plugin.finalize(context);
    EXPECT_EQ(dlclose(plugin.library()), 0);
    plugin.stop(open);
    plugin.start_coll(1);
    typename TestFixture::Plugin again;
    EXPECT_NE(again.init(), context);
    again.start_coll(2);
  });
  EXPECT_EQ(file.count(Kind::kColl), 3u);
  EXPECT_EQ(file.count(format::Def::kComm), 2u);
  EXPECT_NE(file.records(Kind::kColl)[0].head().stop_after, 0u);
}

TYPED_TEST(Conformance, TheTypeHasTheWidthOfItsVersion) {
  LksFile file = this->record([] {
    typename TestFixture::Plugin plugin;
    plugin.init();
    auto d = TestFixture::Plugin::coll(1);
    for (int fill : {0x00, 0x5a, 0xff}) {
      // Up to v4 these seven bytes are padding, later they belong to the type.
      if (TestFixture::kApi <= 4) memset(reinterpret_cast<char*>(&d) + 1, fill, 7);
      EXPECT_NE(plugin.start(d), nullptr);
    }
    if constexpr (TestFixture::kApi >= 5) {
      d.type |= uint64_t{1} << 40;
      EXPECT_EQ(plugin.start(d), nullptr);
    }
  });
  EXPECT_EQ(file.count(Kind::kColl), 3u);
  EXPECT_EQ(file.lost(capture::kLoss_unknown_type), TestFixture::kApi >= 5 ? 1u : 0u);
}

TYPED_TEST(Conformance, ArgumentsMayBeMissingOrGarbage) {
  LksFile file = this->record([] {
    typename TestFixture::Plugin plugin;
    plugin.init();
    typename TestFixture::Plugin::Args garbage;
    memset(static_cast<void*>(&garbage), 0xee, sizeof garbage);
    for (auto* args : {static_cast<decltype(&garbage)>(nullptr), &garbage}) {
      void* op = plugin.start_proxy_op();
      plugin.state(op, 19, args);
      void* step = plugin.start_proxy_step(op, 0);
      for (int state : {8, 20, 10, 12}) plugin.state(step, state, args);
      void* ctrl = plugin.start(abi::kTypeProxyCtrl);
      plugin.state(ctrl, 13, args);
    }
    void* step = plugin.start_proxy_step(plugin.start_proxy_op(), 1);
    plugin.state(step, 9);
    plugin.state(plugin.start(abi::kTypeProxyCtrl), 18);
  });
  for (const auto& step : file.template all<format::ProxyStepRecord>(Kind::kProxyStep))
    EXPECT_EQ(step.bytes, 0u);
  for (const auto& ctrl : file.template all<format::ProxyCtrlRecord>(Kind::kProxyCtrl))
    EXPECT_EQ(ctrl.appended, 0u);
  auto ops = file.template all<format::ProxyOpRecord>(Kind::kProxyOp);
  ASSERT_EQ(ops.size(), 3u);
  EXPECT_GT(ops[0].in_progress_after, 0u);
  EXPECT_GT(ops[1].in_progress_after, 0u);
}

TYPED_TEST(Conformance, ASecondStopIsCountedAndChangesNothing) {
  LksFile file = this->record([] {
    typename TestFixture::Plugin plugin;
    plugin.init();
    void* coll = plugin.start_coll(0);
    plugin.stop(coll);
    plugin.start_coll(1);
    sleep_ms(2);
    plugin.stop(coll);
    plugin.stop(coll);
  });
  auto colls = file.template all<format::CollRecord>(Kind::kColl);
  ASSERT_EQ(colls.size(), 2u);
  EXPECT_GT(colls[0].head.stop_after, 0u);
  EXPECT_LE(colls[0].head.start + colls[0].head.stop_after, colls[1].head.start);
  EXPECT_EQ(file.lost(capture::kLoss_repeated_stop), 2u);
}

}  // namespace
}  // namespace lockstep::test
