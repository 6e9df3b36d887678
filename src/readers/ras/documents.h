// SPDX-License-Identifier: Apache-2.0
// JSON objects in a text, one behind the other, whatever stands between them. NCCL 2.28 leaves a comma out
// where ranks are missing; it is put in where a value is followed by a key. An object ends where a snapshot
// begins: the rest of it was cut off.
#pragma once
#include <string>
#include <string_view>

namespace lockstep::readers::ras {

struct Document {
  std::string text;    // from its opening brace on
  bool whole = false;  // its closing brace is there
};

// Takes the next one off the text; an empty one if there is none.
Document next_document(std::string_view& text);

}  // namespace lockstep::readers::ras
