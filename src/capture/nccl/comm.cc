// SPDX-License-Identifier: Apache-2.0
// Comms: init and finalize, and what v1..v3 tell about a comm with its operations.
#include "capture/nccl/device.h"
#include "capture/nccl/events.h"

namespace lockstep::capture::nccl {
namespace {

// Bits of each mode, in the numbering of the newest interface.
constexpr uint32_t kApiBits = nccl_abi::kTypeGroupApi | nccl_abi::kTypeCollApi | nccl_abi::kTypeP2pApi;
constexpr uint32_t kTaskBits = nccl_abi::kTypeColl | nccl_abi::kTypeP2p | nccl_abi::kTypeCeColl;
constexpr uint32_t kLiteMask = kApiBits | kTaskBits;
constexpr uint32_t kDefaultMask = kLiteMask | nccl_abi::kTypeKernelLaunch | nccl_abi::kTypeGroup |
                                  nccl_abi::kTypeCeSync | nccl_abi::kTypeCeBatch;
constexpr uint32_t kDeepMask = 0xffff;

constexpr uint32_t kKnownBits[] = {0, 0x3f, 0x3f, 0xff, 0xff, 0xfff, 0x7fff, 0xffff};  // by API version

uint32_t mask_of(format::Mode mode) {
  switch (mode) {
    case format::Mode::kLite:
      return kLiteMask;
    case format::Mode::kDefault:
      return kDefaultMask;
    case format::Mode::kDeep:
      return kDeepMask;
    default:
      return 0;
  }
}

void say(nccl_abi::Logger logger, int level, const char* text) {
  if (logger != nullptr) logger(level, nccl_abi::kLogSubsystemProfile, "lockstep", 0, "%s", text);
}

void report_once(nccl_abi::Logger logger) {
  static bool said_full = false;
  if (logger == nullptr) return;
  bool is_warning = false;
  if (const char* text = Session::get().take_message(&is_warning))
    say(logger, is_warning ? nccl_abi::kLogWarn : nccl_abi::kLogInfo, text);
  if (!Session::get().running()) return;
  format::FileState state = Session::get().file().state();
  if ((state == format::FileState::kDiskFull || state == format::FileState::kSizeCap) &&
      !__atomic_exchange_n(&said_full, true, __ATOMIC_RELAXED)) {
    say(logger, nccl_abi::kLogWarn,
        state == format::FileState::kDiskFull
            ? "lockstep: no space left; events are counted but no longer kept"
            : "lockstep: size cap reached; events are counted but no longer kept");
  }
}

nccl_abi::Logger g_logger;

}  // namespace

nccl_abi::NcclResult init(int api, void** context, int* mask, CommInfo comm, nccl_abi::Logger logger) {
  Session& session = Session::get();
  bool running = session.open(format::Source::kNccl);
  uint32_t index = format::kNoComm - 1;
  if (running) {
    // Facts of the whole process, known only now that NCCL runs; every init writes the same values.
    format::FileHeader* header = session.file().header();
    auto* clock = reinterpret_cast<uint8_t*>(&header->gpu_clock);
    if (__atomic_load_n(clock, __ATOMIC_RELAXED) == 0)
      __atomic_store_n(clock, static_cast<uint8_t>(gpu_clock()), __ATOMIC_RELAXED);
    if (__atomic_load_n(&header->nccl_version, __ATOMIC_RELAXED) == 0)
      __atomic_store_n(&header->nccl_version, read_nccl_version(), __ATOMIC_RELAXED);
    __atomic_store_n(&header->event_mask, mask_of(session.config().mode), __ATOMIC_RELAXED);
    read_device(&comm);
    uint32_t added = session.add_comm(comm);
    if (added != format::kNoComm) index = added;
  }
  if (logger != nullptr) __atomic_store_n(&g_logger, logger, __ATOMIC_RELAXED);
  report_once(logger);
  // Never NULL, or finalize would not come; a comm that is not recorded gets a number that no event accepts.
  *context = reinterpret_cast<void*>(format::make_context(running ? session.process_tag() : 1, index));
  __atomic_store_n(mask, running ? static_cast<int>(mask_of(session.config().mode) & kKnownBits[api]) : 0,
                   __ATOMIC_RELAXED);
  return 0;
}

void end_comm(uint64_t context) {
  Session& session = Session::get();
  if (!session.running()) return;
  uint32_t comm = static_cast<uint32_t>(context) - 1;
  if (static_cast<uint32_t>(context >> 32) == session.process_tag() && comm < session.comms())
    session.end_comm(comm);
  report_once(__atomic_load_n(&g_logger, __ATOMIC_RELAXED));
}

void identify_comm(uint64_t context, uint64_t comm_id, const char* name) {
  // One comm per thread is the common case; a thread that alternates between comms writes some duplicates.
  constexpr uint32_t kRemembered = 64;
  static thread_local uint32_t known[kRemembered];
  Session& session = Session::get();
  uint32_t comm = static_cast<uint32_t>(context) - 1;
  if (static_cast<uint32_t>(context >> 32) != session.process_tag() || comm >= session.comms()) return;
  uint32_t& slot = known[comm % kRemembered];
  if (slot == comm + 1) return;
  slot = comm + 1;
  session.identify_comm(comm, comm_id, name);
}

}  // namespace lockstep::capture::nccl
