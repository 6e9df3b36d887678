// SPDX-License-Identifier: Apache-2.0
#include "links/testing/healthy_machine.h"

#include <cstdio>

namespace lockstep::links::testing {
namespace {

std::string address(int bus, int device = 0) {
  char text[16];
  std::snprintf(text, sizeof text, "0000:%02x:%02x.0", bus, device);
  return text;
}

// Behind switch `s`: root port s0:01, upstream port of bus s+1, four downstream ports on bus s+2, a device
// below each.
int base(int of_switch) { return 0x10 + of_switch * 0x20; }

std::string folder(int of_switch) {
  char root[16];
  std::snprintf(root, sizeof root, "pci0000:%02x", base(of_switch));
  return "/sys/devices/" + std::string(root) + "/" + address(base(of_switch), 1) + "/" +
         address(base(of_switch) + 1);
}

void add_device(HostFiles& files, const std::string& path, const char* kind, const char* vendor, int node) {
  const std::string name = path.substr(path.rfind('/') + 1);
  const std::string device = "/sys/bus/pci/devices/" + name;
  files.add(device, {HostFile::Kind::kLink, path, 0});
  set(files, device + "/class", kind);
  set(files, device + "/vendor", vendor);
  set(files, device + "/device", "0x2330");
  set(files, device + "/numa_node", std::to_string(node));
  for (const char* const which : {"current", "max"}) {
    set(files, device + "/" + which + "_link_speed", "32.0 GT/s PCIe");
    set(files, device + "/" + which + "_link_width", "16");
  }
  for (const char* const errors : {"correctable", "nonfatal", "fatal"})
    set(files, device + "/aer_dev_" + errors, "RxErr 0\nBadTLP 0\nTOTAL_ERR 0");
  if (std::string_view(kind).starts_with("0x0604")) set(files, device + "/config", configuration(0));
}

int of_switch(int member) { return member / 2; }
int slot(int member) { return member % 2; }

}  // namespace

std::string gpu_address(int gpu) { return address(base(of_switch(gpu)) + 3 + slot(gpu)); }
std::string nic_address(int nic) { return address(base(of_switch(nic)) + 5 + slot(nic)); }
std::string bridge_address(int nic) { return address(base(of_switch(nic)) + 2, 2 + slot(nic)); }

void set(HostFiles& files, const std::string& path, std::string text) {
  files.add(path, {HostFile::Kind::kText, std::move(text), 0});
}

std::string configuration(uint16_t control) {
  std::string bytes(1024, '0');  // of hex digits: 512 bytes
  bytes.resize(2 * 0x120, '0');
  // At 0x100: capability 0x000D, version 1, no next; its control at +6.
  char text[24];
  std::snprintf(text, sizeof text, "0d0001005f00%02x%02x", control & 0xFF, control >> 8);
  bytes.replace(2 * 0x100, 16, text);
  return bytes;
}

HostFiles healthy_files() {
  HostFiles files;
  set(files, "/proc/sys/kernel/hostname", "node-007");
  set(files, "/proc/sys/kernel/random/boot_id", "0b6d4b1e-6f0c-4a53-9e56-7f1d6f2f3a11");
  set(files, "/proc/cmdline", "BOOT_IMAGE=/vmlinuz iommu=pt");
  set(files, "/proc/self/limits",
      "Max locked memory         unlimited            unlimited            bytes");
  set(files, "/dev/shm.bytes", std::to_string(uint64_t{512} << 30));
  files.add("/sys/module/nvidia_peermem", {HostFile::Kind::kLink, "/sys/module/nvidia_peermem", 0});
  files.add("/sys/class/iommu/dmar0", {HostFile::Kind::kLink, "/sys/devices/virtual/iommu/dmar0", 0});
  set(files, "/sys/kernel/iommu_groups/0/type", "identity");
  for (int number = 0; number < 4; ++number) {
    const std::string below = folder(number);
    const int node = number / 2;
    add_device(files, below.substr(0, below.rfind('/')), "0x060400", "0x8086", node);
    add_device(files, below, "0x060400", "0x1000", node);
    for (int member = 0; member < 4; ++member) {
      const std::string port = below + "/" + address(base(number) + 2, member);
      add_device(files, port, "0x060400", "0x1000", node);
      const bool is_gpu = member < 2;
      add_device(files, port + "/" + address(base(number) + 3 + member), is_gpu ? "0x030200" : "0x020700",
                 is_gpu ? "0x10de" : "0x15b3", node);
    }
  }
  for (int nic = 0; nic < 8; ++nic) {
    const std::string name = "mlx5_" + std::to_string(nic), path = "/sys/class/infiniband/" + name;
    files.add(path + "/device",
              {HostFile::Kind::kLink,
               folder(of_switch(nic)) + "/" + bridge_address(nic) + "/" + nic_address(nic), 0});
    set(files, path + "/fw_ver", "28.39.1002");
    set(files, path + "/hca_type", "MT4129");
    const std::string port = path + "/ports/1";
    set(files, port + "/state", "4: ACTIVE");
    set(files, port + "/phys_state", "5: LinkUp");
    set(files, port + "/link_layer", "InfiniBand");
    set(files, port + "/rate", "400 Gb/sec (4X NDR)");
    for (const char* const counter :
         {"symbol_error", "link_error_recovery", "link_downed", "port_rcv_errors", "port_xmit_wait",
          "port_xmit_discards", "local_link_integrity_errors", "port_rcv_data", "port_xmit_data",
          "port_rcv_packets", "port_xmit_packets"})
      set(files, port + "/counters/" + counter, "0");
    for (const char* const counter :
         {"out_of_sequence", "packet_seq_err", "local_ack_timeout_err", "rnr_nak_retry_err", "out_of_buffer",
          "np_cnp_sent", "rp_cnp_handled", "lifespan"})
      set(files, port + "/hw_counters/" + counter, counter == std::string_view("lifespan") ? "10" : "0");
    const std::string net = "ib" + std::to_string(nic);
    set(files, path + "/device/net/" + net + "/operstate", "up");
    for (const auto& [file, text] :
         {std::pair("operstate", "up"), std::pair("carrier_changes", "2"), std::pair("mtu", "4092")})
      set(files, "/sys/class/net/" + net + "/" + file, text);
  }
  return files;
}

GpuFacts healthy_gpus() {
  GpuFacts facts;
  facts.library = "NVML";
  facts.driver = "580.159.04";
  for (int i = 0; i < 8; ++i) {
    Gpu& gpu = facts.gpus.emplace_back();
    gpu.index = static_cast<uint32_t>(i);
    gpu.vendor = "nvidia";
    gpu.name = "NVIDIA H200";
    gpu.pci = gpu_address(i);
    for (uint32_t link = 0; link < 18; ++link)
      gpu.links.push_back({link, true, "0000:c1:00.0", {{"replay", 0}, {"recovery", 0}, {"crc", 0}}});
    gpu.link_rate = 26.562;
    gpu.fabric_state = 3;
    gpu.fabric_status = 0;
    gpu.fabric_health = 0;
    gpu.throttle_reasons = 0;
    gpu.counters = {
        {"pcie_replay", 0}, {"pcie_recovery", 300}, {"nvlink_tx_bytes", 0}, {"nvlink_rx_bytes", 0}};
    for (int other = 0; other < 8; ++other)
      if (other != i) gpu.peer_status[gpu_address(other)] = 0;
  }
  return facts;
}

Traffic healthy_traffic() {
  Traffic traffic;
  const auto cell = [&](CellKind kind, const std::string& from, const std::string& to, double value,
                        int round = -1) {
    // No two links are equal to the digit.
    const double part = 1 + 0.004 * static_cast<double>((traffic.cells.size() * 7) % 5) - 0.008;
    traffic.cells.push_back({kind,
                             from,
                             to,
                             {value * part, value * part * 1.002, value * part * 0.999},
                             {},
                             size_t{64} << 20,
                             round});
  };
  for (int from = 0; from < 8; ++from)
    for (int to = 0; to < 8; ++to) {
      if (from == to) continue;
      cell(CellKind::kWrite, gpu_address(from), gpu_address(to), 392);
      cell(CellKind::kRead, gpu_address(from), gpu_address(to), 389);
      cell(CellKind::kBothWays, gpu_address(from), gpu_address(to), 388);
      cell(CellKind::kLatency, gpu_address(from), gpu_address(to), 850);
    }
  int number = 0;
  for (const auto& round : tournament(8)) {
    for (const auto& [a, b] : round) {
      cell(CellKind::kRound, gpu_address(a), gpu_address(b), 389, number);
      cell(CellKind::kRound, gpu_address(b), gpu_address(a), 389, number);
    }
    ++number;
  }
  for (int gpu = 0; gpu < 8; ++gpu)
    for (int node = 0; node < 2; ++node) {
      const std::string host = "host:" + std::to_string(node);
      const bool is_near = node == gpu / 4;
      cell(CellKind::kToGpu, host, gpu_address(gpu), is_near ? 55.5 : 51);
      cell(CellKind::kToHost, gpu_address(gpu), host, is_near ? 55.3 : 50);
      if (!is_near) continue;
      cell(CellKind::kToGpuAll, host, gpu_address(gpu), 55);
      cell(CellKind::kToHostAll, gpu_address(gpu), host, 55);
    }
  traffic.seconds = 2.5;
  return traffic;
}

LinksRecord healthy_record() {
  LinksRecord record;
  record.before = {healthy_files(), healthy_gpus(), 1'770'000'000'000'000'000};
  record.traffic = healthy_traffic();
  record.after = record.before;
  record.after->time_ns += 10'000'000'000;
  return record;
}

}  // namespace lockstep::links::testing
