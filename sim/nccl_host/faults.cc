// SPDX-License-Identifier: Apache-2.0
#include "nccl_host/faults.h"

#include <algorithm>
#include <map>

namespace lockstep::sim {
namespace {

namespace abi = nccl_abi;

struct Target {
  Program* program;
  Behaviour* behaviour;
  PlayOptions* options;
};

// Rebuilds the calls: `emit(call, out)` writes what takes the place of each call. Loop bounds move along.
template <class Emit>
void rewrite(Program* program, Emit emit) {
  std::vector<Call> out;
  size_t loop_begin = 0, loop_end = 0;
  for (size_t i = 0; i < program->calls.size(); ++i) {
    if (i == program->loop_begin) loop_begin = out.size();
    if (i == program->loop_end) loop_end = out.size();
    emit(program->calls[i], &out);
  }
  if (program->loop_end >= program->calls.size()) loop_end = out.size();
  if (program->loop_end == 0) loop_begin = loop_end = 0;
  program->loop_begin = loop_begin;
  program->loop_end = loop_end;
  program->calls = std::move(out);
}

uint64_t type_of(const Program& program, const Call& call) {
  return call.handle == kNone ? 0 : program.handles[call.handle].type;
}

bool on_handle(const Call& call) { return call.kind == CallKind::kStop || call.kind == CallKind::kState; }

void also_with(Program* program, uint32_t handle) {
  size_t seen = 0;
  rewrite(program, [&](const Call& call, std::vector<Call>* out) {
    out->push_back(call);
    if (!on_handle(call) || ++seen % 5 != 0) return;
    out->push_back(call);
    out->back().handle = handle;
    out->back().forced = true;
  });
}

void fault_null_handles(const Target& t) { also_with(t.program, kNone); }

void fault_foreign_handle(const Target& t) {
  t.program->foreign_handles.emplace_back(t.program->handle_count, 0x7f00dead0010u);
  also_with(t.program, t.program->handle_count++);
}

void fault_double_stop(const Target& t) {
  std::map<uint16_t, std::vector<Call>>
      again;  // before the thread's next finalize, the plugin is still there
  rewrite(t.program, [&](const Call& call, std::vector<Call>* out) {
    if (call.kind == CallKind::kFinalize) {
      auto& calls = again[call.thread];
      out->insert(out->end(), calls.begin(), calls.end());
      calls.clear();
    }
    out->push_back(call);
    if (call.kind != CallKind::kStop) return;
    out->push_back(call);
    again[call.thread].push_back(call);
  });
}

void fault_stale_kernelch(const Target& t) {
  std::map<uint16_t, uint32_t> older;  // by thread
  size_t seen = 0;
  std::map<uint32_t, uint32_t> stale;
  rewrite(t.program, [&](const Call& call, std::vector<Call>* out) {
    if (type_of(*t.program, call) == abi::kTypeKernelCh) {
      if (call.kind == CallKind::kStart && ++seen % 3 == 0 && older.contains(call.thread)) {
        stale[call.handle] = older[call.thread];
        return;
      }
      if (call.kind == CallKind::kStop && !stale.contains(call.handle)) older[call.thread] = call.handle;
    }
    out->push_back(call);
    if (const auto found = stale.find(call.handle); on_handle(call) && found != stale.end())
      out->back().handle = found->second;
  });
}

void fault_duplicate_steps(const Target& t) {
  std::map<uint32_t, size_t> starts;
  rewrite(t.program, [&](const Call& call, std::vector<Call>* out) {
    const uint64_t type = type_of(*t.program, call);
    const uint32_t op = call.handle == kNone ? kNone : t.program->handles[call.handle].parent;
    const bool is_receive = op != kNone && !t.program->handles[op].is_send;
    if (call.kind == CallKind::kStart && type == abi::kTypeProxyStep && is_receive)
      for (int poll = 0; poll < 3; ++poll) {
        out->push_back(call);
        out->back().handle = t.program->handle_count++;
      }
    out->push_back(call);
  });
}

void fault_peer_wait_repeats(const Target& t) {
  rewrite(t.program, [&](const Call& call, std::vector<Call>* out) {
    const bool is_peer_wait = call.kind == CallKind::kState && call.state == abi::kProxyStepSendPeerWait;
    out->insert(out->end(), is_peer_wait ? 4 : 1, call);
  });
}

void fault_ring_overrun(const Target& t) {
  struct Work {
    uint64_t* start = nullptr;
    uint64_t* stop = nullptr;
  };
  std::map<int, std::vector<uint32_t>> order;  // by channel
  std::map<uint32_t, Work> works;
  for (Call& call : t.program->calls) {
    if (type_of(*t.program, call) != abi::kTypeKernelCh) continue;
    if (call.kind == CallKind::kStart) {
      auto& kernel = t.program->starts[call.detail].descriptor.kernel_ch;
      works[call.handle].start = &kernel.ptimer;
      order[kernel.channel].push_back(call.handle);
    } else if (call.kind == CallKind::kState) {
      works[call.handle].stop = &call.value;
    }
  }
  for (auto& [channel, handles] : order)
    for (size_t i = 0; i + 64 < handles.size(); ++i) {
      Work& own = works[handles[i]];
      const Work& later = works[handles[i + 64]];
      if (own.stop && later.stop) *own.stop = *later.stop;
      if (i % 2 == 0) *own.start = *later.start;
    }
}

// A comm that stays keeps the library loaded; the others' last events on threads that never init move behind
// the finalize, and a ProxyCtrl of the finalized context follows.
void fault_events_after_finalize(const Target& t) {
  Program& p = *t.program;
  if (!p.ordered || p.calls.empty()) return;
  constexpr size_t kMoved = 6;
  std::vector<char> moves(p.calls.size(), 0);
  size_t left = 0;
  for (size_t i = p.calls.size(); i-- > 0;) {
    if (p.calls[i].kind == CallKind::kFinalize) left = kMoved;
    if (!on_handle(p.calls[i]) || left == 0) continue;
    moves[i] = 1;
    --left;
  }
  Call keep;
  keep.kind = CallKind::kInit;
  keep.thread = p.calls[0].thread;
  keep.context = p.context_count++;
  keep.detail = static_cast<uint32_t>(p.comms.size());
  p.comms.push_back({0xfeedu, nullptr, 1, 2, 0});
  std::vector<Call> out{keep}, held;
  for (size_t i = 0; i < p.calls.size(); ++i) {
    if (moves[i]) {
      held.push_back(p.calls[i]);
      continue;
    }
    out.push_back(p.calls[i]);
    if (p.calls[i].kind != CallKind::kFinalize) continue;
    out.insert(out.end(), held.begin(), held.end());
    held.clear();
    Call late = p.calls[i];
    late.kind = CallKind::kStart;
    late.detail = static_cast<uint32_t>(p.starts.size());
    late.handle = p.handle_count++;
    p.starts.emplace_back();
    p.starts.back().descriptor.type = abi::kTypeProxyCtrl;
    out.push_back(late);
    late.kind = CallKind::kStop;
    out.push_back(late);
  }
  out.insert(out.end(), held.begin(), held.end());
  keep.kind = CallKind::kFinalize;
  out.push_back(keep);
  if (p.loop_end != 0) {  // the loop's finalize is inside it, so the loop now holds everything
    p.loop_begin = 0;
    p.loop_end = out.size();
  }
  p.calls = std::move(out);
}

void fault_init_race(const Target& t) { t.options->race_inits = true; }
void fault_garbage_args(const Target& t) { t.behaviour->garbage_args = true; }
void fault_poison(const Target& t) { t.behaviour->poison = true; }
void fault_old_core(const Target& t) { t.behaviour->old_core = t.behaviour->api <= 3; }

struct Fault {
  std::string_view name, summary;
  void (*apply)(const Target&);
};

constexpr Fault kFaults[] = {
#define FAULT(name, summary) {#name, summary, fault_##name},
#include "nccl_host/faults.def"
#undef FAULT
};

const Fault* find_fault(std::string_view name) {
  const auto* found = std::find_if(std::begin(kFaults), std::end(kFaults),
                                   [&](const Fault& fault) { return fault.name == name; });
  return found == std::end(kFaults) ? nullptr : found;
}

}  // namespace

bool is_fault(std::string_view name) { return find_fault(name) != nullptr; }

std::string fault_list() {
  std::string out;
  for (const Fault& fault : kFaults) {
    std::string line = "  " + std::string(fault.name);
    line.resize(26, ' ');
    out += line + std::string(fault.summary) + "\n";
  }
  return out;
}

void apply_fault(std::string_view name, Program* program, Behaviour* behaviour, PlayOptions* options) {
  const Fault* fault = find_fault(name);
  if (fault == nullptr) return;
  fault->apply({program, behaviour, options});
  program->link();
}

}  // namespace lockstep::sim
