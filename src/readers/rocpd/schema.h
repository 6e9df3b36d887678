// SPDX-License-Identifier: Apache-2.0
// What a rocpd file holds, whichever of its designs it has: processes, and the GPU work of each.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/string_pool.h"
#include "model/trace.h"
#include "readers/common/sqlite_file.h"
#include "readers/rocpd/texts.h"

namespace lockstep::readers::rocpd {

// One process of a file. Times are ns of the host's clock since its boot.
struct Process {
  std::string host;     // empty: unknown
  std::string machine;  // its id; empty: unknown
  std::string node;     // tells hosts of one file apart; empty: one
  std::string command;  // empty: unknown
  int64_t pid = -1;
  int64_t first_ns = 0, last_ns = 0;
  struct Gpu {
    int64_t number = -1;  // as the file's rows name it
    int32_t device = -1;  // as the process does; -1 unknown
    std::string
        physical;  // names the device on its host; empty: its number means something in this process alone
    std::string model;
    std::string uuid;  // empty: unknown
  };
  std::vector<Gpu> gpus;
  // Where its rows are: ids from..until of the table with this suffix, or those of this process.
  std::string suffix;
  int64_t from = 0, until = 0, process_id = 0;
  uint64_t rows = 0;          // as many as can be
  bool shares_texts = false;  // other processes of the file use the tables of its texts, too
  double share = 1;           // of the work that reading the file may take
};

// A kernel or a copy; times as those of a process.
struct Work {
  int64_t start_ns = 0, end_ns = 0;
  int64_t gpu = -1;  // Process::Gpu::number
  uint64_t queue = 0;
  model::StringId name = 0;
  model::KernelKind kind = model::KernelKind::kCompute;
};
// A named instant of the program.
struct Marker {
  int64_t time_ns = 0;
  model::StringId name = 0;
};

// All of one process, in the order of the file.
struct Contents {
  std::vector<Work> work;
  std::vector<Marker> markers;
  uint64_t bad = 0;       // rows that cannot be
  uint64_t other = 0;     // barriers and the like
  uint64_t left_out = 0;  // beyond what is kept of a process
  std::string damage;     // why reading ended early; empty: it did not
};

// Reads one design of file. One thread at a time; what it is given outlives it.
class Schema {
 public:
  virtual ~Schema() = default;
  // Processes with GPU work. What could not be read or had to be guessed is added to `losses`, kind and text.
  struct Loss {
    std::string kind;
    uint64_t count = 1;
    std::string text;
  };
  virtual Result<std::vector<Process>> processes(std::vector<Loss>& losses) = 0;
  // Never fails: what cannot be read ends the reading and is in Contents::damage.
  virtual Contents read(const Process& process, SharedTexts& texts, model::StringPool& strings) = 0;
};

// RPD, of all versions, and rocm-trace-lite: one table of operations. nullptr: the file has none.
std::unique_ptr<Schema> classic_schema(common::SqliteFile& database);
// rocprofiler-sdk: tables that end in the identity of their writer. nullptr: the file has none.
std::unique_ptr<Schema> sdk_schema(common::SqliteFile& database);
// rocprofv3's JSON, which has neither: read whole, as far as it is not damaged.
Result<std::unique_ptr<Schema>> json_schema(const std::string& path);

// Of a table of texts: the ids, and what the expression `what` gives of each.
std::shared_ptr<const Texts> texts_of(common::SqliteFile& database, const std::string& table,
                                      const std::string& what, const Process& process, SharedTexts& shared);

// Rows that reading may add: of a process, no more are kept.
inline constexpr size_t kMostWork = size_t{1} << 27;
inline constexpr size_t kMostMarkers = size_t{1} << 20;
// Whether a row's times can be.
inline bool is_time(int64_t start_ns, int64_t end_ns) {
  return start_ns > 0 && end_ns >= start_ns && end_ns < int64_t{1} << 61;
}

}  // namespace lockstep::readers::rocpd
