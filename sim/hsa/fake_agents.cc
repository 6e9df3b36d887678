// SPDX-License-Identifier: Apache-2.0
#include "sim/hsa/fake_agents.h"

#include <time.h>

#include <cstring>
#include <string>

namespace lockstep::sim {

using hsa::Packet;
using hsa::Signal;
using hsa::Status;

namespace {

FakeHsaOptions g_agents;

}  // namespace

void set_agents(const FakeHsaOptions& options) { g_agents = options; }

uint64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}
uint64_t now_ticks() { return now_ns() / 10 + kTicksAtBoot; }

Status system_get_info(uint32_t what, void* value) {
  const uint64_t answer = what == hsa::system_info::kTimestamp ? now_ns() : 1'000'000'000;
  std::memcpy(value, &answer, sizeof answer);
  return hsa::kSuccess;
}

Status iterate_agents(Status (*visit)(hsa::Agent, void*), void* data) {
  for (uint64_t handle = 1; handle < 2 + uint64_t{g_agents.gpus}; ++handle) {
    if (const Status status = visit({handle}, data); status != hsa::kSuccess) return status;
  }
  return hsa::kSuccess;
}

Status agent_get_info(hsa::Agent agent, uint32_t what, void* value) {
  const bool is_gpu = agent.handle > 1;
  const auto number = static_cast<uint32_t>(agent.handle - 1);
  const auto put = [&](auto answer) { std::memcpy(value, &answer, sizeof answer); };
  const auto text = [&](const std::string& answer) { std::memcpy(value, answer.c_str(), answer.size() + 1); };
  switch (what) {
    case hsa::agent_info::kDevice:
      put(is_gpu ? hsa::agent_info::kDeviceGpu : 0u);
      break;
    case hsa::agent_info::kName:
      text(is_gpu ? "gfx942" : "cpu");
      break;
    case hsa::agent_info::kProduct:
      text("AMD Instinct MI300X");
      break;
    case hsa::agent_info::kUuid:
      text("GPU-000000000000000" + std::to_string(number));
      break;
    case hsa::agent_info::kDriverNode:
      put(number);
      break;
    case hsa::agent_info::kBdf:
      put((0x10 + number) << 8);
      break;
    case hsa::agent_info::kDomain:
      put(0u);
      break;
    case hsa::agent_info::kTickHz:
      if (!g_agents.has_tick_hz) return 0x1001;
      put(kTickHz);
      break;
    default:
      return 0x1001;
  }
  return hsa::kSuccess;
}

hsa::Packet FakeHsa::kernel(uint64_t object, uint64_t ns, Signal completion, uint64_t arguments) {
  Packet packet{};
  packet.header = 0x0b02;  // as HIP's
  packet.setup = 1;
  packet.group[0] = 256;
  packet.group[1] = packet.group[2] = 1;
  packet.grid[0] = 2048;
  packet.grid[1] = packet.grid[2] = 1;
  packet.kernel_object = object;
  packet.arguments = arguments;
  packet.reserved2 = ns;
  packet.completion = completion;
  return packet;
}
hsa::Packet FakeHsa::barrier(Signal completion) {
  hsa::BarrierPacket barrier{};
  barrier.header = 0x1503;
  barrier.completion = completion;
  Packet packet;
  std::memcpy(&packet, &barrier, sizeof packet);
  return packet;
}

}  // namespace lockstep::sim
