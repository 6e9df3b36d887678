// SPDX-License-Identifier: Apache-2.0
// A merge may replace the only readable copy of a run, so nothing counts before it is proven: the file is
// written beside the target, opened again, its rows counted, synced, and only then renamed. At each step it
// is checked that the name still leads to the file that was made, as others may be able to write to the
// folder.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include "base/partial_path.h"
#include "model/load_ahead.h"
#include "store/sqlite/attachments.h"
#include "store/sqlite/schema.h"
#include "store/sqlite/trace_writer.h"
#include "store/store.h"

namespace lockstep::store {
namespace {

using sqlite::Database;
using sqlite::TraceWriter;

// The file that is being written; removed unless it was renamed into place.
class PartialFile {
 public:
  explicit PartialFile(const std::string& target) : target_(target), path_(partial_path(target)) {
    remove_stale_partials(target);
    // Left by a killed process whose PID this one has got again.
    remove_own_partials(target);
  }
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;
  ~PartialFile() {
    if (!kept_) ::unlink(path_.c_str());
    if (file_ >= 0) ::close(file_);
  }
  const std::string& path() const { return path_; }

  // Empty, for SQLite to open, which goes by the name.
  Result<void> create() {
    file_ = create_new_file(path_, 0644);
    if (file_ < 0) return system_error("cannot create");
    return {};
  }

  // In a folder that others may write to, the name may lead elsewhere by now.
  Result<uint64_t> check() const {
    struct stat made {
    }, named{};
    if (::fstat(file_, &made) != 0 || ::lstat(path_.c_str(), &named) != 0) return system_error("cannot read");
    // The same file, and not just one of the same name.
    if (made.st_dev == named.st_dev && made.st_ino == named.st_ino)
      return static_cast<uint64_t>(made.st_size);
    return Error{ErrorCode::kIo, "another process replaced the file that was being written", target_};
  }

  // Through a descriptor of our own: SQLite was told not to sync (trace_writer.cc) and has closed its own.
  Result<void> sync() const {
    if (::fsync(file_) != 0) return system_error("cannot write to disk");
    return {};
  }

  Result<void> rename() {
    // What SQLite left beside a file that is replaced must not be taken for the new one's.
    for (const char* suffix : {"-journal", "-wal", "-shm"}) ::unlink((target_ + suffix).c_str());
    if (::rename(path_.c_str(), target_.c_str()) != 0) return system_error("cannot rename into place");
    kept_ = true;
    return sync_folder();
  }

 private:
  // Until the name is on the disk as well, the inputs must stay.
  Result<void> sync_folder() const {
    const std::string folder = std::filesystem::path(target_).parent_path();
    const int opened = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (opened < 0) return system_error("cannot open its folder");
    // EINVAL: the file system has nothing to be synced there.
    const bool is_synced = ::fsync(opened) == 0 || errno == EINVAL;
    const Error error = system_error("cannot write to disk");
    ::close(opened);
    if (!is_synced) return error;
    return {};
  }

  Error system_error(const std::string& doing) const {
    return {ErrorCode::kIo, doing + ": " + std::strerror(errno), target_};
  }
  std::string target_, path_;
  int file_ = -1;
  bool kept_ = false;
};

Result<void> check_target(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0 || is_trace_db(path)) return {};
  return usage_error("exists and is not a Lockstep trace.db; it was left alone: name another output", path);
}

// Opens the finished file again and counts what it holds. Returns the attachments that are in it whole.
Result<std::vector<std::string>> verify(const std::string& path, const TraceWriter& writer,
                                        const std::vector<std::string>& attachments) {
  LOCKSTEP_ASSIGN(auto database, Database::open(path, Database::Access::kRead));
  for (size_t i = 0; i < sqlite::kTables; ++i) {
    std::string table = sqlite::quoted(sqlite::table_layouts()[i].name);
    // Counting visits every page of the table's tree, so a page that is missing or broken shows.
    LOCKSTEP_ASSIGN(int64_t rows, database->integer("SELECT count(*) FROM " + table));
    if (static_cast<uint64_t>(rows) != writer.table_rows()[i]) {
      return Error{ErrorCode::kIo,
                   "table " + table + " did not read back completely; the inputs are untouched", path};
    }
  }
  return sqlite::whole_attachments(*database, attachments);
}

}  // namespace

Result<MergeResult> write_trace_db(model::TraceSource& source, const std::string& path,
                                   const std::vector<std::string>& attachments,
                                   const std::function<void(double fraction)>& progress) {
  LOCKSTEP_TRY(check_target(path));
  PartialFile file(path);
  LOCKSTEP_TRY(file.create());
  LOCKSTEP_ASSIGN(auto writer, TraceWriter::create(file.path()));
  LOCKSTEP_TRY(file.check());
  model::Trace run;
  // The rest of the time is for the views, reading back and syncing.
  const auto most = [&](double fraction) {
    if (progress) progress(0.9 * fraction);
  };
  // First, as what of them cannot be read is one of the run's losses.
  LOCKSTEP_TRY(writer->add_host_counters(source));
  LOCKSTEP_ASSIGN(
      const uint64_t processes,
      model::walk_processes(source, "merge", most, run, [&](const model::Trace& trace) -> Result<bool> {
        LOCKSTEP_TRY(writer->append(trace));
        return true;
      }));
  LOCKSTEP_ASSIGN(const std::vector<std::string> taken, writer->attach(attachments));
  LOCKSTEP_TRY(writer->finish(run, source.name()));
  LOCKSTEP_TRY(file.check());
  LOCKSTEP_ASSIGN(std::vector<std::string> attached, verify(file.path(), *writer, taken));
  LOCKSTEP_TRY(file.sync());
  LOCKSTEP_TRY(check_target(path));
  LOCKSTEP_ASSIGN(const uint64_t bytes, file.check());
  LOCKSTEP_TRY(file.rename());
  if (progress) progress(1);
  return MergeResult{writer->rows(), processes, bytes, std::move(attached)};
}

bool is_trace_db(const std::string& path) {
  unsigned char head[72] = {};
  std::ifstream file(path, std::ios::binary);
  file.read(reinterpret_cast<char*>(head), sizeof(head));
  // 16 bytes with the NUL. SQLite keeps the application id at 68, big endian.
  if (!file || std::memcmp(head, "SQLite format 3", 16) != 0) return false;
  int64_t id = 0;
  for (int i = 68; i < 72; ++i) id = id << 8 | head[i];
  return id == sqlite::kApplicationId;
}

}  // namespace lockstep::store
