// SPDX-License-Identifier: Apache-2.0
// From the header to the model: what tools see of what a caller said.
#include "analysis/assemble/assembled_source.h"
#include "capture/api/api_test.h"
#include "model/comms_id.h"
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
    auto loaded = analysis::assemble::assembled(std::move(*source))->load(0, trace);
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
    const std::vector<int64_t> splits;
    LOCKSTEP_RECORD_PARAM_COMMS(std::make_tuple(1, false),
                                std::make_tuple(std::string("12"), std::string("wide")), 0, "allreduce", 64,
                                64, "Float", splits, splits, 0, 8, 16);
  });
  model::Trace trace = load();
  ASSERT_EQ(trace.ops.size(), 21u);
  model::TorchGroups groups(trace);
  std::vector<model::CommsTuple> tuples;
  for (uint32_t op = 0; op < trace.ops.size(); ++op)
    tuples.push_back(groups.next(op).value_or(model::CommsTuple{}));
  EXPECT_EQ(model::comms_id(tuples[0]), 2297668046887139419u);
  EXPECT_EQ(model::comms_id(tuples[11]), 2297668046887140139u);
  EXPECT_EQ(model::comms_id(tuples[12]), 10159970886763999547u);
  EXPECT_EQ(model::comms_id(tuples[19]), 5586280276518943005u);
  EXPECT_EQ(tuples[20], (model::CommsTuple{"12", 1, false, 0, 8, 16}));
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
