// SPDX-License-Identifier: Apache-2.0
// Packets of Perfetto's format, packed as its own recorder packs them: a packet whose one field is a zlib
// stream of whole packets. One thread.
#pragma once
#include <libdeflate.h>

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace lockstep::exporters::perfetto {

class PacketBundles {
 public:
  static Result<std::unique_ptr<PacketBundles>> create();
  // What stands in the file for the packets that end in `bytes`, until the next call. `bytes` goes on where
  // the last ones were cut, and may be cut anywhere; the last ones of a file end with a packet.
  std::string_view pack(std::string_view bytes);

 private:
  struct Free {
    void operator()(libdeflate_compressor* compressor) const { libdeflate_free_compressor(compressor); }
  };
  explicit PacketBundles(libdeflate_compressor* compressor) : compressor_(compressor) {}

  std::unique_ptr<libdeflate_compressor, Free> compressor_;
  std::string waiting_;  // begins with a packet
  size_t done_ = 0;      // of `waiting_`, by the last call
  std::string packed_;
};

}  // namespace lockstep::exporters::perfetto
