// SPDX-License-Identifier: Apache-2.0
// Cuts a JSON document of any size into its events without parsing it: a document of many GiB does not fit in
// memory, and a parser that needs the whole would give up everything for one bad byte. Borders are found 64
// bytes at a time by bit masks of quotes, braces and escapes. Behind damage it goes on at the next text that
// looks like the begin of an event; as going back costs reading again, all of that together may cost only a
// few times the file's size.
#include "readers/kineto/event_stream.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "readers/kineto/structure.h"

namespace lockstep::readers::kineto {
namespace {

constexpr size_t kReadBytes = size_t{512} << 10;
constexpr size_t kMostKeyBytes = size_t{64} << 10;
// How an event begins, with any white space: more than any writer leaves.
constexpr size_t kBeginBytes = 256;
// Going back after damage may cost this, and so many times the file.
constexpr uint64_t kWastedBytes = uint64_t{64} << 20, kWastedTimes = 4;

bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

}  // namespace

EventStream::EventStream(const InputFile& file) : file_(file), buffer_(2 * kReadBytes + kPadding) {}

bool EventStream::more() {
  if (pos_ > 0) {
    // Pieces are views of the buffer, good until the next one: what is behind them may move.
    std::memmove(buffer_.data(), buffer_.data() + pos_, end_ - pos_);
    base_ += pos_;
    end_ -= pos_;
    pos_ = 0;
  }
  if (buffer_.size() < end_ + kReadBytes + kPadding) buffer_.resize(2 * (end_ + kReadBytes) + kPadding);
  const size_t read =
      file_.read_at(base_ + end_, std::as_writable_bytes(std::span(buffer_.data() + end_, kReadBytes)));
  end_ += read;
  // Blanks, so that neither a scan nor a parser finds old bytes behind the end.
  std::memset(buffer_.data() + end_, ' ', kPadding);
  return read > 0;
}

bool EventStream::has(size_t bytes) {
  while (end_ - pos_ < bytes) {
    if (!more()) return false;
  }
  return true;
}

bool EventStream::skip_blank() {
  while (true) {
    while (pos_ < end_ && (is_blank(buffer_[pos_]) || buffer_[pos_] == ',')) ++pos_;
    if (pos_ < end_) return true;
    if (!more()) return false;
  }
}

EventStream::Border EventStream::find_border(Scan& scan) const {
  while (scan.at < end_) {
    Masks masks = masks_of(buffer_.data() + scan.at);
    const size_t left = end_ - scan.at;
    const uint64_t valid = left >= 64 ? ~uint64_t{0} : (uint64_t{1} << left) - 1;
    bool escaped = scan.escaped;
    drop_escaped(masks, escaped);
    const uint64_t in_string = inside(masks.quotes) ^ (scan.in_string ? ~uint64_t{0} : 0);
    const uint64_t damage = masks.controls & in_string & valid;
    uint64_t opens = masks.opens & ~in_string & valid;
    uint64_t depth = scan.depth;
    for (uint64_t closes = masks.closes & ~in_string & valid; closes != 0; closes &= closes - 1) {
      const uint64_t before = (closes & -closes) - 1;
      depth += static_cast<uint64_t>(std::popcount(opens & before));
      // Braces that open in front of this one are counted and gone, so that each is counted once.
      opens &= ~before;
      if (--depth != 0) continue;
      // A control character inside a text is no JSON: most likely a quote is missing or too many.
      if ((damage & before) != 0) return Border::kDamaged;
      scan.at += static_cast<size_t>(std::countr_zero(closes)) + 1;
      return Border::kFound;
    }
    if (damage != 0) return Border::kDamaged;
    if (left < 64) return Border::kMore;  // looked at again, with what follows
    scan.depth = depth + static_cast<uint64_t>(std::popcount(opens));
    scan.escaped = escaped;
    scan.in_string = (in_string >> 63) != 0;
    scan.at += 64;
  }
  return Border::kMore;
}

EventStream::Border EventStream::find_end(size_t& end, size_t most) {
  Scan scan{.at = pos_};
  while (true) {
    const Border border = find_border(scan);
    end = scan.at;
    if (border != Border::kMore) return border;
    // Longer than any writer's: it has lost its end, and looking on would take the rest of the file for one
    // event.
    if (scan.at - pos_ > most) return Border::kDamaged;
    const size_t moved = pos_;
    const bool read = more();
    scan.at -= moved;
    end = scan.at;
    if (!read) return Border::kMore;
  }
}

EventStream::Piece EventStream::next() {
  if (state_ == State::kBegin) {
    if (!skip_blank() || buffer_[pos_] != '{') return end(false);
    is_object_ = true;
    ++pos_;
    state_ = State::kTop;
  }
  while (state_ != State::kDone) {
    const Piece piece = state_ == State::kTop ? next_top_level() : next_event();
    if (piece.kind != Kind::kEnd || state_ == State::kDone) return piece;
  }
  return {};
}

EventStream::Piece EventStream::end(bool whole) {
  state_ = State::kDone;
  is_whole_ = whole;
  return {};
}

// A piece, or kEnd with the state that goes on.
EventStream::Piece EventStream::next_top_level() {
  if (!skip_blank()) return end(false);
  if (buffer_[pos_] == '}') return end(true);
  const bool has_key = buffer_[pos_] == '"' && take_string(key_) && skip_blank() && buffer_[pos_] == ':';
  if (has_key) ++pos_;
  if (!has_key || !skip_blank()) return recover(0) ? Piece{} : end(false);
  const char first = buffer_[pos_];
  Piece piece{.kind = Kind::kTopLevel, .key = key_, .text = {}, .offset = base_ + pos_};
  if (first == '[' && key_ == "traceEvents") {
    ++pos_;
    state_ = State::kEvents;
    return {};
  }
  if (first != '{' && first != '[') {
    if (!take_scalar(scalar_)) return recover(0) ? Piece{} : end(false);
    piece.text = scalar_;
    return piece;
  }
  size_t behind = 0;
  switch (find_end(behind, kMostValueBytes)) {
    case Border::kFound:
      piece.text = {buffer_.data() + pos_, behind - pos_};
      pos_ = behind;
      return piece;
    // A value that is only too large is no damage: it is passed over whole, so that the events behind it
    // stay.
    case Border::kDamaged:
      if (behind - pos_ > kMostValueBytes) {
        ++oversized_;
        if (skip_container()) return {};
        return end(false);
      }
      return recover(behind - pos_) ? Piece{} : end(false);
    default:
      return end(false);
  }
}

bool EventStream::take_string(std::string& text) {
  size_t at = pos_ + 1;
  while (true) {
    while (at < end_ && buffer_[at] != '"') at += buffer_[at] == '\\' ? 2 : 1;
    if (at < end_) break;
    if (at - pos_ > kMostValueBytes) return false;
    const size_t moved = pos_;
    if (!more()) return false;
    at -= moved;
  }
  text.assign(buffer_.data() + pos_ + 1, at - pos_ - 1);
  pos_ = at + 1;
  return true;
}

// A text keeps its quotes: what it says is for a parser.
bool EventStream::take_scalar(std::string& text) {
  if (buffer_[pos_] == '"') {
    std::string inside_quotes;
    if (!take_string(inside_quotes)) return false;
    text = '"' + inside_quotes + '"';
    return true;
  }
  text.clear();
  while (text.size() < kMostKeyBytes && has(1)) {
    const char c = buffer_[pos_];
    if (is_blank(c) || c == ',' || c == '}' || c == ']' || c == '"') return !text.empty();
    text += c;
    ++pos_;
  }
  return false;
}

// Over the object or array at pos_, keeping nothing of it.
bool EventStream::skip_container() {
  Scan scan{.at = pos_};
  while (true) {
    const Border border = find_border(scan);
    pos_ = scan.at;
    if (border == Border::kFound) return true;
    if (border == Border::kDamaged) return recover(0);
    if (!more()) return false;
    scan.at = pos_;
  }
}

EventStream::Piece EventStream::next_event() {
  if (!skip_blank()) return end(false);
  const char first = buffer_[pos_];
  if (first == ']') {
    ++pos_;
    state_ = State::kTop;
    return {};
  }
  // What is no object is damage here: the list holds events alone.
  size_t behind = pos_;
  Border border = Border::kDamaged;
  if (first == '{') border = find_end(behind, kMostEventBytes);
  if (border == Border::kFound) {
    const Piece piece{.kind = Kind::kEvent,
                      .key = {},
                      .text = {buffer_.data() + pos_, behind - pos_},
                      .offset = base_ + pos_};
    pos_ = behind;
    return piece;
  }
  // An event without an end may be one with a quote too many, which hides those that follow.
  return recover(behind - pos_) ? Piece{} : end(false);
}

void EventStream::reject(const Piece& piece) {
  const size_t behind = pos_, begin = behind - piece.text.size();
  add_damage(piece.offset);
  wasted_ += piece.text.size();
  if (too_dear()) return;
  for (pos_ = begin + 1; pos_ < behind; ++pos_) {
    const void* const brace = std::memchr(buffer_.data() + pos_, '{', behind - pos_);
    if (brace == nullptr) break;
    pos_ = static_cast<size_t>(static_cast<const char*>(brace) - buffer_.data());
    if (event_begins_here()) return;
  }
  pos_ = behind;
}

bool EventStream::too_dear() const { return wasted_ > kWastedBytes + kWastedTimes * bytes_read(); }

void EventStream::add_damage(uint64_t offset) {
  if (damage_.count++ == 0) damage_.first = offset;
}

bool EventStream::recover(size_t looked_at) {
  const Damage before = damage_;
  add_damage(base_ + pos_);
  wasted_ += looked_at;
  state_ = State::kEvents;
  // One byte on, as the next event may begin inside what looked like one; once that got too dear, behind all
  // that was looked at.
  pos_ = std::min(end_, pos_ + (too_dear() ? std::max<size_t>(looked_at, 1) : 1));
  if (find_event()) return true;
  // A trace that was cut ends in the middle of an event. That is no damage: is_whole says it.
  damage_ = before;  // the file ends in it
  return false;
}

bool EventStream::event_begins_here() const {
  size_t before = pos_;
  while (before > 0 && is_blank(buffer_[before - 1])) --before;
  // Inside `args` there are objects, too; an event follows a comma or opens the list, and begins with one of
  // three keys.
  if (before > 0 && buffer_[before - 1] != ',' && buffer_[before - 1] != '[') return false;
  size_t at = pos_ + 1;
  while (at < end_ && is_blank(buffer_[at])) ++at;
  const std::string_view rest(buffer_.data() + at, std::min(end_ - at, size_t{8}));
  return rest.starts_with("\"ph\"") || rest.starts_with("\"name\"") || rest.starts_with("\"cat\"");
}

bool EventStream::find_event() {
  while (true) {
    const char* const from = buffer_.data() + pos_;
    const void* const brace = pos_ < end_ ? std::memchr(from, '{', end_ - pos_) : nullptr;
    if (brace == nullptr) {
      // Keeps what stands before the next brace.
      if (end_ - pos_ > kBeginBytes) pos_ = end_ - kBeginBytes;
      const size_t seen = end_ - pos_;
      if (!more()) return false;
      pos_ += seen;
      continue;
    }
    pos_ = static_cast<size_t>(static_cast<const char*>(brace) - buffer_.data());
    if (end_ - pos_ < kBeginBytes) {
      const size_t keep = std::min(pos_, kBeginBytes);
      pos_ -= keep;
      has(keep + kBeginBytes);
      pos_ += keep;
    }
    if (event_begins_here()) return true;
    ++pos_;
  }
}

}  // namespace lockstep::readers::kineto
