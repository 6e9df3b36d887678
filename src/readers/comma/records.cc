// SPDX-License-Identifier: Apache-2.0
// Reads CoMMA's records. Steps and operations are on two clocks with an unknown difference. It is not guessed
// from the first values: every step lies within its network operation and bounds the difference from both
// sides, and the middle of what all bounds leave is taken. Where they leave nothing, `steps_aligned` says so.
#include "readers/comma/records.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <string_view>

#include "base/hex.h"
#include "model/limits.h"
#include "readers/common/json_fields.h"
#include "readers/common/json_lines.h"

namespace lockstep::readers::comma {
namespace {

using common::is_true;
using common::ns_of_us;
using common::number_or;
using common::text_or_empty;
using simdjson::dom::element;

constexpr size_t kLongestLine = 16 << 20;  // with all steps of all channels
// Files may be hostile. What is beyond these is counted and left out.
constexpr size_t kMostOperations = size_t{1} << 24, kMostSteps = size_t{1} << 26;
constexpr size_t kMostComms = 1 << 16;
constexpr uint64_t kMostSeq = uint64_t{1} << 31, kMostBytes = uint64_t{1} << 56;
constexpr int64_t kRoundingNs = 2'000;  // all times are whole us
// Times before it are counted from the start of the process, as older releases do.
constexpr int64_t kYear2001Ns = 1'000'000'000'000'000'000;

struct Word {
  std::string_view comma, nccl;
};
constexpr Word kFuncs[] = {{"broadcast", "Broadcast"},
                           {"reduce", "Reduce"},
                           {"all_gather", "AllGather"},
                           {"reduce_scatter", "ReduceScatter"},
                           {"all_reduce", "AllReduce"},
                           {"send", "Send"},
                           {"recv", "Recv"},
                           {"unknown", "Unknown"}};
constexpr Word kAlgos[] = {{"tree", "TREE"},
                           {"ring", "RING"},
                           {"collnet_direct", "COLLNET_DIRECT"},
                           {"collnet_chain", "COLLNET_CHAIN"},
                           {"nvls", "NVLS"},
                           {"nvls_tree", "NVLS_TREE"},
                           {"pat", "PAT"}};
constexpr Word kProtos[] = {{"ll", "LL"}, {"ll128", "LL128"}, {"simple", "SIMPLE"}};

template <size_t N>
std::string_view nccl_word(const Word (&words)[N], std::string_view comma) {
  for (const Word& word : words) {
    if (word.comma == comma) return word.nccl;
  }
  return {};
}

class FileReader {
 public:
  explicit FileReader(FileRecords& out) : out_(out) {}

  // Whether the line is a record.
  bool add(std::string_view line) {
    element row;
    if (parser_.parse(line.data(), line.size(), false).get(row) != simdjson::SUCCESS) return false;
    const std::string_view category = text_or_empty(row, "cat");
    if (category == "GROUP") return ++out_.groups, true;
    if (category == "PROXY") return add_network_op(row, out_.unplaced);
    if (category != "COLL" && category != "P2P") return false;
    return add_operation(row, category == "P2P");
  }

  // CoMMA counts the times of steps from its own start, and those of operations since the Unix epoch (older
  // ones: both from the start). A step lies within its network operation, and that bounds the difference from
  // both sides.
  void align_steps() {
    out_.steps_aligned = earliest_ <= latest_ + kRoundingNs;
    // A difference of 0 fits all bounds: the file is of an older release, with one clock for both.
    const bool is_one_clock = earliest_ <= kRoundingNs && latest_ >= -kRoundingNs;
    if (is_one_clock || earliest_ == kNoBound) return;
    // Without a network operation that ended, only one side is bounded: steps begin as early as it allows.
    const bool is_bounded = out_.steps_aligned && latest_ != -kNoBound;
    const int64_t offset = is_bounded ? earliest_ + (latest_ - earliest_) / 2 : earliest_;
    const auto move = [offset](std::vector<NetworkOp>& ops) {
      for (NetworkOp& op : ops) {
        for (Step& step : op.transfers) {
          step.start_ns += offset;
          if (step.ready_ns != 0) step.ready_ns += offset;
          step.end_ns += offset;
        }
      }
    };
    for (Operation& operation : out_.operations) move(operation.network);
    move(out_.unplaced);
  }

 private:
  bool add_operation(const element& row, bool is_p2p) {
    Operation operation;
    operation.is_p2p = is_p2p;
    operation.func = nccl_word(kFuncs, text_or_empty(row, "name"));
    operation.enqueued_ns = ns_of_us(number_or<uint64_t>(row, "ts", 0));
    if (operation.func.empty() || operation.enqueued_ns == 0) return false;
    const uint64_t seq = number_or(row, "seq_num", kMostSeq);
    operation.peer = number_or<int32_t>(row, "peer", -1);
    if (is_p2p ? operation.peer < 0 || operation.peer >= model::kMostRanks : seq >= kMostSeq) return false;
    operation.seq = is_p2p ? 0 : static_cast<uint32_t>(seq);
    if (!is_p2p) operation.peer = -1;
    operation.algo = nccl_word(kAlgos, text_or_empty(row, "algo"));
    operation.proto = nccl_word(kProtos, text_or_empty(row, "proto"));
    operation.channels = number_or<uint8_t>(row, "n_max_channel", 0);
    if (element arguments; row["args"].get(arguments) == simdjson::SUCCESS)
      operation.bytes = number_or<uint64_t>(arguments, "size", 0);
    if (operation.bytes >= kMostBytes) operation.bytes = 0;
    take_times(row, operation);
    if (out_.operations.size() == kMostOperations) return ++out_.left_out, true;
    const auto comm = comm_of(row);
    if (comm < 0) return false;
    operation.comm = static_cast<uint32_t>(comm);
    simdjson::dom::array network;
    if (row["proxyops"].get(network) == simdjson::SUCCESS) {
      for (const element op : network) out_.bad_records += add_network_op(op, operation.network) ? 0 : 1;
    }
    out_.operations.push_back(std::move(operation));
    return true;
  }

  // `dur` ends with the last transfer where there was one, and `child_dur` begins with the first.
  static void take_times(const element& row, Operation& operation) {
    operation.ended = !is_true(row, "reclaimed");
    const int64_t end = operation.enqueued_ns + ns_of_us(number_or<uint64_t>(row, "dur", 0));
    const int64_t moving = ns_of_us(number_or<uint64_t>(row, "child_dur", 0));
    operation.seen_ns =
        std::max(end, operation.enqueued_ns + ns_of_us(number_or<uint64_t>(row, "timeout_dur", 0)));
    operation.network_start_ns = ns_of_us(number_or<uint64_t>(row, "child_start_ts", 0));
    // Older releases do not tell when the first transfer began, only how long before the end.
    if (operation.network_start_ns == 0 && moving > 0 && moving <= end)
      operation.network_start_ns = end - moving;
    if (operation.ended && moving > 0) operation.network_end_ns = operation.network_start_ns + moving;
  }

  bool add_network_op(const element& row, std::vector<NetworkOp>& out) {
    NetworkOp op;
    op.peer = number_or<int32_t>(row, "peer", -1);
    op.start_ns = ns_of_us(number_or<uint64_t>(row, "ts", 0));
    if (op.peer < 0 || op.peer >= model::kMostRanks || op.start_ns == 0) return false;
    op.rank = number_or<int32_t>(row, "rank", -1);
    op.pid = number_or<int64_t>(row, "pid", -1);
    op.is_send = is_true(row, "is_send");
    op.steps = number_or<int32_t>(row, "n_steps", 0);
    op.chunk_bytes = number_or<int32_t>(row, "chunk_size", 0);
    op.channel = number_or<uint16_t>(row, "channel_id", 0);
    const int64_t end = op.start_ns + ns_of_us(number_or<uint64_t>(row, "dur", 0));
    if (!is_true(row, "reclaimed")) op.end_ns = end;
    if (steps_ >= kMostSteps) {
      ++out_.left_out;
      return true;
    }
    if (simdjson::dom::array steps; row["steps"].get(steps) == simdjson::SUCCESS) {
      for (const element step : steps) add_step(step, op);
    }
    // Operations do not name the process; transfers do.
    if (out_.pid < 0) out_.pid = op.pid;
    ++steps_;
    out.push_back(std::move(op));
    return true;
  }

  void add_step(const element& row, NetworkOp& op) {
    Step step;
    step.start_ns = ns_of_us(number_or<uint64_t>(row, "start_time", 0));
    step.ready_ns = ns_of_us(number_or<uint64_t>(row, "fifo_ready_time", 0));
    step.end_ns = ns_of_us(number_or<uint64_t>(row, "end_time", 0));
    if (step.end_ns < step.start_ns || step.ready_ns > step.end_ns ||
        (step.ready_ns != 0 && step.ready_ns < step.start_ns)) {
      ++out_.bad_records;
      return;
    }
    step.step = number_or<int32_t>(row, "step", 0);
    step.bytes = number_or<uint64_t>(row, "size", 0);
    earliest_ = std::max(earliest_, op.start_ns - step.start_ns);
    if (op.end_ns != 0) latest_ = std::min(latest_, op.end_ns - step.end_ns);
    op.transfers.push_back(step);
    ++steps_;
  }

  ptrdiff_t comm_of(const element& row) {
    const uint64_t id = number_of_hex(text_or_empty(row, "comm_hash"));
    const auto rank = number_or<int32_t>(row, "rank", -1);
    if (id == 0 || rank < 0 || rank >= model::kMostRanks) return -1;
    // By rank as well: a process that drives several GPUs is several members.
    const auto known = comms_.find({id, rank});
    if (known != comms_.end()) return known->second;
    if (out_.comms.size() == kMostComms) return -1;
    out_.comms.push_back({id, rank});
    return comms_[{id, rank}] = static_cast<ptrdiff_t>(out_.comms.size() - 1);
  }

  FileRecords& out_;
  simdjson::dom::parser parser_{kLongestLine};
  std::map<std::pair<uint64_t, int32_t>, ptrdiff_t> comms_;
  size_t steps_ = 0;
  // Of the clock of operations minus that of steps.
  // Half of the range: the difference of two bounds must not overflow.
  static constexpr int64_t kNoBound = std::numeric_limits<int64_t>::min() / 2;
  int64_t earliest_ = kNoBound, latest_ = -kNoBound;
};

// "latency-169.txt"
int64_t last_number(std::string_view path) {
  const size_t name = path.find_last_of('/') + 1;
  size_t end = path.size();
  while (end > name && (path[end - 1] < '0' || path[end - 1] > '9')) --end;
  size_t begin = end;
  while (begin > name && path[begin - 1] >= '0' && path[begin - 1] <= '9') --begin;
  int64_t number = -1;
  std::from_chars(path.data() + begin, path.data() + end, number);
  return number;
}

}  // namespace

Result<FileRecords> read_file(const std::string& path) {
  FileRecords out;
  out.path = path;
  FileReader reader(out);
  LOCKSTEP_TRY(common::for_each_json_line(path, kLongestLine, out,
                                          [&](std::string_view line) { return reader.add(line); }));
  if (out.operations.empty() && out.unplaced.empty())
    return Error{ErrorCode::kInvalidInput, "holds no operation of CoMMA", path};
  reader.align_steps();
  const int64_t first =
      out.operations.empty() ? out.unplaced.front().start_ns : out.operations.front().enqueued_ns;
  out.is_epoch = first >= kYear2001Ns;
  if (out.pid < 0) out.pid = last_number(path);
  return out;
}

}  // namespace lockstep::readers::comma
