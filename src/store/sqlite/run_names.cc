// SPDX-License-Identifier: Apache-2.0
// A shape's texts are made when the run first meets it: ranks of a job have nearly all shapes in common.
#include "store/sqlite/run_names.h"

#include <string>

#include "base/result.h"
#include "model/event_kind.h"
#include "model/names/op_names.h"
#include "store/sqlite/schema.h"

namespace lockstep::store::sqlite {
namespace {

// "ncclFloat32 RING LL root=2"
std::string shape_args(const model::Trace& trace, uint32_t shape) {
  std::string text;
  for (model::StringId part :
       {trace.shapes.datatype[shape], trace.shapes.algo[shape], trace.shapes.proto[shape]}) {
    if (part == 0) continue;
    if (!text.empty()) text += ' ';
    text += trace.strings[part];
  }
  // NCCL gives root 0 to operations without a root, so 0 says nothing.
  if (int32_t root = trace.shapes.root[shape]; root != 0)
    text += (text.empty() ? "root=" : " root=") + std::to_string(root);
  return text;
}

}  // namespace

RunNames::RunNames() {
  for (const char* text : kFixedTexts) intern(text);
  // Texts with fixed numbers come first, as views name them by number (schema.h).
  for (uint8_t kind = 1; kind < model::kEventKinds; ++kind) intern(model::event_name(kind));
  LOCKSTEP_CHECK(all_.strings.size() == size_t{kFixedStrings} + model::kEventKinds - 1);
}

uint32_t RunNames::kind_text(uint8_t kind) {
  return kind > 0 && kind < model::kEventKinds ? uint32_t{kFixedStrings} - 1 + kind : uint32_t{kDomain};
}

void RunNames::add(const model::Trace& trace) {
  // Not cleared: every place is written anew.
  string_map_.resize(trace.strings.size());
  for (uint32_t i = 0; i < string_map_.size(); ++i) string_map_[i] = intern(trace.strings[i]);
  // A damaged trace may name texts that it lacks; number 0 is the empty one.
  auto map = [&](model::StringId text) { return text < string_map_.size() ? string_map_[text] : 0; };
  shape_map_.resize(trace.shapes.size());
  for (uint32_t i = 0; i < shape_map_.size(); ++i) {
    model::Shape shape = trace.shapes.row(i);
    shape_map_[i] = all_.intern_shape(
        {map(shape.func), map(shape.datatype), map(shape.algo), map(shape.proto), shape.root});
    // Known from another process.
    if (shape_map_[i] < shape_texts_.size()) continue;
    uint32_t row = shape_map_[i];
    shape_texts_.push_back({intern(model::kernel_name(all_, row, false)),
                            intern(model::kernel_name(all_, row, true)),
                            intern(model::api_name(all_, row, false)), intern(shape_args(all_, row))});
  }
}

}  // namespace lockstep::store::sqlite
