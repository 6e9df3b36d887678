// SPDX-License-Identifier: Apache-2.0
// Records show work twice: as it is put into a queue, and as it is done, which may be missing. So pieces
// wait for their times and become kernels at the end. One without times is not drawn where it might have
// been: it is counted.
#include "readers/native/gpu_work.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

namespace lockstep::readers::native {
namespace {

// Work items of the grid, in groups of each direction.
uint32_t blocks_of(const format::DispatchRecord& record) {
  uint64_t blocks = 1;
  for (size_t i = 0; i < 3; ++i) {
    const uint64_t group = std::max<uint64_t>(record.group[i], 1),
                   items = std::max<uint64_t>(record.grid[i], 1);
    blocks = std::min<uint64_t>(blocks * ((items + group - 1) / group), UINT32_MAX);
  }
  return static_cast<uint32_t>(blocks);
}

}  // namespace

// A symbol without a definition counts as computation: RCCL's kernels are known by their names alone.
uint32_t GpuWork::add(const format::DispatchRecord& record, uint32_t thread, uint32_t tid,
                      int64_t launched_ns) {
  const GpuAgents::Symbol symbol = agents_.symbol(record.symbol);
  unnamed_ += !symbol.defined;
  pieces_.push_back(
      {.launched_ns = launched_ns,
       .start_ns = 0,
       .end_ns = 0,
       .name = symbol.name,
       .thread = thread,
       .tid = tid,
       .sequence = record.sequence,
       .blocks = blocks_of(record),
       .bytes = 0,
       .device_comm = !symbol.has_plan        ? 0
                      : record.arguments != 0 ? record.arguments
                                              : model::kUnreadDeviceComm,
       .queue = record.queue,
       .agent = record.agent,
       .kind = symbol.communicates ? model::KernelKind::kCommunication : model::KernelKind::kCompute,
       .is_untimed = (record.head.flags & format::kFlagUntimed) != 0,
       .has_no_signal = record.untimed == format::Untimed::kNoSignal,
       .has_problem = false});
  return static_cast<uint32_t>(pieces_.size() - 1);
}

uint32_t GpuWork::add(const format::QueuedCopyRecord& record, int64_t launched_ns) {
  Piece piece{};
  piece.launched_ns = launched_ns;
  piece.name = copy_name(record.from, record.to);
  piece.thread = model::kNoRow;
  piece.bytes = record.bytes;
  // The GPU on which the copy is shown, and whose clock its stamps may be of.
  piece.agent = record.to != format::kHostAgent ? record.to : record.from;
  piece.kind = model::KernelKind::kCopy;
  pieces_.push_back(piece);
  return static_cast<uint32_t>(pieces_.size() - 1);
}

// The record names agents and no kinds of memory, so these names are shorter than CUDA's.
model::StringId GpuWork::copy_name(uint16_t from, uint16_t to) {
  const bool is_from_host = from == format::kHostAgent, is_to_host = to == format::kHostAgent;
  return trace_.strings.intern(is_from_host && is_to_host ? "Copy HostToHost"
                               : is_from_host             ? "Copy HostToDevice"
                               : is_to_host               ? "Copy DeviceToHost"
                               : from == to               ? "Copy DeviceToDevice"
                                                          : "Copy PeerToPeer");
}

// Another value of `clock` is that of a newer version: no time.
int64_t GpuWork::host_ns(const Piece& piece, const format::GpuTimesRecord& record, uint64_t stamp) const {
  if (record.clock == format::TimesClock::kSystem) return agents_.system_to_ns(stamp);
  return record.clock == format::TimesClock::kAgent ? agents_.ticks_to_ns(piece.agent, stamp) : 0;
}

void GpuWork::set_times(uint32_t number, const format::GpuTimesRecord& record) {
  Piece& piece = pieces_[number];
  piece.start_ns = host_ns(piece, record, record.gpu_start);
  // The two ends may lie in different pieces of the clock; a kernel never ends before it begins.
  piece.end_ns = std::max(piece.start_ns, host_ns(piece, record, record.gpu_stop));
  piece.has_problem = record.problem != format::TimesProblem::kNone || piece.start_ns == 0;
}

void GpuWork::add_kernel(const Piece& piece, uint32_t correlation) {
  trace_.kernels.append({.process = process_,
                         .op = model::kNoRow,
                         .name = piece.name,
                         .kind = static_cast<uint8_t>(piece.kind),
                         .gpu = kFirstAgent + piece.agent,
                         .stream = piece.queue,
                         .graph = 0,
                         .graph_node = 0,
                         .start_ns = piece.start_ns,
                         .end_ns = piece.end_ns,
                         .launch = model::kNoRow,
                         .correlation = correlation,
                         .blocks = piece.blocks,
                         .bytes = piece.bytes});
}

// The packet is put into the queue within the call that launches, on its thread.
void GpuWork::add_launch(const Piece& piece, uint32_t correlation) {
  const uint32_t row = trace_.launches.append({.process = process_,
                                               .thread = piece.thread,
                                               .kind = static_cast<uint8_t>(model::LaunchKind::kKernel),
                                               .correlation = correlation,
                                               .caller = piece.tid,
                                               .start_ns = piece.launched_ns,
                                               .end_ns = piece.launched_ns,
                                               .device_comm = piece.device_comm});
  threads_.called_by_tid(row);
}

// On each queue the one that was launched first holds the others.
void GpuWork::lose_open() {
  struct Open {
    const Piece* first = nullptr;
    uint64_t count = 0;
  };
  std::map<std::pair<uint16_t, uint16_t>, Open> queues;
  uint64_t total = 0;
  for (const Piece& piece : pieces_) {
    if (piece.is_untimed || piece.has_problem || piece.end_ns != 0 || piece.kind == model::KernelKind::kCopy)
      continue;
    Open& open = queues[{piece.agent, piece.queue}];
    if (open.first == nullptr || piece.sequence < open.first->sequence) open.first = &piece;
    ++open.count;
    ++total;
  }
  losses_.add("open_gpu_work", total, [&] {
    // A bound for the text, as a process may have many queues.
    constexpr size_t kMost = 4;
    std::string text = "kernels that were launched and not seen to end:";
    size_t listed = 0;
    for (const auto& [queue, open] : queues) {
      if (listed++ == kMost) return text + " ...";
      const std::string_view name = trace_.strings[open.first->name];
      text += (listed > 1 ? ", " : " ") + std::string(name.empty() ? "one of unknown name" : name) +
              " in queue " + std::to_string(queue.second) + ", launched at " +
              std::to_string(open.first->launched_ns) + " ns, with " + std::to_string(open.count - 1) +
              " behind it";
    }
    return text;
  });
}

GpuWork::Span GpuWork::finish() {
  Span seen;
  uint64_t without_times = 0, without_signal = 0, unplaced = 0, open = 0;
  for (size_t i = 0; i < pieces_.size(); ++i) {
    const Piece& piece = pieces_[i];
    const auto correlation = static_cast<uint32_t>(i + 1);
    // Launches join kernels with operations of NCCL; others have none to join.
    if (piece.kind == model::KernelKind::kCommunication) add_launch(piece, correlation);
    if (piece.has_problem) {
      ++(piece.start_ns == 0 ? unplaced : without_times);
    } else if (piece.is_untimed || (piece.end_ns == 0 && piece.kind == model::KernelKind::kCopy)) {
      ++without_times;  // of a copy nothing shows whether it is open
      without_signal += piece.is_untimed && piece.has_no_signal;
    } else if (piece.end_ns != 0) {
      add_kernel(piece, correlation);
      seen.first_ns = seen.first_ns == 0 ? piece.start_ns : std::min(seen.first_ns, piece.start_ns);
      seen.last_ns = std::max(seen.last_ns, piece.end_ns);
    } else {
      ++open;
    }
  }
  if (open != 0) lose_open();
  losses_.add("no_gpu_times", without_times, [&] {
    return "kernels and copies of which the GPU gave no times" +
           (without_signal == 0 ? std::string()
                                : ", " + std::to_string(without_signal) +
                                      " as all signals of their queue were on their way") +
           ": " + path_;
  });
  losses_.add("gpu_clock", unplaced,
              [&] { return "kernels and copies whose GPU clock is not known: no times: " + path_; });
  losses_.add("unknown_kernel_name", unnamed_, [&] {
    return "kernels whose name is not in the file, taken to be no communication: " + path_;
  });
  return seen;
}

}  // namespace lockstep::readers::native
