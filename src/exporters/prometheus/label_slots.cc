// SPDX-License-Identifier: Apache-2.0
// Prometheus keeps a series for every set of label values that it has seen, so a run with changing names
// would fill its memory. Names get places in the order of their weight; who comes later without a free place
// is counted as `other`. A look costs O(n log n) in its names, and an eviction O(places).
#include "exporters/prometheus/label_slots.h"

#include <algorithm>

#include "base/utf8.h"

namespace lockstep::exporters::metrics {

constexpr std::string_view kOther = "other";

std::string label_text(std::string_view text) {
  constexpr size_t kMost = 64;
  constexpr std::string_view kCut = "...";
  const bool is_long = text.size() > kMost;
  std::string label = valid_utf8(is_long ? cut_utf8(text, kMost - kCut.size()) : text);
  for (char& c : label) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  if (is_long) label += kCut;
  return label;
}

void LabelSlots::want(const std::string& name, double weight, bool alive) {
  if (name == kOther) return;  // a series of its own would bear the labels of those without one
  Wish& wish = wanted_[name];
  wish.weight += weight;
  wish.alive = wish.alive || alive;
}

std::vector<uint16_t> LabelSlots::finish() {
  ++looks_;
  std::vector<std::pair<double, const std::string*>> news;
  for (const auto& [name, wish] : wanted_) {
    auto known = places_.find(name);
    if (known == places_.end())
      news.emplace_back(wish.weight, &name);
    else if (wish.alive)
      known->second.seen = looks_;
  }
  // Stable over a sorted map: names of equal weight get the same places in every run.
  std::stable_sort(news.begin(), news.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<uint16_t> taken;
  folded_ = 0;
  for (const auto& [weight, name] : news) {
    auto slot = static_cast<uint16_t>(places_.size());
    if (slot == names_.size()) {
      // What has gone gives way to what lives, and to nothing else: two that are gone would take turns.
      auto oldest = std::min_element(places_.begin(), places_.end(), [](const auto& a, const auto& b) {
        return a.second.seen < b.second.seen;
      });
      if (oldest == places_.end() || oldest->second.seen == looks_ || !wanted_[*name].alive) {
        ++folded_;
        continue;
      }
      slot = oldest->second.slot;
      places_.erase(oldest);
      taken.push_back(slot);
    }
    places_[*name] = {slot, looks_};
    names_[slot] = *name;
  }
  return taken;
}

uint16_t LabelSlots::slot(const std::string& name) const {
  auto known = places_.find(name);
  return known == places_.end() ? other() : known->second.slot;
}

std::string LabelSlots::text(uint16_t slot) const {
  return slot < names_.size() ? names_[slot] : std::string(kOther);
}

}  // namespace lockstep::exporters::metrics
