// SPDX-License-Identifier: Apache-2.0
// Shows single operations rank by rank: those that findings name, those that cost most, and a few of each
// large communicator as a picture of a normal one. At most 64 operations, as a whole operation on thousands
// of ranks is large. Times count from the operation's first call on each clock, so that ranks on unaligned
// hosts still show their own course.
#include <algorithm>
#include <numeric>

#include "analysis/bandwidth/rates.h"
#include "analysis/operation_name.h"
#include "base/text/wording.h"
#include "model/event_kind.h"
#include "model/names/operation_size.h"
#include "report/pages.h"

namespace lockstep::report {
namespace {

using model::Job;
using model::JobOps;
using model::kNoRow;
using model::Member;

// Together less than kOperationsMost: what is left is for the worst.
constexpr size_t kOfFindings = 24, kSamples = 16;
constexpr size_t kSampledComms = 8;
constexpr size_t kRanksMost = 256;  // of an operation

// Of a communicator: by rank, then those whose rank is not known.
std::vector<uint32_t> slots_of(const model::JobComm& comm) {
  std::vector<uint32_t> slots = comm.members;
  slots.insert(slots.end(), comm.unranked.begin(), comm.unranked.end());
  return slots;
}

std::pair<uint32_t, uint32_t> indexes_of(const Job& job, const model::JobComm& comm) {
  uint32_t from = model::kNoIndex, until = 0;
  for (uint32_t row : comm.members) {
    // A member without operations has no oldest one.
    if (row == kNoRow || job.members[row].ops == 0) continue;
    from = std::min(from, job.oldest_index(job.members[row]));
    until = std::max(until, job.next_index(job.members[row]));
  }
  return {std::min(from, until), until};
}

// A finding may name an operation that nobody's record holds any more.
bool has(const Job& job, OperationKey key) {
  const std::vector<uint32_t> slots = slots_of(job.comms[key.first]);
  return std::any_of(slots.begin(), slots.end(), [&](uint32_t row) {
    return row != kNoRow && job.op_at(job.members[row], key.second).has_value();
  });
}

// The largest communicators first; from the oldest operation of each to its newest.
void add_samples(const Job& job, std::set<OperationKey>& wanted) {
  std::vector<uint32_t> comms(job.comms.size());
  std::iota(comms.begin(), comms.end(), 0u);
  std::erase_if(comms, [&](uint32_t comm) {
    const auto [from, until] = indexes_of(job, job.comms[comm]);
    return from == until;
  });
  std::stable_sort(comms.begin(), comms.end(), [&](uint32_t a, uint32_t b) {
    return job.comms[a].members.size() > job.comms[b].members.size();
  });
  if (comms.size() > kSampledComms) comms.resize(kSampledComms);
  if (comms.empty()) return;
  // At least 2, since kSampledComms is half of kSamples: the first and the last.
  const size_t each = kSamples / comms.size();
  for (uint32_t comm : comms) {
    const auto [from, until] = indexes_of(job, job.comms[comm]);
    for (size_t i = 0; i < each; ++i) {
      // 64 bits, because a product of two 32-bit numbers would overflow.
      const uint64_t step = uint64_t{until - 1 - from} * i / std::max<size_t>(each - 1, 1);
      const OperationKey key(comm, from + static_cast<uint32_t>(step));
      if (has(job, key)) wanted.insert(key);
    }
  }
}

std::vector<OperationKey> of_findings(const ReportContext& context) {
  std::vector<OperationKey> keys;
  for (size_t i = 0; i < context.run().diagnosis.findings.size() && keys.size() < kOfFindings; ++i) {
    const auto key = context.operation_of(i);
    if (key && has(context.job(), *key) && std::find(keys.begin(), keys.end(), *key) == keys.end())
      keys.push_back(*key);
  }
  return keys;
}

// One operation on all its ranks.
class Waterfall {
 public:
  Waterfall(const ReportContext& context, OperationKey key, const OperationWaits* waits)
      : context_(context), job_(context.job()), key_(key), waits_(waits), comm_(job_.comms[key.first]) {
    const std::vector<uint32_t> slots = slots_of(comm_);
    if (waits != nullptr) {
      for (const MemberWait& wait : waits->members) wait_of_[wait.member] = &wait;
    }
    for (size_t i = 0; i < slots.size(); ++i)
      add(slots[i], i < comm_.members.size() ? static_cast<int32_t>(i) : -1);
    // A communicator has members that left no file, and its list ends before them.
    for (auto rank = static_cast<int32_t>(comm_.members.size());
         rank < std::min(comm_.ranks, static_cast<int32_t>(kRanksMost)); ++rank)
      add(kNoRow, rank);
    for (Slot& slot : slots_) measure(slot);
    // What a member has not called nobody has finished: there is no last arrival, and waiting goes on.
    is_open_ = std::any_of(slots_.begin(), slots_.end(),
                           [](const Slot& slot) { return slot.state == "not called"; });
    if (is_open_) {
      // What was kept of it compares only those that came, as if they were all.
      waits_ = nullptr;
      for (Slot& slot : slots_) slot.wait = nullptr;
    }
    // The reference host's clock, where any rank has it.
    if (!zeros_.empty()) begin_ns_ = zeros_.begin()->first == 0 ? zeros_.begin()->second : earliest_zero();
  }

  int64_t begin_ns() const { return begin_ns_; }

  Json json(const std::vector<std::string>& why) const {
    Json out = {{"comm", key_.first}, {"op_index", key_.second}};
    describe(out);
    out["why"] = why;
    out["findings"] = Json::array();
    for (size_t i = 0; i < context_.run().diagnosis.findings.size(); ++i) {
      if (context_.operation_of(i) == key_) out["findings"].push_back(i);
    }
    out["begin_ns"] = context_.since_begin(begin_ns_);
    out["length_ns"] = zeros_.size() == 1 && has_ended()
                           ? whole_ns(static_cast<double>(difference(end_ns_, begin_ns_)))
                           : Json(nullptr);
    out["open"] = is_open_;
    out["last_arrival_ns"] = last_arrival();
    out["lost_ns"] = waits_ == nullptr ? Json(nullptr) : whole_ns(waits_->lost_ns);
    out["busbw_gbps"] = or_null(analysis::bandwidth::operation_busbw(job_, key_.first, key_.second));
    out["called"] =
        std::count_if(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.op.has_value(); });
    const std::vector<size_t> chosen = choose();
    out["ranks"] = columns(chosen);
    out["omitted"] = slots_.size() - chosen.size();
    out["rest"] = rest();
    return out;
  }

 private:
  struct Slot {
    uint32_t member = kNoRow;
    int32_t rank = -1;  // in the communicator
    std::optional<uint32_t> op;
    const MemberWait* wait = nullptr;
    std::string_view state;
    bool named = false;
    int64_t half_width_ns = -1;
  };

  void add(uint32_t member, int32_t rank) {
    Slot& slot = slots_.emplace_back();
    slot.member = member;
    slot.rank = rank;
    if (member == kNoRow) return;
    slot.op = job_.op_at(job_.members[member], key_.second);
    slot.named = context_.is_named(job_.members[member].process);
    const auto wait = wait_of_.find(member);
    if (wait != wait_of_.end()) slot.wait = wait->second;
  }

  void measure(Slot& slot) {
    if (slot.member == kNoRow) {
      slot.state = "no file";
      return;
    }
    const Member& member = job_.members[slot.member];
    if (!slot.op) {
      slot.state = member.alignment == Member::Alignment::kNone ? "not comparable"
                   : key_.second >= job_.next_index(member)     ? "not called"
                                                                : "forgotten";
      return;
    }
    const JobOps& ops = job_.ops(member);
    slot.state = ops.gpu_end_ns[*slot.op] != 0     ? "done"
                 : ops.gpu_start_ns[*slot.op] != 0 ? "running"
                                                   : "called";
    bool first = true;
    for (int64_t ns : {ops.entered_ns(*slot.op), ops.called_ns[*slot.op], ops.enqueued_ns[*slot.op],
                       ops.launched_ns[*slot.op], ops.gpu_start_ns[*slot.op], ops.gpu_end_ns[*slot.op]}) {
      if (ns == 0 || (ops.is_replay(*slot.op) && ns == ops.called_ns[*slot.op])) continue;
      const auto common = job_.common_ns(member.process, ns);
      if (first && common) slot.half_width_ns = common->half_width_ns;
      first = false;
      const int64_t at = context_.placed_ns(member.process, ns);
      int64_t& zero = zeros_.try_emplace(context_.clock_of(member.process), at).first->second;
      zero = std::min(zero, at);
      end_ns_ = std::max(end_ns_, at);
    }
  }

  // As far as is known: where nobody has GPU times, it is as long as its calls.
  bool has_ended() const {
    return !is_open_ && std::none_of(slots_.begin(), slots_.end(),
                                     [](const Slot& slot) { return slot.state == "running"; });
  }

  int64_t earliest_zero() const {
    return std::min_element(zeros_.begin(), zeros_.end(),
                            [](const auto& a, const auto& b) { return a.second < b.second; })
        ->second;
  }

  // From the first call on the process's clock.
  Json since_zero(uint32_t process, int64_t placed_ns) const {
    const auto zero = zeros_.find(context_.clock_of(process));
    if (zero == zeros_.end()) return nullptr;
    return whole_ns(static_cast<double>(difference(placed_ns, zero->second)));
  }

  Json since_call(const Slot& slot, int64_t ns) const {
    if (ns == 0) return nullptr;
    const uint32_t process = job_.members[slot.member].process;
    return since_zero(process, context_.placed_ns(process, ns));
  }

  Json last_arrival() const {
    if (waits_ == nullptr || waits_->members.empty() || zeros_.size() != 1) return nullptr;
    // Not where a member's waiting ends: of a broadcast it may have ended before others came.
    const auto last = std::max_element(
        waits_->members.begin(), waits_->members.end(),
        [](const MemberWait& a, const MemberWait& b) { return a.arrival_ns < b.arrival_ns; });
    return whole_ns(static_cast<double>(difference(last->arrival_ns, begin_ns_)));
  }

  void describe(Json& out) const {
    const Slot* any = nullptr;
    for (const Slot& slot : slots_) {
      if (slot.op && any == nullptr) any = &slot;
    }
    const model::Signature& s = job_.signatures[job_.ops(job_.members[any->member]).signature[*any->op]];
    const std::string func = shown(job_.text(s.func));
    const uint64_t size =
        model::operation_size(job_.text(s.func), s.bytes, comm_.ranks > 0 ? comm_.ranks : -1,
                              s.kind == model::number(model::EventKind::kApiOp));
    out["func"] = func;
    out["kind"] = "collective";
    const uint32_t process = job_.members[any->member].process;
    std::string name = analysis::operation_name(job_, process, *any->op).text();
    name[0] = 'O';
    out["title"] = shown(name) + ", " + wording::bytes(size);
    out["datatype"] = shown_or_null(job_.text(s.datatype));
    out["count"] = s.count;
    out["size_bytes"] = size;
    out["algo"] = shown_or_null(job_.text(s.algo));
    out["proto"] = shown_or_null(job_.text(s.proto));
    out["channels"] = s.channels == 0 ? Json(nullptr) : Json(s.channels);
    out["root"] = model::has_root(job_.text(s.func)) ? Json(s.root) : Json(nullptr);
  }

  // Those that findings name, that are not where the others are, that came latest; then evenly spaced ones.
  std::vector<size_t> choose() const {
    std::vector<size_t> order(slots_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    if (order.size() <= kRanksMost) return order;
    size_t done = 0;
    for (const Slot& slot : slots_) done += slot.state == "done";
    // Whoever differs from most is worth a row. In a stuck operation hardly anybody is done; whoever has not
    // called it differs there.
    const bool mostly_done = done * 2 > slots_.size();
    // Half of the places at most go to evenly spaced ranks, so that the page also shows the usual course.
    const size_t stride = slots_.size() / (kRanksMost / 2);
    const auto importance = [&](size_t i) {
      const Slot& slot = slots_[i];
      const bool odd = mostly_done ? slot.state != "done" : !slot.op.has_value();
      return std::tuple(slot.named, odd, i % stride == 0, slot.wait == nullptr ? 0.0f : slot.wait->late_ns);
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return importance(a) > importance(b); });
    order.resize(kRanksMost);
    std::sort(order.begin(), order.end());
    return order;
  }

  Json columns(const std::vector<size_t>& chosen) const {
    Json out = Json::object();
    const auto column = [&](const char* name, auto value) {
      Json& list = out[name] = Json::array();
      for (size_t i : chosen) list.push_back(value(slots_[i]));
    };
    const auto time = [&](const char* name, const Column<int64_t> JobOps::*times) {
      column(name, [&](const Slot& slot) {
        return slot.op ? since_call(slot, (job_.ops(job_.members[slot.member]).*times)[*slot.op])
                       : Json(nullptr);
      });
    };
    const auto wait = [&](const char* name, auto value) {
      column(name,
             [&](const Slot& slot) { return slot.wait == nullptr ? Json(nullptr) : value(*slot.wait); });
    };
    column("who", [&](const Slot& slot) {
      return slot.member == kNoRow ? Json(nullptr) : Json(job_.members[slot.member].process);
    });
    column("comm_rank", [](const Slot& slot) { return known(slot.rank); });
    column("state", [](const Slot& slot) { return Json(slot.state); });
    column("called_ns", [&](const Slot& slot) {
      if (!slot.op) return Json(nullptr);
      const JobOps& ops = job_.ops(job_.members[slot.member]);
      // A replay was called when its graph was captured: that is no part of it.
      return ops.is_replay(*slot.op) ? Json(nullptr) : since_call(slot, ops.called_ns[*slot.op]);
    });
    time("enqueued_ns", &JobOps::enqueued_ns);
    time("launched_ns", &JobOps::launched_ns);
    time("gpu_start_ns", &JobOps::gpu_start_ns);
    time("gpu_end_ns", &JobOps::gpu_end_ns);
    wait("arrival_ns",
         [&](const MemberWait& of) { return since_zero(job_.members[of.member].process, of.arrival_ns); });
    wait("late_ns", [](const MemberWait& of) { return whole_ns(static_cast<double>(of.late_ns)); });
    wait("waiting_ns", [](const MemberWait& of) { return whole_ns(static_cast<double>(of.waiting_ns)); });
    wait("moving_ns", [](const MemberWait& of) {
      return of.moving_ns < 0 ? Json(nullptr) : whole_ns(static_cast<double>(of.moving_ns));
    });
    column("clock_error_ns", [](const Slot& slot) { return known(slot.half_width_ns); });
    column("gpu_error_ns", [&](const Slot& slot) {
      return slot.op ? known(job_.ops(job_.members[slot.member]).gpu_error_ns[*slot.op]) : Json(nullptr);
    });
    column("gpu_source", [&](const Slot& slot) {
      const uint8_t source = slot.op ? job_.ops(job_.members[slot.member]).gpu_source[*slot.op] : uint8_t{0};
      return source == 0 ? Json(nullptr) : Json(model::gpu_source_name(source));
    });
    column("aligned", [&](const Slot& slot) {
      const bool is_apart =
          slot.member != kNoRow && context_.clock_of(job_.members[slot.member].process) != 0;
      return Json(zeros_.size() > 1 && is_apart ? 0 : 1);
    });
    column("named", [](const Slot& slot) { return Json(slot.named ? 1 : 0); });
    return out;
  }

  Json rest() const {
    if (waits_ == nullptr || waits_->members.empty()) return nullptr;
    const auto spread = [&](float MemberWait::*value) -> Json {
      std::vector<float> values;
      for (const MemberWait& of : waits_->members) {
        if (value != &MemberWait::moving_ns || of.moving_ns >= 0) values.push_back(of.*value);
      }
      if (values.empty()) return nullptr;
      std::sort(values.begin(), values.end());
      Json list = Json::array();
      for (float ns : {values.front(), values[(values.size() - 1) / 2], values.back()})
        list.push_back(whole_ns(static_cast<double>(ns)));
      return list;
    };
    return {{"waiting_ns", spread(&MemberWait::waiting_ns)},
            {"late_ns", spread(&MemberWait::late_ns)},
            {"moving_ns", spread(&MemberWait::moving_ns)}};
  }

  const ReportContext& context_;
  const Job& job_;
  const OperationKey key_;
  bool is_open_ = false;
  const OperationWaits* waits_;
  const model::JobComm& comm_;
  std::map<uint32_t, const MemberWait*> wait_of_;  // by member
  std::vector<Slot> slots_;
  std::map<uint32_t, int64_t> zeros_;  // by clock: its first time
  int64_t begin_ns_ = INT64_MAX, end_ns_ = INT64_MIN;
};

uint64_t operations_in(const Job& job) {
  uint64_t total = 0;
  for (const model::JobComm& comm : job.comms) {
    const auto [from, until] = indexes_of(job, comm);
    total += until - from;
    for (uint32_t row : comm.unranked) total += job.members[row].ops;
    for (uint32_t row : comm.members) {
      if (row == kNoRow) continue;
      for (const model::Lane& lane : job.members[row].lanes) total += lane.is_send ? lane.ops : 0;
    }
  }
  return total;
}

}  // namespace

std::set<OperationKey> wanted_operations(const ReportContext& context) {
  const std::vector<OperationKey> named = of_findings(context);
  std::set<OperationKey> wanted(named.begin(), named.end());
  add_samples(context.job(), wanted);
  return wanted;
}

size_t worst_operations_wanted(const std::set<OperationKey>& wanted) {
  return kOperationsMost - wanted.size();
}

Json operations_page(const ReportContext& context, const WaitTable& waits, OperationPlaces& places) {
  std::map<OperationKey, std::vector<std::string>> chosen;
  for (const OperationKey& key : of_findings(context)) chosen[key].push_back("finding");
  for (const OperationKey& key : waits.worst_operations()) chosen[key].push_back("lost");
  std::set<OperationKey> samples;
  add_samples(context.job(), samples);
  for (const OperationKey& key : samples) chosen[key].push_back("sample");
  if (chosen.empty())
    return missing("No collective operation was recorded, so there is none to show rank by rank.");
  struct Entry {
    Waterfall waterfall;
    OperationKey key;
  };
  std::vector<Entry> entries;
  for (const auto& [key, why] : chosen) {
    const auto at = waits.operations().find(key);
    entries.push_back({Waterfall(context, key, at == waits.operations().end() ? nullptr : &at->second), key});
  }
  std::vector<size_t> order(entries.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return entries[a].waterfall.begin_ns() < entries[b].waterfall.begin_ns();
  });
  Json list = Json::array();
  for (size_t i : order) {
    places[entries[i].key] = list.size();
    list.push_back(entries[i].waterfall.json(chosen[entries[i].key]));
  }
  Json notes = Json::array();
  if (!context.has_one_clock())
    notes.push_back(
        "Clocks of some hosts could not be aligned: the times of such a host count from its own first call, "
        "and cannot be compared with those of other hosts. An operation across such hosts has no length.");
  return {{"total", operations_in(context.job())}, {"list", std::move(list)}, {"notes", std::move(notes)}};
}

}  // namespace lockstep::report
