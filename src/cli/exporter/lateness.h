// SPDX-License-Identifier: Apache-2.0
// How late each rank begins the operations of its communicators, and how long it waits for the last to begin: compares
// the beginnings of one operation (communicator, function, NCCL's number) over all members as they are read. Only
// members on one host's clock are compared. Bounded: an operation that not all members have begun within the window is
// dropped, and no number is compared twice, unless a later process counts anew. Times on the host, ns. One thread.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace lockstep::cli::exporter {

struct Beginning {
  int32_t member = -1;  // rank in the communicator
  uint16_t label = 0;   // of the rank
  int64_t at_ns = 0;
};

class Lateness {
 public:
  static constexpr size_t kMostComms = 1024, kWindow = 16384, kMostMembers = 16384, kMostHeld = 1 << 21,
                          kMostFunctions = 64;
  // All members have begun: each with how late it was and how long it waited.
  using Matched = std::function<void(uint16_t label, double late_s, double wait_s)>;

  // A member of `comm`, whose clock is that of `boot_id`.
  void add_member(const std::string& comm, int32_t ranks, const std::string& boot_id);
  // True if it completes an operation, whose members `matched` then has been called with.
  bool add(const std::string& comm, const std::string& func, uint64_t number, const Beginning& beginning,
           const Matched& matched);
  size_t unaligned_comms() const;

 private:
  struct Function {
    std::map<uint64_t, std::vector<Beginning>> open;  // by number
    uint64_t done = 0;                                // numbers below it are over
    int64_t done_ns = 0;                              // when the last one of those that were whole began
  };
  struct Comm {
    int32_t ranks = -1;
    std::string boot_id;
    bool aligned = true;
    std::map<std::string, Function> functions;
  };
  void drop_oldest(Function& function);

  std::map<std::string, Comm> comms_;
  size_t held_ = 0;
};

}  // namespace lockstep::cli::exporter
