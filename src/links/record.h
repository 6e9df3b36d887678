// SPDX-License-Identifier: Apache-2.0
// Everything that `lockstep links` reads and measures, as one file: to judge it elsewhere, to keep as a
// baseline, to send with a report of trouble. JSON; a reader refuses newer versions and bounds everything.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "links/gpu_facts.h"
#include "links/host_files.h"
#include "links/traffic/traffic.h"

namespace lockstep::links {

// A host at one moment, as far as it could be read.
struct Reading {
  HostFiles files;
  GpuFacts gpus;
  int64_t time_ns = 0;  // since the Unix epoch
};

struct LinksRecord {
  Reading before;
  std::optional<Reading>
      under_load;  // GPUs alone, while copies ran: clocks and PCIe generations are those of work
  std::optional<Reading> after;  // behind our own traffic
  std::optional<Traffic> traffic;
  std::string traffic_absent;  // why nothing was measured; empty: it was, or was not asked for
  // Of what another tool printed alone, and not in the file: what it reports, as nothing else was looked at;
  // its lines by their numbers, for what is drawn from them; and which of them are of a port ("mlx5_0/1") or
  // a GPU.
  std::string scope;
  std::map<uint32_t, std::string> lines;
  std::map<std::string, std::vector<uint32_t>> lines_of;
};

// With a line end; `scope`, `lines` and `lines_of` are not in it.
std::string record_text(const LinksRecord& record);
// kInvalidInput: no such record; kUnsupported: a newer version. `where` names it in errors.
Result<LinksRecord> parse_record(std::string_view text, const std::string& where);

}  // namespace lockstep::links
