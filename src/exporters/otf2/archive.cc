// SPDX-License-Identifier: Apache-2.0
// libotf2 reports errors to a callback of the process and goes on; the first one is kept and ends the export.
// An archive is a folder, and Score-P keeps more beside it: only a folder whose entries are all an archive's
// own is replaced.
#include "exporters/otf2/archive.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "base/partial_path.h"
#include "exporters/common/output_folder.h"

namespace lockstep::exporters::otf2 {
namespace {

namespace fs = std::filesystem;

constexpr const char* kName = "traces";  // as Score-P calls its own
// Of the library's buffers: no record may be larger, which is why ranks of a communicator are bounded
// (kMaxRanks).
constexpr uint64_t kEventChunk = 1 << 20, kDefinitionChunk = 4 << 20;

OTF2_FlushType always_flush(void*, OTF2_FileType, OTF2_LocationRef, void*, bool) { return OTF2_FLUSH; }
// Without a second one: the library's own writing leaves no record in the trace.
OTF2_FlushCallbacks kFlush{always_flush, nullptr};

bool is_event_folder(const fs::path& path) {
  std::error_code error;
  bool is_own = true;
  for (fs::directory_iterator entry(path, error), end; is_own && !error && entry != end;
       entry.increment(error)) {
    const std::string ending = entry->path().extension();
    is_own = (ending == ".evt" || ending == ".def") && fs::is_regular_file(entry->symlink_status(error));
  }
  return is_own && !error;
}

// Others keep more beside traces.otf2: in a folder of Score-P lies its profile.
bool is_part_of_archive(const fs::directory_entry& entry) {
  std::error_code error;
  const fs::file_status status = entry.symlink_status(error);
  const std::string name = entry.path().filename(), stem = kName;
  if (name == stem) return fs::is_directory(status) && is_event_folder(entry.path());
  return fs::is_regular_file(status) &&
         (name == stem + ".otf2" || name == stem + ".def" || name == stem + ".marker");
}

common::FolderKind archive_kind() { return {"OTF2 archive", is_part_of_archive}; }

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
  // Of the process, not of an archive: two archives at once would report to the later one.
  previous_ = OTF2_Error_RegisterCallback(keep_error, this);
}

Result<std::unique_ptr<Archive>> Archive::create(const std::string& path) {
  std::string name = path;
  while (name.size() > 1 && name.back() == '/') name.pop_back();
  LOCKSTEP_TRY(common::check_replaceable(name, archive_kind()));
  std::error_code error;
  remove_stale_partials(name);
  fs::remove_all(partial_path(name), error);
  if (!fs::create_directory(partial_path(name), error))
    return Error{ErrorCode::kPermission, "cannot create: " + error.message(), name};
  std::unique_ptr<Archive> archive(new Archive(name));
  archive->archive_ = OTF2_Archive_Open(archive->temporary_.c_str(), kName, OTF2_FILEMODE_WRITE, kEventChunk,
                                        kDefinitionChunk, OTF2_SUBSTRATE_POSIX, OTF2_COMPRESSION_NONE);
  if (archive->archive_ == nullptr) archive->fail("libotf2 cannot open an archive");
  if (!archive->failed()) {
    OTF2_Archive_SetFlushCallbacks(archive->archive_, &kFlush, nullptr);
    // libotf2 wants to know how processes exchange data, even where one writes alone.
    OTF2_Archive_SetSerialCollectiveCallbacks(archive->archive_);
    OTF2_Archive_SetCreator(archive->archive_, "Lockstep " LOCKSTEP_VERSION);
    OTF2_Archive_OpenEvtFiles(archive->archive_);
  }
  if (archive->failed()) return archive->error_.error();
  return archive;
}

Archive::~Archive() {
  close();
  // Only now: closing the archive may still report errors, to this object.
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
  // Asked before the writer is closed, which frees it. Definitions of locations need the number.
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
    // Empty, but readers open a file of local definitions for every location.
    for (uint64_t location = 0; location < locations_ && !failed(); ++location) {
      if (OTF2_DefWriter* local = OTF2_Archive_GetDefWriter(archive_, location))
        OTF2_Archive_CloseDefWriter(archive_, local);
    }
    OTF2_Archive_CloseDefFiles(archive_);
  }
  close();
  if (failed()) return error_.error();
  // After closing: the library writes its buffers and the anchor file only then.
  const uint64_t bytes = bytes_in(temporary_);
  LOCKSTEP_TRY(common::replace_folder(temporary_, path_, archive_kind()));
  kept_ = true;
  return bytes;
}

}  // namespace lockstep::exporters::otf2
