// SPDX-License-Identifier: Apache-2.0
#include "model/element_size.h"

#include <algorithm>
#include <cctype>
#include <string>

namespace lockstep::model {

uint32_t element_size(std::string_view datatype) {
  std::string name(datatype.starts_with("nccl") ? datatype.substr(4) : datatype);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  size_t digit = name.find_first_of("0123456789");
  if (digit != std::string::npos) {  // the width in bits comes first, also in float8e4m3
    std::string_view width = std::string_view(name).substr(digit);
    return width.starts_with("16")    ? 2
           : width.starts_with("32")  ? 4
           : width.starts_with("64")  ? 8
           : width.starts_with("128") ? 16
                                      : 1;
  }
  if (name == "half" || name == "short") return 2;
  if (name == "float" || name == "int") return 4;
  if (name == "double" || name == "long") return 8;
  return 1;
}

}  // namespace lockstep::model
