// SPDX-License-Identifier: Apache-2.0
// Turns the trace of one process into columns that are sorted by communicator and peer. The sort is a
// counting sort over the buckets, and keeps the order of the calls within each: matching by number then needs
// no search. Operations without a communicator cannot be matched and are counted as lost.
#include "job/gather/process_part.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "job/gather/gpu_steps.h"
#include "job/gather/network_parts.h"
#include "job/gather/pageable_copies.h"
#include "job/gather/reported_starts.h"
#include "model/event_counts.h"
#include "model/record_gaps.h"

namespace lockstep::job::gather {
namespace {

using model::EventKind;
using model::kNoRow;
using model::number;
using model::Trace;

struct SignatureHash {
  size_t operator()(const model::Signature& s) const {
    uint64_t h = s.count * 0x9e3779b97f4a7c15u;
    auto mix = [&h](uint64_t value) { h = (h ^ value) * 0xff51afd7ed558ccdu, h ^= h >> 32; };
    mix(s.bytes);
    mix(uint64_t{s.func} << 32 | s.datatype);
    mix(uint64_t{s.algo} << 32 | s.proto);
    mix(uint64_t{static_cast<uint32_t>(s.root)} << 16 | uint64_t{s.kind} << 8 | s.channels);
    return static_cast<size_t>(h);
  }
};

// What a ring overwrote is missing in front. All other losses are holes in the middle, behind which order is
// doubtful.
bool leaves_hole(std::string_view loss) { return loss != "overwritten" && loss != "overwritten_chunk"; }

class PartMaker {
 public:
  PartMaker(Trace& trace, ProcessPart& part) : trace_(trace), part_(part) {}

  void make() {
    // The trace is taken apart as it is read, so that a process is in memory once.
    part_.strings = std::move(trace_.strings);
    part_.losses = std::move(trace_.losses);
    if (trace_.processes.size() > 0) part_.process.row = trace_.processes.row(0);
    for (size_t i = 0; i < part_.losses.size(); ++i) {
      const std::string_view kind = part_.strings[part_.losses.kind[i]];
      if (!model::events_gone(kind)) continue;
      part_.process.lost += part_.losses.count[i];
      if (leaves_hole(kind)) part_.process.holes += part_.losses.count[i];
    }
    make_members();
    place_ops();
    find_open_calls();
    add_network(trace_, part_);
    for (size_t i = 0; i < trace_.marks.size(); ++i) {
      if (trace_.marks.is_step[i]) part_.process.marks.push_back(trace_.marks.row(i));
    }
    add_gpu_steps(trace_, part_.process);
    add_pageable_copies(trace_, part_.strings, part_.process);
    part_.process.kernels = model::count_kernels(trace_).kernels;
  }

 private:
  // A bucket is what lies together in JobOps: the collectives of a communicator, or one lane.
  struct Bucket {
    uint32_t comm;
    int32_t peer;  // -1: collectives
    bool is_send;
    uint32_t ops;
    auto key() const { return std::tuple(comm, peer >= 0, peer, is_send); }
  };

  void make_members() {
    // Member i of a part is row i of its communicators.
    const model::CommTable& comms = trace_.comms;
    for (uint32_t i = 0; i < comms.size(); ++i) {
      part_.comms.push_back({.comm_id = comms.comm_id[i],
                             .name = comms.name[i],
                             .members = comms.members[i],
                             .ranks = comms.ranks[i],
                             .nodes = comms.nodes[i],
                             .declared = comms.api_version[i] == 0,
                             .context = comms.context[i]});
      model::Member member;
      member.comm = i;
      member.rank = comms.rank[i];
      member.init_ns = comms.init_ns[i];
      member.end_ns = comms.end_ns[i];
      member.numbered = comms.numbered[i] != 0;
      part_.members.push_back(member);
    }
  }

  bool is_send(uint32_t op) { return part_.strings[trace_.shapes.func[trace_.ops.shape[op]]] == "Send"; }

  // Neighbours are mostly of one bucket, so the last one is asked before the map.
  uint32_t bucket_of(uint32_t op) {
    uint32_t comm = trace_.ops.comm[op];
    int32_t peer = std::max(trace_.ops.peer[op], -1);
    bool sends = peer >= 0 && is_send(op);
    if (last_bucket_ < buckets_.size()) {
      const Bucket& last = buckets_[last_bucket_];
      if (last.comm == comm && last.peer == peer && last.is_send == sends) return last_bucket_;
    }
    auto [at, is_new] = bucket_ids_[sends].try_emplace(uint64_t{comm} << 32 | static_cast<uint32_t>(peer),
                                                       static_cast<uint32_t>(buckets_.size()));
    if (is_new) buckets_.push_back({comm, peer, sends, 0});
    return last_bucket_ = at->second;
  }

  void place_ops() {
    const model::OpTable& ops = trace_.ops;
    std::vector<uint32_t> bucket(ops.size());
    size_t kept = 0, unnumbered = 0;
    for (uint32_t i = 0; i < ops.size(); ++i) {
      bucket[i] = kNoRow;
      if (ops.index[i] == model::kNoIndex) {
        ++unnumbered;  // nothing says which one of the other ranks it is
        continue;
      }
      if (ops.comm[i] >= trace_.comms.size() || ops.shape[i] >= trace_.shapes.size()) continue;
      bucket[i] = bucket_of(i);
      ++buckets_[bucket[i]].ops;
      ++kept;
    }
    if (kept + unnumbered < ops.size()) {
      model::StringId stage = part_.strings.intern("gather");
      part_.losses.append({.process = 0,
                           .stage = stage,
                           .kind = part_.strings.intern("op_without_comm"),
                           .count = ops.size() - kept - unnumbered,
                           .detail = part_.strings.intern("operations whose communicator is not known")});
    }
    // Buckets are sorted, not operations: there are as many as communicators and peers.
    std::vector<uint32_t> order(buckets_.size()), first(buckets_.size());
    for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(),
              [this](uint32_t a, uint32_t b) { return buckets_[a].key() < buckets_[b].key(); });
    uint32_t next = 0;
    for (uint32_t i : order) {
      const Bucket& of = buckets_[i];
      first[i] = next;
      model::Member& member = part_.members[of.comm];
      if (of.peer < 0) {
        member.first = next;
        member.ops = of.ops;
      } else {
        member.lanes.push_back({.peer = of.peer, .is_send = of.is_send, .first = next, .ops = of.ops});
      }
      next += of.ops;
    }
    fill_columns(bucket, first, kept);
    part_.process.ops.gpu_reported_from_ns =
        starts_reported_from(trace_, part_.strings[part_.process.row.modes], bucket, buckets_.size());
  }

  void fill_columns(const std::vector<uint32_t>& bucket, const std::vector<uint32_t>& first, size_t kept) {
    const model::OpTable& ops = trace_.ops;
    model::JobOps& out = part_.process.ops;
    out.signature.resize(kept);
    out.index.resize(kept);
    out.seq.resize(kept);
    out.called_ns.resize(kept);
    out.enqueued_ns.resize(kept);
    out.launched_ns.resize(kept);
    out.gpu_start_ns.resize(kept);
    out.gpu_end_ns.resize(kept);
    out.gpu_error_ns.resize(kept);
    out.flags.resize(kept);
    out.gpu_source.resize(kept);
    const auto ids = ops.all(&model::OpTable::torch_comms_id);
    const bool has_ids = std::any_of(ids.begin(), ids.end(), [](uint64_t id) { return id != 0; });
    if (has_ids) out.torch_comms_id.resize(kept);
    const auto places = ops.all(&model::OpTable::place);
    const bool has_places =
        std::any_of(places.begin(), places.end(), [](model::StringId id) { return id != 0; });
    if (has_places) out.place.resize(kept);
    std::vector<uint32_t> next = first;
    for (uint32_t i = 0; i < ops.size(); ++i) {
      if (bucket[i] == kNoRow) continue;
      uint32_t at = next[bucket[i]]++;
      bool is_pair = buckets_[bucket[i]].peer >= 0;
      out.signature[at] = signature(i);
      // Sends and receives have no number but their place in the lane.
      out.index[at] = is_pair ? at - first[bucket[i]] : ops.index[i];
      out.seq[at] = ops.seq[i] < model::kNoIndex ? static_cast<uint32_t>(ops.seq[i]) : model::kNoIndex;
      out.called_ns[at] = ops.called_ns[i];
      out.enqueued_ns[at] = ops.enqueued_ns[i];
      out.launched_ns[at] = ops.launched_ns[i];
      out.gpu_start_ns[at] = ops.gpu_start_ns[i];
      out.gpu_end_ns[at] = ops.gpu_end_ns[i];
      out.gpu_error_ns[at] = ops.gpu_error_ns[i];
      out.flags[at] = ops.flags[i];
      out.gpu_source[at] = ops.gpu_source[i];
      if (has_ids) out.torch_comms_id[at] = ids[i];
      if (has_places) out.place[at] = places[i];
      part_.process.graphs = part_.process.graphs || (ops.flags[i] & model::kFlagGraphCaptured) != 0;
    }
  }

  // Operations that are alike share one signature: a training loop repeats a few for ever.
  uint32_t signature(uint32_t op) {
    uint32_t shape = trace_.ops.shape[op];
    model::Signature s{.func = trace_.shapes.func[shape],
                       .datatype = trace_.shapes.datatype[shape],
                       .algo = trace_.shapes.algo[shape],
                       .proto = trace_.shapes.proto[shape],
                       .root = trace_.shapes.root[shape],
                       .kind = trace_.ops.kind[op],
                       .channels = trace_.ops.channels[op],
                       .count = trace_.ops.count[op],
                       .bytes = trace_.ops.bytes[op]};
    // Neighbours are mostly alike: that saves a hash each.
    if (last_signature_ < part_.signatures.size() && part_.signatures[last_signature_] == s)
      return last_signature_;
    auto [at, is_new] = signature_ids_.try_emplace(s, static_cast<uint32_t>(part_.signatures.size()));
    if (is_new) part_.signatures.push_back(s);
    return last_signature_ = at->second;
  }

  // Calls that had not returned when the file ends: in a job that hangs they say where its threads are.
  void find_open_calls() {
    const model::CallTable& calls = trace_.calls;
    for (uint32_t i = 0; i < calls.size(); ++i) {
      if (calls.end_ns[i] != 0) continue;
      uint8_t kind = calls.kind[i];
      if (kind != number(EventKind::kGroupApi) && kind != number(EventKind::kCollApi) &&
          kind != number(EventKind::kP2pApi) && kind != number(EventKind::kGroup))
        continue;
      bool has_shape = calls.shape[i] < trace_.shapes.size();
      part_.process.open_calls.push_back({.kind = kind,
                                          .member = calls.comm[i],
                                          .func = has_shape ? trace_.shapes.func[calls.shape[i]] : 0,
                                          .start_ns = calls.start_ns[i]});
    }
  }

  Trace& trace_;
  ProcessPart& part_;
  std::vector<Bucket> buckets_;
  std::unordered_map<uint64_t, uint32_t> bucket_ids_[2];  // by direction; collectives have peer -1
  uint32_t last_bucket_ = kNoRow;
  std::unordered_map<model::Signature, uint32_t, SignatureHash> signature_ids_;
  uint32_t last_signature_ = 0;
};

}  // namespace

ProcessPart make_part(Trace&& trace) {
  ProcessPart part;
  PartMaker(trace, part).make();
  return part;
}

}  // namespace lockstep::job::gather
