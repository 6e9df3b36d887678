// SPDX-License-Identifier: Apache-2.0
// C++ symbols as their source spells them.
#pragma once
#include <string>
#include <string_view>

namespace lockstep::readers::common {

// The name of a symbol; the symbol itself where it is none of C++, is cut short, or refers to its own parts
// so often that its name could grow beyond reason (a symbol of 1 KB can stand for a name of any length).
std::string demangled(std::string_view symbol);
// The same without templates and arguments, in a time that the symbol's length bounds: "a::b::kernel".
std::string scoped_name(std::string_view symbol);

}  // namespace lockstep::readers::common
