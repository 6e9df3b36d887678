// SPDX-License-Identifier: Apache-2.0
// Looks at headers alone: a command that asks who left a file must not read gigabytes. A header that cannot
// be read leaves what the file's name says, and is marked as not valid.
#include "run/process_files.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <filesystem>

#include "base/hex.h"
#include "format/file_layout.h"
#include "format/file_name.h"
#include "run/small_file.h"

namespace lockstep::run {
namespace {

namespace fs = std::filesystem;

void read_name(const std::string& name, ProcessIdentity& process) {
  const format::FileName parts = format::split_file_name(name);
  process.host = parts.host;
  std::from_chars(parts.pid.data(), parts.pid.data() + parts.pid.size(), process.pid);
  std::from_chars(parts.start.data(), parts.start.data() + parts.start.size(), process.start_ticks);
}

void read_header(const std::string& path, ProcessFile& file) {
  auto text = read_small(path, format::kHeaderBytes);
  format::FileHeader header;
  if (!text || text->size() < sizeof header) return;
  std::memcpy(&header, text->data(), sizeof header);
  if (std::memcmp(header.magic, format::kMagic, sizeof header.magic) != 0 || header.major > format::kMajor)
    return;
  file.valid = true;
  // No field need end in a zero byte: a full one has none, and a damaged one may lack it.
  file.process.host.assign(header.host, strnlen(header.host, sizeof header.host));
  file.process.boot_id = hex_of_bytes({reinterpret_cast<const char*>(header.boot_id), sizeof header.boot_id});
  file.process.pid_namespace = header.pid_namespace;
  file.process.pid = header.pid;
  file.process.start_ticks = header.start_ticks;
  auto state = static_cast<format::FileState>(header.state);
  file.open = state == format::FileState::kBuilding || state == format::FileState::kOpen;
  file.segment.assign(header.segment, strnlen(header.segment, sizeof header.segment));
  file.segment_descriptor = header.segment_descriptor;
  file.segment_key = header.segment_key;
  file.is_building = state == format::FileState::kBuilding;
  file.is_hsa = header.source == format::Source::kHsa;
  file.rank = header.rank;
  file.world = header.world;
  file.start_ns = header.start_realtime_ns;
}

}  // namespace

ProcessFile process_file(const std::string& path) {
  ProcessFile file;
  file.path = path;
  std::error_code unknown;
  if (auto size = fs::file_size(path, unknown); !unknown) file.bytes = size;
  // The name first: a valid header overwrites what it says.
  read_name(fs::path(path).filename().string(), file.process);
  read_header(path, file);
  return file;
}

std::vector<ProcessFile> process_files(const std::string& run) {
  std::vector<ProcessFile> files;
  std::error_code error;
  for (fs::directory_iterator it(run, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() == ".lks") files.push_back(process_file(it->path().string()));
  }
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return files;
}

std::vector<std::string> folders_in(const std::string& directory) {
  std::vector<std::string> folders;
  std::error_code error, unknown;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    if (it->is_directory(unknown)) folders.push_back(it->path().string());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

std::vector<ProcessFile> process_files_at(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return {process_file(path)};
  std::vector<ProcessFile> files = process_files(path);
  for (const std::string& folder : folders_in(path)) {
    for (ProcessFile& file : process_files(folder)) files.push_back(std::move(file));
  }
  return files;
}

}  // namespace lockstep::run
