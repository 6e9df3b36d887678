// SPDX-License-Identifier: Apache-2.0
// What the process keeps of a chained plugin: the sources themselves, not the library, so that it can be
// seen.
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <array>
#include <string>

#include "capture/core/clock.h"
#include "capture/nccl/chain/chain.h"
#include "capture/nccl/steering.h"
#include "tests/support/nccl_test.h"
#include "tests/support/places.h"

extern "C" lockstep::nccl_abi::v5::Plugin ncclProfiler_v5;

namespace lockstep::test {
namespace {

using namespace capture::nccl;

constexpr int kKernelBit = static_cast<int>(abi::kTypeKernelCh);
const char* const kEmptyPlugin = LOCKSTEP_LIB_DIR "/libempty-plugin.so";

// Before the sources look at it.
__attribute__((constructor(101))) void at_load() {
  setenv("LOCKSTEP_CHAIN", kEmptyPlugin, 1);
  setenv("EMPTY_MASK", "0", 1);
}

class ChainState : public NcclCapture {
 protected:
  // A copy of NCCL that fuses sends, of which one was called just now; who sends is not known by one thread.
  static ChainedMask* mask_of_busy_nccl(int* word) {
    ChainedMask* mask = chained_mask(word);
    begin_counting(0, {.api_version = 5}, &mask->own);
    __atomic_store_n(&mask->own, 0, __ATOMIC_RELAXED);
    follow_now(mask);
    g_steering.p2p_owner.store(kSeveral);
    g_steering.p2p_ticks.store(capture::read_ticks());
    return mask;
  }
  static void* init(uint64_t id, int* word) {
    void* context = nullptr;
    EXPECT_EQ(ncclProfiler_v5.init(&context, id, word, nullptr, 1, 2, 0, nullptr), 0);
    return context;
  }
  static uint64_t start(void* context, abi::v5::Descriptor d) {
    void* handle = nullptr;
    EXPECT_EQ(ncclProfiler_v5.start_event(context, &handle, &d), 0);
    return number(handle);
  }
};

TEST_F(ChainState, KernelBitsOfEitherChangeOnlyWhereNothingIsHalfQueued) {
  for (const bool is_ours : {true, false}) {
    SCOPED_TRACE(is_ours);
    const Exit exit = run_child(settings(), [is_ours] {
      int word = 0;
      ChainedMask* mask = mask_of_busy_nccl(&word);
      __atomic_store_n(is_ours ? &mask->own : &mask->other, kKernelBit | 2, __ATOMIC_RELAXED);
      follow(mask, false);
      EXPECT_EQ(word, 2) << "a thread that came by";
      follow(mask, true);
      EXPECT_EQ(word, kKernelBit | 2) << "the launch";
    });
    EXPECT_TRUE(exit.ok()) << exit;
  }
}

TEST_F(ChainState, TheFirstCommunicatorGetsAllThatIsAskedFor) {
  const Exit exit = run_child(settings(), [] {
    int word = 0;
    ChainedMask* mask = mask_of_busy_nccl(&word);
    __atomic_store_n(&mask->other, kKernelBit, __ATOMIC_RELAXED);
    release_mask(mask);
    EXPECT_EQ(chained_mask(&word), mask);
    follow_now(mask);
    EXPECT_EQ(word, kKernelBit);
  });
  EXPECT_TRUE(exit.ok()) << exit;
}

TEST_F(ChainState, ThePlaceOfACopyThatHasGoneIsUsedAgain) {
  const Exit exit = run_child(settings(), [] {
    std::array<int, 3 * kChainedMasks> words{};
    for (int& word : words) {
      ChainedMask* mask = chained_mask(&word);
      ASSERT_NE(mask, nullptr);
      EXPECT_EQ(mask->word, &word);
      EXPECT_EQ(mask->other, 0);
      mask->other = 1;
      release_mask(mask);
    }
    for (uint32_t i = 0; i < kChainedMasks; ++i) ASSERT_NE(chained_mask(&words[i]), nullptr);
    EXPECT_EQ(chained_mask(&words[kChainedMasks]), nullptr);
  });
  EXPECT_TRUE(exit.ok()) << exit;
}

TEST_F(ChainState, ACommunicatorThatIsNotChainedLeavesTheOthersAlone) {
  const Exit exit = run_child(settings(), [] {
    std::array<int, kChainedMasks + 1> words{};
    init(1, &words[0]);
    for (uint32_t i = 1; i < kChainedMasks; ++i) ASSERT_NE(chained_mask(&words[i]), nullptr);
    void* const context = init(2, &words[kChainedMasks]);
    EXPECT_EQ(chained_comm(number(context)), nullptr);
    EXPECT_NE(start(context, NcclPlugin<5>::coll(0)), 0u) << "it is recorded";
    ncclProfiler_v5.finalize(context);
    EXPECT_EQ(g_chain.masks[0].comms, 1u);
  });
  EXPECT_TRUE(exit.ok()) << exit;
}

TEST_F(ChainState, AForkedChildWaitsForNobodyOfItsParent) {
  const Exit exit = run_child(settings(), [] {
    int word = 0;
    ChainedMask* mask = chained_mask(&word);
    mask->taken = true;
    const Exit child = run_child({}, [mask] { release_mask(mask); });
    EXPECT_TRUE(child.ok()) << child;
  });
  EXPECT_TRUE(exit.ok()) << exit;
}

// It would outlive all that the other plugin has.
TEST_F(ChainState, WhatTheOtherDoesNotHaveIsStoppedTheSame) {
  const Exit exit = run_child(settings(), [] {
    int word = 0;
    void* const context = init(1, &word);
    const uint64_t coll = start(context, NcclPlugin<5>::coll(0));
    auto call = NcclPlugin<5>::descriptor(abi::kTypeCollApi);
    call.coll_api = {"Broadcast", 77, "ncclInt8", 5, nullptr, true};
    const uint64_t captured = start(context, call);
    for (const uint64_t handle : {coll, captured}) {
      ASSERT_TRUE(find_pair(handle).known);
      EXPECT_EQ(find_pair(handle).other, 0u);
      ncclProfiler_v5.stop_event(pointer(handle));
      EXPECT_TRUE(find_pair(handle).facts.stopped);
    }
    EXPECT_EQ(find_pair(captured).room, HandlePairs::kCaptured);
  });
  EXPECT_TRUE(exit.ok()) << exit;
}

// Another profiler of the process has structs of the same names, which the loader finds first.
TEST_F(ChainState, ReplacesTheCallbacksOfThisLibraryAlone) {
  const Exit exit = run_child(settings(), [] {
    void* const other = dlopen(kEmptyPlugin, RTLD_NOW | RTLD_GLOBAL);
    ASSERT_NE(other, nullptr) << dlerror();
    const auto* const theirs = static_cast<const abi::v5::Plugin*>(dlsym(other, "ncclProfiler_v5"));
    ASSERT_NE(theirs, nullptr);
    const abi::v5::Plugin before = *theirs;
    NcclPlugin<5> ours;
    EXPECT_EQ(theirs->init, before.init);
    EXPECT_EQ(theirs->start_event, before.start_event);
    ours.init();
    ours.stop(ours.start_coll(0));
  });
  EXPECT_TRUE(exit.ok()) << exit;
  const auto notes = run_.file().all<format::NoteDef>(format::Def::kNote);
  EXPECT_TRUE(std::any_of(notes.begin(), notes.end(), [](const auto& note) {
    return std::string(note.key) == format::kNoteChained;
  })) << "ours calls the chained plugin";
}

}  // namespace
}  // namespace lockstep::test
