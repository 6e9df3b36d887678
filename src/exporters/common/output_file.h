// SPDX-License-Identifier: Apache-2.0
// A file that appears under its name only when it is whole: bytes go to a temporary file beside it, written
// (and for names ending in .gz compressed, or packed as the format has it) by a thread of its own. One user
// thread. Errors are kept and returned by finish().
#pragma once
#include <zlib.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/result.h"

namespace lockstep::exporters::common {

struct Buffer {
  static constexpr size_t kBytes = 256 << 10;  // stays in the second-level cache until it is handed over
  std::unique_ptr<char[]> data{new char[kBytes]};
  size_t size = 0;
};

class OutputFile {
 public:
  // What is written for the bytes of a buffer; called by the writing thread, and valid until it is called
  // again.
  using Packing = std::function<std::string_view(std::string_view)>;
  static Result<std::unique_ptr<OutputFile>> create(const std::string& path, Packing packing = {});
  ~OutputFile();  // removes the temporary file unless finish() succeeded
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // Hands a full buffer over and takes an empty one; waits while the writer has one in hand.
  void write(Buffer& buffer);
  // True once an error has made further writing useless.
  bool failed();
  // Writes what is left and renames. Returns the size of the file.
  Result<uint64_t> finish();

 private:
  OutputFile(const std::string& path, Packing packing);
  void run();
  bool put(const char* data, size_t size);
  bool compress(const char* data, size_t size, int flush);
  void fail(const char* doing);
  void stop();

  std::string path_, temporary_;
  Packing packing_;
  int file_ = -1;
  bool compressed_ = false;
  bool is_made_ = false;  // the temporary file is there
  uint64_t bytes_ = 0;
  z_stream deflate_{};
  std::vector<unsigned char> packed_;

  std::mutex mutex_;
  std::condition_variable changed_;
  Buffer waiting_, mine_;  // mine_: the thread's, made here as nobody could be told that there is no memory
  bool has_waiting_ = false, stopping_ = false;
  Result<void> error_;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace lockstep::exporters::common
