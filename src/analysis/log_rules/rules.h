// SPDX-License-Identifier: Apache-2.0
// The rules and conditions that rules.def names. A rule looks at the whole model; a condition at one remark.
#pragma once
#include "analysis/log_rules/view.h"

namespace lockstep::analysis::log_rules {

#define RULE(function, ...) std::optional<Hit> function(const View& view);
#define RULES(function, ...) std::vector<Hit> function(const View& view);
#define MESSAGE(...)
#define UNMATCHED(...)
#include "analysis/log_rules/rules.def"
#undef UNMATCHED
#undef MESSAGE
#undef RULES
#undef RULE

// Conditions of MESSAGE rows. They are pure: a condition may be asked of any line of its row's kind, in any
// order. The kinds are those of readers/nccl_log/lines.def.
bool any(const View& view, const Fact& fact);
bool warned(const View& view, const Fact& fact);  // at level WARN, not one that NCCL demoted
// RendezvousSlow: XLA printed no later line that its threads met after all.
bool never_went_on(const View& view, const Fact& fact);
bool has_ranks(const View& view, const Fact& fact);  // the communicator of an argument that was refused
// CardEvent and CardFatal: what happened to a network card or to one of its queues.
bool port_back(const View& view, const Fact& fact);
bool port_error(const View& view, const Fact& fact);
// FabricState of NVLink between hosts.
bool fabric_unfinished(const View& view, const Fact& fact);
// VerbsFailed: memory that could not be locked, or anything else.
bool out_of_memory(const View& view, const Fact& fact);
bool other_verbs(const View& view, const Fact& fact);
// StoreRetried: processes have not met yet.
bool before_any_communicator(const View& view, const Fact& fact);
// PeerClosed: the network gave the peer up, or the peer closed the connection.
bool out_of_reach(const View& view, const Fact& fact);
bool closed(const View& view, const Fact& fact);
// CudaFailure: each warning has exactly one of these causes, by number, words or source file.
bool hip_error(const View& view, const Fact& fact);
bool cuda_out_of_memory(const View& view, const Fact& fact);
bool cuda_nvls(const View& view, const Fact& fact);
bool cuda_fabric(const View& view, const Fact& fact);
bool cuda_misfit(const View& view, const Fact& fact);
bool cuda_start(const View& view, const Fact& fact);
bool cuda_ending(const View& view, const Fact& fact);
bool cuda_device(const View& view, const Fact& fact);
bool cuda_hardware(const View& view, const Fact& fact);
bool cuda_compat(const View& view, const Fact& fact);
bool cuda_peer(const View& view, const Fact& fact);
bool cuda_program(const View& view, const Fact& fact);
bool cuda_unsupported(const View& view, const Fact& fact);
bool cuda_capture(const View& view, const Fact& fact);
bool cuda_mps(const View& view, const Fact& fact);
bool cuda_host_memory(const View& view, const Fact& fact);
bool cuda_ipc(const View& view, const Fact& fact);
bool cuda_teardown(const View& view, const Fact& fact);
// GpuFailed: sharing memory between processes failed, or another call.
bool handle_failed(const View& view, const Fact& fact);
bool gpu_failed(const View& view, const Fact& fact);
// Completion: statuses of ibv_wc_status (also below).
bool sizes_differ(const View& view, const Fact& fact);
bool peer_refused(const View& view, const Fact& fact);
bool receiver_late(const View& view, const Fact& fact);
bool cuda_error(const View& view, const Fact& fact);
// QueuePairFailed: the peer was not reached, or the card refused what it was asked.
bool queue_pair_route(const View& view, const Fact& fact);
bool queue_pair_refused(const View& view, const Fact& fact);
// PortTaken: RAS goes on without its port, the job does not.
bool port_of_ras(const View& view, const Fact& fact);
bool port_of_job(const View& view, const Fact& fact);
// Affinity, ConfidentialComputing, PluginFailed and PairGdr.
bool one_core(const View& view, const Fact& fact);
bool is_on(const View& view, const Fact& fact);
bool not_built_in(const View& view, const Fact& fact);
bool pair_disabled(const View& view, const Fact& fact);
// Hardware that has the way which NCCL does not use: NvlsAbsent, PciLink, QueuePair.
bool has_nvswitch(const View& view, const Fact& fact);
bool switch_fatal(const View& view, const Fact& fact);
bool switch_warned(const View& view, const Fact& fact);
bool slower_than_any_slot(const View& view, const Fact& fact);
bool small_roce_mtu(const View& view, const Fact& fact);
bool access_error(const View& view, const Fact& fact);
// OutOfGpuMemory: a size that no GPU has is a wrong number of the program, and no lack of memory.
bool asks_for_no_size(const View& view, const Fact& fact);
bool has_no_memory(const View& view, const Fact& fact);
// LibraryRaised: an exception for what failed here, or for a peer that is gone.
bool own_failure(const View& view, const Fact& fact);
bool remote_failure(const View& view, const Fact& fact);
bool retries_spent(const View& view, const Fact& fact);  // of connecting
bool flushed(const View& view, const Fact& fact);
bool request_refused(const View& view, const Fact& fact);
bool card_fatal(const View& view, const Fact& fact);
bool event_refused(const View& view, const Fact& fact);
bool event_fatal(const View& view, const Fact& fact);
bool ends_differ(const View& view, const Fact& fact);
bool retries_exceeded(const View& view, const Fact& fact);
bool other_error(const View& view, const Fact& fact);

}  // namespace lockstep::analysis::log_rules
