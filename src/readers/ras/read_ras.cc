// SPDX-License-Identifier: Apache-2.0
#include "readers/ras/read_ras.h"

#include <algorithm>
#include <optional>
#include <set>

#include "base/input_file.h"
#include "readers/ras/documents.h"
#include "readers/ras/snapshot.h"
#include "readers/ras/text_snapshot.h"

namespace lockstep::readers::ras {
namespace {

// 16,384 ranks in 60 communicators each.
constexpr uint64_t kMostBytes = uint64_t{1} << 30;
constexpr size_t kMostSnapshots = 1 << 14;

Result<void> read_file(const std::string& path, RasModel& model) {
  LOCKSTEP_ASSIGN(const InputFile file, InputFile::open(path));
  if (file.size() > kMostBytes) return Error{ErrorCode::kUnsupported, "is larger than 1 GiB", path};
  std::string bytes(file.size(), '\0');
  bytes.resize(file.read_at(0, std::as_writable_bytes(std::span(bytes))));
  std::string_view rest = bytes;
  // JSON first, then reports for people, each through the whole file: people append what they try.
  bool any = false;
  while (!rest.empty() && model.snapshots.size() < kMostSnapshots) {
    const Document document = next_document(rest);
    std::optional<Snapshot> snapshot = make_snapshot(document);
    if (!snapshot) continue;
    any = true;
    snapshot->file = path;
    model.snapshots.push_back(std::move(*snapshot));
  }
  std::set<std::string_view> seen;  // one that was pasted twice is no second moment
  for (rest = bytes; !rest.empty() && model.snapshots.size() < kMostSnapshots;) {
    const std::string_view before = rest;
    std::optional<Snapshot> snapshot = next_report(rest);
    if (!snapshot || !seen.insert(before.substr(0, before.size() - rest.size())).second) continue;
    any = true;
    snapshot->file = path;
    model.snapshots.push_back(std::move(*snapshot));
  }
  if (any) return {};
  return Error{ErrorCode::kInvalidInput, "holds no snapshot of NCCL's RAS; ask for one with: ncclras -v",
               path};
}

}  // namespace

// A file that cannot be read is remembered and not an error: the others still say what the job does.
Result<RasModel> read_ras(const std::vector<std::string>& paths) {
  RasModel model;
  std::optional<Error> first_error;
  for (const std::string& path : paths) {
    if (auto read = read_file(path, model); !read) {
      model.unreadable_files.push_back(read.error().message());
      if (!first_error) first_error = read.error();
    }
  }
  if (model.snapshots.empty())
    return first_error ? *first_error : Error{ErrorCode::kNotFound, "no snapshots of NCCL's RAS", {}};
  // "2026-11-20 19:35:48": as text in the order of time.
  std::stable_sort(model.snapshots.begin(), model.snapshots.end(),
                   [](const Snapshot& a, const Snapshot& b) { return a.time < b.time; });
  return model;
}

}  // namespace lockstep::readers::ras
