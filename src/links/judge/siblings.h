// SPDX-License-Identifier: Apache-2.0
// Cells of a measurement against each other: those of one kind over paths of one sort should be alike.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "links/machine.h"
#include "links/traffic/traffic.h"

namespace lockstep::links {

double median(std::vector<double> values);  // 0 of none
// Median distance from `center`.
double spread(const std::vector<double>& values, double center);

// What a cell goes over, in words that are equal for siblings: "NVLink", "PIX", "host memory near", ...
std::string path_words(const Cell& cell, const Machine& machine);

struct Comparison {
  double siblings = 0;  // their median
  double spread = 0;
  size_t count = 0;  // of siblings
};
// path_words() of each; once, as each cell is compared with all.
std::vector<std::string> paths_of(const std::vector<Cell>& cells, const Machine& machine);
// Against all other cells of its kind and path; nothing without any.
std::optional<Comparison> compare(const std::vector<Cell>& cells, size_t index,
                                  const std::vector<std::string>& paths);
// Below 0.9 of the siblings' median and more than three spreads below it; for latency above, likewise.
bool stands_out(const Cell& cell, double value, const Comparison& siblings);
// Cells that stand out by their first samples.
std::vector<size_t> standing_out(const std::vector<Cell>& cells, const Machine& machine);

// GB/s that NCCL's own model gives the path of a cell (src/graph/topo.h of NCCL); nothing where the path is
// unknown.
std::optional<double> modelled_rate(const Cell& cell, const Machine& machine);

}  // namespace lockstep::links
