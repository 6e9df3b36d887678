// SPDX-License-Identifier: Apache-2.0
#include "live/followed_view.h"

#include <gtest/gtest.h>

#include "live/rank_rows.h"

namespace lockstep::live {
namespace {

using model::FollowedProcess;

constexpr int64_t kOneSecond = 1'000'000'000, kFollowedBegin = 1'700'000'000 * kOneSecond;

// A rank of two that has called so many all-reduces of 1 MB, one a second, of which the newest `kept` are
// there.
FollowedProcess followed_rank(int32_t number, uint32_t called, uint32_t kept, int64_t seen_ns) {
  auto part = std::make_shared<model::ProcessPart>();
  part->process.row.host = part->strings.intern("node-" + std::to_string(number));
  part->process.row.rank = number;
  part->process.row.pid = 100 + number;
  part->process.row.start_ns = kFollowedBegin;
  part->signatures = {{.func = part->strings.intern("AllReduce"), .kind = 2, .bytes = 1'000'000}};
  part->comms.push_back({.comm_id = 0xabc, .name = part->strings.intern("dp"), .ranks = 2});
  model::Member& member = part->members.emplace_back();
  member.rank = number;
  member.ops = kept;
  member.counted = true;
  model::JobOps& ops = part->process.ops;
  for (uint32_t i = called - kept; i < called; ++i) {
    ops.signature.push_back(0);
    ops.index.push_back(i);
    ops.seq.push_back(i);
    ops.called_ns.push_back(kFollowedBegin + i * kOneSecond);
    for (auto* column : {&ops.enqueued_ns, &ops.launched_ns, &ops.gpu_start_ns, &ops.gpu_end_ns})
      column->push_back(0);
    ops.gpu_error_ns.push_back(-1);
    ops.flags.push_back(0);
    ops.gpu_source.push_back(0);
  }
  return {.part = std::move(part),
          .heartbeat_ns = seen_ns - kOneSecond / 2,
          .liveness = model::Liveness::kRunning,
          .seen_ns = seen_ns};
}

TEST(FollowedView, CountsWhatIsNoLongerThere) {
  FollowedView view;
  const int64_t first = kFollowedBegin + 10 * kOneSecond, second = kFollowedBegin + 20 * kOneSecond;
  EXPECT_EQ(view.look({followed_rank(0, 10, 4, first)}).front().ops_per_s, 0) << "rates need two looks";
  const SeenProcess seen = view.look({followed_rank(0, 20, 4, second)}).front();
  EXPECT_DOUBLE_EQ(seen.ops_per_s, 1);
  EXPECT_DOUBLE_EQ(seen.bytes_per_s, 1e6);
  ASSERT_TRUE(seen.last);
  EXPECT_EQ(seen.last->func, "AllReduce");
  EXPECT_EQ(seen.last->comm, "dp");
  EXPECT_EQ(seen.last->number, 19u);
  EXPECT_EQ(seen.last->age_ns, kOneSecond);
  EXPECT_EQ(seen.heartbeat_age_ns, kOneSecond / 2);
  // The same state again, as nobody has written since.
  EXPECT_DOUBLE_EQ(view.look({followed_rank(0, 20, 4, second)}).front().ops_per_s, 1);
  EXPECT_EQ(view.look({followed_rank(0, 20, 4, second + kOneSecond)}).front().ops_per_s, 0);
}

TEST(FollowedView, ShowsWhoIsBehind) {
  FollowedView view;
  const int64_t now = kFollowedBegin + 60 * kOneSecond;
  const RankRows rows =
      RankWatch().look(view.look({followed_rank(0, 20, 4, now), followed_rank(1, 15, 4, now)}));
  EXPECT_EQ(
      rows.verdict,
      "Rank 1 (GPU 0 of node-1, pid 101) is 5 operations behind on dp: others began AllReduce 41.0 s ago.");
  EXPECT_EQ(rows.rows[0].health, Health::kWaits);
}

// Only a member whose operations are all there has not called what it does not name.
TEST(FollowedView, DoesNotTakeForgottenFunctionsForNeverCalled) {
  FollowedView view;
  const int64_t now = kFollowedBegin + 20 * kOneSecond;
  EXPECT_FALSE(view.look({followed_rank(0, 20, 4, now)}).front().comms.front().from_start);
  EXPECT_TRUE(view.look({followed_rank(0, 4, 4, now)}).front().comms.front().from_start);
  EXPECT_TRUE(view.look({followed_rank(0, 0, 0, now)}).front().comms.front().from_start);
}

// A host whose follower was cut off: the others tell how long ago its last sign of life was.
TEST(FollowedView, MeasuresSilenceByTheOthers) {
  FollowedView view;
  const int64_t now = kFollowedBegin + 60 * kOneSecond;
  FollowedProcess silent = followed_rank(1, 20, 4, kFollowedBegin + 20 * kOneSecond);
  silent.liveness = model::Liveness::kUnknown;
  const RankRows rows = RankWatch().look(view.look({followed_rank(0, 20, 4, now), silent}));
  EXPECT_EQ(rows.rows[1].health, Health::kSilent);
  EXPECT_EQ(rows.rows[1].heartbeat_age_ns, 40 * kOneSecond + kOneSecond / 2);
}

}  // namespace
}  // namespace lockstep::live
