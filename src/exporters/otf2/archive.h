// SPDX-License-Identifier: Apache-2.0
// An OTF2 archive that appears under its name only when it is whole: a directory with traces.otf2 (the
// anchor), traces.def, traces.marker and traces/<location>.evt and .def, written beside it and renamed.
//
// One thread; one location is written at a time, so that the library holds one buffer. What libotf2 reports
// is kept, the first error of all, and returned by finish(): the functions between do not fail.
#pragma once
#include <otf2/otf2.h>

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"

namespace lockstep::exporters::otf2 {

class Archive {
 public:
  // An archive that is there under `path` is replaced; a folder that holds anything else is an error.
  static Result<std::unique_ptr<Archive>> create(const std::string& path);
  ~Archive();  // removes what was written unless finish() succeeded
  Archive(const Archive&) = delete;
  Archive& operator=(const Archive&) = delete;

  // Starts the events of a location; those of the one before are complete. Each location has its turn, 0 to
  // the last, in any order. nullptr after an error.
  OTF2_EvtWriter* begin_location(OTF2_LocationRef location);
  // Ends them; returns how many there are.
  uint64_t end_location();
  // Takes markers of two kinds. nullptr after an error.
  OTF2_MarkerWriter* markers();
  static constexpr OTF2_MarkerRef kMark = 0, kLoss = 1;
  OTF2_GlobalDefWriter* definitions();

  // True once an error has made further writing useless.
  bool failed() const { return !error_.has_value(); }
  // Ends the archive and renames it. Returns its size in bytes.
  Result<uint64_t> finish();

 private:
  explicit Archive(std::string path);
  static OTF2_ErrorCode keep_error(void* archive, const char* file, uint64_t line, const char* function,
                                   OTF2_ErrorCode code, const char* format, va_list arguments);
  void fail(const std::string& text);
  void close();

  std::string path_, temporary_;
  OTF2_ErrorCallback previous_ = nullptr;
  OTF2_Archive* archive_ = nullptr;
  OTF2_EvtWriter* events_ = nullptr;
  OTF2_MarkerWriter* markers_ = nullptr;
  uint64_t locations_ = 0;
  bool kept_ = false;
  Result<void> error_;
};

}  // namespace lockstep::exporters::otf2
