// SPDX-License-Identifier: Apache-2.0
// Reads states and error counts of NVLinks, of `nvidia-smi nvlink -s`, `-e` or both in one file. Each GPU is
// a heading with its UUID, and each link one line for its state and one for each kind of error. The tool says
// nowhere how many there are. So GPUs and links are held against each other: if one has fewer lines than its
// siblings, the text was cut.
#include "links/printed/nvlink.h"

#include <cmath>
#include <map>
#include <optional>

#include "links/printed/lines.h"

namespace lockstep::links {
namespace {

constexpr size_t kMostNvlinkGpus = 256, kMostNvlinks = 64;

struct Counted {
  std::string_view printed, name;  // as GpuLink::errors calls it
};
// Later generations count more; what healthy links have too many of is left out.
constexpr Counted kCounted[] = {
    {"Replay Errors", "replay"}, {"Recovery Errors", "recovery"}, {"CRC Errors", "crc"}};

struct GpuHead {
  uint32_t index = 0;
  std::string_view name, uuid;
};
// "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-5261e3df-...)"
std::optional<GpuHead> head_of(std::string_view line) {
  constexpr std::string_view kStart = "GPU ", kUuid = " (UUID: ";
  const size_t colon = line.find(": "), open = line.rfind(kUuid);
  if (!line.starts_with(kStart) || colon == line.npos || open == line.npos || open < colon + 2 ||
      !line.ends_with(')'))
    return std::nullopt;
  const auto index = number_of<uint32_t>(line.substr(kStart.size(), colon - kStart.size()));
  line.remove_suffix(1);
  const std::string_view uuid = line.substr(open + kUuid.size());
  if (!index || !uuid.starts_with("GPU-") || uuid.size() > 64 ||
      uuid.find_first_not_of("GPU-0123456789abcdefABCDEF") != uuid.npos)
    return std::nullopt;
  return GpuHead{*index, line.substr(colon + 2, open - colon - 2), uuid};
}

struct LinkLine {
  uint32_t number = 0;
  std::string_view says;  // "26.562 GB/s", "<inactive>", "Replay Errors: 0"
};
// Of what -s and -e print; -c and -p have other words behind the number.
std::optional<LinkLine> link_of(std::string_view line) {
  line = trimmed(line, kBlanksOfLine);
  const size_t colon = line.find(": ");
  if (!line.starts_with("Link ") || colon == line.npos) return std::nullopt;
  const auto number = number_of<uint32_t>(line.substr(5, colon - 5));
  const std::string_view says = line.substr(colon + 2);
  if (!number || *number >= kMostNvlinks ||
      (says != "<inactive>" && !says.ends_with(" GB/s") && says.find(" Errors: ") == says.npos))
    return std::nullopt;
  return LinkLine{*number, says};
}

class NvlinkParser {
 public:
  explicit NvlinkParser(const std::string& where) : where_(where) {}

  Result<void> line(std::string_view line, uint32_t number) {
    if (const auto head = head_of(trimmed(line, kBlanksOfLine))) return open(*head);
    const auto of = link_of(line);
    if (!of) return {};
    if (gpu_ == nullptr) return error("has links without a GPU");
    GpuLink& link = link_at(of->number);
    // Also of kinds that are not used, as all of a link's lines count.
    ++lines_[gpu_->pci][of->number];
    bool is_trouble = false;
    if (of->says == "<inactive>") {
      // Two outputs of -s, which may be of two moments.
      if (link.is_up) return error("lists a link twice");
      link.is_up = false;
      is_trouble = true;
    } else if (of->says.ends_with(" GB/s")) {
      const auto rate = number_of<double>(of->says.substr(0, of->says.size() - 5));
      if (!rate || !std::isfinite(*rate) || *rate < 0) return error("has a rate that is not a number");
      if (link.is_up) return error("lists a link twice");
      link.is_up = *rate > 0;
      is_trouble = !*link.is_up;
      if (*rate > 0) gpu_->link_rate = std::max(gpu_->link_rate.value_or(0), *rate);
    } else {
      for (const Counted& counted : kCounted) {
        if (!of->says.starts_with(counted.printed) || of->says.substr(counted.printed.size(), 2) != ": ")
          continue;
        const auto count = number_of<uint64_t>(of->says.substr(counted.printed.size() + 2));
        if (!count) return error("does not count errors as nvidia-smi does");
        if (!link.errors.emplace(counted.name, *count).second) return error("lists a link twice");
        is_trouble = *count > 0;
      }
    }
    // Lines of links that are well would only push the others out.
    if (is_trouble) keep_line_of(record_, gpu_->pci, number, line);
    return {};
  }

  Result<LinksRecord> finish() {
    std::optional<size_t> links, lines;
    for (const auto& [gpu, counts] : lines_) {
      if (links.value_or(counts.size()) != counts.size())
        return error("is cut: GPUs have fewer links than others");
      links = counts.size();
      for (const auto& [number, count] : counts) {
        if (lines.value_or(count) != count) return error("is cut: links have fewer lines than others");
        lines = count;
      }
    }
    if (!links || lines_.size() != record_.before.gpus.gpus.size())
      return error("has a GPU without an NVLink");
    return std::move(record_);
  }

 private:
  Error error(std::string text) const { return Error{ErrorCode::kInvalidInput, std::move(text), where_}; }

  Result<void> open(const GpuHead& head) {
    std::vector<Gpu>& gpus = record_.before.gpus.gpus;
    record_.before.gpus.library = "nvidia-smi";
    for (Gpu& gpu : gpus)
      if (gpu.pci == head.uuid) {  // -s and then -e
        gpu_ = &gpu;
        return {};
      }
    if (gpus.size() >= kMostNvlinkGpus) return error("has too many GPUs");
    gpus.reserve(kMostNvlinkGpus);  // `gpu_` stays
    Gpu gpu;
    gpu.index = head.index;
    gpu.vendor = "nvidia";
    gpu.name = std::string(head.name.substr(0, 128));
    // Everything behind finds a GPU by its address. The UUID stands for it, as the tool prints no other name
    // that lasts.
    gpu.uuid = gpu.pci = std::string(head.uuid);
    gpu_ = &gpus.emplace_back(std::move(gpu));
    return {};
  }

  GpuLink& link_at(uint32_t number) {
    for (GpuLink& link : gpu_->links)
      if (link.number == number) return link;
    gpu_->links.emplace_back().number = number;
    return gpu_->links.back();
  }

  const std::string& where_;
  LinksRecord record_;
  Gpu* gpu_ = nullptr;                                       // the one whose links follow
  std::map<std::string, std::map<uint32_t, size_t>> lines_;  // by GPU and link
};

}  // namespace

bool is_nvlink(std::string_view text) {
  text = text.substr(0, 4096);
  bool after_gpu = false;
  for (TextLines lines(text); lines.next();) {
    if (after_gpu && link_of(lines.line())) return true;
    if (head_of(trimmed(lines.line(), kBlanksOfLine))) after_gpu = true;
  }
  return false;
}

Result<LinksRecord> parse_nvlink(std::string_view text, const std::string& where) {
  NvlinkParser parser(where);
  for (TextLines lines(text); lines.next();) LOCKSTEP_TRY(parser.line(lines.line(), lines.number()));
  return parser.finish();
}

}  // namespace lockstep::links
