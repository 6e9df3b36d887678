// SPDX-License-Identifier: Apache-2.0
// A large job makes and drops many columns of many MiB. malloc would map each by itself in small pages, and
// every first touch of one would be a page fault. So long columns share extents of 64 MiB that lie at
// multiples of their size: the address of a column gives its extent, and nothing has to be looked up to free
// it. A freed column's room is used again only when its whole extent is free, which suits columns that are
// made together and dropped together.
//
// Beyond the limit an extent is a file that was unlinked, mapped shared. The kernel then writes it out under
// pressure instead of ending the program, and nothing is left when the program is killed.
#include "base/column_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

namespace lockstep {
namespace {

constexpr size_t kExtentBytes = size_t{64} << 20;  // and their alignment: an address gives its extent
constexpr size_t kAlignment = 64;

// At the start of its own memory.
struct alignas(kAlignment) Extent {
  size_t bytes = 0;   // of the mapping
  size_t used = 0;    // from its start on
  size_t blocks = 0;  // not freed yet
  bool is_file = false;
};

size_t round_up(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

class UniqueFd {
 public:
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  ~UniqueFd() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

int open_nameless(const std::string& directory) {
  int fd = ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  // Some file systems lack O_TMPFILE (EOPNOTSUPP). Old kernels take it for a directory opened for writing
  // (EISDIR).
  if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR)) return fd;
  std::string name = directory + "/lockstep-XXXXXX";
  fd = ::mkostemp(name.data(), O_CLOEXEC);
  if (fd >= 0) ::unlink(name.c_str());
  return fd;
}

// A mapping whose address is a multiple of kExtentBytes; of the file `fd`, or of memory alone if that is -1.
void* map_aligned(size_t bytes, int fd) {
  // mmap() aligns to pages alone: so much is reserved that an aligned part is in it, and the rest is given
  // back.
  void* const mapped =
      ::mmap(nullptr, bytes + kExtentBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  char* const begin = static_cast<char*>(mapped);
  const size_t before =
      round_up(reinterpret_cast<uintptr_t>(begin), kExtentBytes) - reinterpret_cast<uintptr_t>(begin);
  if (before != 0) ::munmap(begin, before);
  char* const memory = begin + before;
  if (before != kExtentBytes) ::munmap(memory + bytes, kExtentBytes - before);
  const int sharing = fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  if (::mmap(memory, bytes, PROT_READ | PROT_WRITE, sharing | MAP_FIXED, fd, 0) == MAP_FAILED) {
    ::munmap(memory, bytes);
    return nullptr;
  }
  return memory;
}

class Extents {
 public:
  void* allocate(size_t bytes) {
    bytes = round_up(bytes, kAlignment);
    const std::lock_guard guard(lock_);
    if (bytes > kExtentBytes / 2) return take(*add(bytes), bytes);
    if (current_ == nullptr || current_->bytes - current_->used < bytes) current_ = add(bytes);
    return take(*current_, bytes);
  }

  void free(void* memory) {
    auto* const extent =
        reinterpret_cast<Extent*>(reinterpret_cast<uintptr_t>(memory) / kExtentBytes * kExtentBytes);
    const std::lock_guard guard(lock_);
    if (--extent->blocks > 0) return;
    // It stays mapped for the next column, which saves the page faults of a new one.
    if (extent == current_) {
      extent->used = sizeof(Extent);
      return;
    }
    (extent->is_file ? use_.files : use_.memory) -= extent->bytes;
    ::munmap(extent, extent->bytes);
  }

  void limit(ColumnLimit limit) {
    const std::lock_guard guard(lock_);
    limit_ = std::move(limit);
    // What is left of it may be on the other side of the limit.
    if (current_ != nullptr && current_->blocks == 0) {
      (current_->is_file ? use_.files : use_.memory) -= current_->bytes;
      ::munmap(current_, current_->bytes);
    }
    current_ = nullptr;
  }

  ColumnUse use() {
    const std::lock_guard guard(lock_);
    return use_;
  }

 private:
  static void* take(Extent& extent, size_t bytes) {
    ++extent.blocks;
    return reinterpret_cast<char*>(&extent) + std::exchange(extent.used, extent.used + bytes);
  }

  Extent* add(size_t least) {
    const size_t page = size_t{2} << 20;
    const size_t bytes = std::max(round_up(least + sizeof(Extent), page), kExtentBytes);
    const bool is_file = use_.memory > limit_.bytes || bytes > limit_.bytes - use_.memory;
    void* const memory = is_file ? map_file(bytes) : map_aligned(bytes, -1);
    if (memory == nullptr) throw std::bad_alloc();
    if (!is_file) ::madvise(memory, bytes, MADV_HUGEPAGE);
    (is_file ? use_.files : use_.memory) += bytes;
    return new (memory) Extent{.bytes = bytes, .used = sizeof(Extent), .blocks = 0, .is_file = is_file};
  }

  void* map_file(size_t bytes) const {
    const UniqueFd file(open_nameless(limit_.directory));
    // A page that finds no room on the disk later would end the program.
    const int trouble = file.get() < 0 ? errno : ::posix_fallocate(file.get(), 0, static_cast<off_t>(bytes));
    if (trouble != 0) {
      throw ColumnMemoryError("the memory limit is met, and " + limit_.directory +
                              " takes no more: " + std::strerror(trouble) +
                              "; make room there, or name another directory in TMPDIR");
    }
    return map_aligned(bytes, file.get());
  }

  std::mutex lock_;
  ColumnLimit limit_;
  ColumnUse use_;
  Extent* current_ = nullptr;  // new blocks of moderate size go there
};

Extents& extents() {
  static Extents all;
  return all;
}

}  // namespace

void* allocate_extent(size_t bytes) { return extents().allocate(bytes); }
void free_extent(void* memory) noexcept { extents().free(memory); }
void set_column_limit(ColumnLimit limit) { extents().limit(std::move(limit)); }
ColumnUse column_use() { return extents().use(); }

}  // namespace lockstep
