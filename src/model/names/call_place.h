// SPDX-License-Identifier: Apache-2.0
// Where in its program a rank is, out of a stack: the frames that the user wrote, innermost first; frames of
// libraries between and below them are left out.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::model {

// Of Python, or of any language that has names of functions; its texts outlive the CallPlace it is added to.
struct Frame {
  std::string_view function;
  std::string_view file;  // path; empty unknown
  int64_t line = 0;       // 0 unknown
};

// Of what is installed, or part of PyTorch or of Python itself, or not Python's.
bool is_library(std::string_view file);

class CallPlace {
 public:
  static constexpr size_t kUserFrames = 3;

  // The next one outwards.
  void add(const Frame& frame) { add(frame, is_library(frame.file)); }
  void add(const Frame& frame, bool is_library);  // for those who ask once a file
  // Further frames change nothing.
  bool is_complete() const { return users_ == kUserFrames; }
  // "train.py:95 (step), from fit.py:40 (fit)"; of a stack of libraries alone its innermost frame; empty: no
  // frame has a name.
  std::string text() const;

 private:
  std::array<Frame, kUserFrames> frames_{};
  size_t users_ = 0;
  Frame innermost_{};
};

// "train.py:95 (step)"
std::string frame_text(const Frame& frame);

}  // namespace lockstep::model
