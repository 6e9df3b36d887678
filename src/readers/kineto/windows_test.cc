// SPDX-License-Identifier: Apache-2.0
#include "readers/kineto/windows.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace lockstep::readers::kineto {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

// Called after its rank and its place: "2b".
TraceFile file(int32_t rank, int64_t first_ns, char place) {
  return {std::to_string(rank) + place, {rank, first_ns, true}};
}
std::string used(const ChosenFiles& chosen) {
  std::string names;
  for (const TraceFile& file : chosen.used) names += file.path + ' ';
  return names;
}
std::string unused(const ChosenFiles& chosen) {
  std::string names;
  for (const UnusedFile& file : chosen.unused) names += file.path + ' ' + std::string(file.kind) + ' ';
  return names;
}

TEST(KinetoWindows, TheNewestThatAllHave) {
  const auto chosen = choose_window({file(0, 100 * kSecond, 'a'), file(1, 101 * kSecond, 'a'),
                                     file(0, 200 * kSecond, 'b'), file(1, 199 * kSecond, 'b')});
  EXPECT_EQ(used(chosen), "0b 1b ");
  EXPECT_EQ(unused(chosen), "0a older_trace 1a older_trace ");
}

TEST(KinetoWindows, OneThatFewHaveReplacesNoneThatMoreHave) {
  std::vector<TraceFile> files = {file(2, 300 * kSecond, 'c')};
  for (int32_t rank = 0; rank < 4; ++rank) {
    files.push_back(file(rank, 100 * kSecond + rank, 'a'));
    files.push_back(file(rank, 200 * kSecond + rank, 'b'));
  }
  const auto chosen = choose_window(files);
  EXPECT_EQ(used(chosen), "0b 1b 2b 3b ");
  EXPECT_EQ(unused(chosen), "0a older_trace 1a older_trace 2a older_trace 2c newer_trace 3a older_trace ");
  const auto why = std::find_if(chosen.unused.begin(), chosen.unused.end(),
                                [](const UnusedFile& file) { return file.path == "2c"; });
  EXPECT_EQ(why->why, "an earlier trace of its rank is used, of a window that more ranks have");
}

TEST(KinetoWindows, ARankWithoutAFileOfTheWindowHasTheNearest) {
  const auto chosen =
      choose_window({file(0, 100 * kSecond, 'a'), file(0, 200 * kSecond, 'b'), file(1, 100 * kSecond, 'a'),
                     file(1, 200 * kSecond, 'b'), file(2, 100 * kSecond, 'a'), file(3, 260 * kSecond, 'c')});
  EXPECT_EQ(used(chosen), "0a 1a 2a 3c ");
}

TEST(KinetoWindows, ClocksThatDifferCostNoRank) {
  EXPECT_EQ(used(choose_window({file(0, 100 * kSecond, 'a'), file(1, 900 * kSecond, 'a')})), "0a 1a ");
  // One rank's files are closer together than clocks are.
  EXPECT_EQ(used(choose_window({file(0, 100 * kSecond, 'a'), file(0, 100 * kSecond + 1000, 'b'),
                                file(1, 105 * kSecond, 'a'), file(2, 90 * kSecond, 'a')})),
            "0b 1a 2a ");
}

TEST(KinetoWindows, CopiesAndFilesOfUnknownRank) {
  const auto chosen = choose_window(
      {file(0, 100 * kSecond, 'b'), file(0, 100 * kSecond, 'a'), file(-1, 5, 'x'), file(-1, 7, 'y')});
  EXPECT_EQ(used(chosen), "-1x -1y 0b ");
  EXPECT_EQ(unused(chosen), "0a older_trace ");
}

TEST(KinetoWindows, FilesWithoutEventsOnlyIfThereAreNoOthers) {
  const TraceFile empty{"empty", {0, 0, false}};
  EXPECT_EQ(used(choose_window({empty, file(0, kSecond, 'a')})), "0a ");
  EXPECT_EQ(unused(choose_window({empty, file(1, kSecond, 'a')})), "empty empty_trace ");
  EXPECT_EQ(used(choose_window({empty})), "empty ");
}

}  // namespace
}  // namespace lockstep::readers::kineto
