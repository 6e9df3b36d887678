// SPDX-License-Identifier: Apache-2.0
#include "capture/cuda/ranges.h"

#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "capture/core/log/thread_log.h"
#include "capture/cuda/cuda_test.h"
#include "tests/support/nvtx.h"

extern "C" int InitializeInjectionNvtx2(const void* (*get_table)(uint32_t));

namespace lockstep::test {
namespace {

using format::Kind;
using format::RangeKind;
using format::RangeRecord;
using Nvtx = NvtxCopy<0>;

struct Range {
  std::string name, domain;
  RangeKind kind;
  format::RecordHead head;
  uint32_t log;
  uint64_t handle;
  bool is_open() const { return head.stop_after == 0; }
};

class Ranges : public CudaCapture {
 protected:
  // The file that a process leaves in which NVTX was used.
  template <class Body>
  LksFile mark(Body body, const Environment& environment) {
    EXPECT_TRUE(run_child(environment, [&] {
                  ASSERT_TRUE(Nvtx::initialize_by(InitializeInjectionNvtx2));
                  body();
                }).ok());
    return run_.file();
  }
  template <class Body>
  LksFile mark(Body body) {
    return mark(body, settings("default", "ranges"));
  }
  static std::vector<Range> ranges(const LksFile& file) {
    std::map<std::pair<uint32_t, uint32_t>, std::string> names;
    for (const Entry& entry : file.definitions(format::Def::kRangeName)) {
      const char* text = entry.bytes + sizeof(format::DefHead);
      names[{entry.log, entry.def().id}] =
          std::string(text, strnlen(text, entry.def().units * format::kUnitBytes - sizeof(format::DefHead)));
    }
    std::vector<Range> out;
    for (const Entry& entry : file.records(Kind::kRange)) {
      const auto r = entry.as<RangeRecord>();
      out.push_back({names[{entry.log, r.name}], names[{entry.log, r.domain}], r.range, r.head, entry.log,
                     entry.handle()});
    }
    return out;
  }
  // Names of those without an end in their record, in order.
  static std::vector<std::string> open_ranges(const LksFile& file) {
    std::vector<std::string> open;
    for (const Range& range : ranges(file)) {
      if (range.is_open()) open.push_back(range.name);
    }
    std::sort(open.begin(), open.end());
    return open;
  }
};

TEST_F(Ranges, ArePushedAndPopped) {
  LksFile file = mark([] {
    EXPECT_EQ(Nvtx::functions(), 16);
    EXPECT_EQ(Nvtx::push("step"), 0);
    EXPECT_EQ(Nvtx::push("forward"), 1);
    EXPECT_EQ(Nvtx::pop(), 1);
    EXPECT_EQ(Nvtx::push("backward"), 1);
    EXPECT_EQ(Nvtx::push("backward"), 2);
    EXPECT_EQ(Nvtx::pop(), 2);
    EXPECT_EQ(Nvtx::pop(), 1);
    EXPECT_EQ(Nvtx::pop(), 0);
  });
  const auto all = ranges(file);
  ASSERT_EQ(all.size(), 4u);
  const char* const names[] = {"step", "forward", "backward", "backward"};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(all[i].name, names[i]);
    EXPECT_EQ(all[i].domain, "");
    EXPECT_EQ(all[i].kind, RangeKind::kNested);
    ASSERT_FALSE(all[i].is_open()) << i;
    EXPECT_GE(all[i].head.start, all[0].head.start);
    EXPECT_LE(all[i].head.start + all[i].head.stop_after, all[0].head.start + all[0].head.stop_after);
  }
  EXPECT_GE(all[2].head.start, all[1].head.start + all[1].head.stop_after);
  EXPECT_EQ(file.count(format::Def::kRangeName), 3u) << "a name is defined once";
  EXPECT_EQ(file.lost(), 0u);
}

TEST_F(Ranges, PopsWithoutPushesAreCountedAndOpenOnesStayOpen) {
  LksFile file = mark([] {
    EXPECT_EQ(Nvtx::pop(), -1);
    Nvtx::push("never popped");
    Nvtx::push("popped");
    EXPECT_EQ(Nvtx::pop(), 1);
    std::thread([] {
      EXPECT_EQ(Nvtx::pop(), -1) << "that of another thread";
      Nvtx::push("left open by a thread that ended");
    }).join();
    // The next thread takes over the log of the one that ended, but not what that one had open.
    std::thread([] { EXPECT_EQ(Nvtx::pop(), -1); }).join();
  });
  const auto all = ranges(file);
  ASSERT_EQ(all.size(), 3u);
  for (const Range& range : all) EXPECT_EQ(range.is_open(), range.name != "popped") << range.name;
  EXPECT_EQ(file.lost(capture::kLoss_unknown_handle), 3u);
  EXPECT_EQ(file.lost(), 3u);
}

TEST_F(Ranges, AreStartedAndEndedOnAnyThread) {
  LksFile file = mark([] {
    const uint64_t one = Nvtx::start("one"), two = Nvtx::start(L"two"),
                   three = Nvtx::start_ex(Nvtx::named("three"));
    Nvtx::end(one);
    std::thread([&] { Nvtx::end(two); }).join();
    Nvtx::end(three);
    Nvtx::end(three);
    Nvtx::end(0);
    Nvtx::end(0x1234567890);
    Nvtx::end(format::make_handle(static_cast<uint32_t>(Kind::kKernel), format::handle_log(one),
                                  format::handle_position(one)));
  });
  const auto all = ranges(file);
  ASSERT_EQ(all.size(), 3u);
  for (const Range& range : all) EXPECT_EQ(range.kind, RangeKind::kFree);
  EXPECT_EQ(all[0].name, "one");
  EXPECT_FALSE(all[0].is_open());
  EXPECT_EQ(all[1].name, "two");
  EXPECT_TRUE(all[1].is_open()) << "another thread does not write here";
  EXPECT_FALSE(all[2].is_open());
  const auto stop = file.one<format::StateRecord>(Kind::kState);
  EXPECT_EQ(stop.head.link, format::kStateStop);
  EXPECT_EQ(stop.target, all[1].handle);
  EXPECT_GE(stop.head.start, all[1].head.start);
  EXPECT_EQ(file.lost(capture::kLoss_repeated_stop), 1u);
  EXPECT_EQ(file.lost(capture::kLoss_unknown_handle), 2u);
  EXPECT_EQ(file.lost(), 3u);
}

TEST_F(Ranges, OfDomainsAreOnStacksOfTheirOwn) {
  LksFile file = mark([] {
    void* mine = Nvtx::domain("mine");
    void* yours = Nvtx::domain(L"y\u00f6urs");
    EXPECT_NE(mine, nullptr);
    EXPECT_NE(mine, yours);
    EXPECT_EQ(Nvtx::domain("mine"), mine);
    EXPECT_EQ(Nvtx::push(mine, Nvtx::named("a")), 0);
    EXPECT_EQ(Nvtx::push(yours, Nvtx::named(L"b \u20ac \U0001f600")), 0);
    EXPECT_EQ(Nvtx::push("plain"), 0);
    EXPECT_EQ(Nvtx::push(nullptr, Nvtx::named("default")), 1);
    EXPECT_EQ(Nvtx::pop(mine), 0);
    EXPECT_EQ(Nvtx::pop(nullptr), 1);
    EXPECT_EQ(Nvtx::pop(yours), 0);
    EXPECT_EQ(Nvtx::pop(mine), -1);
    Nvtx::end(mine, Nvtx::start(mine, Nvtx::named("c")));
    EXPECT_EQ(Nvtx::push(reinterpret_cast<void*>(0xabcdef), Nvtx::named("of nobody's domain")), -2);
  });
  const auto all = ranges(file);
  ASSERT_EQ(all.size(), 5u);
  const std::pair<const char*, const char*> expected[] = {
      {"a", "mine"}, {"b \u20ac \U0001f600", "y\u00f6urs"}, {"plain", ""}, {"default", ""}, {"c", "mine"}};
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(all[i].name, expected[i].first);
    EXPECT_EQ(all[i].domain, expected[i].second);
    EXPECT_EQ(all[i].is_open(), i == 2) << i;
  }
  EXPECT_EQ(file.lost(capture::kLoss_unknown_handle), 1u);
  EXPECT_EQ(file.lost(capture::kLoss_unknown_context), 1u);
  EXPECT_EQ(file.lost(), 2u);
}

TEST_F(Ranges, OfNcclsDomainAreLeftToTheProfilerPlugin) {
  LksFile file = mark([] {
    void* nccl = Nvtx::domain("NCCL");
    ASSERT_NE(nccl, nullptr);
    Nvtx::push("training");
    EXPECT_EQ(Nvtx::push(nccl, Nvtx::registered(Nvtx::register_text(nccl, "ncclAllReduce"))), -2);
    EXPECT_EQ(Nvtx::pop(nccl), -2);
    EXPECT_EQ(Nvtx::start(nccl, Nvtx::named("ncclGroup")), 0u);
    Nvtx::end(nccl, 0);
    Nvtx::pop();
  });
  const auto all = ranges(file);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].name, "training");
  EXPECT_FALSE(all[0].is_open()) << "the pop in NCCL's domain was not ours";
  EXPECT_EQ(file.lost(), 0u);
}

TEST_F(Ranges, RegisteredTextsAreKept) {
  LksFile file = mark([] {
    char text[] = "registered";
    void* domain = Nvtx::domain("d");
    void* one = Nvtx::register_text(domain, text);
    EXPECT_EQ(Nvtx::register_text(nullptr, text), one);
    void* wide = Nvtx::register_text(domain, L"w\u00efde");
    strcpy(text, "gone");
    Nvtx::push(domain, Nvtx::registered(one));
    Nvtx::push(domain, Nvtx::registered(wide));
    Nvtx::push(domain, Nvtx::registered(nullptr));
    for (int i = 0; i < 3; ++i) Nvtx::pop(domain);
  });
  const auto all = ranges(file);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].name, "registered");
  EXPECT_EQ(all[1].name, "w\u00efde");
  EXPECT_EQ(all[2].name, "");
  EXPECT_EQ(file.lost(), 0u);
}

TEST_F(Ranges, RegisteredTextsAreBounded) {
  LksFile file = mark([] {
    std::string text(200, 'x');
    void* last = nullptr;
    for (int i = 0; i < 6000; ++i) last = Nvtx::register_text(nullptr, (text + std::to_string(i)).c_str());
    EXPECT_EQ(last, nullptr);
    EXPECT_NE(Nvtx::register_text(nullptr, (text + "0").c_str()), nullptr);
  });
  EXPECT_GT(file.lost(capture::kLoss_shape_table_full), 500u);
  EXPECT_EQ(file.lost(), file.lost(capture::kLoss_shape_table_full));
}

TEST_F(Ranges, NamesAreCutBetweenCharacters) {
  const std::string long_name(1000, 'n'), umlauts = [] {
    std::string text = "x";
    for (int i = 0; i < 200; ++i) text += "\u00fc";
    return text;
  }();
  LksFile file = mark([&] {
    Nvtx::push(long_name.c_str());
    Nvtx::push(umlauts.c_str());
    Nvtx::push(std::wstring(300, L'\u20ac').c_str());
    Nvtx::push(static_cast<const char*>(nullptr));
    Nvtx::push(L"a\xd800z");
    Nvtx::push(std::string(255, 'f').c_str());
    for (int i = 0; i < 6; ++i) Nvtx::pop();
  });
  const auto all = ranges(file);
  ASSERT_EQ(all.size(), 6u);
  EXPECT_EQ(all[0].name, long_name.substr(0, 255));
  EXPECT_EQ(all[1].name, umlauts.substr(0, 255)) << "127 characters of two bytes behind one of one";
  EXPECT_EQ(all[2].name.size(), 255u);
  EXPECT_EQ(all[3].name, "");
  EXPECT_EQ(all[4].name, "a?z");
  EXPECT_EQ(all[5].name, std::string(255, 'f'));
  EXPECT_EQ(file.lost(capture::kLoss_clamped), 3u);
  EXPECT_EQ(file.lost(), 3u);
}

// Of texts and domains it is counted where they are made: ranges of them know the short name alone.
TEST_F(Ranges, NamesThatAreCutWhereTheyAreMadeAreCounted) {
  const std::string long_name(1000, 'n');
  LksFile file = mark([&] {
    void* domain = Nvtx::domain(long_name.c_str());
    void* text = Nvtx::register_text(domain, std::wstring(300, L'w').c_str());
    for (int i = 0; i < 5; ++i) {
      Nvtx::push(domain, Nvtx::registered(text));
      Nvtx::pop(domain);
    }
  });
  const auto all = ranges(file);
  ASSERT_EQ(all.size(), 5u);
  EXPECT_EQ(all[0].name, std::string(255, 'w'));
  EXPECT_EQ(all[0].domain, long_name.substr(0, 255));
  EXPECT_EQ(file.lost(capture::kLoss_clamped), 2u);
  EXPECT_EQ(file.lost(), 2u);
}

TEST(RangeNames, EndBetweenCharacters) {
  const std::string text = std::string(254, 'x') + "\u20ac";
  EXPECT_EQ(capture::cuda::range_name_of(text.c_str()).bytes, 254u);
  const std::string broken(300, '\x80');  // no characters at all
  EXPECT_EQ(capture::cuda::range_name_of(broken.c_str()).bytes, 252u);
}

// Programs number their ranges; what a log can name has an end.
TEST_F(Ranges, NamesAreBounded) {
  LksFile file = mark([] {
    for (uint32_t i = 0; i < capture::Interning::kMostRangeNames + 100; ++i) {
      Nvtx::push(("step " + std::to_string(i)).c_str());
      Nvtx::pop();
      if (i % 1000 == 0) sleep_ms(5);
    }
  });
  EXPECT_EQ(file.count(format::Def::kRangeName), size_t{capture::Interning::kMostRangeNames});
  EXPECT_EQ(file.count(Kind::kRange) + file.lost_without_a_place(),
            size_t{capture::Interning::kMostRangeNames} + 100);
  EXPECT_GE(file.lost(capture::kLoss_shape_table_full), 100u);
}

// What names take, records cannot have: they stay for as long as the process lives.
TEST_F(Ranges, NamesLeaveTheRingToRecords) {
  constexpr uint64_t kRing = 4 << 20, kThreads = 4, kEach = 50'000;
  Environment environment = settings("default", "ranges");
  environment.emplace_back("LOCKSTEP_RETAIN", "ring:4M");
  LksFile file = mark(
      [] {
        std::vector<std::thread> threads;
        for (uint64_t t = 0; t < kThreads; ++t) {
          threads.emplace_back([t] {
            const std::string name =
                "aten::linear, seq = " + std::to_string(t) + std::string(40, ' ') + "op_id = ";
            for (uint64_t i = 0; i < kEach; ++i) {
              Nvtx::push((name + std::to_string(i)).c_str());
              Nvtx::pop();
            }
          });
        }
        for (std::thread& thread : threads) thread.join();
      },
      environment);
  uint64_t bytes = 0;
  for (const Entry& entry : file.definitions(format::Def::kRangeName))
    bytes += entry.def().units * format::kUnitBytes;
  constexpr uint64_t kMost = kRing / capture::Interning::kNamesOfRing;
  EXPECT_LE(bytes, kMost);
  EXPECT_GT(bytes, kMost - 2 * format::kMaxRangeNameBytes);
  const uint64_t kept = file.count(Kind::kRange);
  EXPECT_GT(kept * sizeof(RangeRecord), kRing / 2);
  EXPECT_EQ(kept + file.lost(capture::kLoss_overwritten), kThreads * kEach);
  EXPECT_EQ(file.count(format::Def::kRangeName) + file.lost(capture::kLoss_shape_table_full),
            kThreads * kEach);
}

TEST_F(Ranges, NestingIsBounded) {
  LksFile file = mark([] {
    void* other = Nvtx::domain("other");
    for (int i = 0; i < 200; ++i) EXPECT_EQ(Nvtx::push("deep"), i);
    EXPECT_EQ(Nvtx::push(other, Nvtx::named("full")), 0);
    for (int i = 199; i >= 100; --i) EXPECT_EQ(Nvtx::pop(), i);
    EXPECT_EQ(Nvtx::push("fits again"), 100);
    EXPECT_EQ(Nvtx::pop(other), 0);
    for (int i = 100; i >= 0; --i) EXPECT_EQ(Nvtx::pop(), i);
    EXPECT_EQ(Nvtx::pop(), -1);
  });
  const auto all = ranges(file);
  EXPECT_EQ(all.size(), capture::cuda::kMostOpen + 1);
  for (const Range& range : all) EXPECT_FALSE(range.is_open());
  EXPECT_EQ(file.lost(capture::kLoss_clamped), 200u - capture::cuda::kMostOpen + 1);
  EXPECT_EQ(file.lost(capture::kLoss_unknown_handle), 1u);
}

// Room that another domain makes is not for what is pushed behind one that found none: that is popped first.
TEST_F(Ranges, WhatFoundNoRoomKeepsItsPlaceInTheStack) {
  LksFile file = mark([] {
    void* other = Nvtx::domain("other");
    Nvtx::push(other, Nvtx::named("makes room"));
    for (uint32_t i = 0; i < capture::cuda::kMostOpen; ++i) Nvtx::push("deep");
    Nvtx::pop(other);
    Nvtx::push("behind");
    Nvtx::pop();
    Nvtx::pop();
    Nvtx::push("in front");
    Nvtx::pop();
  });
  size_t open = 0;
  for (const Range& range : ranges(file)) {
    open += range.is_open();
    EXPECT_NE(range.name, "behind");
    EXPECT_FALSE(range.name == "in front" && range.is_open());
  }
  EXPECT_EQ(open, size_t{capture::cuda::kMostOpen} - 1);
  EXPECT_EQ(file.count(Kind::kRange), size_t{capture::cuda::kMostOpen} + 1);
  EXPECT_EQ(file.lost(capture::kLoss_clamped), 2u);
}

TEST_F(Ranges, DomainsAreBounded) {
  LksFile file = mark([] {
    for (uint32_t i = 0; i < capture::cuda::kMostDomains; ++i) Nvtx::domain(std::to_string(i).c_str());
    void* beyond = Nvtx::domain("beyond");
    EXPECT_NE(beyond, nullptr);
    EXPECT_EQ(Nvtx::push(beyond, Nvtx::named("not here")), -2);
    EXPECT_EQ(Nvtx::pop(beyond), -2);
    Nvtx::push(Nvtx::domain("127"), Nvtx::named("here"));
  });
  const auto all = ranges(file);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].domain, "127");
  EXPECT_EQ(file.lost(capture::kLoss_shape_table_full), 1u);
}

TEST_F(Ranges, AttributesOfAnotherSizeNameNothing) {
  LksFile file = mark([] {
    NvtxAttributes small = Nvtx::named("small"), large = Nvtx::named("large");
    small.size = 40;
    large.size = 96;
    Nvtx::push_ex(&small);
    Nvtx::push_ex(&large);
    Nvtx::push_ex(nullptr);
    for (int i = 0; i < 3; ++i) Nvtx::pop();
  });
  const auto all = ranges(file);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].name, "");
  EXPECT_EQ(all[1].name, "large");
  EXPECT_EQ(all[2].name, "");
  EXPECT_EQ(file.lost(capture::kLoss_unknown_type), 2u);
}

TEST_F(Ranges, OfSeveralLibrariesAreOfOneProcess) {
  LksFile file = mark([] {
    using Other = NvtxCopy<1>;
    ASSERT_TRUE(Other::initialize_by(InitializeInjectionNvtx2));
    void* domain = Nvtx::domain("shared");
    EXPECT_EQ(Other::domain("shared"), domain);
    Nvtx::push("one");
    Other::push("two");
    EXPECT_EQ(Nvtx::pop(), 1);
    EXPECT_EQ(Other::pop(), 0);
  });
  EXPECT_EQ(ranges(file).size(), 2u);
  EXPECT_EQ(file.lost(), 0u);
}

TEST_F(Ranges, AreRecordedWhereTheyAreAskedForAlone) {
  struct Case {
    const char *mode, *cuda;
    bool wanted;
  };
  for (const Case& c : {Case{"default", "kernels", false},
                        {"default", "copies", false},
                        {"default", "off", false},
                        {"default", "ranges,off", false},
                        {"default", "rangesx", false},
                        {"off", "ranges", false},
                        {"lite", "ranges", true},
                        {"default", "copies,ranges", true}}) {
    RunDirectory run;
    Environment environment = settings(c.mode, c.cuda);
    environment[0].second = run.path();
    EXPECT_TRUE(run_child(environment, [&] {
                  EXPECT_EQ(Nvtx::initialize_by(InitializeInjectionNvtx2), c.wanted);
                  EXPECT_EQ(Nvtx::functions(), c.wanted ? 16 : 0);
                  EXPECT_EQ(Nvtx::push("x"), c.wanted ? 0 : -2);
                  Nvtx::pop();
                }).ok());
    EXPECT_EQ(run.files().size(), c.wanted ? 1u : 0u) << c.mode << " " << c.cuda;
  }
}

TEST_F(Ranges, TablesThatAreNotThereAreNotFilled) {
  EXPECT_TRUE(run_child(settings("default", "ranges"), [] {
                EXPECT_EQ(InitializeInjectionNvtx2(nullptr), 0);
                EXPECT_EQ(InitializeInjectionNvtx2([](uint32_t) -> const void* { return nullptr; }), 0);
                static const size_t too_small[2] = {8, 0};
                EXPECT_EQ(InitializeInjectionNvtx2([](uint32_t) -> const void* { return too_small; }), 0);
              }).ok());
}

TEST_F(Ranges, AreBesideKernels) {
  LksFile file = record(
      [](const Gpu& gpu) {
        ASSERT_TRUE(Nvtx::initialize_by(InitializeInjectionNvtx2));
        Nvtx::push("step");
        for (int i = 0; i < 10; ++i) gpu.run({.name = "k"});
        Nvtx::pop();
      },
      settings("default", "ranges"));
  EXPECT_EQ(file.count(Kind::kKernel), 10u);
  EXPECT_EQ(ranges(file).size(), 1u);
}

TEST_F(Ranges, TheModeCanChangeWhileTheyAreOpen) {
  LksFile file = mark([&] {
    const std::string path = run_.files().at(0);
    const auto change = [&](format::Mode mode, bool recorded) {
      ask(path, mode);
      const double end = seconds_now() + kPatienceSeconds;
      for (bool is = !recorded; is != recorded && seconds_now() < end; sleep_ms(2)) {
        const uint64_t range = Nvtx::start("look");
        is = range != 0;
        Nvtx::end(range);
      }
    };
    Nvtx::push("open before");
    change(format::Mode::kOff, false);
    Nvtx::push("not recorded");
    EXPECT_EQ(Nvtx::pop(), 1);
    EXPECT_EQ(Nvtx::pop(), 0);
    EXPECT_EQ(Nvtx::pop(), -1);
    Nvtx::push("not recorded");
    change(format::Mode::kDefault, true);
    Nvtx::pop();
    Nvtx::push("after");
    Nvtx::pop();
  });
  for (const Range& range : ranges(file)) {
    EXPECT_FALSE(range.is_open()) << range.name;
    EXPECT_TRUE(range.name == "open before" || range.name == "look" || range.name == "after") << range.name;
  }
  EXPECT_EQ(file.lost(), 0u);
}

TEST_F(Ranges, ThatAreOpenOutliveTheirChunksInARing) {
  Environment environment = settings("default", "ranges");
  environment.emplace_back("LOCKSTEP_RETAIN", "ring:1M");
  LksFile file = mark(
      [] {
        Nvtx::push("outer");
        const uint64_t free = Nvtx::start("free");
        for (int i = 0; i < 100'000; ++i) {
          Nvtx::push("inner");
          Nvtx::pop();
        }
        Nvtx::end(free);
        Nvtx::pop();
      },
      environment);
  int found = 0;
  for (const Range& range : ranges(file)) {
    EXPECT_FALSE(range.is_open()) << range.name;
    found += range.name != "inner";
  }
  EXPECT_EQ(found, 2);
  EXPECT_GT(file.lost(capture::kLoss_overwritten), 50'000u);
  EXPECT_EQ(file.lost(), file.lost(capture::kLoss_overwritten));
}

constexpr int kTurn = 100'000;  // ranges that fill a ring of 1 MiB three times, and more than a log's window
void turn_ring() {
  for (int i = 0; i < kTurn; ++i) {
    Nvtx::push("inner");
    Nvtx::pop();
  }
}

// What another thread has ended is not open, and takes no place of what is.
TEST_F(Ranges, ThatEndedElsewhereGoWithTheirChunksInARing) {
  for (const int count : {4, 40}) {
    for (const bool turns_between : {false, true}) {
      SCOPED_TRACE(std::to_string(count) + (turns_between ? ", ended once they have moved" : ""));
      RunDirectory run;
      Environment environment = settings("default", "ranges");
      environment[0].second = run.path();
      environment.emplace_back("LOCKSTEP_RETAIN", "ring:1M");
      EXPECT_TRUE(run_child(environment, [&] {
                    ASSERT_TRUE(Nvtx::initialize_by(InitializeInjectionNvtx2));
                    const auto open = [] {
                      Nvtx::push("epoch");
                      Nvtx::start("never ended");
                    };
                    if (turns_between) open();  // before what finds no place
                    std::vector<uint64_t> handed(static_cast<size_t>(count));
                    for (uint64_t& range : handed) range = Nvtx::start("handed over");
                    turns_between ? turn_ring() : open();
                    std::thread([&] {
                      for (uint64_t range : handed) Nvtx::end(range);
                      turn_ring();
                    }).join();
                    turn_ring();
                    turn_ring();
                  }).ok());
      LksFile file = run.file();
      EXPECT_EQ(open_ranges(file), (std::vector<std::string>{"epoch", "never ended"}));
      const uint64_t stale = file.lost(capture::kLoss_stale_target);
      EXPECT_EQ(stale, turns_between && count > 30 ? static_cast<uint64_t>(count) - 30 : 0) << "32 can move";
      EXPECT_EQ(file.lost(), file.lost(capture::kLoss_overwritten) + stale);
      EXPECT_EQ(file.count(Kind::kRange) + file.count(Kind::kState) + file.lost(capture::kLoss_overwritten),
                static_cast<uint64_t>(2 + 2 * count + (turns_between ? 4 : 3) * kTurn) - stale);
    }
  }
}

// However many there are: one thread starts what another ends, for as long as the process lives.
TEST_F(Ranges, HandedOverForLongTakeNoPlaceInARing) {
  Environment environment = settings("default", "ranges");
  environment.emplace_back("LOCKSTEP_RETAIN", "ring:1M");
  LksFile file = mark(
      [] {
        constexpr int kQueue = 256, kHanded = 30'000;
        std::atomic<uint64_t> queue[kQueue] = {};
        std::thread ends([&] {
          for (int i = 0; i < kHanded; ++i) {
            uint64_t range = 0;
            while ((range = queue[i % kQueue].exchange(0)) == 0) std::this_thread::yield();
            Nvtx::end(range);
          }
          turn_ring();
        });
        Nvtx::push("epoch");
        for (int i = 0; i < kHanded; ++i) {
          const uint64_t range = Nvtx::start("handed over");
          while (queue[i % kQueue].load() != 0) std::this_thread::yield();
          queue[i % kQueue] = range;
        }
        ends.join();
        turn_ring();
      },
      environment);
  EXPECT_EQ(open_ranges(file), std::vector<std::string>{"epoch"});
  EXPECT_EQ(file.lost(), file.lost(capture::kLoss_overwritten));
}

// A log's own events are out of its reach when they are older than its window.
TEST_F(Ranges, ThatEndedBeyondTheWindowGoWithTheirChunksInARing) {
  Environment environment = settings("default", "ranges");
  environment.emplace_back("LOCKSTEP_RETAIN", "ring:8M");
  LksFile file = mark(
      [] {
        Nvtx::push("epoch");
        for (int i = 0; i < 100; ++i) Nvtx::push("step");
        turn_ring();
        for (int i = 0; i < 100; ++i) Nvtx::pop();
        for (int i = 0; i < 5; ++i) turn_ring();
      },
      environment);
  EXPECT_EQ(open_ranges(file), std::vector<std::string>{"epoch"});
  EXPECT_EQ(file.lost(), file.lost(capture::kLoss_overwritten));
}

TEST_F(Ranges, ManyThreadsComeAndGo) {
  constexpr int kThreads = 8, kRounds = 20, kEach = 200;
  LksFile file = mark([] {
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([t] {
        for (int round = 0; round < kRounds; ++round) {
          std::thread([&] {
            void* domain = Nvtx::domain(("domain " + std::to_string(t)).c_str());
            for (int i = 0; i < kEach; ++i) {
              EXPECT_EQ(Nvtx::push(domain, Nvtx::named("outer")), 0);
              EXPECT_EQ(Nvtx::push("inner"), 0);
              EXPECT_EQ(Nvtx::pop(domain), 0);
              EXPECT_EQ(Nvtx::pop(), 0);
            }
            Nvtx::push("left open");
          }).join();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  const auto all = ranges(file);
  EXPECT_EQ(all.size(), static_cast<size_t>(kThreads * kRounds * (2 * kEach + 1)));
  std::map<std::string, int> domains;
  for (const Range& range : all) {
    EXPECT_EQ(range.is_open(), range.name == "left open");
    ++domains[range.domain];
  }
  EXPECT_EQ(domains.size(), size_t{kThreads} + 1);
  for (int t = 0; t < kThreads; ++t) EXPECT_EQ(domains["domain " + std::to_string(t)], kRounds * kEach);
  EXPECT_EQ(file.lost(), 0u);
}

TEST_F(Ranges, AForkedChildRecordsNothing) {
  LksFile file = mark([] {
    Nvtx::push("parent");
    const pid_t child = fork();
    if (child == 0) {
      Nvtx::push("child");
      Nvtx::pop();
      Nvtx::pop();
      Nvtx::end(Nvtx::start("child"));
      const bool is_quiet = Nvtx::push(Nvtx::domain("new"), Nvtx::named("child")) == -2 &&
                            Nvtx::register_text(nullptr, "text") == nullptr &&
                            !NvtxCopy<1>::initialize_by(InitializeInjectionNvtx2);
      _exit(is_quiet ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    Nvtx::pop();
  });
  const auto all = ranges(file);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].name, "parent");
  EXPECT_FALSE(all[0].is_open());
  EXPECT_GE(file.lost(capture::kLoss_after_fork), 3u);
  EXPECT_EQ(file.lost(), file.lost(capture::kLoss_after_fork));
}

TEST_F(Ranges, AKilledProcessLeavesThem) {
  Child child = Child::start(settings("default", "ranges"), [] {
    ASSERT_TRUE(Nvtx::initialize_by(InitializeInjectionNvtx2));
    Nvtx::push("epoch");
    Nvtx::push("step");
    Nvtx::pop();
    raise(SIGKILL);
  });
  EXPECT_EQ(child.wait().signal, SIGKILL);
  const LksFile file = run_.file();
  const auto all = ranges(file);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_TRUE(all[0].is_open());
  EXPECT_FALSE(all[1].is_open());
  EXPECT_EQ(file.state(), format::FileState::kOpen);
}

// Late events of threads that outlive main, and of destructors.
TEST_F(Ranges, AfterTheEndTheyAreDropped) {
  LksFile file = mark([] {
    Nvtx::push("open at exit");
    atexit([] {
      Nvtx::push("in an exit handler");
      Nvtx::pop();
    });
    static std::atomic<bool> started{false};
    std::thread([] {
      for (;;) {
        Nvtx::push("of a thread that never ends");
        Nvtx::pop();
        started = true;
        std::this_thread::sleep_for(std::chrono::microseconds(10));
      }
    }).detach();
    while (!started) sleep_ms(1);
  });
  EXPECT_EQ(file.state(), format::FileState::kClosed);
  const auto all = ranges(file);
  ASSERT_GE(all.size(), 2u);
  EXPECT_EQ(std::count_if(all.begin(), all.end(),
                          [](const Range& r) { return r.name == "open at exit" && r.is_open(); }),
            1);
}

}  // namespace
}  // namespace lockstep::test
