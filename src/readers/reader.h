// SPDX-License-Identifier: Apache-2.0
// A reader turns one kind of file into the model. A new one is a folder and a line in readers.def.
#pragma once
#include <cstddef>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/trace_source.h"
#include "readers/unpack.h"

namespace lockstep::readers {

inline constexpr size_t kSniffBytes = 4096;
inline constexpr size_t kDeepSniffBytes = 1 << 20;

struct Format {
  std::string_view name;     // shown by `info` and in docs
  std::string_view summary;  // its files, as reports call them: "Flight Recorder dumps"
  // True if a file that begins with these bytes (at most kSniffBytes) is of this format. No side effects.
  bool (*sniff)(std::span<const std::byte> first_bytes);
  // Opens files of this format as one source; files of one process become one process. A file that cannot be
  // read at all is a run loss, unless it is the only one. nullptr: it describes a job, but no operations.
  Result<std::unique_ptr<model::TraceSource>> (*open)(std::vector<std::string> paths);
  // What shows the format may stand far from the beginning: `sniff` is asked again with up to
  // kDeepSniffBytes.
  bool sniff_deep = false;
  std::string_view setting = {};  // what a user sets so that each rank of a job leaves such a file
  bool reports_hangs = false;     // reports that cannot tell ask for it
  // What shows the format may stand anywhere: whether a file that begins so, and that no `sniff` accepts, has
  // to be opened to know; and whether it then is of the format. Both or neither.
  bool (*may_be)(std::span<const std::byte> first_bytes) = nullptr;
  bool (*sniff_file)(const std::string& path) = nullptr;
  // True of a file that is of this format but no evidence of its own, as it was made from a run: it is taken
  // where a user names it, not where it lies in a directory.
  bool (*sniff_named)(std::span<const std::byte> first_bytes) = nullptr;
  // True of a file that a user may mean as one of this format though nothing in it shows it: asked last, of
  // what a user names.
  bool (*may_be_meant)(std::span<const std::byte> first_bytes) = nullptr;
};

std::span<const Format* const> all();
// The first format, in readers.def order, whose sniff accepts the file; nullptr if none does.
Result<const Format*> detect(const std::string& path);

// Files by format, in readers.def order. Only formats that there are files of.
struct FormatFiles {
  const Format* format = nullptr;
  std::vector<std::string> files;
  std::set<std::string> beside =
      {};              // those that another format was found in first: this one may be in them as well
  bool named = false;  // some of them by the user; else all were found in directories
};
struct Inputs {
  std::vector<FormatFiles> formats;
  std::vector<Error> troubles;         // what was named and cannot be read
  std::shared_ptr<Unpacker> unpacker;  // holds the files that were packed
};
// Everything that users name, in any mix: files, directories (their process files, also a folder deeper, and
// other files of known formats in them) and packed files. An error if none of it can be read. `unpacker`:
// holds some of the files; else a new one.
Result<Inputs> sort(const std::vector<std::string>& paths,
                    std::shared_ptr<Unpacker> unpacker = std::make_shared<Unpacker>());

// Opens the files of one of the formats as a source that knows its files by the names that users know.
Result<std::unique_ptr<model::TraceSource>> open(const Inputs& inputs, const FormatFiles& files);
// The one that holds operations. In directories process files come first: what else lies beside them is left
// alone. Several formats at once are an error.
Result<const FormatFiles*> one_format(const Inputs& inputs);
// Opens what a user names as one run, of one format.
Result<std::unique_ptr<model::TraceSource>> open(const std::vector<std::string>& paths);

}  // namespace lockstep::readers
