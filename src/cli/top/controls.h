// SPDX-License-Identifier: Apache-2.0
// What the keys of the live view do.
#pragma once
#include <span>
#include <string_view>

#include "cli/top/view.h"

namespace lockstep::cli::top {

// Keys that are no characters.
enum SpecialKey { kKeyUp = 0x10000, kKeyDown, kKeyPageUp, kKeyPageDown, kKeyHome, kKeyEnd };

class Controls {
 public:
  // False for a key that ends the view. `page`: the rows that one screen shows.
  bool press(int key, size_t page);
  bool paused() const { return paused_; }
  bool help() const { return help_; }
  const ViewOptions& options() const { return options_; }
  std::string_view sort_name() const;

 private:
  void sort_by(SortKey key);
  ViewOptions options_;
  bool paused_ = false, help_ = false;
};

std::span<const std::string_view> help_lines();

}  // namespace lockstep::cli::top
