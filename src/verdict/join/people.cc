// SPDX-License-Identifier: Apache-2.0
// Completes who a finding names. A Flight Recorder dump knows ranks, a log knows hosts and pids; of a process
// that both may have seen, the details are taken only if host and pid do not contradict each other.
#include "verdict/join/people.h"

#include <arpa/inet.h>

#include <algorithm>

#include "model/restarts.h"

namespace lockstep::verdict::join {
namespace {

using model::Who;

std::map<int32_t, uint32_t> newest_processes(const model::Job& job) {
  std::map<int32_t, uint32_t> processes;
  const std::vector<bool> replaced = model::replaced_processes(job);
  for (uint32_t i = 0; i < replaced.size(); ++i) {
    // A finding of now is about the process that a rank was started as last.
    if (!replaced[i] && job.processes[i].row.rank >= 0) processes.emplace(job.processes[i].row.rank, i);
  }
  return processes;
}

template <class T>
void take(const T& value, const T& unknown, T& into) {
  if (into == unknown) into = value;
}

bool is_address_of_host(const std::string& host) {
  in6_addr bytes;
  return inet_pton(AF_INET, host.c_str(), &bytes) == 1 || inet_pton(AF_INET6, host.c_str(), &bytes) == 1;
}

// Of one rank, unless another process of it is meant.
void learn(const Who& from, Who& who) {
  const bool other_pid = from.pid > 0 && who.pid > 0 && from.pid != who.pid;
  // RAS knows a host by its address, which is no other host than the one with a name: the pid decides.
  const bool same_process =
      from.pid > 0 && from.pid == who.pid && is_address_of_host(from.host) != is_address_of_host(who.host);
  const bool other_host = !from.host.empty() && !who.host.empty() && from.host != who.host && !same_process;
  if (from.rank != who.rank || other_host || other_pid) return;
  take(from.local_rank, -1, who.local_rank);
  take(from.device, -1, who.device);
  take(from.pid, int64_t{0}, who.pid);
  take(from.host, std::string(), who.host);
  take(from.pci, std::string(), who.pci);
  take(from.boot_id, std::string(), who.boot_id);
  who.gone = who.gone || from.gone;
}

}  // namespace

People::People(const std::vector<EvidenceSource>& sources) : sources_(sources) {
  for (const EvidenceSource& source : sources_) {
    processes_.emplace_back();
    if (source.job != nullptr) processes_.back() = newest_processes(*source.job);
  }
}

void People::name(size_t own, analysis::Finding& finding) const {
  std::vector<Who> named;
  for (const Who& who : finding.who) {
    if (who.rank < 0) named.push_back(who);
  }
  for (const int32_t rank : finding.ranks) {
    Who who{.rank = rank};
    for (const Who& known_of : finding.who) learn(known_of, who);
    for (size_t i = 0; i < sources_.size(); ++i) {
      const EvidenceSource& source = sources_[i];
      // Another run's rank 3 is another process.
      if (i != own && !same_time(source.span, sources_[own].span)) continue;
      if (const auto process = processes_[i].find(rank); process != processes_[i].end())
        learn(source.job->who(process->second), who);
      if (const auto host = source.hosts.find(rank); host != source.hosts.end())
        learn({.rank = rank, .host = host->second}, who);
    }
    named.push_back(std::move(who));
  }
  finding.who = std::move(named);
}

void People::add_hosts(size_t own, analysis::Finding& finding) const {
  for (const int32_t rank : finding.ranks) {
    for (const EvidenceSource& source : sources_) {
      if (!same_time(source.span, sources_[own].span)) continue;
      const auto known = source.hosts.find(rank);
      if (known == source.hosts.end() || known->second.empty()) continue;
      if (std::find(finding.hosts.begin(), finding.hosts.end(), known->second) == finding.hosts.end())
        finding.hosts.push_back(known->second);
      break;
    }
  }
}

}  // namespace lockstep::verdict::join
