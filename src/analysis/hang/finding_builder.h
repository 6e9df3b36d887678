// SPDX-License-Identifier: Apache-2.0
// What all findings about waiting have in common: who, where, since when, and the facts behind it.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "analysis/finding.h"
#include "analysis/hang/blocks.h"

namespace lockstep::analysis::hang {

inline constexpr std::string_view kOneOrder =
    "Call the operations of these communicators in one order on all ranks, or make one stream wait for the "
    "other.";

class FindingBuilder {
 public:
  explicit FindingBuilder(const JobState& job_state) : job_state_(job_state), job_(job_state.job()) {}

  // A finding about a block that blames these actors. `waiting`: ranks that wait for them. Statement and
  // advice are left to the caller.
  Finding make(FindingId id, const Block& block, const std::vector<uint32_t>& actors, size_t waiting) const;

  // Their ranks, hosts and processes.
  void blame(const std::vector<uint32_t>& actors, Finding& finding) const;

  // "rank 5 (GPU 5 of node0, pid 1005)", "ranks 5 and 6"
  std::string who(const std::vector<uint32_t>& actors) const;
  std::string who(uint32_t actor) const { return who(std::vector<uint32_t>{actor}); }
  // "ranks 0-4, 6 and 7"; without places
  std::string list(const std::vector<uint32_t>& actors) const;
  // As analysis/operation_name.h words it.
  std::string comm(uint32_t comm) const;
  // As analysis/operation_name.h words it, or "the creation of world"
  std::string operation(const Block& block) const;
  // "AllReduce of 1 MiB ncclFloat32"
  std::string signature(const model::Signature& s) const { return signature(s, s); }
  // `beside`: what it is to be distinguished from.
  std::string signature(const model::Signature& signature, const model::Signature& beside) const;
  // "7 ranks have waited 41.0 s for it"
  std::string wait(const Block& block, size_t waiting, bool plural = false) const;
  // What a rank did last, where its record ends, and what it is in the middle of; one line each.
  void add_state(uint32_t actor, const Block& block, std::vector<std::string>& lines) const;
  // Who calls nothing more either, as Root::followers.
  void add_followers(const std::vector<uint32_t>& followers, std::vector<std::string>& lines) const;
  // Advice, with the tools of those who make the job's GPUs.
  std::string look_at_the_dead() const;
  std::string look_at_the_gpu() const;
  std::string look_at_the_gpus() const;

 private:
  model::Who who_is(uint32_t actor) const;
  void add_wait(const Block& block, size_t waiting, Finding& finding) const;
  const JobState& job_state_;
  const model::Job& job_;
};

}  // namespace lockstep::analysis::hang
