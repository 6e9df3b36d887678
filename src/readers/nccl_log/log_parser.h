// SPDX-License-Identifier: Apache-2.0
// Bytes of NCCL_DEBUG logs into a LogModel, file after file. Any bytes will do: what is no line of NCCL is
// counted and skipped. Memory is bounded by the limits of LogModel, however long files and lines are. Not
// safe for use by two threads.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/lines/line_splitter.h"
#include "base/lines/utf16.h"
#include "readers/nccl_log/head.h"
#include "readers/nccl_log/log_model.h"
#include "readers/nccl_log/program_lines.h"
#include "readers/nccl_log/torch_lines.h"

namespace lockstep::readers::nccl_log {

class LogParser {
 public:
  // begin_file(), its bytes in pieces of any size, end_file(); then the next file.
  void begin_file(std::string name);
  void feed(std::string_view piece);
  void end_file();
  // The model, with ranks resolved. The parser is empty afterwards.
  LogModel take();

 private:
  void physical_line(std::string_view text);
  void look_at(std::string_view sample);
  void pasted(std::string_view text);
  void flush_joined();
  void line(std::string_view text);
  void headless(std::string_view text);
  static bool holds_many_heads(std::string_view body);
  void headed(Head head);
  static size_t second_mark(std::string_view text);
  void part_of_line(std::string_view text);
  bool program_line(std::string_view text);
  bool beheaded(std::string_view text);
  std::string_view respaced(std::string_view text);
  uint32_t process_without_name(int32_t rank);
  void lone_words();
  bool takes_symptom(std::string_view text);
  void unknown_text(std::string_view text);
  void forgive_a_cut_end();
  bool may_be_cut(std::string_view text, const Head& head, bool has_head) const;
  void resolve_ranks();
  static bool may_be_glued(const Head& head);
  void cut_glued_text(Head& head) const;
  void stated(const Head& head, std::string_view body);

  uint32_t process_of(const Head& head);
  Evidence here() const;
  void keep(LineKind kind, uint32_t process, bool is_warning, const Captures& captures);
  void unknown(const Head& head, uint32_t process, std::string_view body);
  void comm_life(const Head& head, uint32_t process, const Captures& captures);
  CommPart* made_comm(uint32_t process, int64_t tid, uint64_t pointer, int32_t rank, bool is_completed);
  void leave_open_comm(uint32_t process, int64_t tid, bool is_next_completed);
  void comm_remark(LineKind kind, const Head& head, uint32_t process, const Captures& captures);
  void connection(const Head& head, uint32_t process, const Captures& captures);
  uint32_t comm_of_connection(const Connection& row, int64_t tid, uint64_t pointer) const;
  void resolve_connections();
  void trees(const Captures& captures, CommPart& part);
  ChannelPosition* position(CommPart& part, int64_t channel);
  void ring_order(std::string_view channel, std::string_view ranks, CommPart& part);
  void call(uint32_t process, const Captures& captures);
  bool topology(LineKind kind, uint32_t process, const Captures& captures);
  void close_device(uint32_t process);
  void nvlink(uint32_t process, double gbps, std::string_view end);
  TopologyDevice* device(uint32_t process, std::string_view name);
  void costs(LineKind kind, uint32_t process, const Captures& captures);
  void algorithm(std::string_view func, std::string_view bytes, std::string_view algo,
                 std::string_view proto);
  void latency(const Captures& captures);
  CommPart* comm_of(uint32_t process, uint64_t pointer);
  CommPart* newest_comm_of(uint32_t process, int64_t tid);
  CommPart* open_comm_of(uint32_t process, int64_t tid);

  LogModel model_;
  LineSplitter splitter_;
  TorchParser torch_;
  ProgramParser program_;
  std::string_view line_text_;
  uint64_t last_torn_ = 0;                 // line of the file
  bool is_behind_tear_ = false;            // what is read now
  uint64_t line_ = 0, physical_line_ = 0;  // where a line begins, and the last one of the file
  bool is_first_piece_ = true;
  std::optional<Utf16> utf16_;
  size_t wrap_ = 0;  // where the file's lines were broken; 0: nowhere
  bool is_paste_ = false;
  std::string joined_;  // of lines that were
  bool is_joined_damaged_ = false;
  std::unordered_map<std::string, uint32_t> process_by_name_;  // of this file
  std::string last_name_, spaced_;
  uint32_t last_process_ = kNobody;
  // What lines of a process leave for those that follow.
  struct Context {
    std::vector<uint32_t> comms;   // rows
    std::vector<CommPart> unborn;  // mentioned before they are named, by thread
    uint32_t device = kNobody;     // whose links are being listed
    double nvlink_gbps = 0;
    std::vector<std::string> link_ends;        // of those
    bool lacks_lines = false;                  // some are of another device
    std::vector<std::string> cost_algorithms;  // of the columns
  };
  std::vector<Context> contexts_;  // by process
  std::unordered_map<std::string, uint32_t> comm_by_pointer_, device_by_name_, call_shape_by_text_;
  size_t positions_ = 0, orders_ = 0, calls_ = 0, paths_ = 0;
  std::unordered_map<std::string, uint32_t> connection_by_text_, fact_by_text_;
  std::string last_connection_;
  uint32_t last_connection_row_ = kNobody;
  uint32_t last_comm_ = kNobody;  // row that was asked for last
  std::unordered_map<uint64_t, size_t> facts_of_process_kind_;
  std::string key_;
};

}  // namespace lockstep::readers::nccl_log
