// SPDX-License-Identifier: Apache-2.0
// Turns AMD's agent ticks into host time by the pairs of both that capture took. Between two pairs the line
// through them is taken, outside them the rate that the driver names (without one, that of the first and last
// pair). The error that is reported is measured, not assumed: half the width of the widest reading, and how
// far a pair lies off the line of its neighbours.
#include "readers/native/file/gpu_agents.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/utf8.h"
#include "format/records.h"
#include "model/hsa_counters.h"
#include "model/names/kernel_name.h"
#include "readers/common/demangle.h"
#include "readers/native/file/definitions.h"
#include "readers/native/file/hex.h"

namespace lockstep::readers::native {

using format::Def;

namespace {

// Numbers of agents come from the file, and a list is made as long as the largest.
constexpr uint32_t kMostAgents = 1024;

constexpr std::array<std::string_view, format::kMostHsaCounters> kCounters = [] {
  std::array<std::string_view, format::kMostHsaCounters> labels{};
#define COUNTER(index, name, label, text) labels[index] = label;
#include "format/hsa_counters.def"
#undef COUNTER
  return labels;
}();

GpuAgents::Agent* agent_of(uint32_t number, std::vector<GpuAgents::Agent>& agents) {
  if (number >= kMostAgents) return nullptr;
  if (number >= agents.size()) agents.resize(size_t{number} + 1);
  return &agents[number];
}

void add_agent(const format::GpuAgentDef& def, std::vector<GpuAgents::Agent>& agents) {
  GpuAgents::Agent* agent = agent_of(def.head.id, agents);
  if (agent == nullptr) return;
  agent->pci = field_text(def.pci);
  agent->uuid = field_text(def.uuid);
  if (def.tick_hz != 0) agent->tick_hz = def.tick_hz;
  agent->place = def.place;
}

double difference(uint64_t to, uint64_t from) {
  return to >= from ? static_cast<double>(to - from) : -static_cast<double>(from - to);
}

// Never 0, which means "not known"; 0 where it is no time.
int64_t later(int64_t ns, double by_ns) {
  const double sum = static_cast<double>(ns) + by_ns;
  return sum >= 1 && sum < 9e18 && std::abs(by_ns) < 4e18 ? ns + std::llround(by_ns) : 0;
}

}  // namespace

void AgentClock::add(uint64_t ticks, int64_t host_ns, double width_ns) {
  // 0 stands for "not read", on either clock.
  if (host_ns > 0 && ticks != 0) points_.push_back({ticks, host_ns, width_ns});
}

void AgentClock::finish(uint64_t tick_hz) {
  std::sort(points_.begin(), points_.end(), [](const Point& a, const Point& b) { return a.ticks < b.ticks; });
  // A point that goes back is damage.
  std::vector<Point> kept;
  for (const Point& point : points_) {
    if (kept.empty() || (point.ticks > kept.back().ticks && point.ns > kept.back().ns)) kept.push_back(point);
  }
  points_ = std::move(kept);
  if (tick_hz != 0) ns_per_tick_ = 1e9 / static_cast<double>(tick_hz);
  if (ns_per_tick_ <= 0 && points_.size() > 1)
    ns_per_tick_ = static_cast<double>(points_.back().ns - points_.front().ns) /
                   difference(points_.back().ticks, points_.front().ticks);
  for (const Point& point : points_) error_ns_ = std::max(error_ns_, point.width_ns / 2);
  // The first and the last point have no such line; of two points the width alone is stated.
  double off_line = 0;
  for (size_t i = 1; i + 1 < points_.size(); ++i) {
    const Point &early = points_[i - 1], &late = points_[i + 1];
    // Where the line through its neighbours would have put the point.
    const double share = difference(points_[i].ticks, early.ticks) / difference(late.ticks, early.ticks);
    off_line = std::max(off_line, std::abs(share * static_cast<double>(late.ns - early.ns) -
                                           static_cast<double>(points_[i].ns - early.ns)));
  }
  error_ns_ += off_line;
}

// In the piece that it lies in; before the first point and behind the last by the rate of the device.
int64_t AgentClock::to_ns(uint64_t ticks) const {
  const auto late = std::upper_bound(points_.begin(), points_.end(), ticks,
                                     [](uint64_t at, const Point& point) { return at < point.ticks; });
  if (late == points_.begin() || late == points_.end()) {
    const Point& from = late == points_.begin() ? points_.front() : points_.back();
    return later(from.ns, difference(ticks, from.ticks) * ns_per_tick_);
  }
  const Point& early = late[-1];
  const double share = difference(ticks, early.ticks) / difference(late->ticks, early.ticks);
  return later(early.ns, share * static_cast<double>(late->ns - early.ns));
}

class GpuAgents::Reader {
 public:
  Reader(const FileView& view, TickClock& clock, uint32_t process, model::Trace& trace, ReadLosses& losses)
      : view_(view),
        clock_(clock),
        process_(process),
        trace_(trace),
        losses_(losses),
        most_symbols_(view.chunks(format::Purpose::kMeta, 0).size() *
                      (format::kChunkBytes / sizeof(format::NameDef))) {}

  GpuAgents read() {
    for_each_definition(view_, format::Purpose::kMeta, 0, losses_, [&](const Definition& d) { visit(d); });
    // The worst of all agents is stated, as one number per process is kept; -1: no agent has a clock.
    double error_ns = -1;
    for (Agent& agent : found_.agents_) {
      agent.clock.finish(agent.tick_hz);
      if (agent.clock.known()) error_ns = std::max(error_ns, agent.clock.error_ns());
    }
    add_counters(error_ns);
    return std::move(found_);
  }

 private:
  void visit(const Definition& definition) {
    switch (static_cast<Def>(definition.head().kind)) {
      case Def::kGpuAgent:
        return add(definition.as<format::GpuAgentDef>());
      case Def::kGpuClock:
        return add(definition.as<format::GpuClockDef>());
      case Def::kGpuQueue:
        return add(definition.as<format::GpuQueueDef>());
      case Def::kKernelSymbol:
        return add_symbol(definition);
      case Def::kHsaCounters:
        counters_ = definition.as<format::HsaCountersDef>();
        has_counters_ = true;
        return;
      case Def::kNote:
        return add(definition.as<format::NoteDef>());
      default:
        return;
    }
  }

  void add(const format::GpuAgentDef& def) { add_agent(def, found_.agents_); }

  void add(const format::GpuClockDef& def) {
    Agent* agent = agent_of(def.head.id, found_.agents_);
    if (agent == nullptr || def.system_hz == 0) return;
    const double ns_per_unit = 1e9 / static_cast<double>(def.system_hz);
    const int64_t now_ns = clock_.to_ns(def.head.ticks);
    agent->clock.add(def.ticks, later(now_ns, difference(def.system, def.system_now) * ns_per_unit),
                     static_cast<double>(def.width_ns));
    // One pair places HSA's system clock beside the host's; the newest is kept.
    found_.ns_per_system_ = ns_per_unit;
    found_.system_at_ = def.system_now;
    found_.system_at_ns_ = now_ns;
  }

  void add(const format::GpuQueueDef& def) {
    if (def.state == format::QueueState::kTraced) return;
    const bool is_observed = def.state == format::QueueState::kObserved;
    losses_.add(is_observed ? "queue_observed" : "queue_not_seen", 1, [&] {
      return (is_observed
                  ? "GPU queues in whose packets another tool's signals are: their kernels have no times: "
                  : "GPU queues whose packets are not seen: their kernels are not recorded: ") +
             view_.path();
    });
  }

  void add(const format::NoteDef& def) {
    if (field_text(def.key) != format::kNoteHsa) return;
    losses_.add("gpu_absent", 1, [&] { return "GPU times of AMD kernels: " + field_text(def.value); });
  }

  void add_symbol(const Definition& definition) {
    const uint32_t id = definition.head().id;
    // Numbers are those of all kernels that were loaded; the names of those that were used are here.
    constexpr uint32_t kMostNumbers = 1 << 20;
    // Both bounds are needed: numbers are those of all that was loaded, and names those that the chunks can
    // hold.
    if (id == 0 || id >= kMostNumbers || symbols_++ > most_symbols_) return;
    const std::string name = common::demangled(name_of(definition, format::kMaxKernelNameBytes));
    if (id >= found_.symbols_.size()) found_.symbols_.resize(size_t{id} + 1);
    // MSCCL's kernels are RCCL's, but no event tells of them; those of symmetric memory bear other arguments.
    const bool has_plan = model::is_nccl_kernel(name) && name.find("mscclKernel") == std::string::npos &&
                          !name.starts_with("ncclSym");
    found_.symbols_[id] = {trace_.strings.intern(valid_utf8(name)),
                           model::work_of_kernel(name) != model::KernelWork::kNone, has_plan, true};
  }

  // The model has no table for counters of one vendor: they travel as the text of a mark
  // (model/hsa_counters.h).
  void add_counters(double error_ns) {
    if (!has_counters_) return;
    std::string text(model::kHsaCountersMark);
    for (size_t i = 0; i < kCounters.size(); ++i) {
      if (!kCounters[i].empty())
        text += std::string(kCounters[i]) + "=" + std::to_string(counters_.counts[i]) + "; ";
    }
    text += std::string(model::kClockErrorCounter) + "=" +
            std::to_string(std::llround(std::clamp(error_ns, 0.0, 1e15)));
    trace_.marks.append({.process = process_,
                         .thread = model::kNoRow,
                         .name = trace_.strings.intern(text),
                         .value = 0,
                         .is_step = 0,
                         .time_ns = clock_.to_ns(counters_.head.ticks)});
  }

  const FileView& view_;
  TickClock& clock_;
  uint32_t process_;
  model::Trace& trace_;
  ReadLosses& losses_;
  size_t most_symbols_, symbols_ = 0;
  format::HsaCountersDef counters_{};
  bool has_counters_ = false;
  GpuAgents found_;
};

GpuAgents GpuAgents::read(const FileView& view, TickClock& clock, uint32_t process, model::Trace& trace,
                          ReadLosses& losses) {
  if (view.header().source != format::Source::kHsa) return {};
  return Reader(view, clock, process, trace, losses).read();
}

DeviceIdentity identity_of(std::span<const GpuAgents::Agent> agents, size_t number) {
  const GpuAgents::Agent& agent = agents[number];
  // Partitions of one card share its PCI address: then the UUID tells them apart, and no place does.
  const auto sharing = std::count_if(agents.begin(), agents.end(),
                                     [&](const GpuAgents::Agent& other) { return other.pci == agent.pci; });
  return {.ordinal = -1,
          .pci = agent.pci,
          .uuid = sharing > 1 ? std::string_view(agent.uuid) : std::string_view(),
          .place = sharing > 1 ? -1 : agent.place};
}

std::vector<GpuAgents::Agent> read_agents(const FileView& view, ReadLosses& losses) {
  std::vector<GpuAgents::Agent> agents;
  if (view.header().source != format::Source::kHsa) return agents;
  for_each_definition(view, format::Purpose::kMeta, 0, losses, [&](const Definition& definition) {
    if (definition.head().kind == static_cast<uint16_t>(Def::kGpuAgent))
      add_agent(definition.as<format::GpuAgentDef>(), agents);
  });
  return agents;
}

int64_t GpuAgents::ticks_to_ns(uint16_t agent, uint64_t ticks) const {
  if (agent >= agents_.size() || !agents_[agent].clock.known()) return 0;
  return agents_[agent].clock.to_ns(ticks);
}

int64_t GpuAgents::system_to_ns(uint64_t system) const {
  return system_at_ns_ == 0 ? 0 : later(system_at_ns_, difference(system, system_at_) * ns_per_system_);
}

}  // namespace lockstep::readers::native
