// SPDX-License-Identifier: Apache-2.0
#include "job/gather/newest_part.h"

#include <gtest/gtest.h>

namespace lockstep::job::gather {
namespace {

using model::ProcessPart;

// So many all-reduces a second apart, but for a pause of ten before the fourth; the first `ended` are done.
ProcessPart all_reduces(uint32_t count, uint32_t ended) {
  ProcessPart part;
  model::JobOps& ops = part.process.ops;
  part.signatures = {{.func = part.strings.intern("AllReduce"), .kind = 2}};
  for (uint32_t i = 0; i < count; ++i) {
    ops.signature.push_back(0);
    ops.index.push_back(i);
    ops.seq.push_back(i);
    ops.called_ns.push_back(1'000 + i + (i > 2 ? 10 : 0));
    ops.enqueued_ns.push_back(0);
    ops.launched_ns.push_back(0);
    ops.gpu_start_ns.push_back(i < ended ? 5'000 + i : 0);
    ops.gpu_end_ns.push_back(i < ended ? 5'000 + i : 0);
    ops.gpu_error_ns.push_back(0);
    ops.flags.push_back(0);
    ops.gpu_source.push_back(0);
  }
  part.comms.resize(1);
  part.members.resize(1);
  part.members[0].ops = count;
  return part;
}

TEST(NewestPart, KeepsTheNewestTheLongestGapAndWhatHasNotEnded) {
  ProcessPart part = all_reduces(100, 50);
  keep_newest(part, 4);
  const Column<uint32_t> expected = [] {
    Column<uint32_t> indexes = {2, 3};
    for (uint32_t i = 49; i < 66; ++i) indexes.push_back(i);
    for (uint32_t i = 96; i < 100; ++i) indexes.push_back(i);
    return indexes;
  }();
  EXPECT_EQ(part.process.ops.index, expected);
  EXPECT_EQ(part.members[0].ops, expected.size());
  EXPECT_TRUE(part.members[0].counted);
  EXPECT_EQ(part.process.ops.called_ns.back(), 1'109);
  EXPECT_TRUE(part.process.ops.place.empty());
  EXPECT_LT(part.process.ops.index.capacity(), 64u) << "memory of what is gone";
}

TEST(NewestPart, KeepsAllOfFew) {
  ProcessPart part = all_reduces(4, 0);
  keep_newest(part, 4);
  EXPECT_EQ(part.process.ops.size(), 4u);
  EXPECT_TRUE(part.members[0].counted);
}

// What was lost in between has no count: only neighbours stay neighbours.
TEST(NewestPart, CountsNothingWhereSomethingIsLost) {
  for (const bool is_reported : {true, false}) {
    ProcessPart part = all_reduces(100, 50);
    if (is_reported)
      part.process.lost = 1;
    else
      part.process.ops.seq[70] = 200;  // NCCL skips numbers
    keep_newest(part, 4);
    EXPECT_EQ(part.process.ops.index, (Column<uint32_t>{96, 97, 98, 99}));
    EXPECT_FALSE(part.members[0].counted);
  }
}

}  // namespace
}  // namespace lockstep::job::gather
