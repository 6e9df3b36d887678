// SPDX-License-Identifier: Apache-2.0
// One process' calls into a profiler plugin, in the order in which NCCL makes them for a unit. One thread.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "job/layout.h"
#include "job/step_program.h"
#include "nccl_host/binding.h"
#include "nccl_host/plugin_library.h"

namespace lockstep::sim::job {

class LiveCalls {
 public:
  static Result<LiveCalls> open(const std::string& plugin);

  void create_comm(const Group& group, int rank);
  void finalize();
  // Queues a unit and begins its kernels; `end` says that they have ended.
  using Kernels = std::vector<void*>;
  Kernels call(const Unit& unit);
  void end(const Kernels& kernels);

 private:
  LiveCalls(PluginLibrary library, std::unique_ptr<Binding> binding)
      : library_(std::move(library)), binding_(std::move(binding)) {}
  struct Comm {
    void* context = nullptr;
    int rank = 0;
    std::array<uint64_t, 8> sequence{};  // by function
  };
  void* start(const Comm& comm, const nccl_abi::v7::Descriptor& descriptor);
  void stop(void* handle);
  void state(void* handle, int number, uint64_t value);
  void* start_call(const Comm& comm, void* group, const Unit& unit, const Task& task);
  void* start_task(Comm& comm, void* call, void* plan, const Task& task);

  PluginLibrary library_;
  std::unique_ptr<Binding> binding_;
  std::array<Comm, kDims> comms_;
  int mask_ = 0;
  Stats stats_;
};

}  // namespace lockstep::sim::job
