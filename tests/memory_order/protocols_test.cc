// SPDX-License-Identifier: Apache-2.0
// The protocols of the log, the segment and their readers on a CPU that orders weakly: each is right in every
// way in which its loads can turn out, and wrong once one of its orders is taken away. The names are those of
// the functions that it is written down from: who changes an order there changes it here.
#include <gtest/gtest.h>

#include "tests/memory_order/weak_memory.h"

namespace lockstep::test::weak {
namespace {

constexpr Order kRelaxed = Order::kRelaxed, kAcquire = Order::kAcquire, kRelease = Order::kRelease;
constexpr uint64_t kMagic = 7, kStale = 9;

// Words of a chunk and around it.
enum : int {
  kChunkMagic,
  kNumber,
  kNext,
  kTag,
  kBody,
  kNextTag,
  kLate,
  kTable,
  kFree,
  kWindow,
  kAnswer,
  kTaken
};

void fence_if(bool wanted, Thread& thread, Order order) {
  if (wanted) thread.fence(order);
}
#define EXPECT_RIGHT(...)                           \
  do {                                              \
    const Explored explored = (__VA_ARGS__);        \
    EXPECT_GT(explored.ways, 1u);                   \
    EXPECT_EQ(explored.wrong, 0u) << explored.ways; \
  } while (false)
#define EXPECT_WRONG(...) EXPECT_GT((__VA_ARGS__).wrong, 0u)

// ThreadLog::publish_bytes(), publish_definition(); segment::copy_entry(). In a place that was used before.
Explored entry(Order publish, Order look) {
  return explore([=](Choices& choices) {
    Memory memory({0, 0, 0, 0, kStale, kStale});
    Thread log(memory, choices), reader(memory, choices);
    log.store(kBody, 1);
    log.store(kNextTag, 0);
    log.store(kTag, 1, publish);
    if (reader.load(kTag, look) == 0) return true;
    return reader.load(kBody) == 1 && reader.load(kNextTag) == 0;
  });
}
TEST(WeakMemory, AnEntryIsWholeWhenItsTagIsSeen) {
  EXPECT_RIGHT(entry(kRelease, kAcquire));
  EXPECT_WRONG(entry(kRelaxed, kAcquire));
  EXPECT_WRONG(entry(kRelease, kRelaxed));
}

// format::join_copies(): bytes of system calls, which are relaxed loads, with ProcessBytes' fence between.
Explored copies(bool is_twice, bool has_fence) {
  return explore([=](Choices& choices) {
    Memory memory({0, 0, 0, 0, kStale});
    Thread log(memory, choices), reader(memory, choices);
    log.store(kBody, 1);
    log.store(kTag, 1, kRelease);
    uint64_t body = reader.load(kBody);
    const uint64_t tag = reader.load(kTag);
    fence_if(has_fence, reader, kAcquire);
    if (is_twice) body = reader.load(kBody);
    return tag == 0 || body == 1;
  });
}
TEST(WeakMemory, OfTwoCopiesTheTagsOfTheFirstHoldForTheSecond) {
  EXPECT_RIGHT(copies(true, true));
  EXPECT_WRONG(copies(false, true));
  EXPECT_WRONG(copies(true, false));
}

// ThreadLog::store_stop() after a late field; copy_entry() and join_copies() keep the tag that they looked at
// first.
Explored stop(Order stop, bool keeps_first_tag) {
  return explore([=](Choices& choices) {
    Memory memory;
    Thread log(memory, choices), reader(memory, choices);
    log.store(kTag, 1, kRelease);
    log.store(kLate, 5);
    log.store(kTag, 3, stop);
    uint64_t tag = reader.load(kTag, kAcquire);
    const uint64_t late = reader.load(kLate);
    if (!keeps_first_tag) tag = reader.load(kTag);
    return tag != 3 || late == 5;
  });
}
TEST(WeakMemory, AStopComesWithTheLateFieldsBeforeIt) {
  EXPECT_RIGHT(stop(kRelease, true));
  EXPECT_WRONG(stop(kRelaxed, true));
  EXPECT_WRONG(stop(kRelease, false));
}

// name_next() after the last entry; ChunkFollower::go_on(), copy_published().
Explored link(Order name_next, bool has_fence) {
  return explore([=](Choices& choices) {
    Memory memory;
    Thread log(memory, choices), reader(memory, choices);
    log.store(kTag, 1, kRelease);
    log.store(kNext, 2, name_next);
    if (reader.load(kNext) == 0) return true;
    fence_if(has_fence, reader, kAcquire);
    return reader.load(kTag) == 1;
  });
}
TEST(WeakMemory, AChunkThatNamesItsSuccessorShowsAllItsEntries) {
  EXPECT_RIGHT(link(kRelease, true));
  EXPECT_WRONG(link(kRelaxed, true));
  EXPECT_WRONG(link(kRelease, false));
}

// open_chunk() over the log's own oldest chunk, number 1; FileWriter::copy() and is_still(),
// FileView::read().
struct Fences {
  bool before_old, before_new, reader;
};
Explored recycled(Fences fences) {
  return explore([=](Choices& choices) {
    Memory memory({kMagic, 1, 0, 1, 1});
    Thread log(memory, choices), reader(memory, choices);
    log.store(kChunkMagic, 0);
    fence_if(fences.before_old, log, kRelease);
    log.store(kTag, 0);
    fence_if(fences.before_new, log, kRelease);
    log.store(kNumber, 2);
    log.store(kChunkMagic, kMagic, kRelease);
    log.store(kBody, 2);
    log.store(kTag, 1, kRelease);
    if (reader.load(kChunkMagic, kAcquire) != kMagic) return true;
    const uint64_t number = reader.load(kNumber);
    reader.fence(kAcquire);
    const uint64_t tag = reader.load(kTag, kAcquire);
    const uint64_t body = reader.load(kBody);
    fence_if(fences.reader, reader, kAcquire);
    if (reader.load(kChunkMagic, kAcquire) != kMagic || reader.load(kNumber) != number) return true;
    return tag == 0 ? number == 2 : body == number;  // number 1 has its entry
  });
}
TEST(WeakMemory, ACopyOfAChunkThatIsUsedAgainIsKnownByItsNumber) {
  EXPECT_RIGHT(recycled({true, true, true}));
  EXPECT_WRONG(recycled({false, true, true}));
  EXPECT_WRONG(recycled({true, false, true}));
  EXPECT_WRONG(recycled({true, true, false}));
}

// ProcessFile::give_back() by the writer thread, take_back() and open_chunk() by another log;
// ProcessBytes::read_at().
struct HandedOn {
  bool give_back_fence, open_chunk_fence, reader_fence;
};
Explored handed_on(HandedOn with) {
  return explore([=](Choices& choices) {
    Memory memory({kMagic, 1, 0, 1, 1, 0, 0, /*kTable*/ 1});
    Thread writer(memory, choices), log(memory, choices), reader(memory, choices);
    writer.store(kTable, 0, kRelease);
    fence_if(with.give_back_fence, writer, kRelease);
    writer.store(kChunkMagic, 0);
    writer.store(kNumber, 0);
    writer.store(kFree, 1, kRelease);
    if (log.load(kFree, kAcquire) == 0) return true;
    log.store(kTable, 2, kRelease);
    fence_if(with.open_chunk_fence, log, kRelease);
    log.store(kBody, 2);
    log.store(kTag, 1, kRelease);
    if (reader.load(kTable) != 1) return true;  // then it is not looked for here
    reader.fence(kAcquire);
    const uint64_t body = reader.load(kBody), number = reader.load(kNumber);
    fence_if(with.reader_fence, reader, kAcquire);
    if (reader.load(kTable) != 1) return true;  // it has left: the file has it
    return body == 1 && number == 1;
  });
}
TEST(WeakMemory, APlaceThatIsHandedOnIsKnownByTheTable) {
  EXPECT_RIGHT(handed_on({true, true, true}));
  EXPECT_WRONG(handed_on({false, true, true}));
  EXPECT_WRONG(handed_on({true, false, true}));
  EXPECT_WRONG(handed_on({true, true, false}));
}

// ThreadLog::move_window(), leave_window(); FileWriter::state_of(), which then copies for the last time.
Explored window(Order move, Order look) {
  return explore([=](Choices& choices) {
    Memory memory;
    Thread log(memory, choices), writer(memory, choices);
    log.store(kLate, 5);
    log.store(kWindow, 1, move);
    return writer.load(kWindow, look) == 0 || writer.load(kLate) == 5;
  });
}
TEST(WeakMemory, BehindTheWindowNothingChangesAnyMore) {
  EXPECT_RIGHT(window(kRelease, kAcquire));
  EXPECT_WRONG(window(kRelaxed, kAcquire));
  EXPECT_WRONG(window(kRelease, kRelaxed));
}

// Control::answer(), write_header(); LiveHeader::in_force(). As ProcessFile::stop_claims() and claimed().
Explored answer(Order take, Order look) {
  return explore([=](Choices& choices) {
    Memory memory;
    Thread process(memory, choices), tool(memory, choices);
    process.store(kAnswer, 4);
    process.store(kTaken, 1, take);
    return tool.load(kTaken, look) == 0 || tool.load(kAnswer) == 4;
  });
}
TEST(WeakMemory, AnAnswerIsThereWithItsNumber) {
  EXPECT_RIGHT(answer(kRelease, kAcquire));
  EXPECT_WRONG(answer(kRelaxed, kAcquire));
}

// The model itself: what it has to allow, and what no CPU shows.
TEST(WeakMemory, AWordNeverGoesBack) {
  EXPECT_RIGHT(explore([](Choices& choices) {
    Memory memory;
    Thread log(memory, choices), reader(memory, choices);
    for (uint64_t value = 1; value <= 3; ++value) log.store(kBody, value);
    const uint64_t before = reader.load(kBody);
    return reader.load(kBody) >= before;
  }));
}
TEST(WeakMemory, LoadsOfTwoWordsMaySwap) {
  bool is_seen = false;
  const Explored explored = explore([&](Choices& choices) {
    Memory memory;
    Thread log(memory, choices), reader(memory, choices);
    log.store(kBody, 1, kRelease);
    log.store(kTag, 1, kRelease);
    is_seen |= reader.load(kTag) == 1 && reader.load(kBody) == 0;
    return true;
  });
  EXPECT_EQ(explored.ways, 3u);  // the second is not looked at without the first
  EXPECT_TRUE(is_seen);
}

}  // namespace
}  // namespace lockstep::test::weak
