// SPDX-License-Identifier: Apache-2.0
// Another tools library, beside which ours is tested and measured: it passes packets through and counts them.
// Queues it makes itself (OTHER_TOOL unset), or has made by what was there before it and registers on them
// (OTHER_TOOL=chain).
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "capture/hsa/hsa_abi.h"

namespace {

namespace hsa = lockstep::capture::hsa;

hsa::QueueCreate g_create = nullptr, g_intercept = nullptr;
hsa::InterceptRegister g_register = nullptr;
bool g_chains = false;

template <class Function>
Function* slot(void* table, size_t offset) {
  return reinterpret_cast<Function*>(static_cast<char*>(table) + offset);
}

}  // namespace

extern "C" {
std::atomic<uint64_t> other_tool_seen{0};

static void pass(const void* packets, uint64_t count, uint64_t, void*, hsa::Writer writer) {
  other_tool_seen.fetch_add(count, std::memory_order_relaxed);
  writer(packets, count);
}

static hsa::Status create(hsa::Agent agent, uint32_t size, uint32_t type, hsa::ErrorCallback callback,
                          void* data, uint32_t private_bytes, uint32_t group_bytes, hsa::Queue** queue) {
  const hsa::Status made = (g_chains ? g_create : g_intercept)(agent, size, type, callback, data,
                                                               private_bytes, group_bytes, queue);
  if (made == hsa::kSuccess) g_register(*queue, pass, nullptr);
  return made;
}

bool OnLoad(const hsa::RootTable* root, uint64_t, uint64_t, const char* const*) {
  const bool moved = static_cast<const hsa::TableVersion*>(root->ext)->minor >= hsa::kExtWithEngines;
  namespace e = hsa::ext_slot;
  g_intercept = *slot<hsa::QueueCreate>(root->ext, moved ? e::kNewInterceptCreate : e::kOldInterceptCreate);
  g_register =
      *slot<hsa::InterceptRegister>(root->ext, moved ? e::kNewInterceptRegister : e::kOldInterceptRegister);
  auto* of_table = slot<hsa::QueueCreate>(root->core, hsa::core_slot::kQueueCreate);
  const char* chain = std::getenv("OTHER_TOOL");
  g_chains = chain != nullptr && std::strcmp(chain, "chain") == 0;
  g_create = *of_table;
  *of_table = create;
  return true;
}
void OnUnload() {}
}
