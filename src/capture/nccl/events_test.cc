// SPDX-License-Identifier: Apache-2.0
// What each kind of event leaves in the file: fields, parents, states, and what is shared or set apart.
#include <string>
#include <thread>

#include "tests/support/nccl_test.h"

namespace lockstep::test {
namespace {

using format::Kind;

class Events : public NcclCapture {};
template <class Version>
class EventsOfVersion : public NcclCaptureOfVersion<Version> {};
TYPED_TEST_SUITE(EventsOfVersion, AllVersions);

TYPED_TEST(EventsOfVersion, CollAndP2pKeepTheirFields) {
  LksFile file = this->record([] {
    typename TestFixture::Plugin plugin;
    plugin.init();
    plugin.stop(plugin.start_coll(41));
    auto p2p = TestFixture::Plugin::p2p(6);
    plugin.stop(plugin.start(p2p));
  });
  auto coll = file.template one<format::CollRecord>(Kind::kColl);
  EXPECT_EQ(coll.seq, 41u);
  EXPECT_EQ(coll.count, 1024u);
  EXPECT_EQ(coll.send_buffer, 0x7000'0000'1000u);
  EXPECT_EQ(coll.recv_buffer, 0x7000'0000'2000u);
  EXPECT_EQ(coll.channels, 8);
  EXPECT_EQ(coll.warps, 16);
  EXPECT_EQ(coll.comm, 0u);
  EXPECT_EQ(coll.group_link, 0u);
  auto shape = file.shape(1, coll.shape);
  EXPECT_STREQ(shape.func, "AllReduce");
  EXPECT_STREQ(shape.datatype, "ncclFloat32");
  EXPECT_STREQ(shape.algo, "RING");
  EXPECT_STREQ(shape.proto, "SIMPLE");
  EXPECT_EQ(shape.root, 0);
  auto p2p = file.template one<format::P2pRecord>(Kind::kP2p);
  EXPECT_EQ(p2p.peer, 6);
  EXPECT_EQ(p2p.count, 64u);
  EXPECT_EQ(p2p.buffer, 0x7000'0000'3000u);
  EXPECT_EQ(p2p.channels, TestFixture::kApi >= 5 ? 4 : 0);
  EXPECT_STREQ(file.shape(1, p2p.shape).func, "Send");
  EXPECT_EQ(file.lost(), 0u);
}

TYPED_TEST(EventsOfVersion, MaskFollowsVersionAndMode) {
  for (auto [mode, bits] : {std::pair{"lite", 0x1706}, {"default", 0x7f07}, {"deep", 0xffff}, {"off", 0}}) {
    Exit exit = run_child(this->settings(mode), [mask = bits] {
      typename TestFixture::Plugin plugin;
      plugin.init();
      constexpr int kKnown[] = {0, 0x3f, 0x3f, 0xff, 0xff, 0xfff, 0x7fff, 0xffff};
      EXPECT_EQ(plugin.mask, mask & kKnown[TestFixture::kApi]);
    });
    EXPECT_TRUE(exit.ok()) << exit;
  }
}

// A host before 2.28 asks for children only of a group that has a handle.
TYPED_TEST(EventsOfVersion, LiteDeclinesGroupsWithoutLosingTheirChildren) {
  LksFile file = this->record(this->settings("lite"), [] {
    typename TestFixture::Plugin plugin;
    plugin.init();
    void* group = plugin.start(abi::kTypeGroup);
    EXPECT_EQ(group != nullptr, TestFixture::kApi <= 4);
    plugin.stop(plugin.start_coll(0, group));
    plugin.state(group, 23);
    plugin.stop(group);
  });
  EXPECT_EQ(file.count(Kind::kGroup), 0u);
  EXPECT_EQ(file.template one<format::CollRecord>(Kind::kColl).head.link, 0);
  EXPECT_EQ(file.records().size(), 1u);
  EXPECT_EQ(file.lost(), 0u);
}

TYPED_TEST(EventsOfVersion, AStopFromAnotherThreadIsARecordOfItsOwn) {
  LksFile file = this->record([] {
    typename TestFixture::Plugin plugin;
    plugin.init();
    void* coll = plugin.start_coll(0);
    void* op = plugin.start_proxy_op(coll);
    std::thread([&] {
      plugin.state(op, 19);
      plugin.stop(op);
      plugin.stop(coll);
    }).join();
  });
  EXPECT_EQ(file.template one<format::CollRecord>(Kind::kColl).head.stop_after, 0u);
  EXPECT_EQ(file.template one<format::ProxyOpRecord>(Kind::kProxyOp).in_progress_after, 0u);
  auto states = file.template all<format::StateRecord>(Kind::kState);
  ASSERT_EQ(states.size(), 3u);
  EXPECT_EQ(states[0].head.link, 19);
  EXPECT_EQ(states[0].target, file.records(Kind::kProxyOp)[0].handle());
  EXPECT_EQ(states[1].head.link, format::kStateStop);
  EXPECT_EQ(states[2].target, file.records(Kind::kColl)[0].handle());
  EXPECT_GT(states[2].head.start, file.records(Kind::kColl)[0].head().start);
  EXPECT_EQ(file.records(Kind::kState)[0].log, 2u);
  EXPECT_EQ(file.lost(), 0u);
}

TYPED_TEST(EventsOfVersion, ProxyCtrlKeepsItsStates) {
  LksFile file = this->record([] {
    typename TestFixture::Plugin plugin;
    plugin.init();
    void* append = plugin.start(abi::kTypeProxyCtrl);
    plugin.state_with(append, 17, 0);
    plugin.state_with(append, 18, 7);
    plugin.stop(append);
    void* sleep = plugin.start(abi::kTypeProxyCtrl);
    plugin.state(sleep, 15);
    plugin.state(sleep, 16);
    plugin.stop(sleep);
  });
  auto ctrl = file.template all<format::ProxyCtrlRecord>(Kind::kProxyCtrl);
  ASSERT_EQ(ctrl.size(), 2u);
  EXPECT_EQ(ctrl[0].first_state, 17);
  EXPECT_EQ(ctrl[0].second_state, 18);
  EXPECT_EQ(ctrl[0].appended, 7);
  EXPECT_EQ(ctrl[1].first_state, 15);
  EXPECT_EQ(ctrl[1].second_state, 16);
  EXPECT_GT(ctrl[1].second_after, 0u);
}

TYPED_TEST(EventsOfVersion, PerStepStatesOfOldReleasesAreKept) {
  LksFile file = this->record([] {
    typename TestFixture::Plugin plugin;
    plugin.init();
    void* op = plugin.start_proxy_op();
    for (int step = 0; step < 3; ++step) {
      for (int state = 0; state < 4; ++state) plugin.state_with(op, state, 4096);
    }
    plugin.stop(op);
  });
  auto states = file.template all<format::StateRecord>(Kind::kState);
  ASSERT_EQ(states.size(), 12u);
  EXPECT_EQ(states[5].head.link, 1);
  EXPECT_EQ(states[5].value, TestFixture::kApi <= 3 ? 4096u : 0u);
}

TYPED_TEST(EventsOfVersion, StatesOfTheWrongKindAreCounted) {
  LksFile file = this->record([] {
    typename TestFixture::Plugin plugin;
    plugin.init();
    void* coll = plugin.start_coll(0);
    for (int state = 0; state < 32; ++state) plugin.state(coll, state);
    void* step = plugin.start_proxy_step(plugin.start_proxy_op(), 0);
    plugin.state(step, 22);
    plugin.state(step, 8);
    plugin.state(step, 8);
  });
  EXPECT_EQ(file.lost(capture::kLoss_state_mismatch), TestFixture::kApi == 6 ? 32u : 33u);
  EXPECT_EQ(file.lost(capture::kLoss_repeated_state), 1u);
  EXPECT_EQ(file.count(Kind::kState), 0u);
}

TEST_F(Events, ApiEventsLinkToTheirGroup) {
  LksFile file = record([] {
    NcclPlugin<5> plugin;
    plugin.init();
    auto group = plugin.descriptor(abi::kTypeGroupApi);
    group.group_api = {true, 3};
    void* outer = plugin.start(group);
    plugin.state(outer, 23);
    auto api = plugin.descriptor(abi::kTypeCollApi, outer);
    api.coll_api = {"Broadcast", 77, "ncclInt8", 5, pointer(0xabc0), true};
    void* call = plugin.start(api);
    plugin.stop(call);
    auto send = plugin.descriptor(abi::kTypeP2pApi, outer);
    send.p2p_api = {"Send", 78, "ncclInt8", pointer(0xabc0), false};
    plugin.stop(plugin.start(send));
    plugin.state(outer, 24);
    auto launch = plugin.descriptor(abi::kTypeKernelLaunch, outer);
    launch.kernel_launch = {pointer(0xdef0)};
    plugin.stop(plugin.start(launch));
    void* plan = plugin.start(abi::kTypeGroup, outer);
    auto coll = plugin.coll(3, call);
    coll.coll.parent_group = plan;
    plugin.stop(plugin.start(coll));
    plugin.stop(outer);
  });
  auto group = file.records(Kind::kGroupApi)[0];
  auto group_record = group.as<format::GroupApiRecord>();
  EXPECT_EQ(group_record.depth, 3u);
  EXPECT_EQ(group_record.head.flags, format::kFlagGraphCaptured | format::kFlagStopped);
  EXPECT_GT(group_record.group_start_after, 0u);
  EXPECT_GE(group_record.group_end_after, group_record.group_start_after);
  for (Kind kind : {Kind::kCollApi, Kind::kP2pApi, Kind::kKernelLaunch}) {
    Entry child = file.records(kind)[0];
    EXPECT_EQ(child.position - child.head().link, group.position);
  }
  auto api = file.one<format::CollApiRecord>(Kind::kCollApi);
  EXPECT_EQ(api.count, 77u);
  EXPECT_EQ(api.head.flags & format::kFlagGraphCaptured, format::kFlagGraphCaptured);
  EXPECT_EQ(file.shape(1, api.shape).root, 5);
  EXPECT_STREQ(file.shape(1, api.shape).algo, "");
  auto streams = file.all<format::StreamDef>(format::Def::kStream);
  ASSERT_EQ(streams.size(), 2u);
  EXPECT_EQ(streams[0].stream, 0xabc0u);
  EXPECT_EQ(api.stream, streams[0].head.id);
  EXPECT_EQ(file.one<format::KernelLaunchRecord>(Kind::kKernelLaunch).stream, streams[1].head.id);
  Entry coll = file.records(Kind::kColl)[0];
  EXPECT_EQ(coll.position - coll.head().link, file.records(Kind::kCollApi)[0].position);
  EXPECT_EQ(coll.position - coll.as<format::CollRecord>().group_link, file.records(Kind::kGroup)[0].position);
  EXPECT_EQ(file.lost(), 0u);
}

TEST_F(Events, GroupApiStatesNeedNoArguments) {
  LksFile file = record([] {
    NcclPlugin<5> plugin;
    plugin.init();
    uint64_t garbage = ~uint64_t{0};
    NcclPlugin<5>::Args args;
    memcpy(static_cast<void*>(&args), &garbage, sizeof garbage);
    for (auto* some : {static_cast<decltype(&args)>(nullptr), &args}) {
      void* group = plugin.start_group_api();
      plugin.state(group, 23, some);
      plugin.state(group, 24, some);
      plugin.stop(group);
    }
  });
  EXPECT_EQ(file.count(Kind::kGroupApi), 2u);
  EXPECT_EQ(file.count(Kind::kState), 0u);
  EXPECT_EQ(file.lost(), 0u);
}

TEST_F(Events, ACollIsAsLongAsItsNumbers) {
  LksFile file = record([] {
    NcclPlugin<5> plugin;
    plugin.init();
    plugin.stop(plugin.start_coll(0xffffffff));
    plugin.stop(plugin.start_coll(0x100000000));
    auto d = plugin.coll(1);
    d.coll.send_buffer = pointer(0xff00'0000'0000'0001);
    plugin.stop(plugin.start(d));
    d = plugin.coll(2);
    d.coll.parent_group = nullptr;
    plugin.stop(plugin.start(d, unmapped()));  // of no comm
  });
  std::vector<Entry> colls = file.records(Kind::kColl);
  ASSERT_EQ(colls.size(), 4u);
  constexpr uint64_t kSeq[] = {0xffffffff, 0x100000000, 1, 2};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(colls[i].kind, static_cast<uint32_t>(i == 0 ? Kind::kShortColl : Kind::kColl));
    auto coll = colls[i].as<format::CollRecord>();
    EXPECT_EQ(coll.seq, kSeq[i]);
    EXPECT_EQ(coll.count, 1024u);
    EXPECT_EQ(coll.send_buffer, i == 2 ? 0xff00'0000'0000'0001 : 0x7000'0000'1000u);
    EXPECT_EQ(coll.recv_buffer, 0x7000'0000'2000u);
    EXPECT_EQ(coll.comm, i == 3 ? format::kNoComm : 0u);
    EXPECT_EQ(coll.channels, 8);
    EXPECT_EQ(coll.warps, 16);
    EXPECT_EQ(coll.shape, 1);
    EXPECT_NE(coll.head.stop_after, 0u);
  }
}

TEST_F(Events, FarParentsAreNamedByALink) {
  LksFile file = record([&] {
    NcclPlugin<5> plugin;
    plugin.init();
    LiveHeader(run_).wait_for_room(30000 * 64);
    void* parent = plugin.start_group_api();
    for (uint64_t i = 0; i < 30000; ++i) plugin.stop(plugin.start_coll(i));
    auto far = plugin.coll(1, parent);
    far.coll.count = 1;
    plugin.start(far);
    std::thread([&] {
      auto other = plugin.coll(2, parent);
      other.coll.count = 2;
      other.coll.parent_group = parent;
      plugin.start(other);
    }).join();
  });
  std::vector<Entry> far;
  for (const Entry& entry : file.records(Kind::kColl)) {
    if (entry.as<format::CollRecord>().count <= 2) far.push_back(entry);
  }
  ASSERT_EQ(far.size(), 2u);
  uint64_t parent = file.records(Kind::kGroupApi)[0].handle();
  auto links = file.all<format::LinkRecord>(Kind::kLink);
  ASSERT_EQ(links.size(), 3u);
  EXPECT_EQ(far[0].head().link, format::kFarLink);
  EXPECT_EQ(links[0].child, far[0].handle());
  EXPECT_EQ(links[0].parent, parent);
  EXPECT_EQ(links[1].child, far[1].handle());
  EXPECT_EQ(links[1].parent, parent);
  EXPECT_EQ(links[2].child, far[1].handle());
}

TEST_F(Events, KernelChannelsShareOneStopTime) {
  LksFile file = record([] {
    NcclPlugin<5> plugin;
    plugin.init();
    void* coll = plugin.start_coll(0);
    void* kernel = plugin.start_kernel_ch(coll, 9, 0x1111'2222'3333);
    plugin.state_with(kernel, 22, 0x1111'2222'4444);
    sleep_ms(5);
    plugin.stop(kernel);
    void* silent = plugin.start_kernel_ch(coll, 10, 5);
    plugin.stop(silent);
    plugin.state_with(kernel, 22, 1);  // a stale handle, as NCCL 2.27 to 2.30 may pass
    plugin.stop(kernel);
  });
  auto kernels = file.all<format::KernelChRecord>(Kind::kKernelCh);
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0].gpu_start, 0x1111'2222'3333u);
  EXPECT_EQ(kernels[0].gpu_stop, 0x1111'2222'4444u);
  EXPECT_EQ(kernels[0].head.link, 9);
  EXPECT_EQ(kernels[0].head.stop_after, kernels[0].gpu_stop_seen_after);
  EXPECT_EQ(kernels[1].gpu_stop, 0u);
  EXPECT_GT(kernels[1].head.stop_after, 0u);
  EXPECT_EQ(file.lost(capture::kLoss_repeated_state), 1u);
  EXPECT_EQ(file.lost(capture::kLoss_repeated_stop), 1u);
  EXPECT_EQ(file.header().gpu_clock, format::GpuClock::kNvidiaNs);
}

TEST_F(Events, NetworkPayloadsAreCopiedAtOnce) {
  LksFile file = record([] {
    NcclPlugin<4> plugin;
    plugin.init();
    abi::NetIb ib{};
    ib.type = 1, ib.device = 3, ib.wr_id = 77, ib.length = 4096;
    for (int64_t id : {abi::kNetIdIb, abi::kNetIdSocket, int64_t{0x990001}}) {
      auto d = plugin.descriptor(abi::kTypeNetPlugin, pointer(0x10));
      d.net_plugin = {id, id == 0x990001 ? unmapped() : &ib};
      void* event = plugin.start(d, unmapped());
      plugin.state(event, 21);
      plugin.state(event, 21);
      plugin.stop(event);
    }
    auto empty = plugin.descriptor(abi::kTypeNetPlugin, nullptr);
    empty.net_plugin = {abi::kNetIdIb, nullptr};
    plugin.start(empty);
    memset(static_cast<void*>(&ib), 0, sizeof ib);
  });
  auto events = file.all<format::NetPluginRecord>(Kind::kNetPlugin);
  ASSERT_EQ(events.size(), 4u);
  abi::NetIb ib;
  memcpy(static_cast<void*>(&ib), events[0].payload, sizeof ib);
  EXPECT_EQ(ib.wr_id, 77u);
  EXPECT_EQ(events[0].updates, 2u);
  EXPECT_EQ(events[0].parent, 0x10u);
  EXPECT_NE(events[1].payload[0], 0);
  EXPECT_EQ(events[2].payload[0], 0);
  EXPECT_EQ(events[3].payload[0], 0);
}

TEST_F(Events, CopyEngineEventsKeepTheirFields) {
  LksFile file = record([] {
    NcclPlugin<6> plugin;
    plugin.init();
    auto d = plugin.descriptor(abi::kTypeCeColl);
    d.ce_coll = {5, "AllGather", nullptr, nullptr, 99, 0, "ncclInt8", "MC", true, 4, 2, 17, pointer(0x40)};
    void* coll = plugin.start(d);
    auto sync = plugin.descriptor(abi::kTypeCeSync, coll);
    sync.ce_sync = {true, 8};
    plugin.stop(plugin.start(sync));
    auto batch = plugin.descriptor(abi::kTypeCeBatch, coll);
    batch.ce_batch = {7, 1 << 20, true};
    plugin.stop(plugin.start(batch));
    plugin.stop(coll);
  });
  auto coll = file.one<format::CeCollRecord>(Kind::kCeColl);
  EXPECT_EQ(coll.seq, 5u);
  EXPECT_EQ(coll.ce_seq, 17u);
  EXPECT_EQ(coll.batch_size, 4u);
  EXPECT_EQ(coll.batches, 2u);
  EXPECT_EQ(coll.head.flags, format::kFlagIntraSync | format::kFlagStopped);
  EXPECT_STREQ(file.shape(1, coll.shape).algo, "MC");
  Entry sync = file.records(Kind::kCeSync)[0];
  EXPECT_EQ(sync.position - sync.head().link, file.records(Kind::kCeColl)[0].position);
  EXPECT_EQ(sync.as<format::CeSyncRecord>().ranks, 8);
  EXPECT_EQ(sync.head().flags & format::kFlagComplete, format::kFlagComplete);
  EXPECT_EQ(file.one<format::CeBatchRecord>(Kind::kCeBatch).bytes, 1u << 20);
  EXPECT_EQ(file.one<format::CeBatchRecord>(Kind::kCeBatch).ops, 7);
}

TEST_F(Events, VersionSevenAddsPhasesTagsAndVariants) {
  LksFile file = record([] {
    NcclPlugin<7> plugin;
    plugin.init();
    auto d = plugin.coll(1);
    d.coll.user_tag = 0xfeed;
    d.coll.is_symmetric = true;
    d.coll.kernel_variant = "AllReduce_AGxLL_R";
    void* coll = plugin.start(d);
    auto phase = plugin.descriptor(abi::kTypeKernelPhase, coll);
    phase.kernel_phase = {3, 1, "compute", 500};
    void* event = plugin.start(phase);
    plugin.state_with(event, 31, 900);
    plugin.stop(event);
    auto api = plugin.descriptor(abi::kTypeCollApi);
    api.coll_api = {"AllReduce", 1, "ncclInt8", 0, nullptr, false, 0xbeef};
    plugin.start(api);
    auto p2p = plugin.p2p(1);
    plugin.start(p2p);  // untagged
  });
  auto coll = file.one<format::CollRecord>(Kind::kColl);
  EXPECT_EQ(coll.head.flags, format::kFlagSymmetric);
  EXPECT_STREQ(file.shape(1, coll.shape).algo, "AllReduce_AGxLL_R");
  auto tags = file.all<format::UserTagRecord>(Kind::kUserTag);
  ASSERT_EQ(tags.size(), 2u);
  EXPECT_EQ(tags[0].child, file.records(Kind::kColl)[0].handle());
  EXPECT_EQ(tags[0].tag, 0xfeedu);
  EXPECT_EQ(tags[1].tag, 0xbeefu);
  auto phase = file.one<format::KernelPhaseRecord>(Kind::kKernelPhase);
  EXPECT_EQ(phase.gpu_start, 500u);
  EXPECT_EQ(phase.gpu_stop, 900u);
  EXPECT_EQ(phase.phase, 1);
  EXPECT_EQ(phase.head.link, 3);
  EXPECT_STREQ(file.shape(1, phase.phase_name).func, "compute");
}

// Ticks of 32 bits last between one and four seconds: one sleep serves every field that can be too small.
TEST_F(Events, TimesThatDoNotFitAreStatesOfTheirOwn) {
  LksFile file = record([] {
    NcclPlugin<5> plugin;
    plugin.init();
    void* coll = plugin.start_coll(0);
    void* step = plugin.start_proxy_step(plugin.start_proxy_op(coll), 0);
    void* kernel = plugin.start_kernel_ch(coll);
    sleep_ms(4500);
    plugin.stop(coll);
    plugin.state(step, 8);
    plugin.stop(step);
    plugin.state_with(kernel, 22, 2000);
    plugin.stop(kernel);
  });
  if (file.header().tick_hz < 1'000'000'000) GTEST_SKIP() << "a counter so slow fits for longer";
  EXPECT_EQ(file.one<format::CollRecord>(Kind::kColl).head.stop_after, format::kSaturated);
  EXPECT_EQ(file.one<format::ProxyStepRecord>(Kind::kProxyStep).wait1_after, format::kSaturated);
  EXPECT_EQ(file.one<format::KernelChRecord>(Kind::kKernelCh).head.stop_after, format::kSaturated);
  EXPECT_EQ(file.one<format::KernelChRecord>(Kind::kKernelCh).gpu_stop, 2000u);
  auto states = file.all<format::StateRecord>(Kind::kState);
  ASSERT_EQ(states.size(), 5u);
  for (const auto& state : states)
    EXPECT_GT(state.head.start - file.at(state.target).head().start, 0xffffffffu);
  EXPECT_EQ(file.lost(), 0u);
}

// Two names that share a place in the cache take turns for a long time; each is defined once all the same.
TEST_F(Events, ShapesBeyondTheCacheAreDefinedOnce) {
  LksFile file = record([&] {
    NcclPlugin<5> plugin;
    plugin.init();
    LiveHeader live(run_);
    for (uint64_t round = 0; round < 50; ++round) {
      live.wait_for_room(1000 * 128 + round * 1000 * 64);
      for (int root = 0; root < 1000; ++root) {
        auto d = plugin.coll(0, nullptr, 1, root);
        plugin.stop(plugin.start(d));
      }
    }
  });
  EXPECT_EQ(file.count(format::Def::kShape), 1000u);
  EXPECT_EQ(file.lost(), 0u);
  for (const Entry& entry : file.records(Kind::kColl))
    EXPECT_NE(entry.as<format::CollRecord>().shape, format::kNoShape);
}

TEST_F(Events, StreamsBeyondTheCacheAreDefinedOnce) {
  LksFile file = record([&] {
    NcclPlugin<5> plugin;
    plugin.init();
    LiveHeader(run_).wait_for_room(20 * 500 * 32 + 500 * 32);
    for (int round = 0; round < 20; ++round) {
      for (uint64_t stream = 1; stream <= 500; ++stream) {
        auto d = plugin.descriptor(abi::kTypeKernelLaunch);
        d.kernel_launch = {pointer(stream << 8)};
        plugin.start(d);
      }
    }
  });
  EXPECT_EQ(file.count(format::Def::kStream), 500u);
  EXPECT_EQ(file.lost(), 0u);
}

TEST_F(Events, AFullShapeTableIsCounted) {
  constexpr int kShapes = 66000;
  LksFile file = record([&] {
    NcclPlugin<5> plugin;
    plugin.init();
    LiveHeader live(run_);
    for (int root = 0; root < kShapes; ++root) {
      if (root % 500 == 0) live.wait_for_room(static_cast<uint64_t>(root) * (128 + 64));
      auto d = plugin.coll(0, nullptr, 1, root);
      plugin.start(d);
    }
  });
  uint64_t unnamed = 0;
  for (const auto& coll : file.all<format::CollRecord>(Kind::kColl))
    unnamed += coll.shape == format::kShapeUnknown;
  EXPECT_EQ(file.count(format::Def::kShape), 0xfffeu);
  EXPECT_EQ(unnamed, kShapes - 0xfffeu);
  EXPECT_EQ(file.lost(capture::kLoss_shape_table_full), unnamed);
  EXPECT_EQ(file.lost(), unnamed);
}

}  // namespace
}  // namespace lockstep::test
