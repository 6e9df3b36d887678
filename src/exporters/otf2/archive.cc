// SPDX-License-Identifier: Apache-2.0
#include "exporters/otf2/archive.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "base/partial_path.h"

namespace lockstep::exporters::otf2 {
namespace {

namespace fs = std::filesystem;

constexpr const char* kName = "traces";  // as Score-P calls its own
constexpr uint64_t kEventChunk = 1 << 20, kDefinitionChunk = 4 << 20;

OTF2_FlushType always_flush(void*, OTF2_FileType, OTF2_LocationRef, void*, bool) { return OTF2_FLUSH; }
// Without a second one: the library's own writing leaves no record in the trace.
OTF2_FlushCallbacks kFlush{always_flush, nullptr};

bool is_archive(const fs::path& path) {
  std::error_code unknown;
  return fs::is_regular_file(path / (std::string(kName) + ".otf2"), unknown);
}

uint64_t bytes_in(const fs::path& folder) {
  uint64_t bytes = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_regular_file(ignored)) bytes += entry->file_size(ignored);
  }
  return bytes;
}

}  // namespace

Archive::Archive(std::string path) : path_(std::move(path)), temporary_(partial_path(path_)) {
  previous_ = OTF2_Error_RegisterCallback(keep_error, this);
}

Result<std::unique_ptr<Archive>> Archive::create(const std::string& path) {
  std::string name = path;
  while (name.size() > 1 && name.back() == '/') name.pop_back();
  std::error_code error;
  if (fs::exists(fs::symlink_status(name, error)) && !is_archive(name) && !fs::is_empty(name, error))
    return Error{ErrorCode::kUsage, "is there and is no OTF2 archive; name another output", name};
  remove_stale_partials(name);
  fs::remove_all(partial_path(name), error);
  if (!fs::create_directory(partial_path(name), error))
    return Error{ErrorCode::kPermission, "cannot create: " + error.message(), name};
  std::unique_ptr<Archive> archive(new Archive(name));
  archive->archive_ = OTF2_Archive_Open(archive->temporary_.c_str(), kName, OTF2_FILEMODE_WRITE, kEventChunk,
                                        kDefinitionChunk, OTF2_SUBSTRATE_POSIX, OTF2_COMPRESSION_NONE);
  if (archive->archive_ == nullptr) archive->fail("libotf2 opens no archive");
  if (!archive->failed()) {
    OTF2_Archive_SetFlushCallbacks(archive->archive_, &kFlush, nullptr);
    OTF2_Archive_SetSerialCollectiveCallbacks(archive->archive_);
    OTF2_Archive_SetCreator(archive->archive_, "Lockstep " LOCKSTEP_VERSION);
    OTF2_Archive_OpenEvtFiles(archive->archive_);
  }
  if (archive->failed()) return archive->error_.error();
  return archive;
}

Archive::~Archive() {
  close();
  OTF2_Error_RegisterCallback(previous_, nullptr);
  std::error_code ignored;
  if (!kept_) fs::remove_all(temporary_, ignored);
}

OTF2_ErrorCode Archive::keep_error(void* archive, const char*, uint64_t, const char*, OTF2_ErrorCode code,
                                   const char*, va_list) {
  std::string text = OTF2_Error_GetDescription(code);
  if (code == OTF2_ERROR_ENOSPC) text += "; free space on that file system or name another output";
  static_cast<Archive*>(archive)->fail(text);
  return code;
}

void Archive::fail(const std::string& text) {
  if (error_) error_ = Error{ErrorCode::kIo, "cannot write the archive: " + text, path_};
}

OTF2_EvtWriter* Archive::begin_location(OTF2_LocationRef location) {
  end_location();
  ++locations_;
  if (!failed()) events_ = OTF2_Archive_GetEvtWriter(archive_, location);
  return events_;
}

uint64_t Archive::end_location() {
  if (events_ == nullptr) return 0;
  uint64_t events = 0;
  OTF2_EvtWriter_GetNumberOfEvents(events_, &events);
  OTF2_Archive_CloseEvtWriter(archive_, std::exchange(events_, nullptr));
  return events;
}

OTF2_MarkerWriter* Archive::markers() {
  if (markers_ != nullptr || failed()) return markers_;
  markers_ = OTF2_Archive_GetMarkerWriter(archive_);
  if (markers_ != nullptr) {
    OTF2_MarkerWriter_WriteDefMarker(markers_, kMark, "Lockstep", "mark", OTF2_SEVERITY_NONE);
    OTF2_MarkerWriter_WriteDefMarker(markers_, kLoss, "Lockstep", "loss", OTF2_SEVERITY_MEDIUM);
  }
  return markers_;
}

OTF2_GlobalDefWriter* Archive::definitions() {
  return failed() ? nullptr : OTF2_Archive_GetGlobalDefWriter(archive_);
}

void Archive::close() {
  end_location();
  if (markers_ != nullptr) OTF2_Archive_CloseMarkerWriter(archive_, std::exchange(markers_, nullptr));
  if (archive_ != nullptr) OTF2_Archive_Close(std::exchange(archive_, nullptr));
}

Result<uint64_t> Archive::finish() {
  end_location();
  markers();  // readers expect the file
  if (!failed()) {
    OTF2_Archive_CloseEvtFiles(archive_);
    OTF2_Archive_OpenDefFiles(archive_);
    for (uint64_t location = 0; location < locations_ && !failed(); ++location) {
      if (OTF2_DefWriter* local = OTF2_Archive_GetDefWriter(archive_, location))
        OTF2_Archive_CloseDefWriter(archive_, local);
    }
    OTF2_Archive_CloseDefFiles(archive_);
  }
  close();
  if (failed()) return error_.error();
  const uint64_t bytes = bytes_in(temporary_);
  LOCKSTEP_TRY(rename_into_place());
  return bytes;
}

// An old archive makes room first and comes back if the new one cannot take its place. Its name meanwhile is not that of a
// partial file: nobody else removes it.
Result<void> Archive::rename_into_place() {
  std::error_code error, ignored;
  const std::string old = path_ + ".old-" + std::to_string(::getpid());
  const bool has_old = fs::exists(path_, error);
  if (has_old) fs::rename(path_, old, error);
  if (!error) {
    fs::rename(temporary_, path_, error);
    if (error && has_old) fs::rename(old, path_, ignored);
  }
  if (error) return Error{ErrorCode::kIo, "cannot rename into place: " + error.message(), path_};
  kept_ = true;
  if (has_old) fs::remove_all(old, ignored);
  return {};
}

}  // namespace lockstep::exporters::otf2
