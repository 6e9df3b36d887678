// SPDX-License-Identifier: Apache-2.0
#include "readers/nccl_log/read_logs.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>

#include "readers/nccl_log/log_parser.h"

namespace lockstep::readers::nccl_log {
namespace {

namespace fs = std::filesystem;

constexpr size_t kPieceBytes = 256 << 10;
constexpr size_t kDirectoryMost = 1 << 17;  // files of one directory

struct CloseGz {
  void operator()(gzFile_s* file) const { gzclose(file); }
};
using GzFile = std::unique_ptr<gzFile_s, CloseGz>;

Error cannot_read(const std::string& path, std::string_view why) {
  return Error{ErrorCode::kIo, "cannot be read: " + std::string(why), path};
}

// zlib hands plain files through as they are.
Result<GzFile> open(const std::string& path) {
  errno = 0;
  GzFile file(gzopen(path.c_str(), "rbe"));
  if (!file) return cannot_read(path, errno != 0 ? std::strerror(errno) : "out of memory");
  gzbuffer(file.get(), 128 << 10);
  return file;
}

std::optional<std::string_view> next_piece(gzFile_s* file, std::vector<char>& buffer) {
  const int got = gzread(file, buffer.data(), static_cast<unsigned>(buffer.size()));
  if (got < 0) return std::nullopt;
  return std::string_view(buffer.data(), static_cast<size_t>(got));
}

std::string why_damaged(gzFile_s* file) {
  int code = Z_OK;
  const char* text = gzerror(file, &code);
  return code == Z_ERRNO ? std::strerror(errno) : text;
}

bool says_nccl(const std::string& path) {
  auto file = open(path);
  if (!file) return false;
  std::vector<char> buffer(kSniffBytes);
  const auto piece = next_piece(file->get(), buffer);
  if (!piece) return false;
  for (const std::string_view word : {"NCCL", "exitcode  :", "srun: error:"}) {  // launchers say who ended
    if (piece->find(word) != std::string_view::npos) return true;
  }
  return false;
}

Result<void> add_directory(const std::string& path, std::vector<std::string>& files, uint64_t& skipped) {
  std::error_code error;
  std::vector<std::string> found;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_regular_file(ignored) && found.size() < kDirectoryMost)
      found.push_back(entry->path().string());
  }
  if (error) return cannot_read(path, error.message());
  std::sort(found.begin(), found.end());
  for (std::string& name : found) {
    if (says_nccl(name)) {
      files.push_back(std::move(name));
    } else {
      ++skipped;
    }
  }
  return {};
}

// Whether the file was whole.
Result<bool> read_file(const std::string& path, std::vector<char>& buffer, LogParser& parser) {
  LOCKSTEP_ASSIGN(const GzFile file, open(path));
  parser.begin_file(path);
  bool any = false, whole = true;
  for (;;) {
    const auto piece = next_piece(file.get(), buffer);
    if (!piece && !any) return cannot_read(path, why_damaged(file.get()));
    whole = piece.has_value();
    if (!whole || piece->empty()) break;
    any = true;
    parser.feed(*piece);
  }
  parser.end_file();
  int code = Z_OK;
  gzerror(file.get(), &code);
  return whole && code == Z_OK;
}

}  // namespace

Result<LogModel> read_logs(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  uint64_t skipped = 0;
  for (const std::string& path : paths) {
    std::error_code error;
    if (fs::is_directory(path, error)) {
      LOCKSTEP_TRY(add_directory(path, files, skipped));
    } else {
      files.push_back(path);
    }
  }
  LogParser parser;
  std::vector<char> buffer(kPieceBytes);
  uint64_t damaged = 0;
  for (const std::string& file : files) {
    LOCKSTEP_ASSIGN(const bool whole, read_file(file, buffer, parser));
    if (!whole) ++damaged;
  }
  LogModel model = parser.take();
  model.coverage.damaged_files = damaged;
  model.coverage.skipped_files = skipped;
  if (model.coverage.headed == 0 && model.facts.empty() && model.torch.empty()) {
    return Error{ErrorCode::kInvalidInput,
                 "no line of NCCL's log or of PyTorch's watchdog in it; run the job with NCCL_DEBUG=INFO",
                 paths.size() == 1 ? paths[0] : std::string()};
  }
  return model;
}

}  // namespace lockstep::readers::nccl_log
