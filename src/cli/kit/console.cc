// SPDX-License-Identifier: Apache-2.0
// Everything that the program prints passes here. Names come from foreign files and may hold what a terminal
// obeys: all but line ends, tabs and the codes of Style become '?'. Who draws on a terminal tames the parts
// itself.
#include "cli/kit/console.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "base/text/style.h"
#include "cli/command.h"

namespace lockstep::cli {

std::string tamed(std::string_view text) {
  std::string out(text);
  for (size_t i = 0; i < out.size(); ++i) {
    const auto c = static_cast<unsigned char>(out[i]);
    if (const size_t size = c == '\033' ? Style::code_at(std::string_view(out).substr(i)) : 0; size > 0) {
      i += size - 1;
      continue;
    }
    // As UTF-8 has them: U+0080 to U+009F, of which one begins what a terminal obeys.
    const bool is_c1 = c >= 0x80 && c < 0xa0 && i > 0 && out[i - 1] == '\xc2';
    if (is_c1) out[i - 1] = '?';
    if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f || is_c1) out[i] = '?';
  }
  return out;
}

void warn(std::string_view message) {
  // A message may quote a foreign text of any length.
  constexpr size_t kMost = 8 << 10;
  std::string line = "lockstep: " + tamed(message.substr(0, kMost));
  // Each remark is one line, so that a log of a job can be searched for it.
  std::replace(line.begin(), line.end(), '\n', ' ');
  line += message.size() > kMost ? "...\n" : "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

int fail(std::string_view message) {
  warn(message);
  return kExitUsage;
}

int fail(const Error& error) { return fail(error.message()); }

int print(std::string_view text, int code) {
  const int drawn = draw(tamed(text));
  return drawn == kExitOk ? code : drawn;
}

int draw(std::string_view screen) {
  size_t written = std::fwrite(screen.data(), 1, screen.size(), stdout);
  // A full disk may show at the flush only, and has to change the exit code.
  if (written == screen.size() && std::fflush(stdout) == 0) return kExitOk;
  return fail(std::string("cannot write to standard output: ") + std::strerror(errno));
}

}  // namespace lockstep::cli
