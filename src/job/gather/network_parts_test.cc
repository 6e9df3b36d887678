// SPDX-License-Identifier: Apache-2.0
#include "job/gather/network_parts.h"

#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "model/event_kind.h"

namespace lockstep::job::gather {
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
    ProcessPart part;
    part.members.resize(1);
    add_network(trace_, part);
    return std::move(part.process);
  }
  model::Trace trace_;
};

TEST_F(NetworkParts, TransfersAreApartByWhatTheyBelongTo) {
  const auto task = [this](model::EventKind kind, const char* func, uint8_t channels) {
    model::Shape shape{};
    shape.func = trace_.strings.intern(func);
    shape.algo = trace_.strings.intern("RING");
    shape.proto = trace_.strings.intern("LL");
    model::Task task{};
    task.kind = model::number(kind);
    task.channels = channels;
    task.shape = trace_.shapes.append(shape);
    return trace_.tasks.append(task);
  };
  const uint32_t ring = task(model::EventKind::kColl, "AllReduce", 4),
                 send = task(model::EventKind::kP2p, "Send", 2);
  const uint32_t of_op[] = {ring, ring, send, ring, model::kNoRow};
  const Step step{10, 11, 20, 50, 90};
  for (const uint32_t of : of_op) {
    add(true, of == ring ? std::vector<Step>{step, step, step} : std::vector<Step>{step});
    trace_.proxy_ops.task[trace_.proxy_ops.size() - 1] = of;
  }
  // The third of the ring's is as many transfers of half the size.
  for (size_t i = 7; i < 10; ++i) trace_.proxy_steps.bytes[i] = 500;
  std::map<std::tuple<int, int, int, int>, uint64_t> steps;
  for (const model::NetPair& pair : sums().net_pairs) {
    const model::Traffic& traffic = pair.traffic;
    steps[{traffic.kind, traffic.channels, traffic.transfers, traffic.size}] += pair.steps;
    EXPECT_EQ(traffic.func, traffic.kind == model::number(model::EventKind::kColl)
                                ? trace_.strings.intern("AllReduce")
                                : model::StringId{0})
        << "one end sends where the other receives";
  }
  const int coll = model::number(model::EventKind::kColl), p2p = model::number(model::EventKind::kP2p);
  EXPECT_EQ(steps,
            (std::map<std::tuple<int, int, int, int>, uint64_t>{
                {{coll, 4, 2, 10}, 6}, {{coll, 4, 2, 9}, 3}, {{p2p, 2, 1, 10}, 1}, {{0, 0, 0, 0}, 1}}));
}

// Twenty transfers of 1000 bytes, one after the other, of which those from the tenth on take 40 ns instead
// of 10.
TEST_F(NetworkParts, PartsSayHowTheRateDiffersOverTime) {
  std::vector<Step> steps;
  for (int64_t i = 0; i < 20; ++i) {
    const int64_t at = 100 + 100 * i;
    steps.push_back({at, at + 1, at + 2, at + 3, at + 3 + (i < 10 ? 10 : 40)});
  }
  steps.push_back({5000, 5001, 5002, 0, 0});
  add(true, steps);
  const model::NetPair pair = sums().net_pairs.at(0);
  const uint64_t count[] = {3, 2, 3, 2, 3, 2, 3, 2};
  int64_t busy = 0;
  for (size_t i = 0; i < model::kRateParts; ++i) {
    EXPECT_EQ(pair.parts[i].bytes, 1000 * count[i]) << i;
    EXPECT_EQ(pair.parts[i].busy_ns, static_cast<int64_t>(count[i]) * (i < 4 ? 10 : 40)) << i;
    busy += pair.parts[i].busy_ns;
  }
  EXPECT_EQ(busy, pair.busy_ns);
}

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
}  // namespace lockstep::job::gather
