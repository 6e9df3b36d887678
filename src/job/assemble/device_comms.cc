// SPDX-License-Identifier: Apache-2.0
// Everything here is an inference that a missing record could mislead, so it is made of whole recordings
// only, each step is checked against those joins that are certain, and the first that contradicts ends it.
#include "job/assemble/device_comms.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "job/assemble/enclosing_calls.h"
#include "job/assemble/loss.h"
#include "model/event_kind.h"

namespace lockstep::job::assemble {

using model::EventKind;
using model::kNoRow;

namespace {

// Of a process all of whose calls and kernels are there.
bool is_whole(const model::Trace& trace) {
  constexpr std::string_view kOfTimes[] = {"open_gpu_work", "no_gpu_times", "gpu_clock"};
  for (size_t i = 0; i < trace.losses.size(); ++i) {
    const std::string_view stage = trace.strings[trace.losses.stage[i]],
                           kind = trace.strings[trace.losses.kind[i]];
    const bool is_of_times = std::find(std::begin(kOfTimes), std::end(kOfTimes), kind) != std::end(kOfTimes);
    if ((stage == "capture" || stage == "read") && !is_of_times) return false;
  }
  for (size_t i = 0; i < trace.processes.size(); ++i) {
    const std::string_view modes = trace.strings[trace.processes.modes[i]];
    const bool has_changed = modes.find(',') != std::string_view::npos;
    if (trace.processes.window[i] != 0 || has_changed || modes.starts_with("sample")) return false;
  }
  return true;
}

bool is_captured(const model::CallTable& calls, uint32_t call) {
  const uint32_t parent = calls.parent[call];
  return ((calls.flags[call] | (parent < calls.size() ? calls.flags[parent] : 0)) &
          model::kFlagGraphCaptured) != 0;
}

}  // namespace

DeviceComms::DeviceComms(model::Trace& trace) : trace_(trace) {
  list_items();
  if (items_.empty()) return;
  call_.assign(trace.launches.size(), kNoRow);
  is_replay_.resize(trace.launches.size());
  list_units();
  const bool whole = is_whole(trace);
  if (has_launches_)
    find_kernels();
  else if (whole)
    find_plans();
  const auto reads_all = [](const Item& item) { return item.key != model::kUnreadDeviceComm; };
  if (!whole || !std::all_of(items_.begin(), items_.end(), reads_all)) return;
  std::sort(items_.begin(), items_.end());
  const std::map<uint64_t, uint32_t> comms = comms_of_keys();
  for (size_t first = 0, end = 0; first < items_.size(); first = end) {
    while (end < items_.size() && items_[end].key == items_[first].key) ++end;
    const auto comm = comms.find(items_[first].key);
    if (comm == comms.end()) continue;
    join({std::span<const Item>(items_).subspan(first, end - first), comm->second, units_[comm->second]});
  }
  lose(trace_, "kernel_joined_by_comm", by_order_,
       "RCCL kernels matched to operations by their order on their communicator: launched by another thread "
       "than the one that called");
}

void DeviceComms::list_items() {
  const model::LaunchTable& launches = trace_.launches;
  for (uint32_t row = 0; row < launches.size(); ++row) {
    if (launches.device_comm[row] != 0)
      items_.push_back({launches.device_comm[row], launches.start_ns[row], row, kNoRow});
  }
  if (items_.empty()) return;
  kernel_.assign(launches.size(), kNoRow);
  for (uint32_t row = 0; row < trace_.kernels.size(); ++row) {
    const uint32_t launch = trace_.kernels.launch[row];
    if (launch < kernel_.size()) kernel_[launch] = row;
  }
}

// Each starts one kernel: a KernelLaunch, or a plan where there are none.
void DeviceComms::list_units() {
  const model::CallTable& calls = trace_.calls;
  for (const uint8_t kind : calls.all(&model::CallTable::kind))
    has_launches_ = has_launches_ || kind == number(EventKind::kKernelLaunch);
  const uint8_t wanted = number(has_launches_ ? EventKind::kKernelLaunch : EventKind::kGroup);
  for (uint32_t row = 0; row < calls.size(); ++row) {
    if (calls.kind[row] == wanted && calls.comm[row] != kNoRow)
      (is_captured(calls, row) ? captured_ : units_)[calls.comm[row]].push_back(row);
  }
  for (auto& [comm, rows] : units_) {
    std::sort(rows.begin(), rows.end(), [&](uint32_t a, uint32_t b) {
      return std::pair(calls.start_ns[a], a) < std::pair(calls.start_ns[b], b);
    });
  }
}

void DeviceComms::find_kernels() {
  EnclosingCalls launches(trace_, EventKind::kKernelLaunch);
  for (Item& item : items_) item.call = launches.of_launch(item.launch);
}

// A thread launches the kernel of a plan and then reports the plan, or the other way round; before the next
// one in any case.
void DeviceComms::find_plans() {
  const model::CallTable& calls = trace_.calls;
  struct Event {
    uint32_t caller;
    int64_t ns;
    Item* item;  // nullptr: the end of a plan
    uint32_t plan;
  };
  std::vector<Event> events;
  for (Item& item : items_)
    events.push_back({trace_.launches.caller[item.launch], item.start_ns, &item, kNoRow});
  for (const auto& [comm, plans] : units_) {
    for (const uint32_t plan : plans) {
      const uint32_t thread = calls.thread[plan];
      const uint64_t pthread = thread < trace_.threads.size() ? trace_.threads.pthread[thread] : 0;
      const int64_t over = std::max(calls.start_ns[plan], calls.end_ns[plan]);
      events.push_back({static_cast<uint32_t>(pthread), over, nullptr, plan});
    }
  }
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return std::tuple(a.caller, a.ns, a.item == nullptr) < std::tuple(b.caller, b.ns, b.item == nullptr);
  });
  Item* only = nullptr;
  size_t count = 0;
  for (size_t i = 0; i < events.size(); ++i) {
    const Event& event = events[i];
    if (i > 0 && events[i - 1].caller != event.caller) count = 0;
    if (event.caller == 0) continue;
    if (event.item != nullptr) {
      only = event.item;
      ++count;
    } else {
      if (count == 1) only->call = call_[only->launch] = event.plan;
      count = 0;
    }
  }
}

// By what is certain. Where nothing is, an only address is that of an only communicator.
std::map<uint64_t, uint32_t> DeviceComms::comms_of_keys() {
  std::map<uint64_t, std::set<uint32_t>> comms;
  std::map<uint32_t, std::set<uint64_t>> keys;
  for (const Item& item : items_) {
    comms.try_emplace(item.key);
    if (item.call == kNoRow || trace_.calls.comm[item.call] == kNoRow) continue;
    comms[item.key].insert(trace_.calls.comm[item.call]);
    keys[trace_.calls.comm[item.call]].insert(item.key);
  }
  std::map<uint64_t, uint32_t> found;
  for (const auto& [key, of] : comms) {
    if (of.size() == 1 && keys[*of.begin()].size() == 1) found.emplace(key, *of.begin());
  }
  const bool has_one = trace_.comms.size() == 1 && units_.size() + captured_.size() > 0;
  if (keys.empty() && comms.size() == 1 && has_one) found.emplace(comms.begin()->first, 0);
  return found;
}

bool DeviceComms::can_be(const Item& item, uint32_t unit) const {
  const int64_t begun = trace_.calls.start_ns[unit];
  if (has_launches_) return item.start_ns >= begun;
  const uint32_t kernel = kernel_[item.launch];
  return kernel == kNoRow || trace_.kernels.end_ns[kernel] >= begun;
}

// False where both have some and not as many.
bool DeviceComms::join_part(std::span<const Item> items, std::span<const uint32_t> units,
                            std::vector<uint32_t>& left_over) {
  if (units.empty()) {
    for (const Item& item : items) left_over.push_back(item.launch);
    return true;
  }
  if (items.empty()) return true;
  if (items.size() != units.size()) return false;
  for (size_t i = 0; i < items.size(); ++i) {
    if (!can_be(items[i], units[i])) return false;
  }
  for (size_t i = 0; i < items.size(); ++i) call_[items[i].launch] = units[i];
  by_order_ += items.size();
  return true;
}

void DeviceComms::join(const Sequence& s) {
  std::map<uint32_t, size_t> places;  // of units
  for (size_t i = 0; i < s.units.size(); ++i) places.emplace(s.units[i], i);
  std::vector<std::pair<size_t, size_t>> known;  // item, unit
  for (size_t i = 0; i < s.items.size(); ++i) {
    if (s.items[i].call == kNoRow) continue;
    const auto place = places.find(s.items[i].call);
    // Two kernels of one launch, or launches and kernels in different orders: no order to go by.
    if (place == places.end() || (!known.empty() && place->second <= known.back().second)) return;
    known.emplace_back(i, place->second);
  }
  known.emplace_back(s.items.size(), s.units.size());
  std::vector<uint32_t> left_over;
  bool is_clear = true;
  size_t item = 0, unit = 0;
  for (const auto& [next_item, next_unit] : known) {
    is_clear &= join_part(s.items.subspan(item, next_item - item), s.units.subspan(unit, next_unit - unit),
                          left_over);
    item = next_item + 1;
    unit = next_unit + 1;
  }
  if (is_clear) keep_replays(s.comm, std::move(left_over));
}

// A graph runs after its capture.
void DeviceComms::keep_replays(uint32_t comm, std::vector<uint32_t> launches) {
  const auto captured = captured_.find(comm);
  if (captured == captured_.end() || launches.empty()) return;
  int64_t last_ns = 0;
  for (const uint32_t call : captured->second)
    last_ns = std::max({last_ns, trace_.calls.start_ns[call], trace_.calls.end_ns[call]});
  if (trace_.launches.start_ns[launches.front()] < last_ns) return;
  Replays replays{comm, std::move(launches), {}};
  for (const uint32_t launch : replays.launches) {
    is_replay_[launch] = true;
    replays.kernels.push_back(kernel_[launch]);
  }
  replays_.push_back(std::move(replays));
}

}  // namespace lockstep::job::assemble
