// SPDX-License-Identifier: Apache-2.0
// How late each rank begins the operations of its communicators, and how long it waits for the last to begin:
// compares the beginnings of one operation (communicator, function, NCCL's number) over all members as they
// are read. Only members whose clocks are one, or known against each other, are compared; of the latter what
// the clocks' uncertainty could explain is not counted. Bounded: an operation that not all members have begun
// within the window is dropped, and no number is compared twice, unless a later process counts anew. Times on
// the host, ns. One thread.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "model/host_clock.h"

namespace lockstep::live {

// One member's begin of one operation.
struct Beginning {
  int32_t member = -1;  // rank in the communicator
  uint16_t label = 0;   // of the rank
  int64_t at_ns = 0;    // on the clock of its host
  uint32_t boot = 0;    // what add_member() gave
};

// Times and offsets beyond are nobody's, and sums of some within fit 64 bits.
inline constexpr int64_t kMostNs = int64_t{1} << 61;

// Hosts' clocks against that of one of them, by boot id.
using Clocks = std::map<std::string, model::HostClock>;

// Memory is bounded by the limits below, whatever files say; what is beyond them is not compared. For a
// communicator that finds no room, those go of which no member has been named for two looks; the others stay.
class Lateness {
 public:
  static constexpr size_t kMostComms = 16384, kWindow = 16384, kMostMembers = 16384, kMostHeld = 1 << 21,
                          kMostFunctions = 64, kMostBoots = 16384;
  // All members have begun: each with how late it was and how long it waited.
  using Matched = std::function<void(uint16_t label, double late_s, double wait_s)>;

  // All members that are there now are named again in each look.
  void begin_look() { ++look_; }
  // A member of `comm`, whose clock is that of `boot_id`; returns the number of that. `ended`: it has left
  // the communicator, which may go.
  uint32_t add_member(const std::string& comm, int32_t ranks, const std::string& boot_id, bool ended = false);
  // What is known of hosts' clocks from now on; communicators over hosts that are not in it are not compared.
  void set_clocks(Clocks clocks);
  // True if it completes an operation, whose members `matched` then has been called with.
  bool add(const std::string& comm, const std::string& func, uint64_t number, const Beginning& beginning,
           const Matched& matched);
  // Communicators over several clocks of which one is unknown: nothing is said of these.
  size_t unaligned_comms() const;

 private:
  // Operations of one function of a communicator, which NCCL numbers one after the other.
  struct Function {
    std::map<uint64_t, std::vector<Beginning>> open;  // by number
    uint64_t done = 0;                                // numbers below it are over
    int64_t done_ns = 0;                              // when the last one of those that were whole began
  };
  struct Comm {
    int32_t ranks = -1;
    uint64_t named = 0;  // the look
    std::set<uint32_t> boots;
    bool aligned = true;  // one clock, or all known
    std::map<std::string, Function> functions;
  };
  void drop_oldest(Function& function);
  bool make_room();
  const model::HostClock* clock_of(const std::string& boot_id) const;
  bool is_aligned(const Comm& comm) const;
  bool compare(const Comm& comm, const std::vector<Beginning>& all, const Matched& matched) const;

  Clocks clocks_;
  std::map<std::string, uint32_t> boots_;          // numbers
  std::vector<const model::HostClock*> clock_of_;  // by number, in clocks_; nullptr unknown
  std::map<std::string, Comm> comms_;
  size_t held_ = 0;
  uint64_t look_ = 1, full_look_ = 0;  // full_look_: the last one in which there was no room to be made
};

}  // namespace lockstep::live
