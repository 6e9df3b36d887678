// SPDX-License-Identifier: Apache-2.0
// The names under which others reach this machine, as far as its own settings show: a name that somebody else
// has pointed here is none of them.
#pragma once
#include <string>
#include <vector>

namespace lockstep::cli::http {

// `host`: what the machine calls itself, with a domain or without. `canonical`: what its resolver makes of
// that, or empty. `domains`: those in which its resolver looks for short names. In lower case, without a dot
// at the end.
std::vector<std::string> names_of_machine(const std::string& host, const std::string& canonical,
                                          const std::vector<std::string>& domains);

// Of this machine; asks the resolver once, at the first call, which may take it some seconds.
const std::vector<std::string>& machine_names();

// As names are compared: in lower case, without a dot at the end.
std::string plain_name(std::string name);

}  // namespace lockstep::cli::http
