// SPDX-License-Identifier: Apache-2.0
// Reads RAS snapshots in JSON as a stream of events, with a parser that does not recurse: depth and size of
// the document are the sender's choice. A value counts by where it stands, not by its name alone.
#include "readers/ras/snapshot.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "model/limits.h"

namespace lockstep::readers::ras {
namespace {

constexpr size_t kLongestText = 256;
// Bounds on what a hostile document makes; a job of 16,384 ranks in 60 communicators each stays below.
constexpr size_t kMostComms = 1 << 17, kMostRows = 1 << 22, kMostFunctions = 64;

// Where in a snapshot a value stands.
// "rank" and "status" occur in several kinds of objects, so a name alone does not say what a value is.
enum class Place : uint8_t {
  kTop,
  kComms,
  kComm,
  kRanks,
  kRank,
  kRankStatus,
  kCounts,
  kMissing,
  kMissingRank,
  kMissingStatus,
  kRas,
  kOther
};

int32_t int32_of(int64_t value) {
  return value < std::numeric_limits<int32_t>::min() || value > std::numeric_limits<int32_t>::max()
             ? -1
             : static_cast<int32_t>(value);
}

// Fed by nlohmann's parser, which does not recurse.
class Builder {
 public:
  Snapshot snapshot;
  bool is_snapshot = false;

  // No value ends the reading: what is of no use is passed over.
  bool null() { return true; }
  bool boolean(bool value) {
    take_flag(value);
    return true;
  }
  bool number_integer(int64_t value) {
    take_number(value);
    return true;
  }
  bool number_unsigned(uint64_t value) {
    // Keys of "collective_counts" are functions, whichever the release has.
    if (at() == Place::kCounts) {
      if (rank_.launched.size() < kMostFunctions) rank_.launched.emplace_back(key_, value);
    } else {
      take_number(static_cast<int64_t>(std::min<uint64_t>(value, INT64_MAX)));
    }
    return true;
  }
  bool number_float(double value, const std::string&) {
    if (at() == Place::kRas && key_ == "collection_time_sec") snapshot.collection_s = value;
    return true;
  }
  bool string(std::string& value) {
    // Names of hosts, hashes and times are shorter. What is longer is no such text.
    value.resize(std::min(value.size(), kLongestText));
    take_text(value);
    return true;
  }
  bool binary(std::vector<uint8_t>&) { return false; }
  bool key(std::string& value) {
    value.resize(std::min(value.size(), kLongestText));
    key_ = std::move(value);
    return true;
  }
  bool start_object(size_t) {
    open(inside(true));
    return true;
  }
  bool start_array(size_t) {
    open(inside(false));
    return true;
  }
  bool end_object() {
    const Place place = at();
    places_.pop_back();
    if (place == Place::kRank) keep(std::move(rank_), comm_.ranks);
    if (place == Place::kMissingRank) keep(std::move(missing_), comm_.missing);
    if (place == Place::kComm) keep_comm();
    return true;
  }
  bool end_array() {
    places_.pop_back();
    return true;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) { return false; }

  // What is whole of a communicator that is not.
  void finish() {
    if (std::find(places_.begin(), places_.end(), Place::kComm) != places_.end()) keep_comm();
  }

 private:
  Place at() const { return places_.empty() ? Place::kOther : places_.back(); }

  Place inside(bool object) const {
    if (places_.empty()) return object ? Place::kTop : Place::kOther;
    switch (at()) {
      case Place::kTop:
        if (!object && key_ == "communicators") return Place::kComms;
        return object && key_ == "ras" ? Place::kRas : Place::kOther;
      case Place::kComms:
        return object ? Place::kComm : Place::kOther;
      case Place::kComm:
        if (!object && key_ == "ranks") return Place::kRanks;
        return !object && key_ == "missing_ranks" ? Place::kMissing : Place::kOther;
      case Place::kRanks:
        return object ? Place::kRank : Place::kOther;
      case Place::kRank:
        if (object && key_ == "status") return Place::kRankStatus;
        return object && key_ == "collective_counts" ? Place::kCounts : Place::kOther;
      case Place::kMissing:
        return object ? Place::kMissingRank : Place::kOther;
      case Place::kMissingRank:
        return object && key_ == "status" ? Place::kMissingStatus : Place::kOther;
      default:
        return Place::kOther;
    }
  }
  void open(Place place) {
    places_.push_back(place);
    if (place == Place::kComms) is_snapshot = true;
    // Begun empty: what one lacks must not be that of the one before.
    if (place == Place::kComm) comm_ = {};
    if (place == Place::kRank) rank_ = {};
    if (place == Place::kMissingRank) missing_ = {};
  }

  void take_text(const std::string& value) {
    if (at() == Place::kTop && key_ == "nccl_version") snapshot.nccl_version = value;
    if (at() == Place::kTop && key_ == "timestamp") snapshot.time = value;
    if (at() == Place::kComm && key_ == "hash") comm_.hash = value;
    if (RankPlace* const place = rank_place(); place != nullptr && key_ == "host" && value != "unknown")
      place->host = value;
  }
  RankPlace* rank_place() {
    if (at() == Place::kRank) return &rank_;
    return at() == Place::kMissingRank ? &missing_ : nullptr;
  }
  void take_number(int64_t value) {
    if (at() == Place::kComm && key_ == "size") comm_.size = int32_of(value);
    if (at() == Place::kRas && key_ == "timeouts_count")
      snapshot.timeouts = static_cast<uint64_t>(std::max<int64_t>(value, 0));
    if (at() == Place::kRankStatus && key_ == "init_state") rank_.init_state = int32_of(value);
    if (at() == Place::kRankStatus && key_ == "async_error") rank_.async_error = int32_of(value);
    RankPlace* const place = rank_place();
    if (place == nullptr) return;
    if (key_ == "rank") place->rank = int32_of(value);
    if (key_ == "pid") place->pid = std::max<int64_t>(value, -1);
    if (key_ == "cuda_dev") place->cuda_device = int32_of(value);
    if (key_ == "nvml_dev") place->nvml_device = int32_of(value);
  }
  void take_flag(bool value) {
    if (at() == Place::kRankStatus) {
      if (key_ == "finalize_called") rank_.finalize_called = value;
      if (key_ == "destroy_flag") rank_.destroyed = value;
      if (key_ == "abort_flag") rank_.aborted = value;
    } else if (at() == Place::kMissingStatus) {
      if (key_ == "unresponsive") missing_.unresponsive = value;
      if (key_ == "considered_dead") missing_.considered_dead = value;
    }
  }

  template <class Row>
  void keep(Row row, std::vector<Row>& rows) {
    if (ranks_ == kMostRows) {
      ++snapshot.left_out;
    } else {
      rows.push_back(std::move(row));
      ++ranks_;
    }
  }
  template <class Row>
  void sort(std::vector<Row>& rows) {
    const size_t all = rows.size();
    std::erase_if(rows, [this](const Row& row) { return row.rank < 0 || row.rank >= comm_.size; });
    std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.rank < b.rank; });
    // Of two rows of one rank the first stands, as the sort is stable.
    rows.erase(
        std::unique(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.rank == b.rank; }),
        rows.end());
    snapshot.bad_ranks += all - rows.size();
  }
  // Ranks that the communicator cannot have, and further reports of one rank, are left out and counted.
  void keep_comm() {
    sort(comm_.ranks);
    sort(comm_.missing);
    const size_t rows = comm_.ranks.size() + comm_.missing.size();
    if (snapshot.comms.size() == kMostComms || comm_.size > model::kMostRanks) {
      snapshot.left_out += std::max<size_t>(rows, 1);
    } else if (rows > 0) {
      snapshot.comms.push_back(std::move(comm_));
    }
    comm_ = {};
  }

  std::vector<Place> places_;
  std::string key_;
  Comm comm_;
  Rank rank_;
  MissingRank missing_;
  size_t ranks_ = 0;
};

}  // namespace

std::optional<Snapshot> make_snapshot(const Document& document) {
  Builder builder;
  const bool parsed = nlohmann::json::sax_parse(document.text, &builder);
  if (!builder.is_snapshot) return std::nullopt;
  // The parser stops where the document does: a communicator may be open.
  builder.finish();
  builder.snapshot.cut = !parsed || !document.whole;
  return std::move(builder.snapshot);
}

}  // namespace lockstep::readers::ras
