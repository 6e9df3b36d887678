// SPDX-License-Identifier: Apache-2.0
// The header of a process file as a tool steers its process by it (format/control_words.h): mapped. Who only
// looks reads it.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "format/file_layout.h"

namespace lockstep::cli::control {

// What a process said last of itself.
struct InForce {
  format::ControlState state;
  uint32_t asked = 0;  // number of the newest request
};

struct SeenHeader {
  format::Source source;  // which capture library writes the file
  InForce in_force;
};
// An error if it is not a process file that can be steered: damaged, or written by a library that is too old.
Result<SeenHeader> look_at_header(const std::string& path);

class LiveHeader {
 public:
  // Errors are those of look_at_header().
  static Result<std::unique_ptr<LiveHeader>> open(const std::string& path);
  ~LiveHeader();
  LiveHeader(const LiveHeader&) = delete;
  LiveHeader& operator=(const LiveHeader&) = delete;

  const std::string& path() const { return path_; }
  format::Source source() const { return header_->source; }
  // Word by word, as the process may write meanwhile: `taken` is the oldest of them.
  InForce in_force() const;
  // Stores a request and returns its number. One tool at a time; the process takes it within 50 ms while it
  // runs.
  Result<uint32_t> ask(format::ControlRequest request);

 private:
  LiveHeader(std::string path, int fd, format::FileHeader* header)
      : path_(std::move(path)), fd_(fd), header_(header) {}

  std::string path_;
  int fd_;
  format::FileHeader* header_;
};

}  // namespace lockstep::cli::control
