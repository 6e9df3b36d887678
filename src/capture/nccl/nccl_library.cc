// SPDX-License-Identifier: Apache-2.0
// Which NCCL calls is a question for the code that calls: processes map several copies (a wheel's, a
// system's, one in a framework), and a symbol looked up by name finds the first. So the object that holds the
// calling code is searched, and the others are noted beside it.
#include "capture/nccl/nccl_library.h"

#include <stdio.h>

#include "capture/core/host/loaded_library.h"
#include "capture/core/session/session.h"
#include "format/definitions.h"

namespace lockstep::capture::nccl {
namespace {

constexpr size_t kMostBuildId = 20, kMostOthers = 2;

struct Found {
  char path[512];
  unsigned char build_id[kMostBuildId];
  size_t build_id_bytes;
};

bool is_called_nccl(const char* path) {
  const char* name = file_name_of(path);
  for (const char* known : {"libnccl.so", "librccl.so"}) {
    const size_t bytes = strlen(known);
    if (strncmp(name, known, bytes) == 0 && (name[bytes] == 0 || name[bytes] == '.')) return true;
  }
  return false;
}

bool holds(const dl_phdr_info* object, const void* code) {
  const auto address = reinterpret_cast<uintptr_t>(code);
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& segment = object->dlpi_phdr[i];
    const uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && address >= begin && address - begin < segment.p_memsz) return true;
  }
  return false;
}

// Notes are mapped with the object: a name "GNU" and type 3.
void read_build_id(const dl_phdr_info* object, Found* found) {
  constexpr uint32_t kBuildId = 3;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const auto* at = reinterpret_cast<const unsigned char*>(object->dlpi_addr + segment.p_vaddr);
    size_t left = segment.p_filesz;
    while (left >= sizeof(ElfW(Nhdr))) {
      ElfW(Nhdr) head;
      memcpy(&head, at, sizeof head);
      const size_t name = (size_t{head.n_namesz} + 3) & ~size_t{3},
                   value = (size_t{head.n_descsz} + 3) & ~size_t{3};
      if (name > left - sizeof head || value > left - sizeof head - name) break;
      const unsigned char* text = at + sizeof head;
      if (head.n_type == kBuildId && head.n_namesz == 4 && memcmp(text, "GNU", 4) == 0) {
        found->build_id_bytes = head.n_descsz < kMostBuildId ? head.n_descsz : kMostBuildId;
        memcpy(found->build_id, text + name, found->build_id_bytes);
        return;
      }
      at += sizeof head + name + value;
      left -= sizeof head + name + value;
    }
  }
}

struct Search {
  const void* code;
  Found in_use;
  bool is_found;
  uint32_t count;             // of `others`
  Found others[kMostOthers];  // called as NCCL's library is, and not in use
};

// NCCL may be linked into a framework or into the program: what holds the calling code counts, whatever it is
// called.
int look(dl_phdr_info* object, size_t, void* data) {
  auto* search = static_cast<Search*>(data);
  const bool is_in_use = search->code != nullptr && holds(object, search->code);
  if (!is_in_use && (!is_called_nccl(object->dlpi_name) || search->count == kMostOthers)) return 0;
  Found* found = is_in_use ? &search->in_use : &search->others[search->count++];
  // The program itself has no name.
  const char* path = object->dlpi_name[0] != 0 ? object->dlpi_name : "/proc/self/exe";
  strncpy(found->path, path, sizeof found->path - 1);
  read_build_id(object, found);
  search->is_found = search->is_found || is_in_use;
  return 0;
}

void search_libraries(const void* code, Search* search) {
  memset(search, 0, sizeof *search);
  search->code = code;
  dl_iterate_phdr(look, search);
  // Versions 1 to 3 pass no logger, so no code is known; a single library of the name must be the one.
  if (!search->is_found && code == nullptr && search->count == 1) {
    search->in_use = search->others[0];
    search->is_found = true;
    search->count = 0;
  }
}

uint32_t version_of(const char* path) {
  // Called after the walk over the loaded objects, during which the loader is locked.
  void* library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return 0;
  auto get_version = reinterpret_cast<int (*)(int*)>(dlsym(library, "ncclGetVersion"));
  int version = 0;
  const bool is_known = get_version != nullptr && get_version(&version) == 0 && version > 0;
  dlclose(library);
  return is_known ? static_cast<uint32_t>(version) : 0;
}

void write_down(const Found& found, uint32_t version, char (&text)[kLibraryTextBytes]) {
  char id[2 * kMostBuildId + 1] = "-";
  constexpr char kHex[] = "0123456789abcdef";
  for (size_t i = 0; i < found.build_id_bytes; ++i) {
    id[2 * i] = kHex[found.build_id[i] >> 4];
    id[2 * i + 1] = kHex[found.build_id[i] & 15];
    id[2 * i + 2] = 0;
  }
  // The end of a path says more than its beginning, so a long one loses that.
  const int head = snprintf(text, sizeof text, "%s %u ", id, version);
  const size_t room = sizeof text - 1 - static_cast<size_t>(head);
  const size_t bytes = strlen(found.path);
  if (bytes <= room) {
    memcpy(text + head, found.path, bytes + 1);
  } else {
    memcpy(text + head, "...", 3);
    memcpy(text + head + 3, found.path + bytes - (room - 3), room - 3 + 1);
  }
}

}  // namespace

bool find_nccl_library(const void* code, NcclLibrary* out) {
  Search search;
  search_libraries(code, &search);
  if (!search.is_found) return false;
  out->version = version_of(search.in_use.path);
  write_down(search.in_use, out->version, out->text);
  return true;
}

void note_nccl_libraries(const void* code) {
  static bool is_noted = false;
  if (__atomic_exchange_n(&is_noted, true, __ATOMIC_RELAXED)) return;
  Session& session = Session::get();
  Search search;
  search_libraries(code, &search);
  char text[kLibraryTextBytes];
  if (search.is_found) {
    write_down(search.in_use, version_of(search.in_use.path), text);
    session.add_note(format::kNoteNcclLibrary, text);
  }
  for (uint32_t i = 0; i < search.count; ++i) {
    write_down(search.others[i], 0, text);
    session.add_note(format::kNoteOtherNccl, text);
  }
}

uint32_t read_nccl_version(const void* code) {
  NcclLibrary library;
  if (code != nullptr && find_nccl_library(code, &library) && library.version != 0) return library.version;
  for (const char* name : {"libnccl.so.2", "librccl.so.1", "librccl.so"}) {
    LoadedLibrary loaded(name);
    auto get_version = loaded.function<int (*)(int*)>("ncclGetVersion");
    int version = 0;
    if (get_version != nullptr && get_version(&version) == 0 && version > 0)
      return static_cast<uint32_t>(version);
  }
  // In the program itself, or in a library of another name.
  auto get_version = reinterpret_cast<int (*)(int*)>(dlsym(RTLD_DEFAULT, "ncclGetVersion"));
  int version = 0;
  return get_version != nullptr && get_version(&version) == 0 && version > 0 ? static_cast<uint32_t>(version)
                                                                             : 0;
}

}  // namespace lockstep::capture::nccl
