// SPDX-License-Identifier: Apache-2.0
#include "format/records.h"

#include <gtest/gtest.h>

namespace lockstep::format {
namespace {

// What is written as a short record has to come back: each field's largest value that fits, and the first
// that does not.
TEST(Records, AShortCollHoldsWhatFitsItsFieldsAndNoMore) {
  constexpr uint64_t kBuffer = (uint64_t{1} << 48) - 1, kSeq = UINT32_MAX;
  constexpr uint32_t kComm = UINT16_MAX, kLink = UINT16_MAX;
  EXPECT_TRUE(fits_short_coll(kBuffer, kBuffer, kSeq, kComm, kLink));
  EXPECT_FALSE(fits_short_coll(kBuffer + 1, 0, 0, 0, 0));
  EXPECT_FALSE(fits_short_coll(0, kBuffer + 1, 0, 0, 0));
  EXPECT_FALSE(fits_short_coll(0, 0, kSeq + 1, 0, 0));
  EXPECT_FALSE(fits_short_coll(0, 0, 0, kComm + 1, 0)) << "the 65,537th communicator";
  EXPECT_FALSE(fits_short_coll(0, 0, 0, 0, kLink + 1));

  ShortCollRecord record{};
  record.head.kind = Kind::kShortColl;
  record.head.start = 17;
  record.count = UINT32_MAX;
  record.send_buffer_high = static_cast<uint16_t>(kBuffer >> 32);
  record.send_buffer_low = static_cast<uint32_t>(kBuffer);
  record.recv_buffer_high = 0x1234;
  record.recv_buffer_low = 0x5678'9abc;
  record.seq = static_cast<uint32_t>(kSeq);
  record.comm = static_cast<uint16_t>(kComm);
  record.shape = 9;
  record.channels = 7;
  record.warps = 5;
  record.group_link = static_cast<uint16_t>(kLink);
  const CollRecord coll = expand(record);
  EXPECT_EQ(coll.head.kind, Kind::kColl);
  EXPECT_EQ(coll.head.start, 17u);
  EXPECT_EQ(coll.count, UINT32_MAX);
  EXPECT_EQ(coll.send_buffer, kBuffer);
  EXPECT_EQ(coll.recv_buffer, 0x1234'5678'9abcu);
  EXPECT_EQ(coll.seq, kSeq);
  EXPECT_EQ(coll.comm, kComm);
  EXPECT_EQ(coll.shape, 9);
  EXPECT_EQ(coll.channels, 7);
  EXPECT_EQ(coll.warps, 5);
  EXPECT_EQ(coll.group_link, kLink);
}

}  // namespace
}  // namespace lockstep::format
