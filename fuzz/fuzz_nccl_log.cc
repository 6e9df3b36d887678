// SPDX-License-Identifier: Apache-2.0
// Feeds arbitrary bytes to the parser of NCCL's logs, cut at a place that they choose, asks every rule, and
// checks that what is named exists.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "analysis/log_rules/log_rules.h"
#include "readers/nccl_log/log_parser.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace nccl_log = lockstep::readers::nccl_log;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t cut = size == 0 ? 0 : data[0] * size / 256;
  nccl_log::LogParser parser;
  for (const char* name : {"a", "b"}) {
    parser.begin_file(name);
    parser.feed(text.substr(0, cut));
    parser.feed(text.substr(cut));
    parser.end_file();
  }
  const nccl_log::LogModel model = parser.take();
  for (const nccl_log::Fact& fact : model.facts) {
    if (fact.process != nccl_log::kNobody && fact.process >= model.processes.size()) std::abort();
    if (fact.first.file >= model.files.size() || fact.first.line == 0) std::abort();
  }
  for (const nccl_log::CommPart& part : model.comms) {
    if (part.process >= model.processes.size()) std::abort();
  }
  for (const auto& finding : lockstep::analysis::log_rules::judge(model)) {
    if (finding.statement.empty() || finding.evidence.empty()) std::abort();
  }
  return 0;
}
