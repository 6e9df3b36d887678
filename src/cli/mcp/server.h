// SPDX-License-Identifier: Apache-2.0
// The Model Context Protocol, a message a line: what is asked, and what is answered. It holds no tool.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/text/json_text.h"

namespace lockstep::cli::mcp {

inline constexpr size_t kMostAnswerBytes = 32 << 10;  // of a line
inline constexpr size_t kMostRequestBytes = 1 << 20;

// What a command printed and its exit code: 0, 1 or 3, as other codes become an Error.
struct ToolAnswer {
  std::string text;
  int exit_code = 0;
};
struct Tool {
  std::string_view name, description;
  Json (*schema)();  // of its arguments
  // An Error is returned to whoever asked: wrong arguments, or what the tool could not do.
  std::function<Result<ToolAnswer>(const Json& arguments)> call;
};

// One thread. It keeps the newest answers, so that pages of one answer fit together.
class Server {
 public:
  explicit Server(std::vector<Tool> tools) : tools_(std::move(tools)) {}
  // Answers one message; nothing to one that wants no answer. The line has no end.
  std::string answer(std::string_view line);

 private:
  Json initialize(const Json& params) const;
  Json list() const;
  std::string call(const Json& id, const Json& params);

  struct Kept {
    std::string key;
    ToolAnswer answer;
  };
  const std::vector<Tool> tools_;
  std::vector<Kept> kept_;  // the newest last: what pages are cut from
};

}  // namespace lockstep::cli::mcp
