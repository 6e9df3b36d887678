// SPDX-License-Identifier: Apache-2.0
#include "readers/native/launch_join.h"

#include <gtest/gtest.h>

namespace lockstep::readers::native {
namespace {

constexpr LaunchJoin::Thread kThread{.number = 1, .is_tid = true};

LaunchJoin::Op op(const std::string& func) { return {.op = {}, .func = func}; }
std::vector<std::string> funcs(const std::vector<LaunchJoin::Timed>& timed) {
  std::vector<std::string> funcs;
  for (const auto& of : timed) funcs.push_back(of.op.func);
  return funcs;
}
// What is given up after so many looks, by name.
std::vector<std::string> unjoined(LaunchJoin& join, uint32_t looks) {
  std::vector<std::string> funcs;
  for (uint32_t i = 0; i < looks; ++i) {
    for (const auto& kernel : join.take_unjoined()) funcs.push_back(kernel.func);
  }
  return funcs;
}

TEST(LaunchJoin, ASecondKernelOfACallIsNoneOfTheOperations) {
  LaunchJoin join;
  join.add_launch(kThread, 100, 200, op("AllReduce"));
  join.add_call(kThread, 150, 1);
  join.add_kernel(1, {"first", 10});
  join.add_kernel(1, {"second", 20});
  EXPECT_EQ(unjoined(join, LaunchJoin::kPatience), std::vector<std::string>{}) << "its call may come yet";
  const auto timed = join.take_timed();
  EXPECT_EQ(funcs(timed), std::vector<std::string>{"AllReduce"});
  EXPECT_EQ(timed.at(0).ns, 10);
  EXPECT_EQ(unjoined(join, 1), std::vector<std::string>{"second"});
  EXPECT_TRUE(join.take_timed().empty());
}

TEST(LaunchJoin, ACallBelongsToTheLaunchAroundIt) {
  auto joined = [](uint64_t call, uint64_t end = 200, LaunchJoin::Thread thread = kThread) {
    LaunchJoin join;
    join.add_launch(kThread, 100, end, op("AllReduce"));
    join.add_call(thread, call, 1);
    join.add_kernel(1, {"kernel", 10});
    join.take_unjoined();
    return join.take_timed().size();
  };
  EXPECT_EQ(joined(99), 0u);
  EXPECT_EQ(joined(100), 1u);
  EXPECT_EQ(joined(200), 1u);
  EXPECT_EQ(joined(201), 0u);
  EXPECT_EQ(joined(150, 200, {.number = 2, .is_tid = true}), 0u);
  EXPECT_EQ(joined(150, 200, {.number = 1, .is_tid = false}), 0u) << "numbers of another kind";
}

TEST(LaunchJoin, OfSeveralLaunchesTheLastBeforeTheCallIsMeant) {
  LaunchJoin join;
  join.add_launch(kThread, 100, 290, op("AllReduce"));
  join.add_launch(kThread, 300, 400, op("AllGather"));
  join.add_call(kThread, 350, 1);
  join.add_call(kThread, 250, 2);
  join.add_kernel(2, {"a", 1});
  join.add_kernel(1, {"b", 1});
  join.take_unjoined();
  EXPECT_EQ(funcs(join.take_timed()), (std::vector<std::string>{"AllReduce", "AllGather"}));
}

TEST(LaunchJoin, KeepsTheNewestCallsOfABound) {
  LaunchJoin join;
  join.add_launch(kThread, 100, UINT64_MAX, op("AllReduce"));
  for (uint32_t call = 0; call <= LaunchJoin::kMostCalls; ++call) join.add_call(kThread, 150 + call, call);
  join.add_kernel(0, {"too old", 1});
  join.add_kernel(1, {"kept", 1});
  EXPECT_EQ(unjoined(join, LaunchJoin::kPatience + 1), std::vector<std::string>{"too old"});
  EXPECT_EQ(join.take_timed().size(), 1u);
}

TEST(LaunchJoin, KernelsBeyondTheBoundAreGivenUpAtOnce) {
  LaunchJoin join;
  for (uint32_t kernel = 0; kernel <= LaunchJoin::kMostKernels; ++kernel)
    join.add_kernel(kernel, {kernel < LaunchJoin::kMostKernels ? "held" : "more", 1});
  EXPECT_EQ(unjoined(join, 1), std::vector<std::string>{"more"});
}

}  // namespace
}  // namespace lockstep::readers::native
