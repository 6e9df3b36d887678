// SPDX-License-Identifier: Apache-2.0
#include "cli/console.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "cli/command.h"

namespace lockstep::cli {

void note(std::string_view message) {
  std::string line = "lockstep: ";
  for (char c : message) line += c == '\n' ? ' ' : c;
  line += '\n';
  std::fwrite(line.data(), 1, line.size(), stderr);
}

int fail(std::string_view message) {
  note(message);
  return kExitUsage;
}

int fail(const Error& error) { return fail(error.message()); }

int print(std::string_view text) {
  size_t written = std::fwrite(text.data(), 1, text.size(), stdout);
  if (written == text.size() && std::fflush(stdout) == 0) return kExitOk;
  return fail(std::string("cannot write to standard output: ") + std::strerror(errno));
}

}  // namespace lockstep::cli
