// SPDX-License-Identifier: Apache-2.0
// All tables are written beside the target at once, as traces go by only once. The folder takes its name when
// it is whole; one that holds anything else than such tables is never replaced.
#include <filesystem>
#include <set>
#include <vector>

#include "base/partial_path.h"
#include "exporters/common/output_file.h"
#include "exporters/common/output_folder.h"
#include "exporters/common/process_walk.h"
#include "exporters/common/run_tables.h"
#include "model/load_ahead.h"

namespace lockstep::exporters::common {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kColumnsFile = "columns";
constexpr TableColumn kColumns[] = {{"table", CellType::kText, "", nullptr},
                                    {"column", CellType::kText, "", nullptr},
                                    {"meaning", CellType::kText, "", nullptr}};

struct OpenTable {
  std::unique_ptr<OutputFile> file;
  std::unique_ptr<BufferedOutput> out;
  std::unique_ptr<TableWriter> writer;
};

class TableFolder {
 public:
  TableFolder(std::string path, const TableFormat& format)
      : path_(std::move(path)), temporary_(partial_path(path_)), format_(format), kind_(kind()) {}
  ~TableFolder() {
    // Files first: their threads still write, and each removes its own temporary file in the folder.
    open_.clear();
    std::error_code unremoved;
    if (!is_whole_) fs::remove_all(temporary_, unremoved);
  }
  TableFolder(const TableFolder&) = delete;
  TableFolder& operator=(const TableFolder&) = delete;

  Result<void> create() {
    LOCKSTEP_TRY(check_replaceable(path_, kind_));
    remove_stale_partials(path_);
    std::error_code failed;
    // Left by a killed exporter whose PID this process has got again.
    fs::remove_all(temporary_, failed);
    if (!fs::create_directory(temporary_, failed))
      return Error{ErrorCode::kPermission, "cannot create: " + failed.message(), path_};
    for (const TableLayout& table : run_tables()) LOCKSTEP_TRY(open(table.name, table.columns));
    LOCKSTEP_TRY(open(kColumnsFile, kColumns));
    // It is the last of `open_`, so add() can go through the others by the number of their table.
    TableWriter& writer = *open_.back().writer;
    for (const TableLayout& table : run_tables()) {
      for (const TableColumn& column : table.columns) {
        writer.begin_row();
        for (std::string_view text : {table.name, column.name, column.meaning}) writer.text(text);
        writer.end_row();
      }
    }
    return {};
  }

  // Returns the rows written.
  uint64_t add(const TableContext& context) {
    uint64_t written = 0;
    for (size_t i = 0; i < run_tables().size(); ++i) {
      const TableLayout& table = run_tables()[i];
      TableWriter& writer = *open_[i].writer;
      const auto rows = static_cast<uint32_t>(table.rows(context.trace));
      for (uint32_t row = 0; row < rows; ++row) {
        writer.begin_row();
        for (const TableColumn& column : table.columns) column.write(context, row, writer);
        writer.end_row();
      }
      written += rows;
    }
    return written;
  }

  bool failed() {
    for (OpenTable& table : open_) {
      if (table.file->failed()) return true;
    }
    return false;
  }

  // Returns the bytes of all files.
  Result<uint64_t> finish() {
    uint64_t bytes = 0;
    for (OpenTable& table : open_) {
      table.out->flush();
      LOCKSTEP_ASSIGN(const uint64_t size, table.file->finish());
      bytes += size;
    }
    LOCKSTEP_TRY(replace_folder(temporary_, path_, kind_));
    is_whole_ = true;
    return bytes;
  }

 private:
  std::string file_name(std::string_view table) const {
    return std::string(table) + std::string(format_.ending);
  }

  Result<void> open(std::string_view table, std::span<const TableColumn> columns) {
    LOCKSTEP_ASSIGN(auto file, OutputFile::create((fs::path(temporary_) / file_name(table)).string()));
    OpenTable opened{std::move(file), nullptr, nullptr};
    opened.out = std::make_unique<BufferedOutput>(*opened.file);
    opened.writer = format_.open(*opened.out, columns);
    open_.push_back(std::move(opened));
    return {};
  }

  FolderKind kind() const {
    std::set<std::string> own{file_name(kColumnsFile)};
    for (const TableLayout& table : run_tables()) own.insert(file_name(table.name));
    return {"folder of such tables", [own = std::move(own)](const fs::directory_entry& entry) {
              std::error_code error;
              return fs::is_regular_file(entry.symlink_status(error)) &&
                     own.count(entry.path().filename().string()) != 0;
            }};
  }

  const std::string path_, temporary_;
  const TableFormat& format_;
  const FolderKind kind_;
  std::vector<OpenTable> open_;
  bool is_whole_ = false;
};

// Temporary folders lie beside the target: after a slash they would lie inside it.
std::string without_slash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

}  // namespace

Result<ExportResult> write_tables(model::TraceSource& source, const std::string& path,
                                  const Progress& progress, const TableFormat& format) {
  LOCKSTEP_TRY(check_not_input(source, path));
  TableFolder folder(without_slash(path), format);
  LOCKSTEP_TRY(folder.create());
  model::Trace run;
  TableNumbers numbers;
  uint64_t rows = 0;
  LOCKSTEP_TRY(model::walk_processes(source, "export", progress, run, [&](const model::Trace& trace) {
    rows += folder.add(numbers.of(trace));
    return !folder.failed();
  }));
  rows += folder.add(numbers.of_run(run));
  LOCKSTEP_ASSIGN(const uint64_t bytes, folder.finish());
  return ExportResult{rows, bytes};
}

}  // namespace lockstep::exporters::common
