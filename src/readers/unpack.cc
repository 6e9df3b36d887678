// SPDX-License-Identifier: Apache-2.0
// Archives are the most hostile input: names that lead out of the folder, links, files that expand a million
// times. So only regular files are made, under names cleaned of everything but names, in a fresh folder of
// our own, opened so that no link is followed. Growth is bounded for each archive by its own size, and beyond
// that for all archives together; a limit per file alone would let many small bombs fill the disk. An entry
// is written only if a reader wants its first bytes.
#include "readers/unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <set>
#include <string_view>

#include "readers/gzip_stream.h"

namespace lockstep::readers {
namespace {

namespace fs = std::filesystem;

constexpr size_t kReadBytes = 256 << 10;
constexpr size_t kNameMost = 200;  // of one part of a path
constexpr size_t kPartsMost = 16;
constexpr size_t kFolderDigits = 9;
// Of a file's size that counts: times the growth it still fits into 64 bits.
constexpr uint64_t kPackedMost = uint64_t{1} << 50;
constexpr int kDepthMost = 2;                              // a compressed file within an archive
constexpr uint64_t kLeaveFree = uint64_t{256} << 20;       // on the disk
constexpr uint64_t kLookAtDiskEvery = uint64_t{16} << 20;  // bytes written

struct CloseArchive {
  void operator()(archive* a) const { archive_read_free(a); }
};
using Archive = std::unique_ptr<archive, CloseArchive>;

bool begins_with(std::string_view text, std::string_view magic) {
  return text.substr(0, magic.size()) == magic;
}

// POSIX and GNU have the word there. Older archives have no mark at all, and are not known.
bool is_tar(std::string_view text) { return text.size() > 262 && text.substr(257, 5) == "ustar"; }

std::string reason(archive* a) {
  const char* text = archive_error_string(a);
  return text != nullptr ? text : "unknown damage";
}

// Parts that are names and nothing else; empty: nothing is left of it.
std::string safe_path(std::string_view name) {
  std::string out;
  size_t parts = 0;
  while (!name.empty() && parts < kPartsMost) {
    const size_t slash = std::min(name.find('/'), name.size());
    std::string part(name.substr(0, std::min(slash, kNameMost)));
    name.remove_prefix(std::min(slash + 1, name.size()));
    if (part.empty() || part == "." || part == "..") continue;
    for (char& c : part) {
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
    }
    out += (out.empty() ? "" : "/") + part;
    ++parts;
  }
  return out;
}

// "trace.json" of "trace.json.gz".
std::string without_suffix(const std::string& name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string::npos || dot == 0) return name;
  for (const std::string_view suffix : {".gz", ".zst", ".xz", ".bz2", ".tgz"}) {
    if (std::string_view(name).substr(dot) == suffix) return name.substr(0, dot);
  }
  return name;
}

// A new file that is written from front to back, with holes.
class NewFile {
 public:
  explicit NewFile(const std::string& path) : path_(path) {
    fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    errno_ = fd_ < 0 ? errno : 0;
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile() {
    if (fd_ >= 0) ::close(fd_);
  }

  bool write(std::string_view bytes, uint64_t offset) {
    while (errno_ == 0 && !bytes.empty()) {
      const ssize_t put = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (put < 0) {
        if (errno != EINTR) errno_ = errno;
        continue;
      }
      bytes.remove_prefix(static_cast<size_t>(put));
      offset += static_cast<uint64_t>(put);
      written_ += static_cast<uint64_t>(put);
    }
    end_ = std::max(end_, offset);
    if (errno_ == 0 && written_ >= looked_ + kLookAtDiskEvery) {
      looked_ = written_;
      struct statvfs disk {};
      if (::statvfs(path_.c_str(), &disk) == 0 && uint64_t{disk.f_bavail} * disk.f_frsize < kLeaveFree)
        errno_ = ENOSPC;
    }
    return errno_ == 0;
  }
  // A hole at the end is made, too.
  bool finish(uint64_t size) {
    if (errno_ == 0 && size > end_ && ::ftruncate(fd_, static_cast<off_t>(size)) != 0) errno_ = errno;
    return errno_ == 0;
  }
  Error error() const {
    return {ErrorCode::kIo,
            "no room to unpack into: " + std::string(std::strerror(errno_)) +
                "; make room there, or name another directory in TMPDIR",
            path_};
  }

 private:
  std::string path_;
  int fd_ = -1, errno_ = 0;
  uint64_t end_ = 0, written_ = 0, looked_ = 0;
};

// The plain bytes of one entry, block by block.
class Blocks {
 public:
  explicit Blocks(archive* a) : archive_(a) {}
  bool next() {
    const void* data = nullptr;
    size_t size = 0;
    la_int64_t offset = 0;
    const int code = archive_read_data_block(archive_, &data, &size, &offset);
    if (code == ARCHIVE_EOF) {
      // A damaged archive may name negative offsets.
      size_ = static_cast<uint64_t>(std::max<la_int64_t>(offset, 0));
      return false;
    }
    damaged_ = code < ARCHIVE_WARN;
    if (damaged_) return false;
    bytes_ = {static_cast<const char*>(data), size};
    offset_ = static_cast<uint64_t>(std::max<la_int64_t>(offset, 0));
    return true;
  }
  std::string_view bytes() const { return bytes_; }
  uint64_t offset() const { return offset_; }
  uint64_t size() const { return size_; }  // of the whole, at its end
  bool damaged() const { return damaged_; }

 private:
  archive* archive_;
  std::string_view bytes_;
  uint64_t offset_ = 0, size_ = 0;
  bool damaged_ = false;
};

la_ssize_t read_gzip(archive*, void* stream, const void** bytes) {
  const std::string_view plain = static_cast<GzipStream*>(stream)->next();
  *bytes = plain.data();
  return static_cast<la_ssize_t>(plain.size());
}

// `gzip`: the file's plain bytes, where it is one; else libarchive takes it from the disk.
Result<Archive> open(const std::string& path, GzipStream* gzip, bool tars) {
  Archive a(archive_read_new());
  archive_read_support_filter_gzip(a.get());
  archive_read_support_filter_bzip2(a.get());
  archive_read_support_filter_xz(a.get());
  archive_read_support_filter_zstd(a.get());
  if (tars) archive_read_support_format_tar(a.get());
  // Takes what no other format does, a compressed file alone, as one entry without a name.
  archive_read_support_format_raw(a.get());
  const int code = gzip != nullptr ? archive_read_open(a.get(), gzip, nullptr, read_gzip, nullptr)
                                   : archive_read_open_filename(a.get(), path.c_str(), kReadBytes);
  if (code != ARCHIVE_OK) return Error{ErrorCode::kIo, "cannot be unpacked: " + reason(a.get()), path};
  return a;
}

}  // namespace

bool Unpacker::is_packed(std::span<const std::byte> first_bytes) {
  const std::string_view text(reinterpret_cast<const char*>(first_bytes.data()), first_bytes.size());
  return begins_with(text, "\x1f\x8b\x08") || begins_with(text, "\x28\xb5\x2f\xfd") ||
         begins_with(text, std::string_view("\xfd"
                                            "7zXZ\0",
                                            6)) ||
         begins_with(text, "BZh") || is_tar(text);
}

Result<std::string> Unpacker::new_folder(const std::string& shown, const std::string& cut_name) {
  const std::lock_guard guard(lock_);
  if (!directory_) {
    LOCKSTEP_ASSIGN(TemporaryDirectory made, TemporaryDirectory::make());
    directory_ = std::move(made);
  }
  // Of one length, so that none is the beginning of another.
  const std::string number = std::to_string(shown_.size());
  const std::string folder =
      directory_->path() + '/' +
      std::string(kFolderDigits - std::min<size_t>(number.size(), kFolderDigits), '0') + number;
  std::error_code error;
  fs::create_directory(folder, error);
  if (error) return Error{ErrorCode::kIo, "cannot be made: " + error.message(), folder};
  shown_.emplace_back(folder + cut_name, shown);
  return folder;
}

bool Unpacker::Budget::take_bytes(uint64_t bytes) {
  const uint64_t own = std::min(bytes, own_bytes_), beyond = bytes - own;
  own_bytes_ -= own;
  // All of it or nothing, as several archives take from it at once.
  uint64_t left = harmless_left_.load();
  while (beyond > 0 && left >= beyond && !harmless_left_.compare_exchange_weak(left, left - beyond)) {
  }
  is_spent_ = is_spent_ || left < beyond;
  return !is_spent_;
}

Result<Unpacker::Unpacked> Unpacker::unpack(const std::string& path, const Wants& wants, bool tars) {
  Unpacked out;
  std::error_code no_size;
  const uint64_t packed_bytes = fs::file_size(path, no_size);
  const uint64_t own_bytes = no_size ? 0 : std::min(packed_bytes, kPackedMost) * limits_.most_growth;
  Budget budget(own_bytes, limits_.files_most, harmless_left_);
  LOCKSTEP_TRY(unpack_into(path, wants, tars, 1, budget, out));
  return out;
}

// One packed file.
class Unpacker::Expansion {
 public:
  Expansion(Unpacker& unpacker, const std::string& path, const Wants& wants, int depth, Budget& budget,
            Unpacked& out)
      : unpacker_(unpacker),
        path_(path),
        own_name_(safe_path(without_suffix(fs::path(path).filename().string()))),
        wants_(wants),
        depth_(depth),
        budget_(budget),
        out_(out) {}

  Result<void> run(bool tars) {
    LOCKSTEP_ASSIGN(gzip_, gzip_of(path_));
    LOCKSTEP_ASSIGN(archive_, open(path_, gzip_.get(), tars));
    archive_entry* entry = nullptr;
    int code = ARCHIVE_OK;
    bool going = true;
    while (going && (code = archive_read_next_header(archive_.get(), &entry)) >= ARCHIVE_WARN &&
           code != ARCHIVE_EOF) {
      // libarchive knows the format once it has read the first header.
      is_raw_ = archive_format(archive_.get()) == ARCHIVE_FORMAT_RAW;
      if (is_raw_ && depth_ > 1 && !is_compressed()) break;  // plain after all
      LOCKSTEP_ASSIGN(going, expand(entry));
    }
    if (going && code != ARCHIVE_EOF && code < ARCHIVE_WARN) damaged_ = true;
    const std::string damage = gzip_ ? gzip_->damage() : std::string();
    if (damaged_ || !damage.empty())
      trouble("is damaged: " + (damage.empty() ? reason(archive_.get()) : damage) +
              "; its good part is read");
    return {};
  }

 private:
  static Result<std::unique_ptr<GzipStream>> gzip_of(const std::string& path) {
    LOCKSTEP_ASSIGN(const InputFile file, InputFile::open(path));
    std::byte first[3] = {};
    if (!GzipStream::is_gzip({first, file.read_at(0, first)})) return std::unique_ptr<GzipStream>();
    return GzipStream::open(path);
  }
  bool is_compressed() const { return gzip_ != nullptr || archive_filter_count(archive_.get()) > 1; }
  void trouble(std::string text) {
    out_.troubles.push_back({ErrorCode::kInvalidInput, std::move(text), path_});
  }
  bool refuse() {
    trouble(
        "expands to far more than any trace does: not unpacked further; unpack it yourself if that is intended");
    return false;
  }

  // Whether to go on.
  Result<bool> expand(archive_entry* entry) {
    // Before the entry is looked at: a million empty ones cost time, too.
    if (!budget_.take_file()) {
      trouble("holds more than " + std::to_string(unpacker_.limits_.files_most) + " files");
      return false;
    }
    if (!is_raw_ && archive_entry_filetype(entry) != AE_IFREG) return true;
    const char* given = archive_entry_pathname(entry);
    const std::string name = is_raw_ ? own_name_ : safe_path(given != nullptr ? given : "");
    Blocks blocks(archive_.get());
    const bool more = read_beginning(blocks);
    const std::span<const std::byte> sniffed(reinterpret_cast<const std::byte*>(first_.data()),
                                             std::min(first_.size(), kFirstBytes));
    const bool nested = depth_ < kDepthMost && is_packed(sniffed) && !is_tar(first_);
    if (name.empty() || (!nested && (is_tar(first_) || !wants_(name, sniffed))))
      return pass_over(blocks, more);
    LOCKSTEP_ASSIGN(const std::string target, make_target(name));
    if (target.empty()) return pass_over(blocks, more);
    LOCKSTEP_ASSIGN(const bool kept, write(blocks, more, target));
    if (!kept) return refuse();
    damaged_ = damaged_ || blocks.damaged();
    if (!nested) {
      out_.files.push_back(target);
      return !damaged_;
    }
    if (auto inner = unpacker_.unpack_into(target, wants_, false, depth_ + 1, budget_, out_); !inner)
      out_.troubles.push_back(inner.error());
    std::error_code ignored;
    fs::remove(target, ignored);
    if (budget_.is_spent()) return refuse();
    return !damaged_;
  }

  // As far as it has no holes: it tells whether the entry is wanted. Whether a block is waiting.
  bool read_beginning(Blocks& blocks) {
    first_.clear();
    bool more = blocks.next();
    while (more && blocks.offset() == first_.size() && first_.size() < kFirstBytes) {
      first_.append(blocks.bytes());
      more = blocks.next();
    }
    return more;
  }

  // What is skipped has to be unpacked all the same, unless it lies plain in a plain archive.
  bool pass_over(Blocks& blocks, bool more) {
    const bool packed = is_compressed();
    if (packed && !budget_.take_bytes(first_.size())) return refuse();
    for (; packed && more; more = blocks.next()) {
      if (!budget_.take_bytes(blocks.bytes().size())) return refuse();
    }
    damaged_ = damaged_ || blocks.damaged();
    return !damaged_;
  }

  // Entries of one name keep it, each in a folder of its own: it may hold the rank. Empty: no file can have
  // that name.
  Result<std::string> make_target(const std::string& name) {
    if (folder_.empty()) {
      LOCKSTEP_ASSIGN(folder_, unpacker_.new_folder(unpacker_.shown(path_), is_raw_ ? "/" + name : ""));
    }
    std::string target = folder_ + '/';
    if (!taken_.insert(name).second) target += "again." + std::to_string(++again_) + '/';
    target += name;
    std::error_code error;
    fs::create_directories(fs::path(target).parent_path(), error);
    if (!error && !fs::exists(target, error)) return target;
    trouble("holds '" + name + "', which no file here can be called");
    return std::string();
  }

  // False: it grows beyond what is left.
  Result<bool> write(Blocks& blocks, bool more, const std::string& target) {
    NewFile file(target);
    uint64_t size = 0;
    const auto grow_to = [&](uint64_t end) {
      // Holes count as well: readers see the size, and go through all of it.
      const uint64_t more_bytes = end - std::min(size, end);
      size = std::max(size, end);
      return budget_.take_bytes(more_bytes);
    };
    bool fits = grow_to(first_.size());
    bool written = fits && file.write(first_, 0);
    for (; written && fits && more; more = blocks.next()) {
      fits = grow_to(blocks.offset() + blocks.bytes().size());
      written = !fits || file.write(blocks.bytes(), blocks.offset());
    }
    if (!fits || (!more && !grow_to(blocks.size()))) {
      std::error_code ignored;
      fs::remove(target, ignored);
      return false;
    }
    if (!written || !file.finish(size)) return file.error();
    return true;
  }

  Unpacker& unpacker_;
  const std::string path_, own_name_;
  const Wants& wants_;
  const int depth_;
  Budget& budget_;
  Unpacked& out_;
  std::unique_ptr<GzipStream> gzip_;  // nullptr: it is none
  Archive archive_;                   // reads from it
  std::string folder_, first_;
  std::set<std::string> taken_;
  size_t again_ = 0;
  bool is_raw_ = false, damaged_ = false;
};

Result<void> Unpacker::unpack_into(const std::string& path, const Wants& wants, bool tars, int depth,
                                   Budget& budget, Unpacked& out) {
  return Expansion(*this, path, wants, depth, budget, out).run(tars);
}

std::string Unpacker::shown(std::string text) const {
  const std::lock_guard guard(lock_);
  if (!directory_) return text;
  const std::string prefix = directory_->path() + '/';
  for (size_t at = 0; (at = text.find(prefix, at)) != std::string::npos;) {
    const size_t number = std::strtoul(text.substr(at + prefix.size(), kFolderDigits).c_str(), nullptr, 10);
    const bool known =
        number < shown_.size() && text.compare(at, shown_[number].first.size(), shown_[number].first) == 0;
    if (known) text.replace(at, shown_[number].first.size(), shown_[number].second);
    at += known ? shown_[number].second.size() : prefix.size();
  }
  return text;
}

}  // namespace lockstep::readers
