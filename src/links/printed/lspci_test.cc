// SPDX-License-Identifier: Apache-2.0
#include "links/printed/lspci.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "links/judge/facts.h"
#include "links/judge/judge.h"
#include "links/printed/printed.h"

namespace lockstep::links {
namespace {

constexpr const char* kNoAcs =
    "SrcValid- TransBlk- ReqRedir- CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans-";
constexpr const char* kRedirects =
    "SrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-";

std::string bridge_text(const std::string& address, const std::string& below, const std::string& acs) {
  return address +
         " PCI bridge: Broadcom / LSI PEX890xx PCIe Gen 5 Switch (rev b0) (prog-if 00 [Normal decode])\n"
         "\tControl: I/O+ Mem+ BusMaster+\n\tBus: primary=00, secondary=" +
         below + ", subordinate=ff, sec-latency=0\n" +
         "\tCapabilities: [68] Express (v2) Downstream Port (Slot+), IntMsgNum 0\n"
         "\t\tLnkCap:\tPort #0, Speed 32GT/s, Width x16, ASPM L1, Exit Latency L1 <32us\n"
         "\t\tLnkSta:\tSpeed 32GT/s, Width x16\n" +
         (acs.empty() ? ""
                      : "\tCapabilities: [148 v1] Access Control Services\n\t\tACSCap:\t" +
                            std::string(kRedirects) + "\n\t\tACSCtl:\t" + acs + "\n") +
         "\tKernel driver in use: pcieport\n\n";
}
std::string device_text(const std::string& address, const std::string& what, const std::string& status) {
  return address + " " + what + "\n\tControl: I/O- Mem+ BusMaster+\n\tNUMA node: 1\n" +
         "\tCapabilities: [60] Express (v2) Endpoint, IntMsgNum 0\n"
         "\t\tLnkCap:\tPort #0, Speed 32GT/s, Width x16, ASPM not supported\n"
         "\t\tLnkCap2: Supported Link Speeds: 2.5-32GT/s, Crosslink- Retimer+ 2Retimers+ DRS-\n"
         "\t\tLnkSta:\t" +
         status + "\n\t\tLnkSta2: Current De-emphasis Level: -6dB\n\n";
}
const std::string kGpuName = "3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB] (rev a1)";
const std::string kNicName = "Infiniband controller: Mellanox Technologies MT2910 Family [ConnectX-7]";
const std::string kWell = "Speed 32GT/s, Width x16";

// A GPU and a card below one switch.
std::string host_text(const std::string& gpu = kWell, const std::string& nic = kWell,
                      const std::string& acs = kNoAcs, const std::string& domain = "") {
  return bridge_text(domain + "15:01.0", "16", acs) + bridge_text(domain + "16:00.0", "17", "") +
         bridge_text(domain + "17:00.0", "18", acs) + bridge_text(domain + "17:01.0", "1a", acs) +
         device_text(domain + "18:00.0", kGpuName, gpu) + device_text(domain + "1a:00.0", kNicName, nic) +
         domain + "20:00.0 VGA compatible controller: ASPEED Technology, Inc. ASPEED Graphics Family\n" +
         "\tControl: I/O+\n\n";
}

LinksRecord record_of(const std::string& text) {
  EXPECT_TRUE(is_lspci(text)) << text;
  auto record = parse_any(text, "lspci.txt");
  EXPECT_TRUE(record) << record.error().message();
  return record ? *std::move(record) : LinksRecord();
}
std::vector<analysis::Finding> troubles_in(const std::string& text) {
  std::vector<analysis::Finding> findings = judge(record_of(text), nullptr);
  std::erase_if(findings, [](const auto& found) { return found.severity == analysis::Severity::kNote; });
  return findings;
}

TEST(Lspci, DrawsTheTree) {
  const LinksRecord record = record_of(host_text());
  const Machine machine = machine_of(record.before.files, record.before.gpus);
  ASSERT_EQ(machine.gpus.size(), 1u) << "the screen of the service processor is none";
  ASSERT_EQ(machine.nics.size(), 1u);
  EXPECT_EQ(machine.pci.size(), 7u);
  const PciDevice& gpu = machine.pci.at("0000:18:00.0");
  EXPECT_EQ(gpu.root, "pci0000:15");
  EXPECT_EQ(gpu.bridges, (std::vector<std::string>{"0000:15:01.0", "0000:16:00.0", "0000:17:00.0"}));
  EXPECT_EQ(gpu.numa_node, 1);
  EXPECT_EQ(path_between(machine, gpu.address, "0000:1a:00.0"), Path::kSwitch);
  EXPECT_EQ(facts_of(record).nearest.at("0000:18:00.0"), std::set<std::string>{"0000:1a:00.0"});
  EXPECT_TRUE(troubles_in(host_text()).empty());
  EXPECT_TRUE(troubles_in(host_text(kWell, kWell, kNoAcs, "0001:")).empty());
  const auto findings = judge(record, nullptr);
  ASSERT_EQ(findings.size(), 1u) << "of settings lspci says nothing";
  EXPECT_EQ(findings[0].statement, "lspci shows only PCIe links and ACS");
}

TEST(Lspci, NamesTheLinkThatIsNarrowOrSlow) {
  auto found = troubles_in(host_text("Speed 32GT/s, Width x8 (downgraded)"));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(id_text(found[0].id), "slow-link.pcie");
  EXPECT_EQ(found[0].statement, "GPU 0 (0000:18:00.0) has a PCIe link of 8 lanes where both ends can do 16");
  ASSERT_EQ(found[0].evidence.size(), 2u);
  EXPECT_EQ(found[0].evidence[0], "0000:18:00.0 runs at 32.0 GT/s x8, and can do 32.0 GT/s x16");
  EXPECT_EQ(found[0].evidence[1], "the port above it, 0000:17:00.0, can do 32.0 GT/s x16");
  found = troubles_in(host_text(kWell, "Speed 16GT/s (downgraded), Width x16 (ok)"));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].statement,
            "network card 0000:1a:00.0 has a PCIe link of 16.0 GT/s where both ends can do 32.0");
  // Idle GPUs lower their speed.
  EXPECT_TRUE(troubles_in(host_text("Speed 2.5GT/s (downgraded), Width x16")).empty());
}

TEST(Lspci, ADeviceOfALongDomainIsNotTheOneBefore) {
  // In a listing the GPU is the last before it.
  const std::string gpu_last = bridge_text("15:01.0", "18", "") + device_text("18:00.0", kGpuName, kWell);
  EXPECT_TRUE(troubles_in(gpu_last).empty());
  EXPECT_TRUE(troubles_in(gpu_last + device_text("10000:01:00.0", "Non-Volatile memory controller: A drive",
                                                 "Speed 16GT/s, Width x4"))
                  .empty());
}

TEST(Lspci, NamesBridgesThatRedirect) {
  const auto found = troubles_in(host_text(kWell, kWell, kRedirects));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(id_text(found[0].id), "fallback.acs");
  ASSERT_EQ(found[0].evidence.size(), 2u) << "the port of the host is above what they share";
  EXPECT_EQ(found[0].evidence[0], "0000:17:00.0: ACS control 0x001d");
  EXPECT_EQ(found[0].evidence[1], "0000:17:01.0: ACS control 0x001d");
}

TEST(Lspci, WhatIsMaskedOrDeniedIsNoAbsence) {
  std::string masked = host_text(kWell, kWell, "");
  const auto redirect = [](const std::string& text) {
    const LinksRecord record = record_of(text);
    return redirected(machine_of(record.before.files, record.before.gpus), "0000:18:00.0", "0000:1a:00.0")
        .redirect;
  };
  EXPECT_EQ(redirect(masked), Redirect::kNo);
  for (size_t at = 0; (at = masked.find("\tKernel driver", at)) != masked.npos; at += 40)
    masked.insert(at, "\tCapabilities: [100 v0] Null\n");
  EXPECT_EQ(redirect(masked), Redirect::kHidden);
  std::string denied = host_text(kWell, kWell, "");
  const size_t at = denied.find("17:00.0 PCI bridge"), capabilities = denied.find("\tCapabilities", at);
  denied.replace(capabilities, denied.find("\tKernel", at) - capabilities,
                 "\tCapabilities: <access denied>\n");
  EXPECT_EQ(redirect(denied), Redirect::kUnknown);
}

// As -xxxx prints it: a bridge, or with `below` 0 a device, whose link runs at generation 4 with 8 lanes.
std::string bytes_text(const std::string& heading, uint16_t vendor, uint32_t kind, int below, uint16_t acs) {
  std::string bytes(4096, '\0');
  const auto put = [&](size_t at, uint32_t value) {
    bytes[at] = static_cast<char>(value & 255);
    bytes[at + 1] = static_cast<char>(value >> 8);
  };
  put(0, vendor);
  put(6, 0x10);
  put(0x0a, kind);
  put(0x0e, below != 0 ? 1 : 0);
  put(0x18, static_cast<uint32_t>(below) << 8);
  put(0x34, 0x40);
  put(0x40, 0x6001);        // power management, and behind it
  put(0x60, 0x10);          // PCI Express
  put(0x6c, 16u << 4 | 5);  // can do x16 at 32 GT/s
  put(0x72, 8u << 4 | 4);   // does x8 at 16 GT/s
  if (below != 0) {
    put(0x102, 0x2001);  // another capability, and behind it
    put(0x100, 0x0003);
    put(0x200, 0x000d);
    put(0x202, 1);
    put(0x206, acs);
  }
  std::string text = heading + "\n";
  for (size_t at = 0; at < bytes.size(); at += 16) {
    char part[24];
    std::snprintf(part, sizeof part, "%02zx:", at);
    text += part;
    for (size_t i = 0; i < 16; ++i) {
      std::snprintf(part, sizeof part, " %02x", static_cast<unsigned>(bytes[at + i]) & 255);
      text += part;
    }
    text += '\n';
  }
  return text + "\n";
}

TEST(Lspci, BytesSayTheSame) {
  const std::string text = bytes_text("15:01.0 0604: 8086:352a (rev 04)", 0x8086, 0x0604, 0x16, 0) +
                           bytes_text("16:00.0 0604: 1000:c030", 0x1000, 0x0604, 0x17, 0) +
                           bytes_text("17:00.0 0604: 1000:c030", 0x1000, 0x0604, 0x18, 0x1d) +
                           bytes_text("17:01.0 0604: 1000:c030", 0x1000, 0x0604, 0x1a, 0) +
                           bytes_text("18:00.0 0302: 10de:2330 (rev a1)", 0x10de, 0x0302, 0, 0) +
                           bytes_text("1a:00.0 0207: 15b3:1021", 0x15b3, 0x0207, 0, 0);
  const auto found = troubles_in(text);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].statement, "GPU 0 (0000:18:00.0) has a PCIe link of 8 lanes where both ends can do 16");
  EXPECT_EQ(found[1].statement,
            "network card 0000:1a:00.0 has a PCIe link of 8 lanes where both ends can do 16, at 16.0 GT/s "
            "where both ends can do 32.0");
  EXPECT_EQ(id_text(found[2].id), "fallback.acs");
  EXPECT_EQ(found[2].evidence, (std::vector<std::string>{"0000:17:00.0: ACS control 0x001d"}));
}

TEST(Lspci, WhatIsCutOrForeignIsRefused) {
  const std::string text = host_text();
  EXPECT_TRUE(parse_lspci(text, "f"));
  EXPECT_FALSE(parse_lspci(text.substr(0, text.size() - 1), "f"));
  EXPECT_FALSE(parse_lspci(text.substr(0, text.find("\t\tLnkSta:")) + "\n", "f")) << "no link";
  EXPECT_FALSE(parse_lspci(text + text, "f")) << "of two hosts";
  EXPECT_FALSE(is_lspci("15:01.0 PCI bridge: Intel\n16:00.0 PCI bridge: Intel\n")) << "lspci without -v";
  for (const char* const head :
       {"10:15:01.0", ":15:01.0", "0000:15:01.0.", "000000:15:01.0", "15-01.0", "0000:15:01:0"})
    EXPECT_FALSE(is_lspci(head + std::string(" PCI bridge: x\n\ty\n"))) << head;
  EXPECT_FALSE(is_lspci("\tControl: x\n"));
  // A bridge that is below itself, and one below it that is above it.
  const std::string circle = bridge_text("15:00.0", "15", kNoAcs) + bridge_text("16:00.0", "17", kNoAcs) +
                             bridge_text("17:00.0", "16", kNoAcs) + device_text("17:01.0", kGpuName, kWell);
  EXPECT_TRUE(troubles_in(circle).empty());
}

}  // namespace
}  // namespace lockstep::links
