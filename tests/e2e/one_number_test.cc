// SPDX-License-Identifier: Apache-2.0
// Whatever number of an operation a person reads leads to that operation: in verdicts, in the commands below
// them, in reports and lists, on communicators whose functions are mixed. And who is blamed is named in one
// way.
#include <regex>

#include "tests/e2e/workplace.h"
#include "tests/support/places.h"

namespace lockstep::test {
namespace {

using Json = nlohmann::json;

class OneNumber : public Workplace {
 protected:
  Json json(const Argv& words) const {
    const Finished finished = do_here(lockstep(words));
    Json document = Json::parse(finished.out, nullptr, false);
    EXPECT_TRUE(document.is_object()) << finished;
    return document;
  }

  // A command line as a person runs it.
  Finished in_shell(const std::string& command) const {
    return do_here({"bash", "-c", "PATH=" LOCKSTEP_BIN_DIR ":$PATH; " + command});
  }

  static std::string capitalised(std::string text) {
    text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
    return text;
  }

  // The command shows the operation of this name, and no other.
  void leads_to(const std::string& command, const std::string& name) {
    const Finished shown = in_shell(command);
    EXPECT_EQ(shown.code, 0) << command << shown;
    EXPECT_TRUE(has(shown.out, "\n" + capitalised(name))) << command << "\n" << name << shown;
    ++followed_;
  }

  // "operation 1329 of mesh_dp:1 (its 1,295th AllReduce)": counted again in the list of all operations.
  void ordinal_holds(const std::string& name, const std::string& comm, uint64_t index) {
    static const std::regex kOrdinal(R"(\(its ([0-9,]+)(?:st|nd|rd|th) (\w+)\))");
    std::smatch found;
    ASSERT_TRUE(std::regex_search(name, found, kOrdinal)) << name;
    std::string digits = found[1];
    std::erase(digits, ',');
    if (!lists_.contains(comm)) lists_[comm] = json({"show", "--json", "run", "--comm", comm})["op_list"];
    uint64_t number = 0;
    bool is_of_func = false;
    for (const Json& op : lists_[comm]) {
      if (op["func"] != found[2].str() || op["op_index"] > index) continue;
      ++number;
      is_of_func = is_of_func || op["op_index"] == index;
    }
    EXPECT_EQ(std::to_string(number), digits) << name;
    EXPECT_TRUE(is_of_func) << name;
  }

  void findings_lead_to_their_operations() {
    const Json diagnosis = json({"diagnose", "--json", "run"});
    for (const Json& finding : diagnosis["findings"]) {
      if (finding["operation"].is_null()) continue;
      const std::string name = finding["operation"];
      for (const std::string command : finding["next"]) {
        if (command.starts_with("lockstep show")) leads_to(command, name);
      }
      if (name.starts_with("operation"))
        ordinal_holds(name, finding["comm"], finding["op_index"]);
      else
        ++transfers_;
      for (const Json& who : finding["who"]) {
        EXPECT_EQ(who["text"], "rank " + who["rank"].dump() + " (GPU " + who["device"].dump() + " of " +
                                   who["host"].get<std::string>() + ", pid " + who["pid"].dump() + ")");
        EXPECT_LT(who["device"], 8) << "of its host, not of the run";
      }
    }
  }

  void report_leads_to_its_operations() {
    const Json report = json({"report", "--json", "run"});
    ASSERT_TRUE(report["operations"].contains("list")) << report["operations"];
    size_t tried = 0;
    for (const Json& operation : report["operations"]["list"]) {
      const std::string title = operation["title"];
      const std::string name = title.substr(0, title.rfind(", "));
      const Json& comm = report["comms"][operation["comm"].get<size_t>()];
      const std::string begin =
          "Operation " + operation["op_index"].dump() + " of " + comm["text"].get<std::string>();
      EXPECT_TRUE(name.starts_with(begin)) << name;
      ordinal_holds(name, comm["name"], operation["op_index"]);
      if (++tried <= 2) leads_to(comm["show"].get<std::string>() + operation["op_index"].dump(), name);
    }
    EXPECT_GT(tried, 0u);
  }

  // One simulated job, followed wherever numbers lead.
  void follow(const std::string& fault, int seed, const Argv& more = {}) {
    SCOPED_TRACE(fault + ", seed " + std::to_string(seed));
    std::filesystem::remove_all(path("run"));
    lists_.clear();
    Argv simulate = {LOCKSTEP_BIN_DIR "/lockstep-sim-job",
                     "--ranks",
                     "16",
                     "--steps",
                     "12",
                     "--seed",
                     std::to_string(seed),
                     "--fault",
                     fault,
                     "-o",
                     "run"};
    simulate.insert(simulate.end(), more.begin(), more.end());
    const Finished simulated = do_here(simulate);
    ASSERT_EQ(simulated.code, 0) << simulated;
    findings_lead_to_their_operations();
    report_leads_to_its_operations();
  }

  size_t followed_ = 0, transfers_ = 0;
  std::map<std::string, Json> lists_;  // by communicator
};

TEST_F(OneNumber, LeadsToTheOperationFromEverywhere) {
  for (const int seed : {3, 4}) {
    for (const char* fault :
         {"never-joined", "joined-other-op", "host-late", "stuck-in-gpu", "cross-comm-deadlock"})
      follow(fault, seed);
  }
  EXPECT_GT(followed_, 25u);
}

TEST_F(OneNumber, LeadsToTransfersOfAPipeline) {
  for (const int seed : {1, 2, 3, 4, 5, 6})
    follow("never-joined", seed, {"--layout", "tp=1,pp=8", "--ranks-per-host", "4"});
  EXPECT_GT(followed_, 12u);
}

}  // namespace
}  // namespace lockstep::test
