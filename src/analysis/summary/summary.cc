// SPDX-License-Identifier: Apache-2.0
// A process is dropped once it is added, so that a run larger than memory can be summed; what stays of its
// operations is their durations, which percentiles need one by one. Sizes are classed by powers of two: jobs
// with uneven batches would otherwise have a row for nearly every operation.
#include "analysis/summary/summary.h"

#include <algorithm>
#include <bit>

#include "base/text/json_text.h"
#include "model/event_kind.h"
#include "model/intervals.h"
#include "model/names/operation_size.h"
#include "model/names/who.h"

namespace lockstep::analysis::summary {
namespace {

uint8_t bucket_of(uint64_t size) { return static_cast<uint8_t>(std::bit_width(size)); }
uint64_t bucket_end(uint8_t bucket) { return bucket >= 64 ? UINT64_MAX : uint64_t{1} << bucket; }

// Of marks of the program alone. A period that operations repeat in is found with all ranks, in across.cc.
Durations steps_of(const model::Trace& trace) {
  std::vector<int64_t> begins, lengths;
  for (size_t i = 0; i < trace.marks.size(); ++i) {
    if (trace.marks.is_step[i] != 0) begins.push_back(trace.marks.time_ns[i]);
  }
  std::sort(begins.begin(), begins.end());
  for (size_t i = 1; i < begins.size(); ++i) lengths.push_back(begins[i] - begins[i - 1]);
  return summarize(lengths);
}

std::string comm_label(const model::Trace& trace, uint32_t comm) {
  if (comm == model::kNoRow) return "?";
  // Without a name the id stands for it, which is equal on all members.
  if (auto name = trace.strings[trace.comms.name[comm]]; !name.empty()) return std::string(name);
  Json id = id_json(trace.comms.comm_id[comm]);
  return id.is_null() ? "?" : id.get<std::string>();
}

}  // namespace

Durations summarize(std::span<int64_t> values) {
  Durations out;
  if (values.empty()) return out;
  std::sort(values.begin(), values.end());
  double sum = 0;
  for (int64_t value : values) sum += static_cast<double>(value);
  auto at = [&](double share) {  // nearest rank
    auto rank = static_cast<size_t>(share * static_cast<double>(values.size()) + 0.999999);
    return static_cast<double>(values[std::clamp<size_t>(rank, 1, values.size()) - 1]);
  };
  out.count = values.size();
  out.min_ns = static_cast<double>(values.front());
  out.max_ns = static_cast<double>(values.back());
  out.avg_ns = sum / static_cast<double>(values.size());
  out.p50_ns = at(0.5);
  out.p99_ns = at(0.99);
  return out;
}

void Summary::add(const model::Trace& trace) {
  if (trace.processes.size() == 0) return;
  model::Process process = trace.processes.row(0);
  RankFigures rank;
  rank.host = trace.strings[process.host];
  rank.rank = process.rank;
  rank.pid = process.pid;
  const model::Who who = model::who(process, trace.strings);
  rank.device = who.device;
  is_amd_ = is_amd_ || who.is_amd;
  rank.seconds = static_cast<double>(process.last_ns - process.first_ns) * 1e-9;
  add_ops(trace, rank);
  add_histograms(trace);
  // Counts begins of steps, one more than the lengths below.
  for (uint8_t is_step : trace.marks.all(&model::MarkTable::is_step)) rank.steps += is_step != 0;
  rank.step = steps_of(trace);
  ranks_.push_back(std::move(rank));
}

void Summary::add_ops(const model::Trace& trace, RankFigures& rank) {
  const model::OpTable& ops = trace.ops;
  std::map<std::tuple<uint32_t, uint32_t, uint8_t>, OpSums*>
      known;  // by comm, shape and bucket of this trace
  model::Intervals busy;
  for (size_t i = 0; i < ops.size(); ++i) {
    // A record of a damaged file may name a shape or communicator that is not there.
    const bool has_shape = ops.shape[i] < trace.shapes.size();
    std::string_view func = has_shape ? trace.strings[trace.shapes.func[ops.shape[i]]] : "?";
    const uint32_t comm = ops.comm[i] < trace.comms.size() ? ops.comm[i] : model::kNoRow;
    const int64_t ranks = comm == model::kNoRow ? -1 : trace.comms.ranks[comm];
    const bool declared = ops.kind[i] == model::number(model::EventKind::kApiOp);
    uint64_t size = model::operation_size(func, ops.bytes[i], ranks, declared);
    // Rows of this trace are numbers; texts are compared once a kind and not once an operation. Pointers stay
    // valid, since a std::map moves nothing.
    OpSums*& sums = known[{comm, has_shape ? ops.shape[i] : model::kNoRow, bucket_of(size)}];
    if (sums == nullptr) {
      std::string datatype(has_shape ? trace.strings[trace.shapes.datatype[ops.shape[i]]] : "?");
      sums = &ops_[{comm == model::kNoRow ? 0 : trace.comms.comm_id[comm], comm_label(trace, comm),
                    std::string(func), std::move(datatype), bucket_of(size)}];
    }
    ++sums->ops;
    sums->bytes += size;
    sums->ranks = std::max(sums->ranks, ranks);
    ++rank.ops;
    rank.bytes += size;
    // 0 is a time that was not recorded, here and below.
    if (ops.called_ns[i] != 0 && ops.enqueued_ns[i] > ops.called_ns[i]) {
      sums->enqueue.push_back(ops.enqueued_ns[i] - ops.called_ns[i]);
    }
    if (ops.gpu_start_ns[i] == 0 || ops.gpu_end_ns[i] < ops.gpu_start_ns[i]) continue;
    sums->gpu.push_back(ops.gpu_end_ns[i] - ops.gpu_start_ns[i]);
    sums->timed_bytes += size;
    busy.push_back({ops.gpu_start_ns[i], ops.gpu_end_ns[i]});
  }
  // By union: operations of several streams may run at once, and a share must not exceed 1.
  if (!busy.empty() && rank.seconds > 0) {
    int64_t covered = 0;
    for (const model::Interval& interval : model::union_of(std::move(busy)))
      covered += interval.end - interval.begin;
    rank.busy = std::min(1.0, static_cast<double>(covered) * 1e-9 / rank.seconds);
  }
}

// What a ring has forgotten is still in its histograms, which count since the process began.
void Summary::add_histograms(const model::Trace& trace) {
  const model::HistogramTable& cells = trace.histograms;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (cells.shape[i] >= trace.shapes.size()) continue;
    RingSums& sums =
        ring_[{std::string(trace.strings[trace.shapes.func[cells.shape[i]]]),
               std::string(trace.strings[trace.shapes.datatype[cells.shape[i]]]), cells.size_bucket[i]}];
    sums.ops += cells.ops[i];
    sums.bytes += cells.bytes[i];
    if (cells.timed[i] == 0) continue;
    // 0 is no least value to start from.
    sums.min_ns = sums.timed == 0 ? cells.min_ns[i] : std::min(sums.min_ns, cells.min_ns[i]);
    sums.max_ns = std::max(sums.max_ns, cells.max_ns[i]);
    sums.timed += cells.timed[i];
    sums.sum_ns += cells.sum_ns[i];
  }
}

SummaryFigures Summary::figures() {
  SummaryFigures figures;
  figures.is_amd = is_amd_;
  for (auto& [key, sums] : ops_) {
    OpFigures op{key.func,
                 key.datatype,
                 key.comm,
                 key.comm_id,
                 sums.ranks,
                 bucket_end(key.bucket) / 2,
                 bucket_end(key.bucket),
                 sums.ops,
                 sums.bytes,
                 summarize(sums.gpu),
                 summarize(sums.enqueue),
                 0,
                 0};
    // The class of no bytes has no power of two below it.
    if (key.bucket == 0) op.size_from = 0;
    // Bytes over time of all operations: large ones weigh more, as they do in the job. Only bytes of timed
    // operations count.
    double total_ns = op.gpu.avg_ns * static_cast<double>(op.gpu.count);
    if (total_ns > 0) op.algbw = static_cast<double>(sums.timed_bytes) / total_ns;
    op.busbw = op.algbw * model::bus_factor(op.func, op.ranks);
    figures.ops.push_back(std::move(op));
  }
  std::stable_sort(figures.ops.begin(), figures.ops.end(), [](const OpFigures& a, const OpFigures& b) {
    auto weight = [](const OpFigures& op) {
      return std::pair(op.gpu.avg_ns * static_cast<double>(op.gpu.count), static_cast<double>(op.bytes));
    };
    return weight(a) > weight(b);
  });
  // In the order of ranks, whatever order the files were read in.
  figures.ranks = ranks_;
  std::stable_sort(figures.ranks.begin(), figures.ranks.end(),
                   [](const RankFigures& a, const RankFigures& b) {
                     return std::tie(a.rank, a.host, a.pid) < std::tie(b.rank, b.host, b.pid);
                   });
  for (const auto& [key, sums] : ring_) {
    RingFigures ring{key.func, key.datatype, bucket_end(key.bucket), sums.ops, sums.bytes, sums.timed, -1, -1,
                     -1};
    if (sums.timed > 0) {
      ring.avg_ns = static_cast<double>(sums.sum_ns) / static_cast<double>(sums.timed);
      ring.min_ns = static_cast<double>(sums.min_ns);
      ring.max_ns = static_cast<double>(sums.max_ns);
    }
    figures.ring.push_back(std::move(ring));
  }
  return figures;
}

}  // namespace lockstep::analysis::summary
