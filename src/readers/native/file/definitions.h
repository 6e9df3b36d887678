// SPDX-License-Identifier: Apache-2.0
// What records name by number: communicators of the process (meta chunks), shapes, streams and threads of
// each log (defs chunks). Read after the record census, so that every number in a counted record has had its
// definition published. Numbers and texts are checked; what does not fit is counted, and a record that names
// it keeps its row.
#pragma once
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "format/definitions.h"
#include "model/trace.h"
#include "readers/native/file/file_view.h"
#include "readers/native/file/seal_check.h"

namespace lockstep::readers::native {

// One entry of a definition chunk; `as` copies it into its type.
using Definition = format::Walk<format::DefHead>;

// Calls `visit(const Definition&)` for each entry of one list, in order of writing.
// Entries that contradict their seal are left out and counted.
template <class Visit>
void for_each_definition(const FileView& view, format::Purpose purpose, uint16_t log, ReadLosses& losses,
                         Visit&& visit) {
  auto buffer = std::make_unique<ChunkBuffer>();
  for (const Chunk& chunk : view.chunks(purpose, log)) {
    SealCheck seal;
    if (!read_checked(view, chunk, *buffer, seal, losses)) continue;
    losses.add("damaged_definition", seal.damaged_blocks, [&] {
      return "pieces of 4 KiB of definitions that contradict their checksum, first in " +
             view.where(chunk, 0);
    });
    seal.good.push_back({seal.covered, format::kLastUnit});
    const uint32_t valid = buffer->valid / format::kUnitBytes;
    for (const UnitRange& range : seal.good) {
      Definition definition(buffer->bytes.data(), valid, range.begin, range.end);
      while (definition.next()) visit(definition);
      // Bytes that end between two definitions are a cut file, which is counted as such.
      const bool is_end = definition.stop() == format::WalkStop::kNone ||
                          definition.stop() == format::WalkStop::kUnwritten || definition.unit() >= valid;
      losses.add("bad_definition", is_end ? 0 : 1, [&] {
        return "definitions that cannot be read, first " + view.where(chunk, definition.unit());
      });
    }
  }
}

// The text of a NameDef, without its NUL and shorter than `most_bytes`; a view into the definition's chunk.
std::string_view name_of(const Definition& definition, size_t most_bytes);

// Anchors of a file, the header's own first.
std::vector<format::ClockAnchor> read_anchors(const FileView& view, ReadLosses& losses);

// The mode of a process is, of several, the one that records most.
void raise_mode(format::Mode mode, uint32_t process, model::Trace& trace);

// Comm index -> row of comms, for one file.
class CommRows {
 public:
  // kNoRow for kNoComm and for indexes without a definition; the latter are counted by the caller.
  uint32_t row(uint32_t index) const { return index < rows_.size() ? rows_[index] : model::kNoRow; }

 private:
  friend class CommReader;
  std::vector<uint32_t> rows_;
};

class TickClock;
// Appends the file's communicators to `trace` and returns their rows; what notes say of the process goes into
// its row.
CommRows read_comms(const FileView& view, TickClock& clock, uint32_t process, model::Trace& trace,
                    ReadLosses& losses);

// Definitions of one thread log.
class LogDefinitions {
 public:
  static LogDefinitions read(const FileView& view, uint16_t log, model::Trace& trace, ReadLosses& losses);

  // Row of shapes, added on first use; the row of the empty shape for a number that was never defined
  // (`known` false).
  uint32_t shape_row(uint16_t number, model::Trace& trace, bool* known) {
    *known = number < shapes_.size() && shapes_[number].defined;
    uint32_t row = *known ? shapes_[number].row : model::kNoRow;
    return row != model::kNoRow ? row : add_shape_row(number, trace, *known);
  }
  // The text kept in a shape's `func`: the name of a mark.
  model::StringId name(uint16_t number) const;
  // What records of kernels name. `communicates`: by its name it is a kernel of NCCL's or RCCL's.
  struct KernelName {
    model::StringId name = 0;
    bool communicates = false;
    bool defined = false;
  };
  // The name of a number that was never defined is empty.
  KernelName kernel_name(uint32_t number) const {
    return number < kernel_names_.size() ? kernel_names_[number] : KernelName{};
  }
  // Of a range or its domain; 0 names none, and a number that was never defined (`known` false) nothing.
  model::StringId range_name(uint32_t number, bool* known) const {
    const bool has_name = number < range_names_.size() && range_names_[number] != kNoName;
    *known = number == 0 || has_name;
    return has_name ? range_names_[number] : 0;
  }
  // Pointer of a stream number, 0 if none.
  uint64_t stream(uint16_t number) const { return number < streams_.size() ? streams_[number] : 0; }

  struct Owner {  // thread that writes from a position on
    uint64_t from_position;
    int64_t tid;
    model::StringId name;
    uint64_t pthread;
    uint64_t since_ticks;
  };
  const std::vector<Owner>& owners() const { return owners_; }  // by position
  // What capture itself counted as lost in this log, by format::Loss.
  const std::array<uint64_t, format::kLossKinds>& losses() const { return losses_; }

 private:
  // As defined, and its row once a record has named it: a shape that nothing uses takes no row.
  struct Shape {
    model::Shape value;
    uint32_t row = model::kNoRow;
    bool defined = false;
  };
  uint32_t add_shape_row(uint16_t number, model::Trace& trace, bool known);
  // False: the number cannot be. `most_names`: as many as the log's chunks can hold.
  bool add_kernel_name(const Definition& definition, size_t most_names, model::Trace& trace);
  bool add_range_name(const Definition& definition, size_t most_names, model::Trace& trace);

  static constexpr model::StringId kNoName = UINT32_MAX;

  std::vector<Shape> shapes_;                 // by number
  std::vector<uint64_t> streams_;             // by number
  std::vector<KernelName> kernel_names_;      // by number
  std::vector<model::StringId> range_names_;  // by number; kNoName where there is none
  size_t demangled_bytes_ = 0;
  uint64_t short_names_ = 0;
  std::vector<Owner> owners_;
  std::array<uint64_t, format::kLossKinds> losses_{};
};

}  // namespace lockstep::readers::native
