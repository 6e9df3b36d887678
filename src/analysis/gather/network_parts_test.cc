// SPDX-License-Identifier: Apache-2.0
#include "analysis/gather/network_parts.h"

#include <gtest/gtest.h>

namespace lockstep::analysis::gather {
namespace {

using model::StepWait;

struct Step {
  int64_t start, wait1, wait2, wait3, end;
};

class NetworkParts : public ::testing::Test {
 protected:
  void add(bool is_send, std::vector<Step> steps) {
    model::ProxyOp op{};
    op.comm = 0;
    op.peer = 1;
    op.channel = 2;
    op.is_send = is_send;
    op.steps = 8;
    uint32_t row = trace_.proxy_ops.append(op);
    int32_t number = 0;
    for (const Step& s : steps) {
      model::ProxyStep step{};
      step.proxy_op = row;
      step.step = number++;
      step.bytes = 1000;
      step.is_send = is_send;
      step.start_ns = s.start;
      step.wait1_ns = s.wait1;
      step.wait2_ns = s.wait2;
      step.wait3_ns = s.wait3;
      step.end_ns = s.end;
      trace_.proxy_steps.append(step);
    }
  }
  model::JobProcess sums() const {
    model::JobProcess process;
    add_network(trace_, process);
    return process;
  }
  model::Trace trace_;
};

TEST_F(NetworkParts, ASendWaitsForGpuPeerAndNetwork) {
  add(true, {{10, 11, 20, 50, 90}, {12, 13, 25, 60, 100}});
  model::JobProcess process = sums();
  ASSERT_EQ(process.net_pairs.size(), 1u);
  const model::NetPair& pair = process.net_pairs[0];
  EXPECT_EQ(pair.steps, 2u);
  EXPECT_EQ(pair.bytes, 2000u);
  EXPECT_EQ(pair.gpu_ns, 9 + 12);
  EXPECT_EQ(pair.peer_ns, 30 + 35);
  EXPECT_EQ(pair.wire_ns, 40 + 40);
  EXPECT_EQ(pair.busy_ns, 50);  // 50 to 100: they overlap
  EXPECT_EQ(pair.wire_squares, 3200);
  EXPECT_EQ(pair.first_ns, 10);
  EXPECT_EQ(pair.last_ns, 100);
  EXPECT_EQ(pair.device, -1);
}

TEST_F(NetworkParts, AReceiveWaitsForNetworkFlushAndGpu) {
  add(false, {{10, 15, 40, 45, 70}});
  const model::NetPair pair = sums().net_pairs.at(0);
  EXPECT_EQ(pair.wire_ns, 25);
  EXPECT_EQ(pair.flush_ns, 5);
  EXPECT_EQ(pair.gpu_ns, 25);
  EXPECT_EQ(pair.peer_ns, 0);
}

TEST_F(NetworkParts, AStateThatOlderVersionsDoNotHaveEndsWithTheNext) {
  add(true, {{10, 11, 0, 50, 90}});
  const model::NetPair pair = sums().net_pairs.at(0);
  EXPECT_EQ(pair.gpu_ns, 39);
  EXPECT_EQ(pair.peer_ns, 0);
  EXPECT_EQ(pair.wire_ns, 40);
}

TEST_F(NetworkParts, TheOldestOpenStepOfALaneSaysWhatItWaitsFor) {
  add(true, {{10, 11, 20, 50, 90}, {12, 13, 25, 0, 0}, {14, 15, 0, 0, 0}});
  model::JobProcess process = sums();
  ASSERT_EQ(process.open_steps.size(), 1u);
  EXPECT_EQ(process.open_steps[0].wait, StepWait::kPeer);
  EXPECT_EQ(process.open_steps[0].step, 1);
  EXPECT_EQ(process.open_steps[0].since_ns, 25);
  EXPECT_EQ(process.open_steps[0].steps, 8);
}

TEST_F(NetworkParts, TheNetworkPluginNamesTransportAndDevice) {
  add(true, {{10, 11, 20, 50, 90}});
  model::NetEvent event{};
  event.proxy_step = 0;
  event.id = 0x10001;
  event.device = 3;
  trace_.net_events.append(event);
  const model::NetPair pair = sums().net_pairs.at(0);
  EXPECT_EQ(pair.device, 3);
  EXPECT_EQ(pair.transport, model::NetTransport::kIb);
}

}  // namespace
}  // namespace lockstep::analysis::gather
