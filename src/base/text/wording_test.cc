// SPDX-License-Identifier: Apache-2.0
#include "base/text/wording.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/text/units.h"

namespace lockstep::wording {
namespace {

TEST(Wording, NumbersAsPeopleReadThem) {
  EXPECT_EQ(duration(0), "0 ns");
  EXPECT_EQ(duration(12'345), "12.3 us");
  EXPECT_EQ(duration(-1'500'000), "-1.50 ms");
  EXPECT_EQ(duration(41'000'000'000), "41.0 s");
  EXPECT_EQ(duration(1'800'000'000'000), "30.0 min");
  EXPECT_EQ(bytes(512), "512 B");
  EXPECT_EQ(bytes(1 << 20), "1 MiB");
  EXPECT_EQ(bytes(3 << 19), "1.50 MiB");
  EXPECT_EQ(bytes_beside(1'234'567, 1'234'563), "1,234,567 B");
  EXPECT_EQ(bytes_beside(1'234'563, 1'234'567), "1,234,563 B");
  EXPECT_EQ(bytes_beside(1 << 20, 1 << 21), "1 MiB");
  EXPECT_EQ(bytes_beside(1 << 20, (1 << 20) + 4), "1,048,576 B");
  EXPECT_EQ(bytes_beside(1'234'567, 1'234'567), bytes(1'234'567));
  EXPECT_EQ(rate(12.34e9), "12.3 GB/s");
  EXPECT_EQ(rate(25e6), "25.0 MB/s");
  EXPECT_EQ(percent(0.034), "3.4 %");
  EXPECT_EQ(percent(0.5), "50 %");
  EXPECT_EQ(ordinal(1) + ordinal(2) + ordinal(3) + ordinal(9) + ordinal(11) + ordinal(112) + ordinal(121),
            "1st2nd3rd9th11th112th121st");
  EXPECT_EQ(ordinal(1'000) + ordinal(1'234'567), "1,000th1,234,567th");
  EXPECT_EQ(count(1, "rank") + ", " + count(2, "rank"), "1 rank, 2 ranks");
  EXPECT_EQ(count(3, "process"), "3 processes");
}

TEST(Wording, FindingsAndTablesPrintOneNumberAlike) {
  for (const int64_t ns : {999L, 9'994L, 9'996L, 99'940L, 99'960L, 12'345L, 9'996'000L, 7'300'000'000'000L})
    EXPECT_EQ(duration(ns), format_duration(static_cast<double>(ns))) << ns;
  EXPECT_EQ(format_duration(9'996), "10.0 us");
  EXPECT_EQ(format_duration(99'960), "100 us");
  EXPECT_EQ(format_bytes(10'485'759), "10.0 MiB");
  EXPECT_EQ(format_bytes(std::numeric_limits<uint64_t>::max()), "16 EiB");
  EXPECT_EQ(count(10'000, "rank"), "10,000 ranks");
}

TEST(Wording, NamesFromOutsideDoNoHarm) {
  EXPECT_EQ(name("mesh_dp:6"), "mesh_dp:6");
  EXPECT_EQ(name("a\x1b[31m\nb\xff"), "a?[31m?b?");
  EXPECT_EQ(name("a\u202eb\u2066c\u200bd\ufeffe\u061cf\u009bg"), "a?b?c?d?e?f?g");
  EXPECT_EQ(name("名前 😀 é – …"), "名前 😀 é – …");
  EXPECT_EQ(name("0123456789", 8), "01234...");
  EXPECT_EQ(name(std::string(1 << 20, 'x')), std::string(61, 'x') + "...");
  std::string accents;
  for (int i = 0; i < 40; ++i) accents += "\xc3\xa9";
  EXPECT_EQ(name(accents), accents.substr(0, 60) + "...") << "cut between characters";
}

TEST(Wording, RanksAsLists) {
  EXPECT_EQ(ranks({5}), "rank 5");
  EXPECT_EQ(ranks({0, 1}), "ranks 0 and 1");
  EXPECT_EQ(ranks({0, 1, 2, 3, 7}), "ranks 0-3 and 7");
  EXPECT_EQ(ranks({0, 2, 4, 6, 8}, 3), "ranks 0, 2, 4 and 2 others");
}

}  // namespace
}  // namespace lockstep::wording
