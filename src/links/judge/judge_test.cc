// SPDX-License-Identifier: Apache-2.0
#include "links/judge/judge.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "links/testing/healthy_machine.h"

namespace lockstep::links {
namespace {
using analysis::Finding;
using analysis::Severity;
using testing::bridge_address;
using testing::gpu_address;
using testing::healthy_record;
using testing::nic_address;
using testing::set;

std::vector<Finding> troubles(const LinksRecord& record, const LinksRecord* baseline = nullptr) {
  std::vector<Finding> findings = judge(record, baseline);
  std::erase_if(findings, [](const Finding& finding) { return finding.severity == Severity::kNote; });
  return findings;
}

std::string port(int nic, const std::string& file) {
  return "/sys/class/infiniband/mlx5_" + std::to_string(nic) + "/ports/1/" + file;
}

// The one trouble of a record, by its id; what it says contains `words`.
void expect_only(const LinksRecord& record, const std::string& id, const std::string& words) {
  const std::vector<Finding> found = troubles(record);
  ASSERT_EQ(found.size(), 1u) << (found.empty() ? "none"
                                                : found[0].statement + " / " + found.back().statement);
  EXPECT_EQ(id_text(found[0].id), id) << found[0].statement;
  EXPECT_NE(found[0].statement.find(words), std::string::npos) << found[0].statement;
  EXPECT_FALSE(found[0].advice.empty() && found[0].needed_evidence.empty());
}

void expect_note(const LinksRecord& record, const std::string& id, const std::string& words) {
  EXPECT_TRUE(troubles(record).empty());
  const std::vector<Finding> found = judge(record, nullptr);
  EXPECT_TRUE(std::any_of(found.begin(), found.end(), [&](const Finding& finding) {
    return id_text(finding.id) == id && finding.statement.find(words) != std::string::npos;
  })) << id;
}

Cell& cell(LinksRecord& record, CellKind kind, int from, int to) {
  for (Cell& cell : record.traffic->cells)
    if (cell.kind == kind && cell.from == gpu_address(from) && cell.to == gpu_address(to)) return cell;
  ADD_FAILURE();
  return record.traffic->cells[0];
}

void slow(Cell& cell, double factor) {
  for (double& sample : cell.samples) sample *= factor;
  cell.again = cell.samples;
}

TEST(LinksJudge, AHealthyMachineHasNoTrouble) {
  EXPECT_TRUE(judge(healthy_record(), nullptr).empty());
  const LinksRecord baseline = healthy_record();
  EXPECT_TRUE(judge(healthy_record(), &baseline).empty());
}

TEST(LinksJudge, ALinkThatFlaps) {
  LinksRecord record = healthy_record();
  set(record.after->files, port(3, "counters/link_downed"), "1");
  expect_only(record, "transport-error.link-flapped", "mlx5_3/1");
}

TEST(LinksJudge, AnInterfaceThatFlaps) {
  LinksRecord record = healthy_record();
  set(record.after->files, "/sys/class/net/ib5/carrier_changes", "4");
  expect_only(record, "transport-error.link-flapped", "ib5");
}

TEST(LinksJudge, AMarginalCable) {
  LinksRecord record = healthy_record();
  set(record.after->files, port(1, "counters/symbol_error"), "12");
  set(record.after->files, port(1, "counters/port_rcv_errors"), "3");
  expect_only(record, "transport-error.signal", "mlx5_1/1");  // two counters of one trouble
  EXPECT_EQ(troubles(record)[0].evidence.size(), 2u);
}

TEST(LinksJudge, ACounterThatIsFullCountsAtLeast) {
  LinksRecord record = healthy_record();
  set(record.before.files, port(1, "counters/local_link_integrity_errors"), "9");
  set(record.after->files, port(1, "counters/local_link_integrity_errors"), "15");
  const std::vector<Finding> found = troubles(record);
  ASSERT_FALSE(found.empty());
  EXPECT_NE(found[0].evidence[0].find("at least 6"), std::string::npos) << found[0].evidence[0];
}

TEST(LinksJudge, ACounterThatWasReset) {
  LinksRecord record = healthy_record();
  set(record.before.files, port(1, "counters/link_downed"), "7");
  set(record.after->files, port(1, "counters/link_downed"), "0");
  EXPECT_TRUE(troubles(record).empty());
}

TEST(LinksJudge, CongestionIsNoFault) {
  for (const auto& [counter, amount] :
       {std::pair("counters/port_xmit_wait", "4000000000"), std::pair("hw_counters/rp_cnp_handled", "90000"),
        std::pair("hw_counters/rnr_nak_retry_err", "5"), std::pair("hw_counters/out_of_buffer", "80")}) {
    LinksRecord record = healthy_record();
    set(record.after->files, port(2, counter), amount);
    expect_note(record, "imbalance.congestion", "mlx5_2/1");
  }
}

TEST(LinksJudge, LossIsToldFromReordering) {
  LinksRecord record = healthy_record();
  set(record.after->files, port(4, "hw_counters/out_of_sequence"), "5000");
  expect_note(record, "imbalance.congestion", "out of order");
  set(record.after->files, port(4, "hw_counters/packet_seq_err"), "300");
  set(record.after->files, port(4, "hw_counters/local_ack_timeout_err"), "40");
  expect_only(record, "transport-error.loss", "mlx5_4/1");
}

TEST(LinksJudge, AGpuThatIsSlowedDown) {
  LinksRecord record = healthy_record();
  record.under_load = record.before;
  record.under_load->gpus.gpus[2].throttle_reasons = 0x40;
  expect_only(record, "gpu-late.throttled", "GPU 2");
  record.under_load->gpus.gpus[2].throttle_reasons = 0x4;  // its power limit at full load
  EXPECT_TRUE(troubles(record).empty());
}

TEST(LinksJudge, NvLinkErrorsUnderTraffic) {
  LinksRecord record = healthy_record();
  record.after->gpus.gpus[6].links[11].errors["replay"] = 4;
  expect_only(record, "transport-error.nvlink", gpu_address(6));
}

TEST(LinksJudge, PcieErrorsUnderTraffic) {
  LinksRecord record = healthy_record();
  set(record.after->files, "/sys/bus/pci/devices/" + bridge_address(0) + "/aer_dev_correctable",
      "RxErr 40\nBadTLP 10\nTOTAL_ERR_COR 50");
  expect_only(record, "transport-error.pcie", bridge_address(0));
}

TEST(LinksJudge, ANarrowLink) {
  LinksRecord record = healthy_record();
  set(record.before.files, "/sys/bus/pci/devices/" + gpu_address(1) + "/current_link_width", "8");
  expect_only(record, "slow-link.pcie", "8 lanes");
}

TEST(LinksJudge, ASlowCard) {
  LinksRecord record = healthy_record();
  set(record.before.files, "/sys/bus/pci/devices/" + nic_address(1) + "/current_link_speed",
      "16.0 GT/s PCIe");
  expect_only(record, "slow-link.pcie", "mlx5_1");
}

TEST(LinksJudge, AnIdleGpuMayTrainDown) {
  LinksRecord record = healthy_record();
  set(record.before.files, "/sys/bus/pci/devices/" + gpu_address(1) + "/current_link_speed", "2.5 GT/s PCIe");
  EXPECT_TRUE(troubles(record).empty());
  record.under_load = record.before;  // it does not under load
  expect_only(record, "slow-link.pcie", "2.5 GT/s");
}

TEST(LinksJudge, ASlotThatCannotDoMore) {
  LinksRecord record = healthy_record();
  for (const std::string& device : {nic_address(1), bridge_address(1)}) {
    set(record.before.files, "/sys/bus/pci/devices/" + device + "/current_link_width", "8");
  }
  set(record.before.files, "/sys/bus/pci/devices/" + bridge_address(1) + "/max_link_width", "8");
  EXPECT_TRUE(troubles(record).empty());
}

TEST(LinksJudge, RedirectedTraffic) {
  LinksRecord record = healthy_record();
  set(record.before.files, "/sys/bus/pci/devices/" + bridge_address(2) + "/config",
      testing::configuration(0x001d));
  expect_only(record, "fallback.acs", "ACS");
  EXPECT_NE(troubles(record)[0].advice.find("setpci -s " + bridge_address(2)), std::string::npos);
  set(record.before.files, "/proc/cpuinfo", "flags\t\t: fpu hypervisor");
  expect_note(record, "fallback.acs", "ACS");
}

TEST(LinksJudge, WhatAHypervisorHidesIsNotCalledAbsent) {
  LinksRecord record = healthy_record();
  std::string bytes = testing::configuration(0);
  bytes.replace(2 * 0x100, 16,
                "0000011800000000");  // id 0 and a next pointer: a capability that was taken away
  for (int nic = 0; nic < 8; ++nic)
    set(record.before.files, "/sys/bus/pci/devices/" + bridge_address(nic) + "/config", bytes);
  expect_note(record, "evidence-missing.links", "hypervisor");
}

TEST(LinksJudge, WithoutRightsAcsIsUnknown) {
  LinksRecord record = healthy_record();
  for (int nic = 0; nic < 8; ++nic)
    set(record.before.files, "/sys/bus/pci/devices/" + bridge_address(nic) + "/config",
        std::string(128, '0'));
  expect_note(record, "evidence-missing.links", "only as root");
}

TEST(LinksJudge, AFabricThatIsNotReady) {
  LinksRecord record = healthy_record();
  record.before.gpus.gpus[0].fabric_state = 2;
  expect_only(record, "misconfigured.fabric", "GPU 0");
  record = healthy_record();
  record.before.gpus.gpus[0].fabric_health = 1 << 4;
  expect_only(record, "slow-link.nvlink-fabric", "unhealthy");
}

TEST(LinksJudge, NvLinksThatAreDown) {
  LinksRecord record = healthy_record();
  for (size_t link = 0; link < 6; ++link) record.before.gpus.gpus[4].links[link].is_up = false;
  // It moves less, too: one finding names the cause, the traffic of the GPU is another.
  expect_only(record, "slow-link.nvlink-down", "GPU 4");
  for (Gpu& gpu : record.before.gpus.gpus)
    for (size_t link = 0; link < 6; ++link) gpu.links[link].is_up = false;
  EXPECT_TRUE(troubles(record).empty());  // a board that connects twelve
}

TEST(LinksJudge, PortsThatAreNotWell) {
  LinksRecord record = healthy_record();
  set(record.before.files, port(7, "state"), "1: DOWN");
  set(record.before.files, port(7, "phys_state"), "2: Polling");
  expect_only(record, "slow-nic.port", "mlx5_7");
  record = healthy_record();
  set(record.before.files, port(7, "rate"), "200 Gb/sec (2X NDR)");
  expect_only(record, "slow-nic.rate", "200 Gb/s");
  record = healthy_record();
  set(record.before.files, "/sys/class/infiniband/mlx5_2/fw_ver", "28.36.1010");
  expect_note(record, "misconfigured.nic-firmware", "2 versions");
}

TEST(LinksJudge, AnEfaPortIsJudgedByItsInterface) {
  LinksRecord record = healthy_record();
  set(record.before.files, "/sys/bus/pci/devices/" + nic_address(0) + "/vendor", "0x1d0f");
  set(record.before.files, port(0, "state"), "1: DOWN");
  EXPECT_TRUE(troubles(record).empty());
  set(record.before.files, "/sys/class/net/ib0/operstate", "down");
  expect_only(record, "slow-nic.port", "ib0");
}

TEST(LinksJudge, Settings) {
  LinksRecord record = healthy_record();
  set(record.before.files, "/sys/kernel/iommu_groups/0/type", "DMA-FQ");
  expect_only(record, "fallback.iommu", "IOMMU");
  record = healthy_record();
  set(record.before.files, "/proc/self/limits",
      "Max locked memory         65536                65536                bytes");
  expect_only(record, "misconfigured.memlock", "64 KiB");
  record = healthy_record();
  set(record.before.files, "/dev/shm.bytes", "67108864");
  expect_only(record, "misconfigured.shared-memory", "64 MiB");
}

TEST(LinksJudge, GpusThatCannotReachEachOther) {
  LinksRecord record = healthy_record();
  record.before.gpus.gpus[0].peer_status[gpu_address(1)] = 4;
  record.before.gpus.gpus[1].peer_status[gpu_address(0)] = 4;
  expect_only(record, "fallback.p2p", "setting of the driver");
}

TEST(LinksJudge, ASlowPairInOneDirection) {
  LinksRecord record = healthy_record();
  slow(cell(record, CellKind::kWrite, 2, 5), 0.5);
  expect_only(record, "slow-link.sibling", "GPU 2 to GPU 5");
}

TEST(LinksJudge, LinksThatOthersUseAreNotToBlame) {
  LinksRecord record = healthy_record();
  slow(cell(record, CellKind::kWrite, 2, 5), 0.5);
  record.before.gpus.gpus[5].processes = {77};
  expect_only(record, "slow-link.in-use", "while GPU 5 is in use by pid 77");
  record.before.gpus.gpus[5].processes.clear();
  record.before.gpus.gpus[2].utilization_percent = 40;
  expect_only(record, "slow-link.in-use", "while GPU 2 is busy (40 %)");
}

TEST(LinksJudge, AGpuThatIsSlowWithAllIsToBlameThoughOneOfThemIsInUse) {
  LinksRecord record = healthy_record();
  for (int other = 0; other < 8; ++other) {
    if (other == 6) continue;
    slow(cell(record, CellKind::kWrite, 6, other), 0.6);
    slow(cell(record, CellKind::kWrite, other, 6), 0.6);
  }
  record.before.gpus.gpus[7].processes = {77};
  expect_only(record, "slow-link.sibling", "GPU 6 (");
}

TEST(LinksJudge, NvlinksThatMovedMoreThanOurCopiesWereUsedByOthers) {
  LinksRecord record = healthy_record();
  slow(cell(record, CellKind::kWrite, 2, 5), 0.5);
  record.traffic->sent[gpu_address(2)] = record.traffic->received[gpu_address(5)] = 10'000'000'000;
  const auto moved = [&record](int64_t of_others) {
    record.after->gpus.gpus[2].counters["nvlink_tx_bytes"] =
        record.before.gpus.gpus[2].counters["nvlink_tx_bytes"] + 10'000'000'000 +
        static_cast<uint64_t>(of_others);
  };
  moved(700'000'000);
  expect_only(record, "slow-link.sibling", "GPU 2 to GPU 5");
  moved(38'000'000'000);
  expect_only(record, "slow-link.in-use", "while GPU 2 sent 38.0 GB of others over NVLink");
  record.traffic->sent.clear();  // of an earlier version's record
  record.traffic->received.clear();
  expect_only(record, "slow-link.sibling", "GPU 2 to GPU 5");
}

TEST(LinksJudge, WhatHappenedOnceIsNoFinding) {
  LinksRecord record = healthy_record();
  Cell& once = cell(record, CellKind::kWrite, 2, 5);
  once.again = once.samples;
  for (double& sample : once.samples) sample *= 0.5;
  EXPECT_TRUE(troubles(record).empty());
}

TEST(LinksJudge, ASlowGpuIsOneFinding) {
  LinksRecord record = healthy_record();
  for (int other = 0; other < 8; ++other) {
    if (other == 6) continue;
    slow(cell(record, CellKind::kWrite, 6, other), 0.6);
    slow(cell(record, CellKind::kWrite, other, 6), 0.6);
  }
  expect_only(record, "slow-link.sibling", "GPU 6 (");
}

TEST(LinksJudge, ASharedHop) {
  LinksRecord record = healthy_record();
  for (Cell& cell : record.traffic->cells)
    if (cell.kind == CellKind::kRound && (cell.from == gpu_address(0) || cell.from == gpu_address(1)))
      slow(cell, 0.5);
  const std::vector<Finding> found = troubles(record);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(id_text(found[0].id), "slow-link.shared-hop");
}

TEST(LinksJudge, AllEquallySlowAreBelowTheModel) {
  LinksRecord record = healthy_record();
  for (Cell& cell : record.traffic->cells)
    if (cell.kind == CellKind::kWrite) slow(cell, 0.5);
  const std::vector<Finding> found = troubles(record);
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(id_text(found[0].id), "slow-link.model");
}

TEST(LinksJudge, ABaselineShowsWhatSiblingsHide) {
  const LinksRecord baseline = healthy_record();
  LinksRecord record = healthy_record();
  for (Cell& cell : record.traffic->cells)
    if (cell.kind == CellKind::kRound) slow(cell, 0.85);
  EXPECT_TRUE(troubles(record).empty());
  EXPECT_FALSE(troubles(record, &baseline).empty());
}

TEST(LinksJudge, OldErrorsAreANote) {
  LinksRecord record = healthy_record();
  for (HostFiles* const files : {&record.before.files, &record.after->files})
    set(*files, port(0, "counters/link_downed"), "3");
  expect_note(record, "transport-error.since-boot", "1 error counter");
}

TEST(LinksJudge, WhatWasNotMeasuredIsSaid) {
  LinksRecord record = healthy_record();
  record.traffic.reset();
  record.traffic_absent = "GPU 0 is in use by pid 77";
  record.before.gpus.gpus[0].processes = {77};
  expect_only(record, "evidence-missing.links-traffic", "pid 77");
}

TEST(LinksJudge, WhatWouldLetTrafficBeMeasured) {
  const auto wanted = [](const LinksRecord& record) {
    for (const Finding& finding : judge(record, nullptr))
      if (id_text(finding.id) == "evidence-missing.links-traffic") return finding.needed_evidence;
    return std::string("nothing");
  };
  LinksRecord record = healthy_record();
  record.traffic.reset();
  record.after.reset();
  record.traffic_absent = "libcuda.so.1: cannot be loaded";
  EXPECT_EQ(wanted(record).find("idle"), std::string::npos) << "they are, and CUDA is what is missing";
  record.before.gpus.gpus[0].utilization_percent = 90;
  EXPECT_NE(wanted(record).find("idle"), std::string::npos);
  record.before.gpus = {};
  EXPECT_EQ(wanted(record).find("a GPU and its driver"), 0u);
}

TEST(LinksJudge, AContainerWithoutCards) {
  LinksRecord record = healthy_record();
  record.before.files = HostFiles();
  record.after.reset();
  record.traffic.reset();
  expect_note(record, "evidence-missing.links", "no network card");
}

// The same host with AMD's GPUs in the place of the others.
LinksRecord amd_record() {
  LinksRecord record = healthy_record();
  record.traffic.reset();
  record.under_load.reset();
  record.after.reset();
  record.before.gpus = {};
  record.before.gpus.absent = "libnvidia-ml.so.1: cannot be loaded";
  for (int i = 0; i < 8; ++i) {
    const std::string device = "/sys/class/drm/card" + std::to_string(7 - i) + "/device";
    record.before.files.add(device, *record.before.files.find("/sys/bus/pci/devices/" + gpu_address(i)));
    set(record.before.files, device + "/vendor", "0x1002");
    set(record.before.files, device + "/pcie_replay_count", "0");
    set(record.before.files, device + "/ras/xgmi_wafl_err_count", "ue: 0\nce: 0");
  }
  return record;
}

TEST(LinksJudge, TrafficOfAmdsGpusIsNotMeasured) {
  LinksRecord record = amd_record();
  record.traffic_absent = "libcuda.so.1: cannot be loaded";
  const auto found = troubles(record);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].needed_evidence.find("a benchmark of their vendor"), 0u) << found[0].needed_evidence;
}

TEST(LinksJudge, GpusOfAmdAreThoseOfTheKernelsFiles) {
  const LinksRecord record = amd_record();
  const Machine machine = machine_of(record.before.files, record.before.gpus);
  ASSERT_EQ(machine.gpus.size(), 8u);
  for (uint32_t i = 0; i < 8; ++i) {
    EXPECT_EQ(machine.gpus[i].index, i);
    EXPECT_EQ(machine.gpus[i].pci, gpu_address(static_cast<int>(i))) << "by address, not by card";
    EXPECT_EQ(machine.gpus[i].counters.at("xgmi_uncorrected"), 0u);
  }
  EXPECT_TRUE(troubles(record).empty());
}

TEST(LinksJudge, AnAmdGpuWithFewerLanes) {
  LinksRecord record = amd_record();
  set(record.before.files, "/sys/bus/pci/devices/" + gpu_address(5) + "/current_link_width", "8");
  expect_only(record, "slow-link.pcie", "GPU 5 (" + gpu_address(5) + ") has a PCIe link of 8 lanes");
}

TEST(LinksJudge, XgmiErrorsThatRise) {
  const LinksRecord before = amd_record();
  LinksRecord after = before;
  after.before.time_ns += 60'000'000'000;
  set(after.before.files, "/sys/class/drm/card7/device/ras/xgmi_wafl_err_count", "ue: 2\nce: 9");
  const auto found = troubles(after, &before);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(id_text(found[0].id), "transport-error.xgmi");
  EXPECT_EQ(found[0].statement, gpu_address(0) + ": xGMI has errors that cannot be corrected");
  set(after.before.files, "/sys/class/drm/card7/device/ras/xgmi_wafl_err_count", "ue: x\nce");
  EXPECT_TRUE(troubles(after, &before).empty());
}

}  // namespace
}  // namespace lockstep::links
