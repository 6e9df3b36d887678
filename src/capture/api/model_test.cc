// SPDX-License-Identifier: Apache-2.0
// From the header to the model: what tools see of what a caller said.
#include <random>

#include "capture/api/api_test.h"
#include "job/assemble/assembled_source.h"
#include "model/testing/std_comms_id.h"
#include "readers/reader.h"

namespace lockstep::test {
namespace {

class ModelTest : public ApiCapture {
 protected:
  model::Trace load() {
    model::Trace trace;
    auto source = readers::open({run_.path()});
    EXPECT_TRUE(source) << source.error().message();
    if (!source) return trace;
    auto loaded = job::assemble::assembled(std::move(*source))->load(0, trace);
    EXPECT_TRUE(loaded) << loaded.error().message();
    return trace;
  }
  static void run_ops(lockstep_group group, int n) {
    for (int i = 0; i < n; ++i)
      lockstep_end(lockstep_begin(group, "allreduce", 64, 64, "Float", nullptr), nullptr);
  }
};

TEST_F(ModelTest, OperationsHavePyTorchsCommsIdBitForBit) {
  record([] {
    const int32_t irregular[] = {0, 2, 3};
    run_ops(declare_progression("default_pg:0", 0, 1, 8), 12);
    run_ops(declare_progression("tensor:1", 1, 2, 4), 1);
    run_ops(lockstep_declare_group("experts:3", irregular, 3, -1), 7);
  });
  const model::Trace trace = load();
  ASSERT_EQ(trace.ops.size(), 20u);
  const auto ids = trace.ops.all(&model::OpTable::torch_comms_id);
  EXPECT_EQ(ids[0], 2297668046887139419u);
  EXPECT_EQ(ids[11], 2297668046887140139u);
  EXPECT_EQ(ids[12], 10159970886763999547u);
  EXPECT_EQ(ids[19], 5586280276518943005u);
}

struct RandomOperation {
  std::string name, description;
  int64_t seq;
  bool is_p2p;
  int32_t start, stride, world;
};
std::vector<RandomOperation> random_operations(size_t count) {
  std::mt19937_64 random(1286);
  const auto text = [&random](size_t most) {
    std::string text;
    for (size_t length = random() % most; length > 0; --length)
      text += static_cast<char>('!' + random() % 94);
    return text;
  };
  std::vector<RandomOperation> all;
  while (all.size() < count) {
    RandomOperation op{.name = random() % 2 == 0 ? std::to_string(random() % 100) : "x" + text(60),
                       .description = random() % 2 == 0 ? "" : "d" + text(60),
                       .seq = static_cast<int64_t>(random() % 4 == 0 ? random() >> 1 : random() % 1000),
                       .is_p2p = random() % 2 == 0,
                       .start = static_cast<int32_t>(random() % 64) - 1,
                       .stride = static_cast<int32_t>(random() % 10) - 1,
                       .world = static_cast<int32_t>(1 + random() % 16)};
    if (op.world == 1) op.stride = 0;  // as PyTorch has it
    if (op.world > 1 && op.stride == 0) op.stride = -1;
    all.push_back(op);
  }
  return all;
}

// Through the macro, the file and the reader: any name with any description, any number, irregular groups.
TEST_F(ModelTest, WhatTheMacroIsToldGivesPyTorchsIdForTenThousandTuples) {
  const std::vector<RandomOperation> all = random_operations(10'000);
  const LksFile file = record([&all] {
    const std::vector<int64_t> splits;
    for (const RandomOperation& op : all) {
      LOCKSTEP_RECORD_PARAM_COMMS(
          std::make_tuple(op.seq, op.is_p2p), std::make_tuple(op.name, op.description), 0,
          op.is_p2p ? "send" : "allreduce", 64, 64, "Float", splits, splits, op.start, op.stride, op.world);
    }
  });
  EXPECT_EQ(file.lost(), 0u);
  const model::Trace trace = load();
  ASSERT_EQ(trace.ops.size(), all.size());
  for (uint32_t i = 0; i < all.size(); ++i) {
    const RandomOperation& op = all[i];
    ASSERT_EQ(trace.ops.torch_seq[i], op.seq);
    ASSERT_EQ(trace.strings[trace.comms.group_name[trace.ops.comm[i]]], op.name);
    ASSERT_EQ(trace.strings[trace.comms.group_description[trace.ops.comm[i]]], op.description);
    ASSERT_EQ(trace.ops.torch_comms_id[i],
              model::testing::std_comms_id(op.name, op.seq, op.is_p2p, op.start, op.stride, op.world))
        << op.name << ' ' << op.start << ' ' << op.stride << ' ' << op.world;
  }
}

TEST_F(ModelTest, OperationsStepsAndTimesArrive) {
  record([] {
    lockstep_group group = declare_pair();
    lockstep_step(3);
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t start = static_cast<uint64_t>(now.tv_sec) * 1000000000 + static_cast<uint64_t>(now.tv_nsec);
    lockstep_gpu_times times = gpu_times(start, start + 1000);
    lockstep_end(lockstep_begin(group, "allreduce", 64, 64, "Half", nullptr), &times);
  });
  model::Trace trace = load();
  ASSERT_EQ(trace.ops.size(), 1u);
  EXPECT_EQ(trace.ops.gpu_source[0], static_cast<uint8_t>(model::GpuTimeSource::kApi));
  EXPECT_EQ(trace.ops.gpu_end_ns[0] - trace.ops.gpu_start_ns[0], 1000);
  EXPECT_LT(std::abs(trace.ops.gpu_start_ns[0] - trace.ops.called_ns[0]), 1000000000) << "on one time line";
  EXPECT_EQ(trace.ops.bytes[0], 128u);
  ASSERT_EQ(trace.marks.size(), 1u);
  EXPECT_EQ(trace.marks.value[0], 3);
  EXPECT_EQ(trace.strings[trace.comms.members[0]], "1,5");
  EXPECT_EQ(trace.processes.rank[0], 5);
  EXPECT_EQ(trace.losses.size(), 0u);
}

}  // namespace
}  // namespace lockstep::test
