// SPDX-License-Identifier: Apache-2.0
#include "cli/show/event_tree.h"

#include <gtest/gtest.h>

#include <array>

#include "cli/show/event_nodes.h"
#include "model/event_kind.h"
#include "model/testing/synthetic_run.h"

namespace lockstep::cli::show {
namespace {

class EventTree : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(model::testing::SyntheticRun({.ranks = 4, .ops = 20}).load(0, trace_));
  }

  // Names and details, indented by two for each level.
  static void write(const std::vector<EventNode>& events, const std::string& indent, std::string& text) {
    for (const EventNode& event : events) {
      text += indent + event.event + (event.count > 1 ? " x " + std::to_string(event.count) : "") +
              (event.detail.empty() ? "" : ": " + event.detail) + "\n";
      for (const EventState& state : event.states) text += indent + "  - " + state.name + "\n";
      write(event.children, indent + "  ", text);
    }
  }
  std::string text(uint32_t op, size_t most) const {
    std::string text;
    write(event_tree(trace_, op, most), "", text);
    return text;
  }
  // The four steps of a proxy operation, the first with an event of the network plugin.
  static std::string steps_text(bool is_send) {
    std::string text;
    for (int step = 0; step < 4; ++step) {
      text += "      ProxyStep: step " + std::to_string(step) + ", 64 KiB\n";
      for (const char* state : is_send ? std::array{"waits for the GPU", "waits for the peer", "sent"}
                                       : std::array{"posted", "received", "flushed, waits for the GPU"})
        text += "        - " + std::string(state) + "\n";
      if (step == 0) text += "        NetPlugin: 64 KiB\n";
    }
    return text;
  }
  // A proxy operation of the task of operation 0, with so many steps, the last `open` of which never end.
  uint32_t add_proxy_op(uint16_t channel, int32_t steps, int32_t open) {
    const uint32_t row = trace_.proxy_ops.append({0, 2, 0, trace_.ops.task[0], 1, 4000, 0, 3, channel, 1,
                                                  steps, 65536, 100, 110, open == 0 ? 9000 : 0});
    for (int32_t step = 0; step < steps; ++step) {
      const bool ended = step < steps - open;
      const int64_t start = 1000 + step * 10;
      trace_.proxy_steps.append({row, 0, step, 1024, 1, 0, 0, start, start + 1, start + 3,
                                 ended ? start + 6 : 0, ended ? start + 10 : 0});
    }
    return row;
  }

  model::Trace trace_;
};

TEST_F(EventTree, HangsTogether) {
  EXPECT_EQ(text(0, 4),
            "GroupApi: depth 1\n"
            "  - group start done\n"
            "  - group end begins\n"
            "  CollApi: AllReduce, 1,024 elements of ncclFloat32, captured into a graph\n"
            "  KernelLaunch\n"
            "Group\n"
            "  Coll: RING SIMPLE, 2 channels, 16 warps, seq 0\n"
            "    KernelCh: channel 0, 500 ns by the GPU's clock\n"
            "    KernelCh: channel 1, 500 ns by the GPU's clock\n"
            "    ProxyOp: send to 1, channel 0, 4 of 4 steps\n"
            "      - in progress\n" +
                steps_text(true) +
                "    ProxyOp: send to 1, channel 1, 4 of 4 steps\n"
                "      - in progress\n" +
                steps_text(true) +
                "    ProxyOp: receive from 3, channel 0, 4 of 4 steps\n"
                "      - in progress\n" +
                steps_text(false) +
                "    ProxyOp: receive from 3, channel 1, 4 of 4 steps\n"
                "      - in progress\n" +
                steps_text(false) + "GPU kernel: ncclDevKernel_AllReduce_Sum_f32_RING_LL\n");
}

TEST_F(EventTree, KnowsItsCopyEngines) {
  EXPECT_NE(text(3, 4).find("CeSync: 4 ranks"), std::string::npos) << text(3, 4);
}

TEST_F(EventTree, FoldsManyStepsIntoOneThatSums) {
  trace_.proxy_ops = {};
  trace_.proxy_steps = {};
  trace_.net_events = {};
  add_proxy_op(0, 10000, 0);
  const std::string folded = text(0, 4);
  EXPECT_NE(folded.find("ProxyOp: send to 3, channel 0, 10,000 of 10,000 steps\n"), std::string::npos)
      << folded;
  EXPECT_NE(folded.find("ProxyStep x 10000: 9.77 MiB in all; waits: GPU 20.0 us, peer 30.0 us, wire 40.0 us; "
                        "longest step 0, 10 ns\n"),
            std::string::npos)
      << folded;
  const std::string all = text(0, SIZE_MAX);
  EXPECT_NE(all.find("ProxyStep: step 9999, 1 KiB\n"), std::string::npos);
  EXPECT_EQ(all.find(" x "), std::string::npos) << "nothing is folded";
}

TEST_F(EventTree, KeepsWhatNeverEndedByItself) {
  trace_.proxy_ops = {};
  trace_.proxy_steps = {};
  trace_.net_events = {};
  for (uint16_t channel = 0; channel < 9; ++channel) add_proxy_op(channel, 8, channel == 7 ? 2 : 0);
  const std::string folded = text(0, 4);
  EXPECT_NE(folded.find("ProxyOp: send to 3, channel 7, 8 of 8 steps\n"), std::string::npos) << folded;
  EXPECT_NE(folded.find("ProxyStep: step 6, 1 KiB\n"), std::string::npos) << folded;
  EXPECT_NE(folded.find("ProxyStep: step 7, 1 KiB\n"), std::string::npos) << folded;
  EXPECT_NE(folded.find("ProxyOp x 8: send to 3, 8 channels, 64 of 64 steps\n"), std::string::npos) << folded;
  const std::vector<EventNode> events = event_tree(trace_, 0, 4);
  const EventNode& coll = events[1].children[0];
  EXPECT_EQ(coll.children[2].open, 1u);
  EXPECT_EQ(coll.children[2].end_ns, 0);
  EXPECT_EQ(coll.children[3].open, 0u);
  EXPECT_EQ(coll.children[3].end_ns, 9000);
}

TEST(FoldedEvents, BeginWithTheFirstThatIsKnownAndNameNoThreadOfSeveral) {
  std::vector<EventNode> siblings(3);
  for (size_t i = 0; i < siblings.size(); ++i) {
    siblings[i].event = "CeSync";
    siblings[i].tid = static_cast<int64_t>(7 + i);
    siblings[i].thread = "proxy";
    siblings[i].detail = "event " + std::to_string(i);
    siblings[i].end_ns = 900;
  }
  siblings[0].begin_ns = 100;
  siblings[1].begin_ns = 0;  // was lost
  siblings[2].begin_ns = 200;
  EventNode into;
  add_folded(into, std::move(siblings), 1);
  ASSERT_EQ(into.children.size(), 1u);
  const EventNode& folded = into.children[0];
  EXPECT_EQ(folded.count, 3u);
  EXPECT_EQ(folded.begin_ns, 100);
  EXPECT_EQ(folded.detail, "longest: event 0");
  EXPECT_EQ(folded.tid, -1);
  EXPECT_EQ(folded.thread, "");
}

TEST_F(EventTree, SaysOfAKernelForSeveralOperations) {
  // The second operation shares the plan of the first; the kernel stands with the first.
  trace_.tasks.plan[trace_.ops.task[1]] = trace_.tasks.plan[trace_.ops.task[0]];
  trace_.kernels.op[0] = 0;
  for (uint32_t row = 1; row < trace_.kernels.size(); ++row) trace_.kernels.op[row] = model::kNoRow;
  EXPECT_NE(text(1, 4).find("Group: 2 operations in this plan\n"), std::string::npos) << text(1, 4);
  EXPECT_NE(text(1, 4).find("GPU kernel: ncclDevKernel_AllReduce_Sum_f32_RING_LL\n"), std::string::npos);
}

TEST_F(EventTree, TellsReplaysOfOnePlanApart) {
  // Two operations of one captured plan, replayed twice; each replay's kernel stands with the first of them.
  trace_.tasks.plan[trace_.ops.task[1]] = trace_.tasks.plan[trace_.ops.task[0]];
  for (uint32_t op = 0; op < 4; ++op) {
    trace_.ops.task[op] = trace_.ops.task[op % 2];
    trace_.ops.flags[op] |= model::kFlagGraphCaptured;
    trace_.ops.launched_ns[op] = op < 2 ? 1'000'000 : 2'000'000;
  }
  for (uint32_t row = 0; row < trace_.kernels.size(); ++row) {
    trace_.kernels.op[row] = row < 2 ? 2 * row : model::kNoRow;
    trace_.kernels.graph[row] = row + 1;
  }
  for (uint32_t op = 0; op < 4; ++op) {
    const std::string tree = text(op, SIZE_MAX);
    EXPECT_EQ(tree.find(", graph 1\n") != std::string::npos, op < 2) << op << '\n' << tree;
    EXPECT_EQ(tree.find(", graph 2\n") != std::string::npos, op >= 2) << op << '\n' << tree;
  }
}

TEST_F(EventTree, NeedsNoCallAndNoTask) {
  trace_.ops.group[0] = trace_.ops.call[0] = trace_.ops.task[0] = model::kNoRow;
  trace_.ops.launched_ns[0] = 0;
  EXPECT_EQ(text(0, 4), "GPU kernel: ncclDevKernel_AllReduce_Sum_f32_RING_LL\n");
}

}  // namespace
}  // namespace lockstep::cli::show
