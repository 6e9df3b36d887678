// SPDX-License-Identifier: Apache-2.0
#include "job/gather/gpu_steps.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "model/event_kind.h"

namespace lockstep::job::gather {
namespace {

using model::KernelKind;
using model::kNoRow;

constexpr int64_t kEnd = 3000;

struct Made {
  model::Trace trace;
  model::JobProcess process;
  void kernel(KernelKind kind, int64_t start, int64_t end, int32_t gpu = 0, uint32_t op = kNoRow) {
    trace.kernels.append({0, op, 0, static_cast<uint8_t>(kind), gpu, 7, 0, 0, start, end, kNoRow, 0, 0, 0});
  }
  void step(int64_t number, int64_t ns) { process.marks.push_back({0, 0, 0, number, 1, ns}); }
  // An operation of `func` on the only communicator.
  uint32_t op(const char* func) {
    if (trace.comms.size() == 0) trace.comms.append({});
    model::Op op{};
    op.shape = trace.intern_shape({trace.strings.intern(func), 0, 0, 0, 0});
    return trace.ops.append(op);
  }
  std::vector<model::GpuStep>& run() {
    add_gpu_steps(trace, process);
    return process.gpu_steps;
  }
};

// Every instant of every step looked at for itself.
void expect_brute_force(const Made& made, uint32_t devices) {
  for (const model::GpuStep& step : made.process.gpu_steps) {
    int64_t computing = 0, communicating = 0, exposed = 0, copying = 0;
    for (int64_t ns = step.begin_ns; ns < step.end_ns; ++ns) {
      for (int32_t gpu = 0; gpu < static_cast<int32_t>(devices); ++gpu) {
        bool runs[3] = {};
        for (size_t i = 0; i < made.trace.kernels.size(); ++i) {
          const model::Kernel kernel = made.trace.kernels.row(i);
          if (kernel.gpu == gpu && kernel.start_ns <= ns && ns < kernel.end_ns) runs[kernel.kind] = true;
        }
        computing += runs[0];
        communicating += runs[1];
        exposed += runs[1] && !runs[0];
        copying += runs[2] && !runs[0] && !runs[1];
      }
    }
    EXPECT_EQ(step.computing_ns, computing);
    EXPECT_EQ(step.communicating_ns, communicating);
    EXPECT_EQ(step.exposed_ns, exposed);
    EXPECT_EQ(step.copying_ns, copying);
    EXPECT_EQ(step.idle_ns(), devices * step.length_ns() - computing - exposed - copying);
  }
}

TEST(GpuSteps, AgreeWithLookingAtEveryInstant) {
  std::mt19937 random(11);
  for (int round = 0; round < 40; ++round) {
    Made made;
    const uint32_t devices = 1 + random() % 2;
    for (uint32_t gpu = 0; gpu < devices; ++gpu)
      made.kernel(KernelKind::kCompute, 1, 2, static_cast<int32_t>(gpu));
    for (size_t n = random() % 40; n > 0; --n) {
      const int64_t start = random() % (kEnd - 300);
      made.kernel(static_cast<KernelKind>(random() % 3), start, start + static_cast<int64_t>(random() % 300),
                  static_cast<int32_t>(random() % devices));
    }
    for (int64_t ns = random() % 500, number = 3; ns < kEnd; ns += 1 + static_cast<int64_t>(random() % 900))
      made.step(number++, ns);
    made.run();
    expect_brute_force(made, devices);
  }
}

TEST(GpuSteps, GoFromMarkToMarkAndEndWithTheGpusWork) {
  Made made;
  made.step(7, 100);
  made.step(8, 200);
  made.kernel(KernelKind::kCompute, 90, 150);
  made.kernel(KernelKind::kCommunication, 140, 260);
  const std::vector<model::GpuStep>& steps = made.run();
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].number, 7);
  EXPECT_TRUE(steps[0].is_whole);
  EXPECT_EQ(steps[0].computing_ns, 50) << "what ran before the first step is in none";
  EXPECT_EQ(steps[0].communicating_ns, 60);
  EXPECT_EQ(steps[0].exposed_ns, 50);
  EXPECT_EQ(steps[1].number, 8);
  EXPECT_FALSE(steps[1].is_whole);
  EXPECT_EQ(steps[1].end_ns, 260);
  EXPECT_EQ(steps[1].exposed_ns, 60);
}

TEST(GpuSteps, WithoutMarksAllIsOne) {
  Made made;
  made.kernel(KernelKind::kCompute, 10, 20);
  made.kernel(KernelKind::kCommunication, 20, 50);
  const std::vector<model::GpuStep>& steps = made.run();
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].number, -1);
  EXPECT_EQ(steps[0].length_ns(), 40);
  EXPECT_EQ(steps[0].exposed_ns, 30);
}

TEST(GpuSteps, CommunicationAloneTellsNothingOfWhatHidesIt) {
  Made made;
  made.kernel(KernelKind::kCommunication, 20, 50);
  made.kernel(KernelKind::kCopy, 60, 70);
  EXPECT_TRUE(made.run().empty());
  EXPECT_TRUE(made.process.exposed.empty());
}

TEST(GpuSteps, AttributeExposureToFunctions) {
  Made made;
  const uint32_t reduce = made.op("AllReduce"), gather = made.op("AllGather");
  made.kernel(KernelKind::kCompute, 0, 100);
  made.kernel(KernelKind::kCommunication, 90, 130, 0, reduce);
  made.kernel(KernelKind::kCommunication, 110, 120, 0, gather);
  made.kernel(KernelKind::kCommunication, 50, 60, 0, gather);
  made.run();
  ASSERT_EQ(made.process.exposed.size(), 2u);
  EXPECT_EQ(made.process.exposed[0].communicating_ns, 40);
  EXPECT_EQ(made.process.exposed[0].exposed_ns, 30);
  EXPECT_EQ(made.process.exposed[1].communicating_ns, 20);
  EXPECT_EQ(made.process.exposed[1].exposed_ns, 10);
}

}  // namespace
}  // namespace lockstep::job::gather
