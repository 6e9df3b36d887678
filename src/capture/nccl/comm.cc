// SPDX-License-Identifier: Apache-2.0
// Comms: init and finalize, and what v1..v3 report about a comm with its operations.
#include "capture/nccl/chain/chain.h"
#include "capture/nccl/device.h"
#include "capture/nccl/events.h"
#include "capture/nccl/nccl_library.h"
#include "capture/nccl/steering.h"

namespace lockstep::capture::nccl {
namespace {

void log_message(nccl_abi::Logger logger, int level, const char* text) {
  if (logger != nullptr) logger(level, nccl_abi::kLogSubsystemProfile, "lockstep", 0, "%s", text);
}

// From init and finalize alone: the event path prints nothing.
void report_once(nccl_abi::Logger logger) {
  static bool has_warned_full = false;
  if (logger == nullptr) return;
  bool is_warning = false;
  if (const char* text = Session::get().take_message(&is_warning))
    log_message(logger, is_warning ? nccl_abi::kLogWarn : nccl_abi::kLogInfo, text);
  if (!Session::get().running()) return;
  format::FileState state = Session::get().file().state();
  if ((state == format::FileState::kDiskFull || state == format::FileState::kSizeCap) &&
      !__atomic_exchange_n(&has_warned_full, true, __ATOMIC_RELAXED)) {
    log_message(logger, nccl_abi::kLogWarn,
                state == format::FileState::kDiskFull
                    ? "lockstep: no space left; events beyond what memory holds are counted, not kept"
                    : "lockstep: size cap reached; events are counted but no longer kept");
  }
}

// NCCL's own price of KernelCh, which 2.26 brought and 2.31 moved to a thread of its own; measured on 2.28.9
// (docs/performance.md).
void warn_of_cost(nccl_abi::Logger logger, uint32_t nccl_version, format::Mode mode) {
  static bool has_warned = false;
  if (logger == nullptr || mode != format::Mode::kDeep || nccl_version < 22600 || nccl_version >= 23100 ||
      __atomic_exchange_n(&has_warned, true, __ATOMIC_RELAXED))
    return;
  log_message(
      logger, nccl_abi::kLogWarn,
      "lockstep: in mode deep NCCL itself slows down (2.28.9 on H200: +8 % for 8 bytes, twice the time for a pipelined 1 MB all-reduce); sample=1/100, or a window of `lockstep control`, costs less");
}

nccl_abi::Logger g_logger;

}  // namespace

nccl_abi::NcclResult init(int api, void** context, int* mask, CommInfo comm, nccl_abi::Logger logger) {
  Session& session = Session::get();
  bool running =
      session.open(format::Source::kNccl, {record, is_chain_wanted() ? apply_pending_chain : apply_pending});
  uint32_t index = format::kNoComm - 1;
  if (running) {
    // Facts of the whole process, known only now that NCCL runs; every init writes the same values.
    format::FileHeader* header = session.file().header();
    auto* clock = reinterpret_cast<uint8_t*>(&header->gpu_clock);
    if (__atomic_load_n(clock, __ATOMIC_RELAXED) == 0)
      __atomic_store_n(clock, static_cast<uint8_t>(gpu_clock()), __ATOMIC_RELAXED);
    // Its logger is NCCL's own code: of several libraries it tells which one calls.
    const void* code = reinterpret_cast<const void*>(logger);
    if (__atomic_load_n(&header->nccl_version, __ATOMIC_RELAXED) == 0)
      __atomic_store_n(&header->nccl_version, read_nccl_version(code), __ATOMIC_RELAXED);
    note_nccl_libraries(code);
    read_device(&comm);
    uint32_t added = session.add_comm(comm);
    if (added != format::kNoComm) index = added;
  }
  if (running && index != format::kNoComm - 1)
    begin_counting(index, comm, mask);
  else
    __atomic_store_n(mask, running ? mask_for(api) : 0, __ATOMIC_RELAXED);
  // Kept for finalize, which gets none.
  if (logger != nullptr) __atomic_store_n(&g_logger, logger, __ATOMIC_RELAXED);
  report_once(logger);
  if (running)
    warn_of_cost(logger, __atomic_load_n(&session.file().header()->nccl_version, __ATOMIC_RELAXED),
                 session.config().mode);
  // Never NULL, or finalize would not come; a comm that is not recorded gets a number that no event accepts.
  *context = reinterpret_cast<void*>(format::make_context(running ? session.process_tag() : 1, index));
  return 0;
}

void end_comm(uint64_t context) {
  Session& session = Session::get();
  if (!session.running()) return;
  uint32_t comm = static_cast<uint32_t>(context) - 1;
  // A context is whatever the host passes: another process's, or one of a comm that found no room, ends
  // nothing.
  if (static_cast<uint32_t>(context >> 32) == session.process_tag() && comm < session.comms()) {
    session.end_comm(comm);
    end_counting(comm);
  }
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
  identify_counted(comm, comm_id);
}

}  // namespace lockstep::capture::nccl
