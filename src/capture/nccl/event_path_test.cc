// SPDX-License-Identifier: Apache-2.0
// The event path against a hostile caller and a strict kernel: forged handles stay inside their chunk, and no
// callback makes a system call.
#include <random>
#include <thread>

#include "tests/support/forbidden_calls.h"
#include "tests/support/nccl_test.h"
#include "tests/support/places.h"

namespace lockstep::test {
namespace {

using format::Kind;

class EventPath : public NcclCapture {
 protected:
  // One operation with network and GPU work, every kind of callback included.
  static void one_operation(NcclPlugin<7>& plugin, uint64_t seq) {
    void* group_api = plugin.start_group_api();
    plugin.state(group_api, 23);
    void* group = plugin.start(abi::kTypeGroup);
    auto d = plugin.coll(seq);
    d.coll.parent_group = group;
    d.coll.user_tag = seq;
    void* coll = plugin.start(d);
    plugin.stop(coll);
    plugin.stop(group);
    void* op = plugin.start_proxy_op(coll);
    plugin.state(op, 19);
    for (int step = 0; step < 4; ++step) {
      void* handle = plugin.start_proxy_step(op, step);
      plugin.start_proxy_step(op, step);
      for (int state : {8, 20, 9}) plugin.state_with(handle, state, 4096);
      plugin.stop(handle);
    }
    plugin.stop(op);
    void* ctrl = plugin.start(abi::kTypeProxyCtrl);
    plugin.state_with(ctrl, 18, 1);
    plugin.stop(ctrl);
    void* kernel = plugin.start_kernel_ch(coll);
    plugin.state_with(kernel, 22, 2000);
    plugin.stop(kernel);
    plugin.stop(kernel);
    plugin.stop(pointer(kPoison));
    plugin.stop(group_api);
  }
};

TEST_F(EventPath, MakesNoSystemCall) {
  if (kSanitized) GTEST_SKIP() << "the sanitizer makes some";
  constexpr uint64_t kOperations = 5000;
  constexpr int kNoFilter = 40;
  struct Case {
    const char *retain, *chain;
  };
  for (const Case& with : {Case{"stream", "none"}, Case{"stream:1M", "none"}, Case{"ring:1M", "none"},
                           Case{"stream", LOCKSTEP_LIB_DIR "/libempty-plugin.so"}}) {
    std::filesystem::remove_all(run_.path());
    Environment environment = settings("deep", with.retain);
    environment.emplace_back("LOCKSTEP_CHAIN", with.chain);
    Exit exit = run_child(environment, [&] {
      NcclPlugin<7> plugin;
      plugin.init();
      if (strcmp(with.retain, "stream") == 0) LiveHeader(run_).wait_for_room(3 << 20);
      std::thread([&] {
        one_operation(plugin, 0);
        if (!forbid_system_calls()) _exit(kNoFilter);
        for (uint64_t i = 1; i < kOperations; ++i) one_operation(plugin, i);
        syscall(SYS_exit, 0);
      }).join();
    });
    if (exit.code == kNoFilter) GTEST_SKIP() << "no seccomp here";
    EXPECT_TRUE(exit.ok()) << with.retain << ", chained " << with.chain << ": " << exit;
    LksFile file = run_.file();
    uint64_t lost = file.lost(capture::kLoss_overwritten) + file.lost_without_a_place() +
                    file.lost(capture::kLoss_size_cap);
    EXPECT_GT(file.records().size() + lost, kOperations * 10) << with.retain;
  }
}

// The ends of each chunk, with every kind of handle. (In the middle of a record a forged handle cannot be
// distinguished from a real one; it may spoil that record, but nothing beyond its chunk.)
TEST_F(EventPath, ForgedHandlesStayInTheirChunk) {
  Exit exit = run_child(settings(), [&] {
    NcclPlugin<7> plugin;
    plugin.init();
    LiveHeader(run_).wait_for_room(1 << 20);
    one_operation(plugin, 0);
    // Two logs take turns, so that behind each chunk of ours lies one of the other.
    std::thread([&] {
      for (int turn = 0; turn < 8; ++turn) {
        for (uint64_t i = 0; i < 50; ++i) one_operation(plugin, i);
        std::thread([&] {
          for (uint64_t i = 0; i < 50; ++i) one_operation(plugin, 1000 + i);
        }).join();
      }
      uint64_t end = format::handle_position(number(plugin.start_coll(7777)));
      for (uint64_t position = 0; position < end; ++position) {
        uint64_t unit = position % format::kUnitsPerChunk;
        if (unit >= format::kChunkHeaderUnits && unit + 6 < format::kUnitsPerChunk) continue;
        for (uint32_t kind = 0; kind < 32; ++kind) {
          void* handle = pointer(format::make_handle(kind, 2, position));
          for (int state = 0; state < 32; ++state) plugin.state_with(handle, state, ~uint64_t{0});
          plugin.stop(handle);
        }
      }
    }).join();
  });
  EXPECT_TRUE(exit.ok()) << exit;
  LksFile file(run_.files().at(0));
  size_t others = 0;
  for (const Entry& entry : file.records(Kind::kColl)) {
    if (entry.log != 3) continue;
    EXPECT_EQ(entry.as<format::CollRecord>().seq, 1000 + others++ % 50);
  }
  EXPECT_EQ(others, 400u);
  for (const std::string& problem : file.problems())
    EXPECT_EQ(problem.find("missing"), std::string::npos) << problem;
}

TEST_F(EventPath, RandomHandlesAreHarmless) {
  LksFile file = record([] {
    NcclPlugin<7> plugin;
    plugin.init();
    void* coll = plugin.start_coll(1);
    std::mt19937_64 random(99);
    for (int i = 0; i < 200'000; ++i) {
      void* handle = pointer(random());
      plugin.stop(handle);
      plugin.state_with(handle, static_cast<int>(random() % 32), random());
      if (i % 100 == 0) plugin.start_proxy_op(handle);
      if (i % 100 == 0) plugin.start_coll(2, handle);
    }
    plugin.stop(coll);
  });
  EXPECT_NE(file.records(Kind::kColl)[0].head().stop_after, 0u);
  EXPECT_GT(file.lost(capture::kLoss_unknown_handle), 390'000u);
}

}  // namespace
}  // namespace lockstep::test
