// SPDX-License-Identifier: Apache-2.0
#include "job/step_program.h"

#include <algorithm>

namespace lockstep::sim::job {
namespace {

constexpr uint64_t kActivations = 4 << 20;  // bfloat16 elements of a layer's output
constexpr uint64_t kBucket = 1 << 20;       // float32 elements of a gradient bucket

class Builder {
 public:
  Builder(const Layout& layout, const ProgramSizes& sizes, const Random& random, int stage)
      : s_(layout.sizes()), compute_us_(sizes.compute_us), stage_(stage) {
    sequence_parallel_ = random.uniform(Draw::kLayout, 1) < 0.5;
    sharded_ = random.uniform(Draw::kLayout, 2) < 0.5;
    alltoall_ = random.uniform(Draw::kLayout, 3) < 0.5;
    const bool only_stages = s_.tp == 1 && s_.dp == 1;
    microbatches_ = s_.pp == 1 ? 1 : only_stages ? std::max(1, (sizes.ops_per_step - 2) / 4) : s_.pp;
  }

  Program build(int layers, int extra, Phase phase = Phase::kTraining) {
    program_.clear();
    // What a step begins with: its input to the ranks of a model replica, or DDP's buffers.
    collective(s_.tp > 1   ? Dim::kTensor
               : s_.dp > 1 ? Dim::kData
                           : Dim::kWorld,
               Func::kBroadcast, DataType::kInt64, 256, 50);
    for (int m = 0; m < microbatches_; ++m) {
      if (stage_ > 0) transfer(Func::kRecv, stage_ - 1);
      for (int l = 0; l < layers; ++l) layer(1, false);
      if (stage_ < s_.pp - 1) transfer(Func::kSend, stage_ + 1);
    }
    if (phase == Phase::kTraining) backward(layers, extra);
    collective(Dim::kWorld, Func::kAllReduce, DataType::kFloat32, 2, 100);
    program_.back().joins = true;
    return std::move(program_);
  }

 private:
  void backward(int layers, int extra) {
    for (int m = 0; m < microbatches_; ++m) {
      if (stage_ < s_.pp - 1) transfer(Func::kRecv, stage_ + 1);
      for (int l = 0; l < layers; ++l) layer(2, m == microbatches_ - 1);
      if (stage_ > 0) transfer(Func::kSend, stage_ - 1);
    }
    for (int i = 0; i < extra && s_.tp * s_.dp > 1; ++i) bucket(kBucket / 4, compute_us_ / 2);
  }

  Unit& add(Dim dim, double compute_us) {
    Unit& unit = program_.emplace_back();
    unit.dim = dim;
    unit.compute_us = compute_us + silent_us_;
    silent_us_ = 0;
    return unit;
  }

  void collective(Dim dim, Func func, DataType type, uint64_t count, double compute_us, bool blocks = true) {
    Unit& unit = add(dim, compute_us);
    unit.blocks = blocks;
    unit.tasks = {{func, type, count, 0, -1}};
  }

  void transfer(Func func, int peer) {
    Unit& unit = add(Dim::kPipeline, 5);
    unit.blocks = func == Func::kRecv;
    unit.tasks = {{func, DataType::kBfloat16, kActivations / 2, 0, peer}};
  }

  // Tokens to the experts and back.
  void exchange(double compute_us) {
    Unit& unit = add(Dim::kExpert, compute_us);
    unit.alltoall = alltoall_;
    const uint64_t count = kActivations / 2 / static_cast<uint64_t>(s_.ep);
    for (int peer = 0; peer < s_.ep; ++peer) {
      unit.tasks.push_back({Func::kSend, DataType::kBfloat16, count, 0, peer});
      unit.tasks.push_back({Func::kRecv, DataType::kBfloat16, count, 0, peer});
    }
  }

  void bucket(uint64_t count, double compute_us) {
    collective(s_.dp > 1 ? Dim::kData : Dim::kTensor, Func::kAllReduce, DataType::kFloat32, count, compute_us,
               false);
  }

  // `weight`: 1 forward, 2 backward. `gradients`: they are complete after it.
  void layer(double weight, bool gradients) {
    const double part = compute_us_ * weight / (1 + (s_.tp > 1) + 2 * (s_.ep > 1));
    const bool gathers = sharded_ && s_.tp == 1 && s_.ep == 1 && s_.dp > 1;
    if (gathers)
      collective(Dim::kData, Func::kAllGather, DataType::kBfloat16, kBucket / static_cast<uint64_t>(s_.dp),
                 part);
    for (int half = 0; half < 2 && s_.tp > 1; ++half) {
      if (sequence_parallel_) {
        const auto shard = kActivations / static_cast<uint64_t>(s_.tp);
        collective(Dim::kTensor, Func::kAllGather, DataType::kBfloat16, shard, half == 0 ? 20 : part / 2);
        collective(Dim::kTensor, Func::kReduceScatter, DataType::kBfloat16, shard, part / 2);
      } else {
        collective(Dim::kTensor, Func::kAllReduce, DataType::kBfloat16, kActivations, part);
      }
    }
    if (s_.ep > 1) {
      exchange(part);
      exchange(part);
    }
    if (!gradients || s_.dp == 1) {
      if (!gathers && s_.tp == 1 && s_.ep == 1) silent_us_ += part;
    } else if (gathers) {
      collective(Dim::kData, Func::kReduceScatter, DataType::kBfloat16,
                 kBucket / static_cast<uint64_t>(s_.dp), part, false);
    } else {
      bucket(kBucket, part);
    }
  }

  const LayoutSizes& s_;
  double compute_us_;
  int stage_, microbatches_;
  bool sequence_parallel_, sharded_, alltoall_;
  double silent_us_ = 0;  // compute that no communication followed yet
  Program program_;
};

}  // namespace

const char* name_of(Func func) {
  constexpr const char* kNames[] = {"AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Send", "Recv"};
  return kNames[static_cast<size_t>(func)];
}
const char* name_of(DataType type) {
  constexpr const char* kNames[] = {"ncclInt8", "ncclInt64", "ncclBfloat16", "ncclFloat32"};
  return kNames[static_cast<size_t>(type)];
}
uint32_t size_of(DataType type) {
  constexpr uint32_t kSizes[] = {1, 8, 2, 4};
  return kSizes[static_cast<size_t>(type)];
}

uint64_t tasks_of(const Program& program) {
  uint64_t tasks = 0;
  for (const Unit& unit : program) tasks += unit.tasks.size();
  return tasks;
}

std::vector<Program> make_programs(const Layout& layout, const ProgramSizes& sizes, const Random& random,
                                   Phase phase) {
  std::vector<Program> programs;
  for (int stage = 0; stage < layout.sizes().pp; ++stage) {
    Builder builder(layout, sizes, random, stage);
    const auto one = static_cast<int>(tasks_of(builder.build(1, 0)));
    const int per_layer = static_cast<int>(tasks_of(builder.build(2, 0))) - one;
    const int layers = per_layer > 0 ? 1 + std::max(0, sizes.ops_per_step - one) / per_layer : 1;
    const int extra = std::max(0, sizes.ops_per_step - one - (layers - 1) * per_layer);
    programs.push_back(builder.build(layers, extra, phase));
  }
  return programs;
}

}  // namespace lockstep::sim::job
