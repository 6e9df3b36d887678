// SPDX-License-Identifier: Apache-2.0
#include "sim/rocprofiler/stub_sdk.h"

#include <dlfcn.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <deque>
#include <sstream>
#include <string>
#include <vector>

#include "capture/rocp/sdk_abi.h"

namespace {

namespace rocp = lockstep::capture::rocp;

struct Service {
  int32_t kind;
  std::vector<int32_t> operations;
  rocp::Callback callback;
  void* data;
};
lockstep::sim::StubSdkOptions g_options;
std::vector<Service> g_services;
bool g_is_configuring = false, g_is_started = false;
constexpr rocp::Status kLocked = 16, kInvalidAbi = 18;

void call(int32_t kind, int32_t operation, int32_t phase, void* payload, uint64_t* own) {
  for (const Service& service : g_services) {
    bool wants = false;
    for (const int32_t wanted : service.operations) wants |= wanted == operation;
    if (!g_is_started || service.kind != kind || !wants) continue;
    rocp::CallbackRecord record{};
    record.thread = static_cast<uint64_t>(syscall(SYS_gettid));
    record.kind = kind;
    record.operation = operation;
    record.phase = phase;
    record.payload = payload;
    service.callback(record, own, service.data);
  }
}

uint64_t id_of(uint32_t gpu) { return 0xa9e47000 + gpu; }

bool start_client(const std::string& path, uint32_t priority) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) abort();  // as the SDK does
  using Configure = rocp::Configured* (*)(uint32_t, const char*, uint32_t, void*);
  const auto configure = reinterpret_cast<Configure>(dlsym(library, "rocprofiler_configure"));
  uint64_t client[3] = {};  // its layout depends on the release
  rocp::Configured* configured =
      configure == nullptr ? nullptr : configure(g_options.version, "stub", priority, client);
  for (const uint64_t word : client) {
    if (word != 0) abort();
  }
  if (configured == nullptr) return false;
  g_is_configuring = true;
  const int result = configured->initialize(nullptr, configured->data);
  g_is_configuring = false;
  return result == 0;
}

int start(const lockstep::sim::StubSdkOptions& options) {
  g_options = options;
  const char* set = std::getenv("ROCP_TOOL_LIBRARIES");
  std::istringstream paths(set != nullptr ? set : "");
  int clients = 0;
  uint32_t priority = 0;
  // What no colon follows is not loaded.
  for (std::string path; std::getline(paths, path, ':') && !paths.eof();)
    clients += start_client(path, priority++);
  return clients;
}

void load_kernel(uint64_t kernel, const char* name) {
  call(rocp::kCodeObject, rocp::kLoadCode, rocp::kEnter, nullptr, nullptr);
  rocp::KernelSymbol symbol{sizeof symbol, kernel, 1, name};
  call(rocp::kCodeObject, rocp::kDeviceSymbol, rocp::kEnter, &symbol, nullptr);
}

uint64_t launch(uint32_t gpu, uint64_t queue, uint64_t kernel) {
  static std::atomic<uint64_t> dispatches{0};
  rocp::Dispatch dispatch{};
  dispatch.bytes = sizeof dispatch;
  dispatch.info.bytes = offsetof(rocp::DispatchInfo, reserved);
  dispatch.info.agent = id_of(gpu);
  dispatch.info.queue = queue;
  dispatch.info.kernel = kernel;
  dispatch.info.dispatch = ++dispatches;
  dispatch.info.group[0] = 256;
  dispatch.info.grid[0] = 2048;
  for (int i = 1; i < 3; ++i) dispatch.info.group[i] = dispatch.info.grid[i] = 1;
  uint64_t own = 0;
  call(rocp::kKernelDispatch, rocp::kEnqueue, rocp::kEnter, &dispatch, &own);
  call(rocp::kKernelDispatch, rocp::kEnqueue, rocp::kExit, &dispatch, &own);
  return own;
}

void end(uint64_t own, uint64_t start_ns, uint64_t stop_ns) {
  rocp::Dispatch dispatch{};
  dispatch.bytes = sizeof dispatch;
  dispatch.start = start_ns;
  dispatch.stop = stop_ns;
  call(rocp::kKernelDispatch, rocp::kComplete, rocp::kNoPhase, &dispatch, &own);
}

uint64_t now() {
  timespec time{};
  clock_gettime(CLOCK_BOOTTIME, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

// Both sides of a call of roctx.
void mark(rocp::MarkerOperation operation, rocp::Marker marker, uint64_t returned = 0) {
  marker.bytes = sizeof marker;
  call(rocp::kMarkers, operation, rocp::kEnter, &marker, nullptr);
  marker.returned = returned;
  call(rocp::kMarkers, operation, rocp::kExit, &marker, nullptr);
}
void push(const char* text) { mark(rocp::kPush, {.bytes = 0, .text = text, .returned = 0}); }
void pop() { mark(rocp::kPop, {}); }
uint64_t start_range(const char* text) {
  static std::atomic<uint64_t> ranges{0};
  const uint64_t range = ++ranges;
  mark(rocp::kStartRange, {.bytes = 0, .text = text, .returned = 0}, range);
  return range;
}
void stop_range(uint64_t range) { mark(rocp::kStopRange, {.bytes = 0, .range = range, .returned = 0}); }

}  // namespace

extern "C" {
lockstep::sim::StubSdk stub_sdk{start, load_kernel, launch, end, now, push, pop, start_range, stop_range};

rocp::Status rocprofiler_create_context(rocp::ContextId* context) {
  context->handle = 1;
  return g_is_configuring ? g_options.context_status : kLocked;
}
rocp::Status rocprofiler_start_context(rocp::ContextId) {
  g_is_started = true;
  return rocp::kSuccess;
}
rocp::Status rocprofiler_configure_callback_tracing_service(rocp::ContextId, int32_t kind,
                                                            const int32_t* operations, size_t count,
                                                            rocp::Callback callback, void* data) {
  if (!g_is_configuring) return kLocked;
  g_services.push_back({kind, {operations, operations + count}, callback, data});
  return rocp::kSuccess;
}
rocp::Status rocprofiler_query_available_agents(int32_t version, rocp::AgentsCallback callback, size_t bytes,
                                                void* data) {
  if (bytes > sizeof(rocp::SdkAgent)) return kInvalidAbi;
  std::deque<rocp::SdkAgent> agents(g_options.gpus + 1);
  std::vector<const void*> list;
  for (uint32_t i = 0; i < agents.size(); ++i) {
    rocp::SdkAgent& agent = agents[i];
    agent.bytes = sizeof agent;
    agent.type = i == 0 ? 1 : rocp::kAgentIsGpu;  // the processor first
    agent.id = i == 0 ? 1 : id_of(i - 1);
    agent.location = (0x10 + i) << 8;
    agent.name = "gfx942";
    agent.product_name = "AMD Instinct MI300X";
    list.push_back(&agent);
  }
  return callback(version, list.data(), list.size(), data);
}
rocp::Status rocprofiler_get_timestamp(uint64_t* time) {
  *time = now();
  return rocp::kSuccess;
}
}
