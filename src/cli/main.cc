// SPDX-License-Identifier: Apache-2.0
// Finds the command and runs it. Exceptions end here: memory that runs out and a thread that cannot start are
// an error line and exit code 2, and not a crash. --help is answered after parsing, so a wrong option beside
// it is still an error.
#include <malloc.h>

#include <exception>
#include <new>
#include <string>
#include <string_view>

#include "base/column_memory.h"
#include "cli/command.h"
#include "cli/kit/console.h"
#include "cli/kit/inherited_signals.h"
#include "cli/manual/help_text.h"

using namespace lockstep;

namespace {

int run(std::span<const char* const> words) {
  // Help without being asked for it: the exit code says that nothing was done.
  if (words.empty()) {
    cli::print(cli::manual::program_help());
    return lockstep::kExitUsage;
  }
  std::string_view name = words[0];
  if (name == "--help" || name == "-h") name = "help";
  if (name == "--version" || name == "-V") name = "version";
  const cli::Command* command = cli::find_command(name);
  if (command == nullptr) {
    return cli::fail(cli::unknown_command(name));
  }
  auto arguments = cli::parse_arguments(command->options, command->operands, words.subspan(1));
  if (!arguments) {
    return cli::fail(arguments.error().text + "; see lockstep " + std::string(command->name) + " --help");
  }
  if (arguments->has("help")) return cli::print(cli::manual::command_help(*command));
  try {
    return command->run(*arguments);
  } catch (const ColumnMemoryError& error) {
    return cli::fail(error.what());
  } catch (const std::bad_alloc&) {
    return cli::fail("out of memory; a command with --memory SIZE can keep most of its data in files");
  } catch (const std::exception& error) {  // of the standard library: no thread, a folder that goes away
    return cli::fail(error.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  // Before anything is written or waited for.
  cli::set_signals();
#if defined(__GLIBC__)
  // One process' trace is freed before the next is read into the same memory: giving it back in between costs
  // page faults.
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
#endif
  // An exec with an empty argv is possible, and then there is no name to skip.
  return run(std::span<const char* const>(argv, static_cast<size_t>(argc)).subspan(argc > 0 ? 1 : 0));
}
