// SPDX-License-Identifier: Apache-2.0
// Keeps files of other tools (logs, dumps) in the database, in compressed pieces of 1 MiB, so that one file
// is the whole run. On the way out a name from the file becomes a single component of a path: it could
// otherwise lead anywhere.
#include "store/sqlite/attachments.h"

#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#include "base/input_file.h"

namespace lockstep::store::sqlite {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPieces =
    "SELECT bytes, content FROM attachment_piece WHERE attachment = ? ORDER BY number";

// Keeps the product below within 64 bits, whatever size the file system reports.
constexpr uint64_t kLargestFile = uint64_t{1} << 50;

// A name and nothing else.
std::string safe_name(std::string_view name, size_t number) {
  std::string out;
  for (const char c : name.substr(0, 200)) out += c == '/' || static_cast<unsigned char>(c) < 0x20 ? '_' : c;
  return out.empty() || out == "." || out == ".." ? "attachment." + std::to_string(number) : out;
}

struct Attached {
  int64_t id = 0;
  std::string name;
};

Result<std::vector<Attached>> attached(const Database& database) {
  std::vector<Attached> list;
  // Files of older releases have none.
  for (const char* table : {"attachment", "attachment_piece"}) {
    LOCKSTEP_ASSIGN(const std::vector<std::string> columns, database.columns(table));
    if (columns.empty()) return list;
  }
  LOCKSTEP_ASSIGN(Statement rows, database.prepare("SELECT id, name FROM attachment ORDER BY id"));
  for (;;) {
    LOCKSTEP_ASSIGN(const bool more, rows.step());
    if (!more) return list;
    list.push_back({rows.integer(0), std::string(rows.text(1))});
  }
}

// Calls take(bytes) for each piece of a file, in order.
Result<void> for_pieces(const Database& database, const std::string& path, int64_t id,
                        const std::function<Result<void>(std::string_view)>& take) {
  LOCKSTEP_ASSIGN(Statement rows, database.prepare(kPieces));
  rows.bind(1, id);
  // A piece that claims more does not fit and is refused: memory does not follow the file's word.
  std::vector<Bytef> plain(kPieceBytes);
  for (;;) {
    LOCKSTEP_ASSIGN(const bool more, rows.step());
    if (!more) return {};
    const std::string_view content = rows.blob(1);
    auto size = static_cast<uLongf>(plain.size());
    if (uncompress(plain.data(), &size, reinterpret_cast<const Bytef*>(content.data()), content.size()) !=
            Z_OK ||
        static_cast<int64_t>(size) != rows.integer(0))
      return Error{ErrorCode::kInvalidInput, "an attached file is damaged", path};
    LOCKSTEP_TRY(take({reinterpret_cast<const char*>(plain.data()), size}));
  }
}

}  // namespace

Result<std::vector<std::string>> write_attachments(const Database& database,
                                                   const std::vector<std::string>& paths, uint64_t& rows) {
  std::vector<std::string> written;
  LOCKSTEP_ASSIGN(Statement add_file, database.prepare("INSERT INTO attachment VALUES (?, ?, ?)"));
  LOCKSTEP_ASSIGN(Statement add_piece, database.prepare("INSERT INTO attachment_piece VALUES (?, ?, ?, ?)"));
  std::vector<std::byte> plain(kPieceBytes);
  // The most that zlib can make of a piece, so compressing never fails for lack of room.
  std::vector<Bytef> packed(compressBound(kPieceBytes));
  for (const std::string& path : paths) {
    std::error_code error;
    // A link would put a file into the database that nobody meant to give away with it.
    if (!fs::is_regular_file(fs::symlink_status(path, error))) continue;
    const auto opened = InputFile::open(path);
    // It stays where it is, and is not among those that were written.
    if (!opened) continue;
    const InputFile& file = *opened;
    const auto id = static_cast<int64_t>(written.size());
    uint64_t offset = 0;
    for (int64_t number = 0;; ++number) {
      const size_t got = file.read_at(offset, plain);
      if (got == 0) break;
      offset += got;
      auto size = static_cast<uLongf>(packed.size());
      if (compress2(packed.data(), &size, reinterpret_cast<const Bytef*>(plain.data()), got, Z_BEST_SPEED) !=
          Z_OK)
        return Error{ErrorCode::kIo, "cannot be compressed", path};
      add_piece.bind(1, id);
      add_piece.bind(2, number);
      add_piece.bind(3, static_cast<int64_t>(got));
      add_piece.bind_blob(4, {reinterpret_cast<const char*>(packed.data()), size});
      LOCKSTEP_ASSIGN(const uint64_t added, add_piece.run());
      rows += added;
    }
    const std::string name = fs::path(path).filename();
    // After its pieces, when the number of bytes is known: a log may grow while it is read.
    add_file.bind(1, id);
    add_file.bind(2, std::string_view(name));
    add_file.bind(3, static_cast<int64_t>(offset));
    LOCKSTEP_ASSIGN(const uint64_t added, add_file.run());
    rows += added;
    written.push_back(path);
  }
  return written;
}

Result<std::vector<std::string>> read_attachments(const Database& database, const std::string& path,
                                                  const std::function<Result<std::string>()>& folder,
                                                  const AttachmentLimits& limits) {
  LOCKSTEP_ASSIGN(const std::vector<Attached> files, attached(database));
  std::vector<std::string> paths;
  if (files.empty()) return paths;
  LOCKSTEP_ASSIGN(const std::string top, folder());
  std::error_code no_size;
  const uint64_t packed_bytes = fs::file_size(path, no_size);
  // A few bytes can unpack to terabytes: what comes out is bounded by the size of the database.
  const uint64_t most_bytes = std::max(
      limits.harmless_bytes, no_size ? 0 : std::min(packed_bytes, kLargestFile) * limits.most_growth);
  // Over all files together, so that many small ones do not pass the bound either.
  uint64_t bytes = 0;
  std::set<std::string> taken;
  for (const Attached& file : files) {
    const std::string name = safe_name(file.name, paths.size());
    // Several runs' files of one name keep it: it holds the rank.
    std::string target = top;
    if (!taken.insert(name).second) target += '/' + std::to_string(paths.size());
    std::error_code ignored;
    fs::create_directories(target, ignored);
    target += '/' + name;
    const Error unwritable{ErrorCode::kIo, "cannot be written: no space? Set TMPDIR to another directory",
                           target};
    std::ofstream out(target, std::ios::binary | std::ios::trunc);
    LOCKSTEP_TRY(for_pieces(database, path, file.id, [&](std::string_view piece) -> Result<void> {
      bytes += piece.size();
      if (bytes > most_bytes)
        return Error{ErrorCode::kInvalidInput, "the attached files are larger than such files can be", path};
      if (out.write(piece.data(), static_cast<std::streamsize>(piece.size()))) return {};
      return unwritable;
    }));
    // The end of a file, or all of a small one, is only written now.
    out.close();
    if (!out) return unwritable;
    paths.push_back(std::move(target));
  }
  return paths;
}

Result<std::vector<std::string>> whole_attachments(const Database& database,
                                                   const std::vector<std::string>& paths) {
  LOCKSTEP_ASSIGN(const std::vector<Attached> files, attached(database));
  if (files.size() != paths.size())
    return Error{ErrorCode::kIo, "attached files did not read back completely; the inputs are untouched", {}};
  std::vector<std::string> whole;
  std::vector<std::byte> original(kPieceBytes);
  for (size_t i = 0; i < paths.size(); ++i) {
    // A log may be rotated or removed at any time: that is no damage of the database, which zlib's sums
    // prove.
    const auto file = InputFile::open(paths[i]);
    uint64_t offset = 0;
    bool is_same = file.has_value();
    LOCKSTEP_TRY(for_pieces(database, paths[i], files[i].id, [&](std::string_view piece) -> Result<void> {
      const size_t got = is_same ? file->read_at(offset, std::span(original).first(piece.size())) : 0;
      offset += got;
      is_same = std::string_view(reinterpret_cast<const char*>(original.data()), got) == piece;
      return {};
    }));
    // One that has grown since, or could not be read to its end, is in the database only in part: its
    // original must stay.
    if (is_same && offset == file->size()) whole.push_back(paths[i]);
  }
  return whole;
}

}  // namespace lockstep::store::sqlite
