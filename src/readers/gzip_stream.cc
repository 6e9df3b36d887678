// SPDX-License-Identifier: Apache-2.0
// Fills one buffer a call. Damage ends the stream behind the last byte that inflate() handed out before it,
// so what was good is all there.
#include "readers/gzip_stream.h"

#include <zlib.h>

#include <utility>

namespace lockstep::readers {
namespace {

constexpr size_t kPieceBytes = 256 << 10;
constexpr int kGzipAlone = 15 + 16;  // windowBits: the largest window, and no other format

}  // namespace

bool GzipStream::is_gzip(std::span<const std::byte> first_bytes) {
  const std::string_view text(reinterpret_cast<const char*>(first_bytes.data()), first_bytes.size());
  return text.starts_with("\x1f\x8b\x08");
}

GzipStream::GzipStream(InputFile file)
    : file_(std::move(file)), in_(kPieceBytes), out_(kPieceBytes), zlib_(std::make_unique<z_stream_s>()) {
  is_open_ = inflateInit2(zlib_.get(), kGzipAlone) == Z_OK;
}
GzipStream::~GzipStream() { inflateEnd(zlib_.get()); }

Result<std::unique_ptr<GzipStream>> GzipStream::open(const std::string& path) {
  LOCKSTEP_ASSIGN(InputFile file, InputFile::open(path));
  std::unique_ptr<GzipStream> stream(new GzipStream(std::move(file)));
  if (!stream->is_open_) return Error{ErrorCode::kIo, "cannot be unpacked: out of memory", path};
  return stream;
}

std::string_view GzipStream::next() {
  zlib_->next_out = reinterpret_cast<Bytef*>(out_.data());
  zlib_->avail_out = static_cast<uInt>(out_.size());
  while (!is_done_ && zlib_->avail_out > 0) {
    if (zlib_->avail_in == 0 && !refill()) {
      is_done_ = true;
      // Between two gzip files the end is in order.
      if (is_open_) damage_ = "it ends early";
      break;
    }
    if (!is_open_ && !begin_next()) {
      is_done_ = true;
      break;
    }
    // Z_BUF_ERROR is no damage: inflate() wants more input or more room, which the next turn or call gives.
    const int code = inflate(zlib_.get(), Z_NO_FLUSH);
    if (code == Z_STREAM_END) {
      is_open_ = false;
    } else if (code != Z_OK && code != Z_BUF_ERROR) {
      is_done_ = true;
      damage_ = zlib_->msg != nullptr ? zlib_->msg : "unknown damage";
    }
  }
  return {reinterpret_cast<const char*>(out_.data()), out_.size() - zlib_->avail_out};
}

bool GzipStream::refill() {
  const size_t got = file_.read_at(offset_, in_);
  offset_ += got;
  zlib_->next_in = reinterpret_cast<Bytef*>(in_.data());
  zlib_->avail_in = static_cast<uInt>(got);
  return got > 0;
}

// What is no gzip file behind one is padding.
bool GzipStream::begin_next() {
  constexpr Bytef kFirst = 0x1f;
  if (*zlib_->next_in != kFirst) return false;
  is_open_ = inflateReset(zlib_.get()) == Z_OK;
  return is_open_;
}

}  // namespace lockstep::readers
