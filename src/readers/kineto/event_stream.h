// SPDX-License-Identifier: Apache-2.0
// The text of a profiler trace, cut into pieces that fit in memory: the top-level values by key, and the
// events one by one, in the order of the file. Only the borders are found here, 64 bytes at a time, and
// nothing is parsed: a file of any size, written on one line or on many, passes through one buffer.
//
// A file that is damaged goes on with the next piece that looks like the begin of an event; what lies between
// is counted. Older writers left quotes in names as they were, which is such damage.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/input_file.h"

namespace lockstep::readers::kineto {

// One file, one thread. `file` outlives it. Memory is one buffer, as large as the largest piece needs.
class EventStream {
 public:
  // What may be read behind every piece, as simdjson asks for.
  static constexpr size_t kPadding = 64;
  static constexpr size_t kMostEventBytes = size_t{1} << 20;   // larger ones are damage
  static constexpr size_t kMostValueBytes = size_t{16} << 20;  // larger top-level values are passed over

  explicit EventStream(const InputFile& file);

  enum class Kind : uint8_t { kEvent, kTopLevel, kEnd };
  struct Piece {
    Kind kind = Kind::kEnd;
    std::string_view key;   // kTopLevel
    std::string_view text;  // valid until the next call; an event is an object
    uint64_t offset = 0;    // of the text in the file
  };
  // The next piece, in the order of the file; kEnd from the end on. Damage is no error: it is left out and
  // counted.
  Piece next();
  // The piece that came last, an event, is no JSON: goes on at the first begin of another event inside it, if
  // there is one.
  void reject(const Piece& piece);

  bool is_object() const { return is_object_; }       // the file begins as one; known after the first next()
  bool is_whole() const { return is_whole_; }         // at the end: nothing is missing there
  uint64_t damages() const { return damage_.count; }  // places at which something had to be left out
  uint64_t first_damage() const { return damage_.first; }
  uint64_t oversized() const { return oversized_; }  // pieces that no profiler writes, by their size
  uint64_t bytes_read() const { return base_ + end_; }

 private:
  struct Scan {  // for the end of an object or array
    size_t at = 0;
    uint64_t depth = 0;
    bool in_string = false, escaped = false;
  };
  struct Damage {
    uint64_t count = 0, first = 0;  // its place in the file
  };
  // kMore: the bytes that are there end before the border.
  enum class Border : uint8_t { kFound, kMore, kDamaged };
  enum class State : uint8_t { kBegin, kTop, kEvents, kDone };

  // Reads more bytes behind those that are there; what lies before pos_ is given up, and places move by that.
  // False at the end of the file.
  bool more();
  bool has(size_t bytes);  // behind pos_
  // To the next byte that is no white space and no comma; false at the end of the file.
  bool skip_blank();
  // Goes on where `scan` stands, so that a long value is looked at once, however often more is read.
  Border find_border(Scan& scan) const;
  // Of the object or array at pos_. kMore: the file ends in it.
  Border find_end(size_t& end, size_t most);
  Piece next_top_level();
  // The text of a key or value at pos_, with its quotes; moves behind it.
  bool take_string(std::string& text);
  // A number, a truth value, null, or a text with its quotes.
  bool take_scalar(std::string& text);
  bool skip_container();
  Piece next_event();
  void add_damage(uint64_t offset);
  // Something is left out from pos_ on. False: no event begins behind it.
  bool recover(size_t looked_at);
  // Damage may make each piece be looked at again from its second byte on, which is quadratic; beyond a bound
  // the stream only goes forward.
  bool too_dear() const;
  // These look for a brace behind which an event seems to begin.
  bool find_event();
  bool event_begins_here() const;
  Piece end(bool whole);

  const InputFile& file_;
  std::vector<char> buffer_;
  size_t pos_ = 0, end_ = 0;  // in the buffer
  uint64_t base_ = 0;         // of the buffer in the file
  uint64_t wasted_ = 0;       // bytes that were looked at again
  State state_ = State::kBegin;
  std::string key_, scalar_;
  bool is_object_ = false, is_whole_ = false;
  Damage damage_;
  uint64_t oversized_ = 0;
};

}  // namespace lockstep::readers::kineto
