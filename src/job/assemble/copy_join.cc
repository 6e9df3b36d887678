// SPDX-License-Identifier: Apache-2.0
// Gives GPU copies to copy-engine collectives. Nothing names the operation in a copy's record, so a batch is
// joined only if number, size and order of its copies allow no other one.
#include "job/assemble/copy_join.h"

#include <algorithm>

#include "job/assemble/loss.h"
#include "model/event_kind.h"

namespace lockstep::job::assemble {

using model::EventKind;
using model::kNoRow;

CopyJoin::CopyJoin(model::Trace& trace) : trace_(trace) {
  list_batches();
  if (batches_.empty()) return;
  list_copies();
  if (!copies_.empty()) join();
}

std::span<const uint32_t> CopyJoin::of(uint32_t task) const {
  const auto [first, end] =
      std::equal_range(joined_.begin(), joined_.end(), OfTask{task, 0},
                       [](const OfTask& a, const OfTask& b) { return a.task < b.task; });
  return std::span(joined_copies_)
      .subspan(static_cast<size_t>(first - joined_.begin()), static_cast<size_t>(end - first));
}

void CopyJoin::list_batches() {
  const model::CallTable& calls = trace_.calls;
  const int32_t process_gpu = trace_.processes.size() > 0 ? trace_.processes.gpu[0] : -1;
  for (uint32_t row = 0; row < calls.size(); ++row) {
    const uint32_t task = calls.parent[row];
    if (calls.kind[row] != number(EventKind::kCeBatch) || task == kNoRow || calls.depth[row] <= 0) continue;
    const uint32_t call = trace_.tasks.call[task];
    // A captured batch makes no copies of its own, and its replays make many.
    if (call != kNoRow && (calls.flags[call] & model::kFlagGraphCaptured) != 0) continue;
    const uint32_t comm = calls.comm[row];
    const bool is_known = comm < trace_.comms.size() && trace_.comms.gpu[comm] >= 0;
    const Look look{is_known ? trace_.comms.gpu[comm] : process_gpu, static_cast<uint64_t>(calls.depth[row]),
                    calls.count[row]};
    batches_[look].push_back(row);
  }
  for (auto& [look, rows] : batches_) {
    std::stable_sort(rows.begin(), rows.end(),
                     [&](uint32_t a, uint32_t b) { return calls.start_ns[a] < calls.start_ns[b]; });
    if (look.bytes % look.copies != 0) continue;
    const auto [known, is_new] =
        copies_of_size_.try_emplace({look.gpu, look.bytes / look.copies}, look.copies);
    // Batches of one copy size and different numbers: where one ends cannot be determined.
    if (!is_new) known->second = kNoRow;
  }
}

void CopyJoin::list_copies() {
  const model::KernelTable& kernels = trace_.kernels;
  for (uint32_t row = 0; row < kernels.size(); ++row) {
    const bool is_copy = kernels.kind[row] == static_cast<uint8_t>(model::KernelKind::kCopy) &&
                         trace_.strings[kernels.name[row]].starts_with("Memcpy");
    if (is_copy && kernels.graph_node[row] == 0) copies_.push_back(row);
  }
  std::sort(copies_.begin(), copies_.end(), [&](uint32_t a, uint32_t b) {
    return std::tie(kernels.gpu[a], kernels.correlation[a], kernels.start_ns[a], a) <
           std::tie(kernels.gpu[b], kernels.correlation[b], kernels.start_ns[b], b);
  });
  // One call that made several copies is a run; so is a row of calls that made one each, of one size.
  const auto is_same_call = [&](size_t a, size_t b) {
    return kernels.gpu[copies_[a]] == kernels.gpu[copies_[b]] &&
           kernels.correlation[copies_[a]] == kernels.correlation[copies_[b]];
  };
  size_t singles = 0;  // where a row of single copies begins
  for (size_t first = 0, end = 0; first < copies_.size(); first = end) {
    while (end < copies_.size() && is_same_call(first, end)) ++end;
    const bool is_single = end == first + 1;
    const bool continues = is_single && first > singles &&
                           kernels.gpu[copies_[first]] == kernels.gpu[copies_[singles]] &&
                           kernels.bytes[copies_[first]] == kernels.bytes[copies_[singles]];
    if (continues) continue;
    add_runs(singles, first);
    singles = first;
    if (!is_single) {
      add_run(first, end);
      singles = end;
    }
  }
  add_runs(singles, copies_.size());
}

void CopyJoin::add_run(size_t first, size_t end) {
  const model::KernelTable& kernels = trace_.kernels;
  Look look{kernels.gpu[copies_[first]], end - first, 0};
  int64_t start = INT64_MAX;
  for (size_t i = first; i < end; ++i) {
    look.bytes += kernels.bytes[copies_[i]];
    start = std::min(start, kernels.start_ns[copies_[i]]);
  }
  runs_[look].push_back({first, start});
}

// Single copies of one size: cut as the batches of that size are, if they all have one number of copies.
void CopyJoin::add_runs(size_t first, size_t end) {
  if (first >= end) return;
  const model::KernelTable& kernels = trace_.kernels;
  const auto known = copies_of_size_.find({kernels.gpu[copies_[first]], kernels.bytes[copies_[first]]});
  if (known == copies_of_size_.end() || known->second == kNoRow) return;
  const uint64_t copies = known->second;
  if ((end - first) % copies != 0) return;
  for (size_t i = first; i < end; i += copies) add_run(i, i + copies);
}

void CopyJoin::join() {
  uint64_t unjoined = 0, guessed = 0;
  for (const auto& [look, rows] : batches_) {
    const auto found = runs_.find(look);
    // As many runs as batches, each no earlier than its batch: else one copy of somebody else's would shift
    // all that follow.
    bool fits = found != runs_.end() && found->second.size() == rows.size();
    for (size_t i = 0; fits && i < rows.size(); ++i)
      fits = found->second[i].start_ns >= trace_.calls.start_ns[rows[i]];
    if (!fits) {
      unjoined += rows.size();
      continue;
    }
    guessed += rows.size() * look.copies;
    for (size_t i = 0; i < rows.size(); ++i) {
      for (size_t copy = 0; copy < look.copies; ++copy)
        joined_.push_back({trace_.calls.parent[rows[i]], copies_[found->second[i].first + copy]});
    }
  }
  std::stable_sort(joined_.begin(), joined_.end(),
                   [](const OfTask& a, const OfTask& b) { return a.task < b.task; });
  for (const OfTask& of : joined_) joined_copies_.push_back(of.copy);
  lose(trace_, "copy_joined_by_order", guessed,
       "copies matched to copy-engine collectives by number, size and order only");
  lose(trace_, "ce_batch_without_copies", unjoined,
       "batches of copy-engine collectives whose copies cannot be distinguished from others: no GPU times");
}

}  // namespace lockstep::job::assemble
