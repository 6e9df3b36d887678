// SPDX-License-Identifier: Apache-2.0
// Lists the GPUs as HSA does and relates their clocks to the host's.
#include "capture/hsa/agents.h"

#include <string.h>

#include "capture/core/clock.h"
#include "capture/core/session/session.h"
#include "capture/hsa/pci_place.h"

namespace lockstep::capture::hsa {
namespace {

GpuAgent g_agents[kMostAgents];
uint32_t g_count = 0;
bool g_has_more = false;  // than kMostAgents

template <class T>
T info(const Runtime& runtime, Agent agent, uint32_t what) {
  T value{};
  runtime.agent_get_info(agent, what, &value);
  return value;
}
template <size_t N>
void text_info(const Runtime& runtime, Agent agent, uint32_t what, char (&out)[N]) {
  char text[256] = {};  // the runtime writes up to 64 bytes
  if (runtime.agent_get_info(agent, what, text) != kSuccess) return;
  memcpy(out, text, strnlen(text, N - 1));
}

void define(const Runtime& runtime, uint32_t number) {
  const Agent agent = g_agents[number].agent;
  format::GpuAgentDef def{};
  const auto bdf = info<uint32_t>(runtime, agent, agent_info::kBdf);
  const auto domain = info<uint32_t>(runtime, agent, agent_info::kDomain);
  def.tick_hz = g_agents[number].tick_hz;
  def.node = info<uint32_t>(runtime, agent, agent_info::kDriverNode);
  set_address(&def, domain, bdf);
  text_info(runtime, agent, agent_info::kUuid, def.uuid);
  text_info(runtime, agent, agent_info::kName, def.name);
  text_info(runtime, agent, agent_info::kProduct, def.model);
  Session::get().add_definition(format::Def::kGpuAgent, number, &def.head, sizeof def);
  if (number == 0) Session::get().add_note(format::kNoteGpuModel, def.model[0] != 0 ? def.model : def.name);
}

Status add(Agent agent, void* data) {
  const Runtime& runtime = *static_cast<const Runtime*>(data);
  if (info<uint32_t>(runtime, agent, agent_info::kDevice) != agent_info::kDeviceGpu) return kSuccess;
  if (g_count == kMostAgents) {
    g_has_more = true;
    return kSuccess;
  }
  GpuAgent& gpu = g_agents[g_count];
  gpu.agent = agent;
  // Runtimes that do not know the question leave 0: place_clock() then measures.
  gpu.tick_hz = info<uint64_t>(runtime, agent, agent_info::kTickHz);
  gpu.last_stop = gpu.placed_ticks = 0;
  define(runtime, g_count++);
  return kSuccess;
}

// By the runtime's conversion, where it does not say: over a tenth of a second of most GPUs.
uint64_t measured_hz(const Runtime& runtime, Agent agent, uint64_t ticks, uint64_t system_hz) {
  constexpr uint64_t kSpan = 10'000'000;
  uint64_t early = 0, late = 0;
  if (runtime.convert_tick(agent, ticks, &early) != kSuccess ||
      runtime.convert_tick(agent, ticks + kSpan, &late) != kSuccess || late <= early)
    return 0;
  return static_cast<uint64_t>(static_cast<double>(kSpan) * static_cast<double>(system_hz) /
                               static_cast<double>(late - early));
}

}  // namespace

uint32_t list_agents(const Runtime& runtime) {
  g_count = 0;
  runtime.iterate_agents(add, const_cast<Runtime*>(&runtime));
  static_assert(kMostAgents == 64);
  if (g_has_more) Session::get().add_note(format::kNoteHsa, "only the first 64 GPUs are recorded");
  return g_count;
}

uint32_t agent_count() { return g_count; }
GpuAgent& gpu_agent(uint32_t number) { return g_agents[number]; }

uint32_t agent_number(Agent agent) {
  uint32_t number = 0;
  while (number < g_count && g_agents[number].agent.handle != agent.handle) ++number;
  return number < g_count ? number : kMostAgents;
}

void place_clock(const Runtime& runtime, uint32_t number) {
  GpuAgent& gpu = g_agents[number];
  // The newest stamp only: far from it the runtime extrapolates, and its line steps.
  const uint64_t ticks = gpu.last_stop.load(std::memory_order_relaxed);
  if (ticks == 0 || ticks == gpu.placed_ticks) return;
  format::GpuClockDef def{};
  def.ticks = ticks;
  runtime.system_get_info(system_info::kTimestampHz, &def.system_hz);
  if (def.system_hz == 0) def.system_hz = 1'000'000'000;
  if (runtime.convert_tick(gpu.agent, ticks, &def.system) != kSuccess) return;
  // The tightest of a few readings.
  def.width_ns = UINT32_MAX;
  for (int i = 0; i < 5; ++i) {
    const int64_t before = clock_ns(CLOCK_MONOTONIC);
    const uint64_t host = read_ticks();
    uint64_t now = 0;
    if (runtime.system_get_info(system_info::kTimestamp, &now) != kSuccess) return;
    const uint64_t after = read_ticks();
    const auto width = static_cast<uint32_t>(clock_ns(CLOCK_MONOTONIC) - before);
    if (width >= def.width_ns) continue;
    def.width_ns = width;
    def.system_now = now;
    def.head.ticks = host + (after - host) / 2;
  }
  if (gpu.tick_hz == 0) {
    gpu.tick_hz = measured_hz(runtime, gpu.agent, ticks, def.system_hz);
    // Again, now with the rate: of several definitions of a GPU the newest counts.
    define(runtime, number);
  }
  gpu.placed_ticks = ticks;
  Session::get().add_definition(format::Def::kGpuClock, number, &def.head, sizeof def);
}

}  // namespace lockstep::capture::hsa
