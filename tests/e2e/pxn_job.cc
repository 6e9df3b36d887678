// SPDX-License-Identifier: Apache-2.0
// Two processes of one host, as NCCL calls its profiler under PXN: rank 1's thread moves what rank 0 has
// enqueued, with rank 0's context, process number and handle, as its own library gave them.
#include <sys/wait.h>

#include <array>
#include <cstdlib>

#include "tests/support/nccl_plugin.h"

namespace lockstep::test {
namespace {

using Plugin = NcclPlugin<5>;
using Words = std::array<uint64_t, 2>;  // context and handle

void take_part(int rank, int from, int to) {
  setenv("RANK", std::to_string(rank).c_str(), 1);
  setenv("LOCAL_RANK", std::to_string(rank).c_str(), 1);
  setenv("WORLD_SIZE", "2", 1);
  Plugin plugin;
  void* const context = plugin.init(0x77, "world", 2, rank);
  auto coll = Plugin::coll(0);
  void* const task = plugin.start(coll);
  plugin.stop(task);
  Words words = {number(context), number(task)};
  if (rank == 0) {
    if (write(to, words.data(), sizeof words) != sizeof words || read(from, words.data(), 1) != 1) _exit(1);
  } else {
    if (read(from, words.data(), sizeof words) != sizeof words) _exit(1);
    for (int i = 0; i < 2; ++i) {
      auto op = Plugin::proxy_op(pointer(words[1]), getppid(), true);
      void* const proxy_op = plugin.start(op, pointer(words[0]));
      auto described = Plugin::descriptor(nccl_abi::kTypeProxyStep, proxy_op);
      described.proxy_step.step = 0;
      void* const step = plugin.start(described, pointer(words[0]));
      plugin.stop(step);
      plugin.stop(proxy_op);
    }
    if (write(to, "", 1) != 1) _exit(1);
  }
  plugin.finalize(context);
}

}  // namespace
}  // namespace lockstep::test

int main() {
  int there[2], back[2];
  if (pipe(there) != 0 || pipe(back) != 0) return 1;
  const pid_t child = fork();
  lockstep::test::take_part(child == 0 ? 1 : 0, child == 0 ? there[0] : back[0],
                            child == 0 ? back[1] : there[1]);
  int status = 0;
  return child != 0 && (wait(&status) != child || status != 0);
}
