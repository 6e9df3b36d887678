// SPDX-License-Identifier: Apache-2.0
#include "analysis/log_rules/log_rules.h"
#include "analysis/ras_rules/ras_rules.h"
#include "base/text/units.h"
#include "readers/nccl_log/nccl_log.h"
#include "readers/ras/ras.h"
#include "readers/ras/read_ras.h"
#include "verdict/diagnosed_run.h"
#include "verdict/log_input.h"

namespace lockstep::verdict {
namespace {

Result<Statement> judge_logs(const readers::Inputs& inputs, const readers::FormatFiles& files) {
  LOCKSTEP_ASSIGN(auto read, read_logs(inputs, files));
  Statement statement;
  statement.evidence.logs = std::make_shared<const readers::nccl_log::LogModel>(std::move(read));
  const auto& model = *statement.evidence.logs;
  for (const auto& process : model.processes) {
    if (process.rank >= 0) statement.evidence.hosts.emplace(process.rank, process.host);
  }
  statement.evidence.content =
      plural(model.files.size(), "file") + ", " + plural(model.coverage.headed, "line") + " of NCCL";
  statement.findings = analysis::log_rules::judge(model);
  return statement;
}

Result<Statement> judge_ras(const readers::Inputs& inputs, const readers::FormatFiles& files) {
  LOCKSTEP_ASSIGN(auto model, readers::ras::read_ras(files.files));
  for (auto& snapshot : model.snapshots) snapshot.file = inputs.unpacker->shown(std::move(snapshot.file));
  Statement statement;
  statement.evidence.hosts = analysis::ras_rules::hosts(model);
  statement.evidence.content = plural(model.snapshots.size(), "snapshot") + ", " +
                               plural(model.snapshots.back().comms.size(), "communicator");
  statement.findings = analysis::ras_rules::judge(model);
  return statement;
}

// A format that holds no operations is a line here.
struct Judge {
  const readers::Format* format;
  Result<Statement> (*judge)(const readers::Inputs& inputs, const readers::FormatFiles& files);
};
constexpr Judge kJudges[] = {
    {&readers::nccl_log::kFormat, judge_logs},
    {&readers::ras::kFormat, judge_ras},
};

}  // namespace

Result<std::optional<Statement>> judge_statements(const readers::Inputs& inputs,
                                                  const readers::FormatFiles& files) {
  for (const Judge& judge : kJudges) {
    if (judge.format != files.format) continue;
    LOCKSTEP_ASSIGN(Statement statement, judge.judge(inputs, files));
    statement.evidence.source = files.format->summary;
    return std::optional(std::move(statement));
  }
  return std::optional<Statement>();
}

}  // namespace lockstep::verdict
