// SPDX-License-Identifier: Apache-2.0
// GPUs are numbered as the SDK lists them. It converts stamps before we see them, so the clock that is
// recorded beside the host's is HSA's system clock, once for each GPU.
#include "capture/rocp/agents.h"

#include <string.h>

#include "capture/core/clock.h"
#include "capture/core/session/session.h"
#include "capture/hsa/pci_place.h"

namespace lockstep::capture::rocp {
namespace {

constexpr uint64_t kNsPerSecond = 1'000'000'000;

uint64_t g_ids[kMostAgents];
uint32_t g_count = 0;

template <size_t N>
void copy_text(const char* text, char (&out)[N]) {
  if (text != nullptr) memcpy(out, text, strnlen(text, N - 1));
}

Status add_agents(int32_t version, const void** agents, size_t count, void*) {
  for (size_t i = 0; version == kAgentVersion && i < count && g_count < kMostAgents; ++i) {
    const auto* agent = static_cast<const SdkAgent*>(agents[i]);
    if (agent->bytes < sizeof *agent || agent->type != kAgentIsGpu) continue;
    format::GpuAgentDef def{};
    def.tick_hz = kNsPerSecond;
    hsa::set_address(&def, agent->domain, agent->location);
    copy_text(agent->name, def.name);
    copy_text(agent->product_name, def.model);
    Session::get().add_definition(format::Def::kGpuAgent, g_count, &def.head, sizeof def);
    if (g_count == 0)
      Session::get().add_note(format::kNoteGpuModel, def.model[0] != 0 ? def.model : def.name);
    g_ids[g_count++] = agent->id;
  }
  return kSuccess;
}

}  // namespace

uint32_t list_agents(QueryAgents query) {
  g_count = 0;
  query(kAgentVersion, add_agents, sizeof(SdkAgent), nullptr);
  return g_count;
}

uint32_t agent_number(uint64_t id) {
  uint32_t number = 0;
  while (number < g_count && g_ids[number] != id) ++number;
  return number < g_count ? number : kMostAgents;
}

void place_clocks(GetTimestamp get_timestamp) {
  format::GpuClockDef def{};
  def.system_hz = kNsPerSecond;
  // The tightest of a few readings.
  def.width_ns = UINT32_MAX;
  for (int i = 0; i < 5; ++i) {
    const int64_t before = clock_ns(CLOCK_MONOTONIC);
    const uint64_t host = read_ticks();
    uint64_t now = 0;
    if (get_timestamp(&now) != kSuccess || now == 0) return;
    const uint64_t after = read_ticks();
    const auto width = static_cast<uint32_t>(clock_ns(CLOCK_MONOTONIC) - before);
    if (width >= def.width_ns) continue;
    def.width_ns = width;
    def.ticks = def.system = def.system_now = now;
    def.head.ticks = host + (after - host) / 2;
  }
  for (uint32_t i = 0; i < g_count; ++i)
    Session::get().add_definition(format::Def::kGpuClock, i, &def.head, sizeof def);
}

}  // namespace lockstep::capture::rocp
