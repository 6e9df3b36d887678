// SPDX-License-Identifier: Apache-2.0
// One parser reads all files, as members of one communicator are spread over them. Pieces bound the memory,
// whatever a log's size.
#include "readers/nccl_log/read_logs.h"

#include <string_view>

#include "base/input_file.h"
#include "readers/nccl_log/log_parser.h"

namespace lockstep::readers::nccl_log {
namespace {

constexpr size_t kPieceBytes = 256 << 10;

Result<void> read_file(const std::string& path, std::vector<std::byte>& buffer, LogParser& parser) {
  LOCKSTEP_ASSIGN(const InputFile file, InputFile::open(path));
  parser.begin_file(path);
  uint64_t offset = 0;
  while (const size_t got = file.read_at(offset, buffer)) {
    parser.feed({reinterpret_cast<const char*>(buffer.data()), got});
    offset += got;
  }
  parser.end_file();
  return {};
}

}  // namespace

Result<LogModel> read_logs(const std::vector<std::string>& paths) {
  LogParser parser;
  std::vector<std::byte> buffer(kPieceBytes);
  for (const std::string& path : paths) LOCKSTEP_TRY(read_file(path, buffer, parser));
  return parser.take();
}

}  // namespace lockstep::readers::nccl_log
