// SPDX-License-Identifier: Apache-2.0
// What an analysis has to say: who is to blame for what, how much it costs, and why we think so. Plain data,
// in words that need no other file: findings outlive the job that they were drawn from.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/finding_id.h"
#include "model/names/who.h"

namespace lockstep::analysis {

// A measured effect with its uncertainty: low <= value <= high.
struct Effect {
  double value = 0;
  std::string unit;  // "ns", "GB/s", "ranks", ...
  double low = 0, high = 0;
};

// Made by one analysis, or by a rule; verdict/join merges those of several kinds of evidence.
struct Finding {
  // As bad as findings.def has it.
  explicit Finding(FindingId of) : id(of), severity(facts(of).severity) {}

  FindingId id;
  Severity severity;
  double weight = 0;               // orders findings of one severity: the cost in ns where that is known
  std::string statement;           // one sentence: rank, host, GPU, communicator, operation
  std::vector<int32_t> ranks;      // global ranks blamed, ascending; empty: nobody
  std::vector<std::string> hosts;  // of those ranks, each once
  std::vector<model::Who> who;  // the processes blamed, as far as they are known, in the order of their ranks
  std::vector<int32_t> waiting;  // global ranks that wait for them until the record ends, also in others
                                 // operations; ascending
  std::string comm;              // name or id; empty: none
  std::optional<uint32_t>
      comm_row;      // of the job's comms, where it was drawn from a job: names may be of several
  std::string func;  // empty: none
  std::optional<uint64_t>
      op_index;  // n-th collective of the communicator, or n-th transfer of a pair; from 0
  std::optional<uint64_t> comms_id;  // PyTorch's Comms Id of it, where that is known
  std::string operation;             // its name, as operation_name.h has it; empty: none
  std::string op_address;            // what `lockstep show --op` calls it; empty: none
  std::optional<int64_t> since_ns;   // ns since the Unix epoch, on the reference host's clock
  std::optional<Effect> effect;
  std::vector<std::string> evidence;  // one fact a line, with numbers, units and uncertainty
  std::string advice;                 // what to do next
  std::vector<std::string> next;      // commands that do it, ready to run; whoever knows the input adds them
  std::string needed_evidence;        // what would decide it, where it could not tell; else empty
  std::vector<std::string>
      sources;  // kinds of evidence that it rests on, as people call them; the first states it
};

}  // namespace lockstep::analysis
