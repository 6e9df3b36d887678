// SPDX-License-Identifier: Apache-2.0
#include "nccl.h"

#include <cstring>

#include "tests/support/nccl_plugin.h"

using Plugin = lockstep::test::NcclPlugin<5>;

namespace {

Plugin& plugin() {
  static Plugin loaded;
  return loaded;
}
thread_local int g_depth = 0;

}  // namespace

struct ncclComm {
  void* context = nullptr;
  uint64_t calls = 0;
};

const char* ncclGetErrorString(ncclResult_t) { return "invalid usage"; }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::memset(id, 7, sizeof *id);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  uint64_t number = 0;
  std::memcpy(&number, id.internal, sizeof number);
  if (number == 0 || rank < 0 || rank >= ranks) return ncclInvalidUsage;
  *comm = new ncclComm{plugin().init(number, nullptr, ranks, rank)};
  return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  plugin().finalize(comm->context);
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() { return ++g_depth, ncclSuccess; }
ncclResult_t ncclGroupEnd() { return g_depth-- > 0 ? ncclSuccess : ncclInvalidUsage; }

ncclResult_t ncclAllReduce(const void*, void*, size_t count, ncclDataType_t, ncclRedOp_t, ncclComm_t comm,
                           cudaStream_t) {
  auto called = Plugin::coll(comm->calls++, nullptr, count);
  plugin().stop(plugin().start(called, comm->context));
  return ncclSuccess;
}
