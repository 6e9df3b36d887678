// SPDX-License-Identifier: Apache-2.0
// `mcp` answers an agent over standard input and output. An agent may be tricked by what it reads. So its
// tools only read, on paths below the folders that the user named, within bounds of time and size.
// Diagnostics go to stderr, since a line on stdout that is no message breaks the protocol.
#include <cstdio>
#include <filesystem>

#include "cli/command.h"
#include "cli/kit/console.h"
#include "cli/mcp/tools.h"

namespace lockstep::cli {
namespace {

constexpr Option kMcpOptions[] = {{0, "patience", "SECONDS", "the longest that a tool may take", "60"}};

// A line of standard input; of one that is too long the beginning, the rest is read and left. Nothing at the
// end.
std::optional<std::string> next_line() {
  std::string line;
  int c = 0;
  while ((c = std::fgetc(stdin)) != EOF && c != '\n') {
    // One byte more than allowed is kept, so that the server sees that the line is too long.
    if (line.size() <= mcp::kMostRequestBytes) line += static_cast<char>(c);
  }
  // A last line without a newline is still a request.
  if (c == EOF && line.empty()) return std::nullopt;
  return line;
}

int run_mcp(const Arguments& arguments) {
  mcp::ToolLimits limits;
  auto seconds = arguments.number("patience");
  if (!seconds) return fail(seconds.error());
  if (*seconds < 1 || *seconds > 3600) return fail("--patience takes 1 to 3600 seconds");
  limits.patience = std::chrono::seconds(*seconds);
  std::vector<std::string> folders = arguments.operands();
  if (folders.empty()) folders.emplace_back(".");
  for (const std::string& folder : folders) {
    std::error_code failed;
    // Links are followed once and here: paths are compared with the real folder later.
    const auto whole = std::filesystem::canonical(folder, failed);
    if (failed || !std::filesystem::is_directory(whole, failed)) return fail(folder + ": no such folder");
    limits.folders.push_back(whole.string());
  }
  mcp::Server server(mcp::all_tools(limits));
  while (auto line = next_line()) {
    if (line->find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::string answer = server.answer(*line);
    // A notification gets no answer.
    if (answer.empty()) continue;
    if (const int failed = print(answer + "\n"); failed != kExitOk) return failed;
  }
  return kExitOk;
}

}  // namespace

const Command mcp_command = {
    .name = "mcp",
    .summary = "answer an agent's questions about runs (Model Context Protocol)",
    .description =
        "Serves the Model Context Protocol on standard input and output, for agents and editors: the tools "
        "diagnose, summary, show, explain, compare and sql. Each only reads, and only what lies below the named folders (by default the current one) with all links resolved. An answer has at most 32 KiB; longer ones come in pages. A tool that takes too long is stopped. The server ends when its input does.",
    .operands = {.name = "FOLDER", .help = "a folder whose files may be read", .least = 0, .most = SIZE_MAX},
    .options = kMcpOptions,
    .run = run_mcp,
};

}  // namespace lockstep::cli
