// SPDX-License-Identifier: Apache-2.0
// A healthy host as files in a folder, which a test may change while they are read.
#pragma once
#include <string>

#include "base/temporary_directory.h"
#include "links/host_files.h"

namespace lockstep::links::testing {

class PlantedTree {
 public:
  // Of healthy_machine.h, with an interface for each network card.
  PlantedTree();

  const std::string& root() const { return folder_.path(); }
  // Paths begin with '/', as on the host.
  void write(const std::string& path, const std::string& text) const;
  void remove(const std::string& path) const;
  // In the place of a file: something that cannot be read as one, not even by root.
  void make_unreadable(const std::string& path) const;

 private:
  TemporaryDirectory folder_;
};

std::string port_file(int nic, const std::string& file);       // "counters/link_downed"
std::string interface_file(int nic, const std::string& file);  // "statistics/rx_bytes"

}  // namespace lockstep::links::testing
