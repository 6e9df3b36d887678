// SPDX-License-Identifier: Apache-2.0
// Which names are labels of their own, and which are "other": a bounded number of places, so that the number
// of time series is bounded however many names a run, or a damaged file, has.
//
// The rule: a place is given once and kept. Names that appear in the same look get places in the order of
// their weight. When all are taken, a name that is gone (nothing that lives has it) loses its place to a new
// one, the one gone longest first. So what is counted under a label only grows for as long as the label is
// there. One thread.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::exporters::metrics {

// Text from a file as a label's value: valid UTF-8 without control characters, at most 64 bytes.
std::string label_text(std::string_view text);

class LabelSlots {
 public:
  explicit LabelSlots(size_t most) : names_(most) {}

  // Of each look: begin(), then want() for every name, then finish().
  void begin() { wanted_.clear(); }
  void want(const std::string& name, double weight, bool alive);
  // Places that were taken from a name, for whose series there is no use any more.
  std::vector<uint16_t> finish();

  uint16_t other() const { return static_cast<uint16_t>(names_.size()); }
  uint16_t slot(const std::string& name) const;
  // The name of a place; "other" for other().
  std::string text(uint16_t slot) const;
  size_t folded() const { return folded_; }

 private:
  struct Wish {
    double weight = 0;
    bool alive = false;
  };
  struct Place {
    uint16_t slot = 0;
    uint64_t seen = 0;  // the last look in which it was alive
  };
  std::vector<std::string> names_;  // by slot
  std::map<std::string, Place> places_;
  std::map<std::string, Wish> wanted_;
  uint64_t looks_ = 0;
  size_t folded_ = 0;
};

}  // namespace lockstep::exporters::metrics
