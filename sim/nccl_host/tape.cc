// SPDX-License-Identifier: Apache-2.0
#include "nccl_host/tape.h"

#include <zlib.h>

#include <charconv>
#include <unordered_map>

#include "nccl_host/json_line.h"

namespace lockstep::sim {
namespace {

namespace abi = nccl_abi;

constexpr size_t kMaxThreads = 4096;
constexpr size_t kMaxBytes = size_t{2} << 30;

void* pointer(uint64_t value) { return reinterpret_cast<void*>(value); }

class TapeParser {
 public:
  TapeParser(std::string_view text, const std::string& name) : rest_(text) { program_.name = name; }

  Result<Program> parse() {
    while (!rest_.empty()) {
      const size_t end = rest_.find('\n');
      const std::string_view line = rest_.substr(0, end);
      rest_ = end == std::string_view::npos ? std::string_view() : rest_.substr(end + 1);
      ++line_number_;
      if (line.empty()) continue;
      if (!json_.parse(line)) {
        if (!saw_header_) break;
        if (!rest_.empty()) return bad("not a complete JSON object");
        program_.torn = true;
        break;
      }
      LOCKSTEP_TRY(take_line());
    }
    if (!saw_header_)
      return Error{ErrorCode::kInvalidInput, "not a tape: its first line is not {\"call\":\"tape\", ...}",
                   program_.name};
    program_.link();
    return std::move(program_);
  }

 private:
  Error bad(std::string text) const {
    return {ErrorCode::kInvalidInput, std::move(text), program_.name + ":" + std::to_string(line_number_)};
  }

  Result<void> take_line() {
    const std::string_view kind = json_.text("call");
    if (kind == "tape") {
      saw_header_ = true;
      program_.recorded_pid = json_.number("pid");
      program_.recorded_realtime_ns =
          static_cast<int64_t>(json_.number("realtime") - json_.number("monotonic"));
      return {};
    }
    if (!saw_header_) return bad("not a tape: its first line is not {\"call\":\"tape\", ...}");
    Call call;
    call.when_ns = json_.number("t");
    const auto [thread, added] = threads_.try_emplace(json_.number("tid"), threads_.size());
    if (added) {
      if (threads_.size() > kMaxThreads) return bad("more than 4096 threads");
      program_.threads.emplace_back(json_.text("thread"));
      program_.thread_ids.push_back(json_.integer("tid"));
    }
    call.thread = static_cast<uint16_t>(thread->second);
    if (kind == "init") {
      take_init(&call);
    } else if (kind == "start") {
      LOCKSTEP_TRY(take_start(&call));
    } else if (kind == "stop" || kind == "state") {
      call.kind = kind == "stop" ? CallKind::kStop : CallKind::kState;
      call.handle = known_handle(json_.number("h"));
      call.state = static_cast<int16_t>(json_.number("state"));
      for (const char* key : {"transSize", "appendedProxyOps", "pTimer"})
        if (json_.has(key)) call.value = json_.number(key);
      if (call.handle == kNone) return bad("a stop or state needs a handle");
    } else if (kind == "finalize") {
      if (!contexts_.contains(json_.number("ctx")))
        return bad("finalize of a context that was never created");
      call.kind = CallKind::kFinalize;
      call.context = known_context(json_.number("ctx"));
    } else {
      return bad("unknown call '" + std::string(kind) + "'");
    }
    program_.calls.push_back(call);
    return {};
  }

  void take_init(Call* call) {
    call->kind = CallKind::kInit;
    call->detail = static_cast<uint32_t>(program_.comms.size());
    if (json_.number("api") >= 6) program_.recorded_api = 6;
    CommInfo comm;
    const std::string_view id = json_.text("commId");
    std::from_chars(id.data(), id.data() + id.size(), comm.id, 16);
    comm.name = program_.strings.intern(json_.text("commName"));
    comm.nodes = json_.integer("nNodes");
    comm.ranks = json_.integer("nranks");
    comm.rank = json_.integer("rank");
    program_.comms.push_back(comm);
    call->context = contexts_.insert_or_assign(json_.number("ctx"), program_.context_count).first->second;
    ++program_.context_count;
  }

  // Slots of values that no earlier call created hold the recorded value: it came from another process.
  uint32_t known_handle(uint64_t number) {
    if (number == 0) return kNone;
    const auto [entry, added] = handles_.try_emplace(number, program_.handle_count);
    if (added) program_.foreign_handles.emplace_back(program_.handle_count++, number);
    return entry->second;
  }
  uint32_t known_context(uint64_t number) {
    const auto [entry, added] = contexts_.try_emplace(number, program_.context_count);
    if (added) program_.foreign_contexts.emplace_back(program_.context_count++, number);
    return entry->second;
  }

  Result<void> take_start(Call* call) {
    Start start;
    auto& d = start.descriptor;
    d.type = json_.number("type");
    if (d.type == 0 || (d.type & (d.type - 1)) != 0 || d.type > abi::kTypeKernelPhase)
      return bad("unknown event type " + std::to_string(d.type));
    d.rank = json_.integer("rank");
    start.parent = known_handle(json_.number("parent"));
    take_fields(&start);
    call->kind = CallKind::kStart;
    call->context = known_context(json_.number("ctx"));
    call->detail = static_cast<uint32_t>(program_.starts.size());
    call->handle = handles_.insert_or_assign(json_.number("h"), program_.handle_count).first->second;
    ++program_.handle_count;
    program_.starts.push_back(start);
    return {};
  }

  const char* text(std::string_view key) { return program_.strings.intern(json_.text(key)); }
  bool flag(std::string_view key) const { return json_.number(key) != 0; }
  uint8_t small(std::string_view key) const { return static_cast<uint8_t>(json_.number(key)); }
  size_t number(std::string_view key) const { return json_.number(key); }
  int integer(std::string_view key) const { return json_.integer(key); }

  void take_fields(Start* start) {
    auto& d = start->descriptor;
    switch (d.type) {
      case abi::kTypeGroupApi:
        d.group_api = {flag("graphCaptured"), integer("groupDepth")};
        break;
      case abi::kTypeCollApi:
        d.coll_api = {text("func"),     number("count"),           text("datatype"),
                      integer("root"),  pointer(number("stream")), flag("graphCaptured"),
                      number("userTag")};
        break;
      case abi::kTypeP2pApi:
        d.p2p_api = {text("func"),          number("count"),  text("datatype"), pointer(number("stream")),
                     flag("graphCaptured"), number("userTag")};
        break;
      case abi::kTypeKernelLaunch:
        d.kernel_launch = {pointer(number("stream"))};
        break;
      case abi::kTypeColl:
        d.coll = {number("seqNumber"),
                  text("func"),
                  pointer(number("sendBuff")),
                  pointer(number("recvBuff")),
                  number("count"),
                  integer("root"),
                  text("datatype"),
                  small("nChannels"),
                  small("nWarps"),
                  text("algo"),
                  text("proto"),
                  nullptr,
                  nullptr,
                  false,
                  number("userTag")};
        start->parent_group = known_handle(number("parentGroup"));
        break;
      case abi::kTypeP2p:
        d.p2p = {text("func"),    pointer(number("buff")), text("datatype"), number("count"),
                 integer("peer"), small("nChannels"),      nullptr,          number("userTag")};
        start->parent_group = known_handle(number("parentGroup"));
        break;
      case abi::kTypeCeColl:
        d.ce_coll = {number("seqNumber"),
                     text("func"),
                     pointer(number("sendBuff")),
                     pointer(number("recvBuff")),
                     number("count"),
                     integer("root"),
                     text("datatype"),
                     text("syncStrategy"),
                     flag("intraBatchSync"),
                     static_cast<uint32_t>(number("batchSize")),
                     static_cast<uint32_t>(number("numBatches")),
                     static_cast<uint32_t>(number("ceSeqNum")),
                     pointer(number("stream")),
                     number("userTag")};
        break;
      default:
        take_small_fields(&d);
    }
  }

  void take_small_fields(abi::v7::Descriptor* d) {
    switch (d->type) {
      case abi::kTypeProxyOp:
        d->proxy_op = {integer("pid"),    small("channelId"),   integer("peer"),
                       integer("nSteps"), integer("chunkSize"), integer("isSend")};
        break;
      case abi::kTypeProxyStep:
        d->proxy_step = {integer("step")};
        break;
      case abi::kTypeKernelCh:
        d->kernel_ch = {small("channelId"), number("pTimer")};
        break;
      case abi::kTypeNetPlugin:
        d->net_plugin = {static_cast<int64_t>(number("id")), nullptr};
        break;
      case abi::kTypeCeSync:
        d->ce_sync = {flag("isComplete"), integer("nRanks")};
        break;
      case abi::kTypeCeBatch:
        d->ce_batch = {integer("numOps"), number("totalBytes"), flag("useIntraSync")};
        break;
      case abi::kTypeKernelPhase:
        d->kernel_phase = {small("channelId"), small("phaseId"), text("phaseName"), number("pTimer")};
        break;
      default:
        break;  // Group and ProxyCtrl have no fields of their own
    }
  }

  Program program_;
  JsonLine json_;
  std::string_view rest_;
  size_t line_number_ = 0;
  bool saw_header_ = false;
  std::unordered_map<uint64_t, size_t> threads_;
  std::unordered_map<uint64_t, uint32_t> handles_, contexts_;
};

}  // namespace

Result<Program> parse_tape(std::string_view text, const std::string& name) {
  return TapeParser(text, name).parse();
}

Result<std::string> read_recording(const std::string& path) {
  gzFile file = gzopen(path.c_str(), "rb");  // reads plain files as they are
  if (file == nullptr) return Error{ErrorCode::kNotFound, "cannot open the recording", path};
  std::string text;
  std::string block(1 << 20, '\0');
  int got = 0;
  while ((got = gzread(file, block.data(), static_cast<unsigned>(block.size()))) > 0 &&
         text.size() < kMaxBytes)
    text.append(block, 0, static_cast<size_t>(got));
  const bool damaged = got < 0;
  gzclose(file);
  if (damaged) return Error{ErrorCode::kInvalidInput, "cannot read or decompress the recording", path};
  if (text.size() >= kMaxBytes) return Error{ErrorCode::kInvalidInput, "recording larger than 2 GiB", path};
  return text;
}

Result<Program> read_tape(const std::string& path) {
  LOCKSTEP_ASSIGN(const std::string text, read_recording(path));
  return parse_tape(text, path);
}

}  // namespace lockstep::sim
