// SPDX-License-Identifier: Apache-2.0
// Texts and shapes of the run: each content has one number, whichever processes used it.
#pragma once
#include <cstdint>
#include <vector>

#include "model/trace.h"

namespace lockstep::store::sqlite {

// Numbers are given in the order in which texts come, after the fixed ones (schema.h), and never change in a
// run. Memory grows with the different texts of the run, not with its rows.
class RunNames {
 public:
  // Numbers of the texts that name one shape in rocpd tables.
  struct ShapeTexts {
    uint32_t kernel, custom_kernel, api, args;
  };

  RunNames();
  // Gives the trace's texts and shapes their run-wide numbers; the maps below hold until the next call.
  void add(const model::Trace& trace);
  const std::vector<uint32_t>& string_map() const { return string_map_; }  // by number in the trace
  const std::vector<uint32_t>& shape_map() const { return shape_map_; }

  uint32_t intern(std::string_view text) { return all_.strings.intern(text); }
  static uint32_t kind_text(uint8_t kind);  // number of an event kind's name
  const ShapeTexts& shape_texts(uint32_t run_shape) const { return shape_texts_[run_shape]; }
  const model::StringPool& strings() const { return all_.strings; }
  const model::ShapeTable& shapes() const { return all_.shapes; }

 private:
  model::Trace all_;  // only its texts and shapes
  std::vector<ShapeTexts> shape_texts_;
  std::vector<uint32_t> string_map_, shape_map_;
};

}  // namespace lockstep::store::sqlite
