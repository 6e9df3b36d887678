// SPDX-License-Identifier: Apache-2.0
// Bytes of NCCL_DEBUG logs into a LogModel, file after file. Any bytes will do: what is no line of NCCL is counted and
// skipped. Memory is bounded by the limits of LogModel, however long files and lines are. Not safe for use by two threads.
#pragma once
#include <string>
#include <string_view>
#include <unordered_map>

#include "readers/nccl_log/head.h"
#include "readers/nccl_log/line_splitter.h"
#include "readers/nccl_log/log_model.h"
#include "readers/nccl_log/torch_lines.h"

namespace lockstep::readers::nccl_log {

class LogParser {
 public:
  void begin_file(std::string name);
  void feed(std::string_view piece);
  void end_file();
  // The model, with ranks settled. The parser is empty afterwards.
  LogModel take();

 private:
  void line(std::string_view text);
  void headed(Head head);
  void settle_ranks();
  void cut_glued_text(Head& head) const;
  void said(const Head& head, std::string_view body);

  uint32_t process_of(const Head& head);
  Evidence here() const;
  void keep(LineKind kind, uint32_t process, bool is_warning, const Captures& captures);
  void unknown(const Head& head, std::string_view body);
  void comm_life(const Head& head, uint32_t process, const Captures& captures);
  void comm_remark(LineKind kind, const Head& head, uint32_t process, const Captures& captures);
  void connection(uint32_t process, const Captures& captures);
  void algorithm(const Captures& captures);
  CommPart* comm_of(uint32_t process, uint64_t pointer);
  CommPart* newest_comm_of(uint32_t process, int64_t tid);

  LogModel model_;
  LineSplitter splitter_;
  TorchParser torch_;
  std::string_view line_text_;
  uint64_t line_ = 0;
  std::unordered_map<std::string, uint32_t> process_by_name_;  // of this file
  std::string last_name_;
  uint32_t last_process_ = kNobody;
  std::vector<std::vector<uint32_t>> comms_of_process_;
  std::unordered_map<std::string, uint32_t> connection_by_text_, fact_by_text_;
  std::string last_connection_;
  uint32_t last_connection_row_ = kNobody;
  std::unordered_map<uint64_t, size_t> facts_of_process_kind_;
  std::string key_;
};

}  // namespace lockstep::readers::nccl_log
