// SPDX-License-Identifier: Apache-2.0
// Which names in files mean one thing. Containers may have one host name on several hosts, and each its
// process 1: what files say beside the name shows it. Belongs to one thread.
#pragma once
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::readers::common {

// What is known of a thing, by what it is: "GPU 3" and its UUID, a communicator and the ranks in it.
using Facts = std::map<std::string, std::set<std::string>>;

class Identities {
 public:
  struct Place {
    size_t number = 0;  // of the thing, from 0
    bool is_new = false;
    size_t alike = 0;  // of a new one: things with this name before it
  };
  // The thing with this name that has most facts in common with these and contradicts none: nothing that both
  // know has to be another. A new one if there is none.
  Place place(const std::string& name, const Facts& facts);
  // Things whose name another had before them.
  size_t kept_apart() const { return facts_.size() - by_name_.size(); }

 private:
  struct Named {
    std::vector<size_t> numbers;
    std::map<std::pair<std::string, std::string>, size_t> by_fact;  // the first
  };
  std::map<std::string, Named> by_name_;
  std::vector<Facts> facts_;  // by number
};

}  // namespace lockstep::readers::common
