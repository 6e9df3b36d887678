// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/attachments.h"

#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>

#include "base/input_file.h"

namespace lockstep::store::sqlite {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPieces =
    "SELECT bytes, content FROM attachment_piece WHERE attachment = ? ORDER BY number";

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
  LOCKSTEP_ASSIGN(const int64_t tables,
                  database.integer("SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN "
                                   "('attachment', 'attachment_piece')"));
  if (tables != 2) return list;
  LOCKSTEP_ASSIGN(Statement rows, database.prepare("SELECT id, name FROM attachment ORDER BY id"));
  for (;;) {
    LOCKSTEP_ASSIGN(const bool more, rows.step());
    if (!more) return list;
    list.push_back({rows.integer(0), std::string(rows.text(1))});
  }
}

// Calls take(bytes) for each piece of a file, in order.
Result<void> for_pieces(const Database& database, int64_t id,
                        const std::function<Result<void>(std::string_view)>& take) {
  LOCKSTEP_ASSIGN(Statement rows, database.prepare(kPieces));
  rows.bind(1, id);
  std::vector<Bytef> plain(kPieceBytes);
  for (;;) {
    LOCKSTEP_ASSIGN(const bool more, rows.step());
    if (!more) return {};
    const std::string_view content = rows.blob(1);
    auto size = static_cast<uLongf>(plain.size());
    if (uncompress(plain.data(), &size, reinterpret_cast<const Bytef*>(content.data()), content.size()) !=
            Z_OK ||
        static_cast<int64_t>(size) != rows.integer(0))
      return database.error("an attached file is damaged");
    LOCKSTEP_TRY(take({reinterpret_cast<const char*>(plain.data()), size}));
  }
}

}  // namespace

Result<void> write_attachments(const Database& database, const std::vector<std::string>& paths,
                               uint64_t& rows) {
  LOCKSTEP_ASSIGN(Statement add_file, database.prepare("INSERT INTO attachment VALUES (?, ?, ?)"));
  LOCKSTEP_ASSIGN(Statement add_piece, database.prepare("INSERT INTO attachment_piece VALUES (?, ?, ?, ?)"));
  std::vector<std::byte> plain(kPieceBytes);
  std::vector<Bytef> packed(compressBound(kPieceBytes));
  for (size_t i = 0; i < paths.size(); ++i) {
    LOCKSTEP_ASSIGN(const InputFile file, InputFile::open(paths[i]));
    uint64_t offset = 0;
    for (int64_t number = 0;; ++number) {
      const size_t got = file.read_at(offset, plain);
      if (got == 0) break;
      offset += got;
      auto size = static_cast<uLongf>(packed.size());
      if (compress2(packed.data(), &size, reinterpret_cast<const Bytef*>(plain.data()), got, Z_BEST_SPEED) !=
          Z_OK)
        return Error{ErrorCode::kIo, "cannot be compressed", paths[i]};
      add_piece.bind(1, static_cast<int64_t>(i));
      add_piece.bind(2, number);
      add_piece.bind(3, static_cast<int64_t>(got));
      add_piece.bind_blob(4, {reinterpret_cast<const char*>(packed.data()), size});
      LOCKSTEP_ASSIGN(const uint64_t added, add_piece.run());
      rows += added;
    }
    const std::string name = fs::path(paths[i]).filename();
    add_file.bind(1, static_cast<int64_t>(i));
    add_file.bind(2, std::string_view(name));
    add_file.bind(3, static_cast<int64_t>(offset));
    LOCKSTEP_ASSIGN(const uint64_t added, add_file.run());
    rows += added;
  }
  return {};
}

Result<std::vector<std::string>> read_attachments(const Database& database, const std::string& folder) {
  LOCKSTEP_ASSIGN(const std::vector<Attached> files, attached(database));
  std::vector<std::string> paths;
  for (const Attached& file : files) {
    std::string path = folder + '/' + safe_name(file.name, paths.size());
    if (std::find(paths.begin(), paths.end(), path) != paths.end())
      path += '.' + std::to_string(paths.size());
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    LOCKSTEP_TRY(for_pieces(database, file.id, [&](std::string_view piece) -> Result<void> {
      if (out.write(piece.data(), static_cast<std::streamsize>(piece.size()))) return {};
      return Error{ErrorCode::kIo, "cannot be written: no room? TMPDIR names another directory", path};
    }));
    paths.push_back(std::move(path));
  }
  return paths;
}

Result<std::vector<std::string>> whole_attachments(const Database& database,
                                                   const std::vector<std::string>& paths) {
  LOCKSTEP_ASSIGN(const std::vector<Attached> files, attached(database));
  const Error differs{ErrorCode::kIo, "attached files did not read back whole; the inputs are untouched", {}};
  if (files.size() != paths.size()) return differs;
  std::vector<std::string> whole;
  std::vector<std::byte> original(kPieceBytes);
  for (size_t i = 0; i < paths.size(); ++i) {
    LOCKSTEP_ASSIGN(const InputFile file, InputFile::open(paths[i]));
    uint64_t offset = 0;
    LOCKSTEP_TRY(for_pieces(database, files[i].id, [&](std::string_view piece) -> Result<void> {
      const size_t got = file.read_at(offset, std::span(original).first(piece.size()));
      offset += got;
      if (std::string_view(reinterpret_cast<const char*>(original.data()), got) != piece) return differs;
      return {};
    }));
    const bool grew = file.read_at(offset, std::span(original).first(1)) != 0;
    if (!grew) whole.push_back(paths[i]);
  }
  return whole;
}

}  // namespace lockstep::store::sqlite
