// SPDX-License-Identifier: Apache-2.0
// What known_issues.def lists, as data.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace lockstep::analysis::log_rules {

// One public issue: in which releases, what its trouble looks like in a log, and what else must show.
struct KnownIssue {
  enum class Trouble : uint8_t {
    kWarned,      // a warning holds one of `words`, and all of `also`
    kWaited,      // ranks wait in the function `words`; empty: in any
    kEnded,       // a process ended by the signal `words`, as a number
    kWrong,       // nccl-tests found wrong results
    kAbortStuck,  // a communicator was aborted, and a watchdog stood still
  };
  // What else the log shows.
  enum class Sign : uint8_t {
    kNone,
    kArm,              // all hosts that name their CPUs have ARM's
    kMixedCpus,        // CPUs of hosts differ in maker or architecture
    kRoce,             // network cards are RoCE
    kUnevenNvlink,     // GPUs of a host have NVLinks of different bandwidth
    kTreeLl128,        // a collective ran with this algorithm and protocol
    kSymmetricKernel,  // a collective ran with one of the kernels for symmetric memory
    kCrossNicDiffers,  // ranks chose different patterns of channels in this
    kArmGdrOff,        // ARM, and GPUDirect RDMA switched off by a setting
    kMnnvl,            // NVLink between hosts is used
    kCollNetFailed,
    kPluginFailed,
    kAborted,       // a communicator was
    kVirtualBridge  // the interface that was chosen is libvirt's
  };

  Trouble trouble;
  bool is_rccl;                  // else NCCL's
  int32_t first, fixed;          // releases, as ncclGetVersion gives them; 0: not known
  std::string_view words, also;  // words: alternatives between bars
  Sign sign;
  std::string_view what, workaround, source;
};
// In the order of the .def file; static storage.
std::span<const KnownIssue> known_issue_list();

}  // namespace lockstep::analysis::log_rules
