// SPDX-License-Identifier: Apache-2.0
// Finds the files of this process by its open descriptors, which the capture libraries keep open: no name has
// to be agreed on. A look that took long is followed by a pause ten times as long.
#include "capture/scorep/process_counters.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <new>

#include "capture/core/clock.h"

namespace lockstep::capture::scorep {
namespace {

constexpr int64_t kLookNs = 10'000'000, kSearchNs = 1'000'000'000, kLaterSearchNs = 10 * kSearchNs;
constexpr char kEnding[] = ".lks";

}  // namespace

uint64_t ProcessCounters::look() {
  const int64_t now = clock_ns(CLOCK_MONOTONIC);
  if (now < next_look_ns_) return looks_;
  const uint64_t looks = look_now(now);
  // A look that took long is not taken again at once.
  const int64_t end = clock_ns(CLOCK_MONOTONIC), pause = 10 * (end - now);
  next_look_ns_ = end + (pause > kLookNs ? pause : kLookNs);
  return looks;
}

uint64_t ProcessCounters::look_now(int64_t now) {
  if (now >= next_search_ns_) {
    find_files();
    next_search_ns_ = now + (counted_ == 0 ? kSearchNs : kLaterSearchNs);
  }
  if (counted_ == 0) return looks_;
  Totals totals;
  for (uint32_t i = 0; i < files_size_; ++i) {
    if (files_[i].counters != nullptr) files_[i].counters->add(totals, now);
  }
  totals_ = totals;
  return ++looks_;
}

// The capture libraries keep their files open.
void ProcessCounters::find_files() {
  DIR* const folder = opendir("/proc/self/fd");
  if (folder == nullptr) return;
  for (const dirent* entry = readdir(folder); entry != nullptr; entry = readdir(folder)) {
    char path[2048];
    // The name of a deleted file ends otherwise: it is not found, and could not be opened.
    const ssize_t length = readlinkat(dirfd(folder), entry->d_name, path, sizeof(path) - 1);
    if (length < static_cast<ssize_t>(sizeof(kEnding)) || path[0] != '/') continue;
    path[length] = 0;
    if (strcmp(path + length - (sizeof(kEnding) - 1), kEnding) == 0) add_file(path);
  }
  closedir(folder);
}

void ProcessCounters::add_file(const char* path) {
  for (uint32_t i = 0; i < files_size_; ++i) {
    if (strcmp(files_[i].path, path) == 0) return;
  }
  if (files_size_ == kMostFiles || strlen(path) >= sizeof(files_[0].path)) return;
  // Kept also if it is not ours, so that it is not opened again with every search.
  Known& known = files_[files_size_++];
  strcpy(known.path, path);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  auto* const counters = static_cast<FileCounters*>(file < 0 ? nullptr : malloc(sizeof(FileCounters)));
  if (counters == nullptr) {
    if (file >= 0) ::close(file);
    return;
  }
  // In memory of malloc(): operator new would need the C++ run time.
  new (counters) FileCounters();
  if (counters->open(file)) {
    known.counters = counters;
    ++counted_;
  } else {
    free(counters);
  }
}

void ProcessCounters::close() {
  for (uint32_t i = 0; i < files_size_; ++i) {
    if (files_[i].counters == nullptr) continue;
    files_[i].counters->close();
    free(files_[i].counters);
  }
  *this = ProcessCounters();
}

}  // namespace lockstep::capture::scorep
