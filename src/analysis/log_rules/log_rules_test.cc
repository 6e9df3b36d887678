// SPDX-License-Identifier: Apache-2.0
// Each rule over a few lines that must trigger it and a few that must not.
#include "analysis/log_rules/log_rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>

#include "base/utf8.h"
#include "readers/nccl_log/log_parser.h"
#include "tests/support/places.h"

namespace lockstep::analysis::log_rules {
namespace {

// `lines` begin with the process they are of: 'a' and 'b' are two processes of host h1, 'c' is one of h2; 'W'
// behind it makes a warning. Other lines stand as they are.
std::string log_text(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) {
    const bool warning = line.size() > 1 && line[1] == 'W';
    const size_t body = warning ? 3 : 2;
    const std::string level = warning ? " src.cc:1 NCCL WARN " : " NCCL INFO ";
    if (line.size() > body && line[body - 1] == ' ' && line[0] >= 'a' && line[0] <= 'c') {
      const char* heads[] = {"h1:11:11 [0]", "h1:12:12 [1]", "h2:21:21 [0]"};
      text += heads[line[0] - 'a'] + level + line.substr(body) + '\n';
    } else {
      text += line + '\n';
    }
  }
  return text;
}

std::vector<Finding> findings_of(const std::vector<std::string>& lines) {
  readers::nccl_log::LogParser parser;
  parser.begin_file("job.log");
  parser.feed(log_text(lines));
  parser.end_file();
  return judge(parser.take());
}

const Finding* find(const std::vector<Finding>& findings, std::string_view id) {
  const auto found =
      std::find_if(findings.begin(), findings.end(), [&](const Finding& f) { return id_text(f.id) == id; });
  return found == findings.end() ? nullptr : &*found;
}

std::string begin(char process, int rank, int ranks, const std::string& id = "0xab") {
  return std::string(1, process) + " ncclCommInitRank comm 0x" + process + "0 rank " + std::to_string(rank) +
         " nranks " + std::to_string(ranks) + " cudaDev 0 nvmlDev 0 busId 1b000 commId " + id +
         " - Init START";
}
std::string complete(char process, int rank, int ranks) {
  std::string line = begin(process, rank, ranks);
  return line.replace(line.size() - 5, 5, "COMPLETE");
}
std::string nodes(char process, int rank, int ranks, int count, int local_rank = 0) {
  return std::string(1, process) + " comm 0x" + process + "0 rank " + std::to_string(rank) + " nRanks " +
         std::to_string(ranks) + " nNodes " + std::to_string(count) + " localRanks 1 localRank " +
         std::to_string(local_rank) + " MNNVL 0";
}

// Of RCCL's proxy trace.
std::string proxy_record(const std::string& way, const std::string& status) {
  return "createT:12, lastT:15, cntNm:2, <171:9:1>, [fu,pr,pa,tb,ck]:0,1,2,3,4, " + way +
         ", chan:2, status:" + status + ", ns:4, p:1, t:0, d:0, done:0";
}

// Of RCCL's latency profiler: in some operations of 8 ranks one waited a hundred times as long as another.
std::vector<std::string> latencies(const std::string& func, int uneven, int even) {
  std::vector<std::string> lines;
  for (int id = 0; id < uneven + even; ++id)
    lines.push_back("a coll_id " + std::to_string(id) +
                    ", percent 9900, min_latency_us 20.5, max_latency_us " +
                    (id < uneven ? "2050.0" : "21.0") + ", op_name " + func +
                    ", data_type ncclFloat32, count 1024, message_size_MB 0.003906, comm_hash 17");
  return lines;
}

struct Case {
  const char* id;
  std::vector<std::string> speaks, silent;
};

const std::vector<std::string> kTwoHosts = {begin('a', 0, 2), nodes('a', 0, 2, 2), begin('c', 1, 2),
                                            nodes('c', 1, 2, 2)};
std::vector<std::string> two_hosts(std::vector<std::string> more) {
  more.insert(more.begin(), kTwoHosts.begin(), kTwoHosts.end());
  return more;
}

const std::string kPytorch = "[rank0]:[E1 ProcessGroupNCCL.cpp:9] ";
std::string timeout(int rank, const std::string& work) {
  return "[rank" + std::to_string(rank) + "]:[E1 ProcessGroupNCCL.cpp:9] [PG ID 0 PG GUID 0 Rank " +
         std::to_string(rank) +
         "] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9, OpType=" + work +
         ", NumelIn=2, NumelOut=2, Timeout(ms)=600000) ran for 600042 milliseconds";
}
std::string progress(int rank, int enqueued, int group = 0) {
  return "[rank" + std::to_string(rank) + "]:[E1 ProcessGroupNCCL.cpp:9] [PG ID 0 PG GUID " +
         std::to_string(group) + " Rank " + std::to_string(rank) +
         "] last enqueued work: " + std::to_string(enqueued) + ", last completed work: 8";
}
std::string group_of(int size) {
  return kPytorch +
         "[PG ID 0 PG GUID 0 Rank 0] ProcessGroupNCCL initialization options: size: " + std::to_string(size) +
         ", global rank: 0, TIMEOUT(ms): 600000";
}

// Of PyTorch's analyser of Flight Recorder dumps.
std::string culprits(const std::vector<int>& ranks, const std::string& error) {
  std::string line = "error msg: ";
  for (const int rank : ranks)
    line += (line.back() == ' ' ? "" : ", ") + ("Culprit rank " + std::to_string(rank)) +
            "; Error type: " + error;
  return line;
}
std::string announced(int rank, int number) {
  return "[I ProcessGroupWrapper.cpp:562] [Rank " + std::to_string(rank) +
         "] Running collective: CollectiveFingerPrint(SequenceNumber=" + std::to_string(number) +
         ", OpType=ALLREDUCE, TensorShape=[4])";
}

// Two ranks on each of two hosts, and how the ring goes.
std::vector<std::string> four_ranks(const std::string& order) {
  std::vector<std::string> lines;
  for (const int rank : {0, 1, 2, 3}) {
    const std::string head = (rank < 2 ? "h1:" : "h2:") + std::to_string(rank + 1) + ":1 [0] NCCL INFO ";
    const std::string device = std::to_string(rank % 2);
    lines.push_back(head + "ncclCommInitRank comm 0xa0 rank " + std::to_string(rank) + " nranks 4 cudaDev " +
                    device + " nvmlDev " + device + " busId 1b000 commId 0xab - Init START");
    if (rank == 0) lines.push_back(head + "Channel 00/01 : " + order);
  }
  return lines;
}
// A GPU with a near and a far network card; two hosts.
std::vector<std::string> near_and_far(std::vector<std::string> more) {
  more.insert(more.begin(), {"a GPU/0-1b000 :GPU/0-1b000 (0/5000.0/LOC) GPU/0-43000 (2/24.0/PHB) NET/0-0 "
                             "(3/48.0/PXB) NET/0-1 (6/20.0/SYS)",
                             "b GPU/0-43000 :GPU/0-43000 (0/5000.0/LOC) NET/0-0 (6/20.0/SYS)"});
  return two_hosts(std::move(more));
}
std::vector<std::string> costs(const std::string& algorithm, const std::string& bandwidth,
                               std::vector<std::string> more) {
  more.push_back("a   Algorithm   |    Tree    |    " + algorithm + "   |");
  more.push_back("a   AllReduce |  1.0/ 43.6 |  2.0/ 128.8 |  3.0/ 165.6 |  4.0/ 80.6 |  5.0/ " + bandwidth +
                 " |  6.0/ " + (algorithm == "Ring" ? "205.7" : bandwidth) + " |");
  return more;
}
std::string call(char process, const std::string& func, int number, int count) {
  return std::string(1, process) + ' ' + func + ": opCount " + std::to_string(number) +
         " sendbuff 0x1 recvbuff 0x2 count " + std::to_string(count) + " datatype 7 op 0 root 0 comm 0x" +
         process + "0 [nranks=2] stream 0x5";
}

std::vector<Case> cases() {
  return {
      {"transport-error.card",
       {"aW NET/IB : mlx5_2:1 async fatal event: local catastrophic error"},
       {"a NET/IB : Using [RO]; OOB e:1"}},
      {"transport-error.link-down",
       {"aW NET/IB : mlx5_2:1 Got async event : port error"},
       {"aW NET/IB : mlx5_2:1 Got async event : port active"}},
      {"transport-error.link-back",
       {"aW NET/IB : mlx5_2:1 Got async error event: port active"},
       {"aW NET/IB : mlx5_2:1 Got async event : port error"}},
      {"transport-error.link-back",
       {"aW NET/IB : mlx5_2:1 GID table changed"},
       {"aW NET/IB : mlx5_2:1 unknown event type (19)"}},
      {"transport-error.libfabric",
       {"libfabric:7:8::efa:cq:x_handle_error():737<warn> err: 5, message: Invalid address"},
       {"libfabric:7:8:core:core:fi_getinfo_():1392<warn> fi_getinfo: provider efa output empty list"}},
      {"fallback.verbs-library", {"aW Failed to open libibverbs.so[.1]"}, {"a Using network Socket"}},
      {"fallback.nvlink",
       {"aW P2P is disabled between NVLINK connected GPUs 1 and 0. This should not be the case given their "
        "connectivity, and is probably due to a hardware issue. If you still want to proceed, you can set "
        "NCCL_IGNORE_DISABLED_P2P=1."},
       {"a P2P is disabled between connected GPUs 1 and 0. You can repress this message with "
        "NCCL_IGNORE_DISABLED_P2P=1."}},
      {"fallback.nvls-bind",
       {"aW Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152 : CUDA error 1 'invalid "
        "argument'."},
       {"a NVLS multicast support is available on dev 0 (NVLS_NCHANNELS 24)"}},
      {"fallback.fabric",
       {"aW MNNVL is not working on this system, use it later"},
       {"a MNNVL is not working on this system, x"}},
      {"fallback.fabric-state",
       {"a MNNVL busId 0x60 fabric UUID 0.0 cliqueId 0x0 state 2 healthMask 0x0"},
       {"a MNNVL busId 0x60 fabric UUID 0.0 cliqueId 0x0 state 3 healthMask 0x0"}},
      {"slow-link.nvlink-uneven",
       {"a + PCI[48.0] - GPU/0-10 (0)", "a   + NVL[370.8] - NVS/0-0", "a + PCI[48.0] - GPU/0-20 (1)",
        "a   + NVL[350.2] - NVS/0-0"},
       {"a + PCI[48.0] - GPU/0-10 (0)", "a   + NVL[370.8] - NVS/0-0", "a + PCI[48.0] - GPU/0-20 (1)",
        "a   + NVL[185.4] - GPU/0-10", "a   + NVL[185.4] - NVS/0-0", "c + PCI[48.0] - GPU/0-10 (0)",
        "c   + NVL[240.0] - NVS/0-0"}},
      {"slow-link.pcie-uneven",
       {"a + PCI[48.0] - GPU/0-10 (0)", "a + PCI[24.0] - GPU/0-20 (1)"},
       {"a + PCI[48.0] - GPU/0-10 (0)", "a + PCI[48.0] - GPU/0-20 (1)", "c + PCI[24.0] - GPU/0-10 (0)"}},
      {"slow-link.channels",
       {"a + PCI[48.0] - GPU/0-1b000 (0)", "a   + NVL[370.8] - NVS/0-0", begin('a', 0, 2),
        nodes('a', 0, 2, 1), "a 2 coll channels, 2 p2p channels, 1 p2p channels per peer",
        "a NCCL_MAX_NCHANNELS set by environment to 2."},
       {begin('a', 0, 2), nodes('a', 0, 2, 1), "a 2 coll channels, 2 p2p channels, 1 p2p channels per peer"}},
      {"slow-link.channels",
       {"a + PCI[48.0] - GPU/0-1b000 (0)", "a   + NVL[370.8] - NVS/0-0", begin('a', 0, 2),
        nodes('a', 0, 2, 1), "a NCCL_MAX_P2P_NCHANNELS set by environment to 1.",
        "a 24 coll channels, 24 collnet channels, 0 nvls channels, 1 p2p channels, 1 p2p channels per peer"},
       {"a + PCI[48.0] - GPU/0-1b000 (0)", "a   + NVL[370.8] - NVS/0-0", begin('a', 0, 2),
        nodes('a', 0, 2, 1), "a NCCL_MAX_P2P_NCHANNELS set by environment to 64.",
        "a 24 coll channels, 24 collnet channels, 0 nvls channels, 32 p2p channels, 2 p2p channels per peer"}},
      {"slow-link.channels",
       {"a Pattern 4, crossNic 0, nChannels 1, bw 40.0/40.0, type NVL/PIX, sameChannels 0"},
       {"a Pattern 4, crossNic 0, nChannels 8, bw 40.0/40.0, type NVL/PIX, sameChannels 0",
        "a Pattern 1, crossNic 0, nChannels 1, bw 40.0/40.0, type NVL/PIX, sameChannels 0"}},
      {"slow-link.ring-order", four_ranks("0 2 1 3"), four_ranks("0 1 2 3")},
      {"slow-link.ring-order", four_ranks("0 1 3 2"), four_ranks("1 0 3 2")},
      {"slow-nic.far", near_and_far({"a Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/1"}),
       near_and_far({"a Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0"})},
      {"fallback.gdr-path",
       near_and_far({"a Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/1",
                     "a Channel 01/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA"}),
       near_and_far({"a Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0",
                     "a Channel 01/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA"})},
      {"slow-nic.load",
       two_hosts({"a Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0",
                  "a Channel 01/0 : 0[0] -> 1[0] [send] via NET/IB/0",
                  "a Channel 02/0 : 0[0] -> 1[0] [send] via NET/IB/0",
                  "a Channel 03/0 : 0[0] -> 1[0] [send] via NET/IB/1"}),
       two_hosts({"a Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0",
                  "a Channel 03/0 : 0[0] -> 1[0] [send] via NET/IB/1"})},
      {"slow-nic.fusion",
       {"a NET/IB : Made virtual device [8] name=m0+m1 speed=800000 ndevs=2"},
       {"a NET/IB : Made virtual device [0] name=m0 speed=400000 ndevs=1",
        "a TOPO/NET : Importing network plugins to topology"}},
      {"misconfigured.channels",
       two_hosts({"a 8 coll channels, 8 p2p channels", "c 2 coll channels, 8 p2p channels"}),
       two_hosts({"a 8 coll channels, 8 p2p channels", "c 8 coll channels, 8 p2p channels"})},
      {"misconfigured.card-unusable",
       {"aW NET/IB : Unable to open device mlx5_0"},
       {"a NET/IB : Unable to open device mlx5_0"}},
      {"misconfigured.nic-path", {"aW Could not find NIC for rank 3"}, {begin('a', 0, 1)}},
      {"misconfigured.subnets",
       two_hosts({"a Bootstrap: Using e0:198.51.100.4<0>", "c Bootstrap: Using e0:203.0.113.5<0>",
                  "aW Net : Connect to 203.0.113.5<39611> failed : No route to host"}),
       two_hosts({"a Bootstrap: Using e0:198.51.100.4<0>", "c Bootstrap: Using e0:198.51.7.5<0>",
                  "aW Net : Connect to 198.51.7.5<39611> failed : No route to host"})},
      {"misconfigured.subnets",
       two_hosts({"a Bootstrap: Using e0:198.51.100.4<0>", "c Bootstrap: Using e0:2001:db8::7<0>",
                  "aW socketPollConnect: exceeded retries (7)"}),
       two_hosts({"a Bootstrap: Using e0:198.51.100.4<0>", "c Bootstrap: Using e0:203.0.113.5<0>"})},
      {"misconfigured.firewall",
       two_hosts({"c Bootstrap: Using e0:198.51.7.5<0>",
                  "aW socketPollConnect: connect to 198.51.7.5<39611> returned Connection timed out, "
                  "exceeded error retry count after 35"}),
       two_hosts({"c Bootstrap: Using e0:198.51.7.5<0>",
                  "c comm 0xc0 rank 1 nranks 2 cudaDev 0 busId 1b000 - Abort START",
                  "aW socketPollConnect: connect to 198.51.7.5<39611> returned Connection timed out, "
                  "exceeded error retry count after 35"})},
      // Of two processes there, the one that has ended may be the one.
      {"misconfigured.firewall",
       two_hosts({"c Bootstrap: Using e0:198.51.7.5<0>",
                  "h2:22:22 [1] NCCL INFO Bootstrap: Using e0:198.51.7.5<0>",
                  "aW Net : Connect to 198.51.7.5<39611> failed : No route to host"}),
       two_hosts({"c Bootstrap: Using e0:198.51.7.5<0>",
                  "h2:22:22 [1] NCCL INFO Bootstrap: Using e0:198.51.7.5<0>",
                  "c comm 0xc0 rank 1 nranks 2 cudaDev 0 busId 1b000 - Abort START",
                  "aW Net : Connect to 198.51.7.5<39611> failed : No route to host"})},
      {"misconfigured.firewall",
       two_hosts({"c Bootstrap: Using e0:198.51.7.5<0>", "  rank      : 0 (local_rank: 0)",
                  "  exitcode  : -9 (pid: 11)",
                  "aW Net : Connect to 198.51.7.5<39611> failed : No route to host"}),
       two_hosts({"c Bootstrap: Using e0:198.51.7.5<0>", "  rank      : 1 (local_rank: 0)",
                  "  exitcode  : -9 (pid: 21)",
                  "aW Net : Connect to 198.51.7.5<39611> failed : No route to host"})},
      {"misconfigured.gid-link-local",
       {"aW Call to ibv_modify_qp failed with 22 Invalid argument, on dev mlx5_2:1, curr state INIT, next "
        "state RTR, local GID index 3, "
        "local GID ::1, remote GID fe80::1"},
       {"aW Call to ibv_modify_qp failed with 22 Invalid argument, on dev mlx5_2:1, curr state INIT, next "
        "state RTR, local GID index 3, "
        "local GID ::1, remote GID ::2"}},
      {"misconfigured.gid",
       two_hosts({"a NET/IB: Dev 0 Port 1 qpn 5 mtu 5 GID 3 (0/1)",
                  "c NET/IB: Dev 0 Port 1 qpn 5 mtu 5 GID 1 (0/1)"}),
       two_hosts({"a NET/IB: Dev 0 Port 1 qpn 5 mtu 5 GID 3 (0/1)",
                  "c NET/IB: Dev 0 Port 1 qpn 6 mtu 5 GID 3 (0/2)"})},
      {"misconfigured.roce-class", two_hosts({"a NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB e:1"}),
       two_hosts(
           {"a NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB e:1", "a NCCL_IB_TC set by environment to 106."})},
      {"misconfigured.cores",
       {"a ncclTopoGetCpuAffinity: Affinity for GPU 0 is empty, ignoring. (GPU affinity =  ; CPU affinity = "
        "5)."},
       {"a ncclTopoGetCpuAffinity: Affinity for GPU 0 is empty, ignoring. (GPU affinity =  ; CPU affinity = "
        "0-127)."}},
      {"misconfigured.cores",
       {"h1:1:1 [0] NCCL INFO [Proxy Service] Device 0 CPU core 7",
        "h1:2:2 [0] NCCL INFO [Proxy Service] Device 1 CPU core 7",
        "h1:3:3 [0] NCCL INFO [Proxy Service] Device 2 CPU core 7"},
       {"h1:1:1 [0] NCCL INFO [Proxy Service] Device 0 CPU core 7",
        "h1:2:2 [0] NCCL INFO [Proxy Service] Device 1 CPU core 8",
        "h1:3:3 [0] NCCL INFO [Proxy Service] Device 2 CPU core 7"}},
      {"misconfigured.affinity-unknown",
       {"a ncclTopoGetCpuAffinity: Affinity for GPU 0 is empty, ignoring. (GPU affinity =  ; CPU affinity = "
        "0-127)."},
       {"a ncclTopoGetCpuAffinity: Affinity for GPU 0 is 0-15. (GPU affinity = 0-31; CPU affinity = 0-15)."}},
      {"misconfigured.host-clone",
       {begin('a', 0, 2), nodes('a', 0, 2, 1), begin('c', 1, 2), nodes('c', 1, 2, 1)},
       {begin('a', 0, 2), nodes('a', 0, 2, 1), begin('b', 1, 2), nodes('b', 1, 2, 1)}},
      {"misconfigured.topology-file",
       {"a Could not open XML topology file /etc/topo.xml : No such file or directory"},
       {"a Loading topology file /etc/topo.xml"}},
      {"misconfigured.debug-level",
       {"a NCCL_DEBUG_SUBSYS set by environment to ALL"},
       {"a NCCL_DEBUG_SUBSYS set by environment to INIT,NET"}},
      {"fallback.p2p-level",
       near_and_far({"b [Rank 1] ncclCommInitRank comm 0xb0 rank 1 nranks 2 cudaDev 1 nvmlDev 1 busId 43000 "
                     "commId 0xab - Init START",
                     "a NCCL_P2P_LEVEL set by environment to PIX",
                     "a Channel 00 : 0[0] -> 1[1] via SHM/direct/direct"}),
       near_and_far({"b [Rank 1] ncclCommInitRank comm 0xb0 rank 1 nranks 2 cudaDev 1 nvmlDev 1 busId 43000 "
                     "commId 0xab - Init START",
                     "a NCCL_P2P_LEVEL set by environment to SYS",
                     "a Channel 00 : 0[0] -> 1[1] via SHM/direct/direct"})},
      {"fallback.host-memory",
       {"a cuMem host allocations do not appear to be working; falling back to x"},
       {begin('a', 0, 1)}},
      {"fallback.nvls-cost",
       costs("NVLS", "0.0",
             {begin('a', 0, 4), "a comm 0xa0 rank 0 nRanks 4 nNodes 1 localRanks 4 localRank 0 MNNVL 0",
              "a NVLS multicast support is available on dev 0 (NVLS_NCHANNELS 24)"}),
       costs("NVLS", "0.0",
             {begin('a', 0, 4), "a comm 0xa0 rank 0 nRanks 4 nNodes 1 localRanks 4 localRank 0 MNNVL 0",
              "a NCCL_NVLS_ENABLE set by environment to 0.",
              "a NVLS multicast support is available on dev 0 (NVLS_NCHANNELS 24)"})},
      {"fallback.collnet-unused",
       {"aW Cannot initialize CollNet, using point-to-point network instead"},
       {"a NCCL_COLLNET_ENABLE set by environment to 1."}},
      {"fallback.collnet-unused",
       {"a NCCL_COLLNET_ENABLE set by environment to 1.",
        "a Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0"},
       {"a NCCL_COLLNET_ENABLE set by environment to 1.", "a Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0",
        "a CollNet 00/0 : 0 [send] via COLLNET/SHARP/0/GDRDMA"}},
      {"fallback.topology-alike",
       {"a GPU/0-10 :GPU/0-10 (0/5000.0/LOC) NET/0-0 (3/12.0/PHB) NET/0-1 (3/12.0/PHB)"},
       {"a GPU/0-10 :GPU/0-10 (0/5000.0/LOC) NET/0-0 (3/12.0/PHB) NET/0-1 (3/12.0/PIX)"}},
      {"fallback.topology-unread",
       {"a Topology detection : could not read /sys/x/max_link_speed, ignoring"},
       {"a Using network Socket",
        "a Topology detection: network path (name = eth0) /sys/x is not a PCI device (virtio). Attaching to "
        "first CPU"}},
      {"fallback.ll128-off", costs("Ring", "0.0", {"a NCCL_PROTO set by environment to Simple"}),
       costs("Ring", "189.3", {})},
      {"misconfigured.rails-crossed",
       two_hosts({"a Pattern 4, crossNic 0, nChannels 8, bw 40.0/40.0, type NVL/PIX, sameChannels 0",
                  "a Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0",
                  "c Channel 00/0 : 0[0] -> 1[0] [receive] via NET/IB/1"}),
       two_hosts({"a Pattern 4, crossNic 1, nChannels 8, bw 40.0/40.0, type NVL/PIX, sameChannels 0",
                  "a Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0",
                  "c Channel 00/0 : 0[0] -> 1[0] [receive] via NET/IB/1"})},
      {"evidence-missing.edges",
       two_hosts({"a Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0",
                  "c Channel 01/0 : 0[0] -> 1[0] [receive] via NET/IB/0"}),
       two_hosts({"a Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0",
                  "c Channel 00/0 : 0[0] -> 1[0] [receive] via NET/IB/0"})},
      {"evidence-missing.edges",
       two_hosts({"a Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0",
                  "c Channel 00/0 : 0[0] -> 1[0] [receive] via NET/Socket/0"}),
       two_hosts({"a Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0"})},
      {"evidence-missing.rings", two_hosts({"a Ring 00 : 1 -> 0 -> 1", "c Ring 00 : 0 -> 1 -> 1"}),
       two_hosts({"a Ring 00 : 1 -> 0 -> 1", "c Ring 00 : 0 -> 1 -> 0"})},
      {"evidence-missing.overwritten",
       {"a Using network IB", std::string("\0\0\0\0a", 5)},
       {"a Using network IB"}},
      {"evidence-missing.profiler-absent",
       {"a NCCL_PROFILER_PLUGIN set by environment to libx.so", "a PROFILER/Plugin: Could not find: libx.so"},
       {"a PROFILER/Plugin: Could not find: libnccl-profiler.so"}},
      {"joined-other-op.calls",
       two_hosts({call('a', "AllReduce", 0, 512), call('c', "AllReduce", 0, 512),
                  call('a', "AllReduce", 1, 8), call('c', "AllGather", 1, 8)}),
       two_hosts({call('a', "AllReduce", 0, 512), call('c', "AllReduce", 0, 512), call('a', "Send", 1, 8),
                  call('c', "Recv", 1, 8)})},
      {"evidence-missing.calls",
       two_hosts(
           {call('a', "AllReduce", 0, 512), call('c', "AllReduce", 0, 512), call('a', "AllReduce", 1, 8)}),
       two_hosts({call('a', "AllReduce", 0, 512), call('c', "AllReduce", 0, 512)})},
      {"evidence-missing.calls",
       two_hosts({call('a', "AllReduce", 0, 512), call('c', "AllReduce", 0, 512),
                  call('a', "AllReduce", 1, 8), call('a', "AllGather", 2, 8), call('c', "AllGather", 2, 8)}),
       two_hosts({call('a', "AllReduce", 0, 512), call('c', "AllReduce", 0, 512),
                  call('a', "AllReduce", 1, 8), call('c', "AllGather", 1, 8)})},
      {"never-joined.calls",
       two_hosts({call('a', "AllReduce", 0, 512), call('c', "AllReduce", 0, 512),
                  call('a', "AllReduce", 1, 8), timeout(0, "ALLREDUCE")}),
       two_hosts(
           {call('a', "AllReduce", 0, 512), call('c', "AllReduce", 1, 512), call('a', "AllReduce", 1, 8)})},
      {"rank-unreachable.ras",
       {"a RAS keep-alive timeout error (20s) on socket connection with 198.51.100.9<1>"},
       {"a RAS keep-alive timeout warning (5s) on socket connection with 198.51.100.9<1>"}},
      {"rank-dead.local",
       {begin('a', 0, 2), nodes('a', 0, 2, 1), "a [Service thread] Connection closed by localRank 3",
        "a comm 0xa0 rank 0 nranks 2 cudaDev 0 busId 1 - Abort START"},
       {begin('a', 0, 2), nodes('a', 0, 2, 1), "a comm 0xa0 rank 0 nranks 2 cudaDev 0 busId 1 - Abort START",
        "a [Service thread] Connection closed by localRank 3"}},
      // Each process sees one GPU, which is device 0.
      {"rank-dead.local",
       {begin('b', 1, 2), nodes('b', 1, 2, 1, 1), "b [Service thread] Connection closed by localRank 0",
        "b comm 0xb0 rank 1 nranks 2 cudaDev 0 busId 1 - Abort START"},
       {begin('b', 1, 2), nodes('b', 1, 2, 1, 1), "b [Service thread] Connection closed by localRank 1",
        "b comm 0xb0 rank 1 nranks 2 cudaDev 0 busId 1 - Abort START"}},
      {"aborted.remote", {"a transport/net.cc:402 -> 6"}, {"a transport/net.cc:402 -> 7"}},
      {"aborted.proxy",
       {"aW [Proxy Service 3] Failed to execute operation Connect from rank 3, retcode 3"},
       {"a [Proxy Service] Device 0 CPU core 3"}},
      {"slow-nic.speed",
       {"a NET/IB: [0] mlx5_0:uverbs0:1/IB provider=Mlx5 speed=400000 context=0x1",
        "a NET/IB: [1] mlx5_1:uverbs1:1/IB provider=Mlx5 speed=200000 context=0x1"},
       {"a NET/IB: [0] mlx5_0:uverbs0:1/IB provider=Mlx5 speed=400000 context=0x1",
        "a NET/IB: [1] mlx5_1:uverbs1:1/IB provider=Mlx5 speed=400000 context=0x1"}},
      {"slow-nic.speed-changed",
       {"a NET/IB : mlx5_0:1 speed change detected: 400000 -> 200000 Mbps"},
       {"a NET/IB : No device found."}},
      {"misconfigured.versions",
       two_hosts({"a NCCL version 2.27.3+cuda12.9", "c NCCL version 2.26.5+cuda12.9"}),
       two_hosts({"a NCCL version 2.27.3+cuda12.9", "c NCCL version 2.27.3+cuda12.9"})},
      {"misconfigured.versions",
       {"aW Mismatched NCCL version detected : rank 8 version 22605 rank 0 version 22703"},
       {}},
      {"misconfigured.two-libraries",
       {"a NCCL version 2.28.9+cuda12.8", "a NCCL version 2.28.9+cuda13.0"},
       {"a NCCL version 2.28.9+cuda12.8", "a NCCL version 2.28.9+cuda12.8"}},
      {"misconfigured.two-libraries",
       {"a RCCL version 2.21.5+hip6.3", "a RCCL version 2.22.3+hip6.4"},
       {"a RCCL version 2.22.3+hip6.4", "a NCCL version 2.22.3+hip6.4"}},
      {"misconfigured.library-absent",
       {"ImportError: libnccl.so.2: cannot open shared object file: No such file or directory"},
       {"ImportError: libmpi.so.40: cannot open shared object file: No such file or directory"}},
      {"misconfigured.library-symbol",
       {"Traceback (most recent call last):", "  File \"x.py\", line 1, in <module>",
        "ImportError: libtorch_cuda.so: undefined symbol: ncclCommRegister"},
       {"ImportError: libtorch_cuda.so: undefined symbol: cudaMalloc"}},
      {"misconfigured.networks", two_hosts({"a Using network IB", "c Using network Socket"}),
       two_hosts({"a Using network IB", "c Using network IB"})},
      {"misconfigured.environment",
       two_hosts({"a NCCL_IB_TC set by environment to 106.", "c NCCL_IB_TC set by environment to 104."}),
       two_hosts({"a NCCL_IB_TC set by environment to 106.", "c NCCL_IB_TC set by environment to 106.",
                  "a NCCL_SOCKET_IFNAME set by environment to eth0",
                  "c NCCL_SOCKET_IFNAME set by environment to eth1"})},
      {"misconfigured.environment",
       {begin('a', 0, 3), complete('a', 0, 3), "a NCCL_P2P_DISABLE set by environment to 1", begin('b', 1, 3),
        complete('b', 1, 3), begin('c', 2, 3), complete('c', 2, 3)},
       {begin('a', 0, 3), complete('a', 0, 3), "a NCCL_P2P_DISABLE set by environment to 1", begin('b', 1, 3),
        complete('b', 1, 3), "b NCCL_P2P_DISABLE set by environment to 1", begin('c', 2, 3),
        complete('c', 2, 3)}},
      {"misconfigured.card-count",
       two_hosts({"a NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB e:1",
                  "c NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB e:1"}),
       two_hosts({"a NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB e:1",
                  "c NET/IB : Using [0]mlx5_3:1/IB [RO]; OOB e:1"})},
      {"misconfigured.link-layers",
       two_hosts({"a NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB e:1",
                  "c NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB e:1"}),
       two_hosts({"a NET/IB : Using [0]m:1/IB [1]n:1/RoCE [RO]; OOB e:1",
                  "c NET/IB : Using [0]m:1/RoCE [1]n:1/IB [RO]; OOB e:1"})},
      {"misconfigured.shared-gpu",
       {"aW Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1b000"},
       {begin('a', 0, 1)}},
      {"misconfigured.driver",
       {"aW CUDA Driver version found is 11040. Minimum requirement is 12000"},
       {"a cudaDriverVersion 12080"}},
      {"misconfigured.driver-older",
       {"a cudaDriverVersion 12040", "a NCCL version 2.27.3+cuda12.9"},
       {"a cudaDriverVersion 13000", "a NCCL version 2.27.3+cuda12.9"}},
      {"misconfigured.interface",
       two_hosts({"a Bootstrap : Using docker0:192.0.2.1<0>"}),
       {begin('a', 0, 1), nodes('a', 0, 1, 1), "a Bootstrap: Using lo:127.0.0.1<0>",
        "b Bootstrap: Using eth0:192.0.2.2<0>"}},
      {"misconfigured.interface",
       two_hosts({"a Bootstrap : Using [0]virbr0:192.0.2.1<0>"}),
       {begin('a', 0, 1), nodes('a', 0, 1, 1), "a Bootstrap: Using [0]lo:127.0.0.1<0>"}},
      {"misconfigured.interface-absent",
       {"aW Bootstrap : no socket interface found"},
       {"a Bootstrap: Using eth0:192.0.2.1<0>"}},
      {"misconfigured.memlock",
       {"aW Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory"},
       {"aW Call to ibv_poll_cq failed with error Success"}},
      {"transport-error.verbs",
       {"aW Call to ibv_poll_cq failed with error Input/output error"},
       {"aW Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory"}},
      {"misconfigured.shared-memory",
       {"aW Error: failed to extend /dev/shm/nccl-x to 9637892 bytes, error: No space left on device (28)"},
       {"a Error: failed to extend /dev/shm/nccl-x to 9637892 bytes, error: x"}},
      {"misconfigured.gpu-memory",
       {"aW Cuda failure 2 'out of memory'"},
       {"aW Cuda failure 700 'illegal address'"}},
      {"aborted.cuda",
       {"aW Cuda failure 999 'unknown error'"},
       {"aW Cuda failure 'out of memory'", "b Cuda failure 700 'x'"}},
      {"misconfigured.gpu-memory-buffer",
       {"aW Failed to CUDA calloc async 608 bytes"},
       {"a Mem Realloc old size 0, new size 8 pointer 0x1"}},
      {"misconfigured.roce-route",
       {"aW Call to ibv_modify_qp failed with 22 Invalid argument, on dev mlx5_2:1, curr state INIT, next "
        "state RTR"},
       {"a Call to ibv_modify_qp failed with 22 Invalid argument, on dev mlx5_2:1, x"}},
      {"misconfigured.roce-route",
       {"aW Call to ibv_modify_qp failed with error No route to host"},
       {"aW Call to ibv_modify_qp failed with error Invalid argument"}},
      {"misconfigured.queue-pair",
       {"aW Call to ibv_modify_qp failed with error Invalid argument"},
       {"aW Call to ibv_modify_qp failed with error Connection timed out"}},
      {"misconfigured.queue-pair",
       {"aW Call to ibv_modify_qp failed with 22 Invalid argument, on dev mlx5_2:1, curr state RTR, next "
        "state RTS"},
       {"aW Call to ibv_modify_qp failed with 110 Connection timed out, on dev mlx5_2:1, curr state INIT, "
        "next state RTR"}},
      {"misconfigured.known-issue",
       {"a NCCL version 2.23.4+cuda12.4", "aW creating a socket: Too many open files"},
       {"a NCCL version 2.24.3+cuda12.4", "aW creating a socket: Too many open files"}},
      {"misconfigured.rank-twice",
       {"aW Bootstrap Root : rank 3 of 8 ranks has already checked in"},
       {"a Bootstrap Root : rank 3 of 8 ranks has already checked in"}},
      {"misconfigured.foreign-connection",
       {"aW socketFinalizeAccept: wrong type 3 != 4"},
       {"a socketFinalizeAccept: wrong type 3 != 4"}},
      {"misconfigured.algorithm",
       {"aW Error : no algorithm/protocol available for function AllReduce with datatype f32."},
       {"a Algorithm |"}},
      {"misconfigured.transport",
       {"aW No transport found for rank 0[1b000] -> rank 1[1c000]"},
       {"a Connected all rings"}},
      {"misconfigured.ignored-setting",
       {"aW Could not parse NCCL_ALGO value x"},
       {"a NCCL_ALGO set by environment to RING"}},
      {"misconfigured.tuning",
       {"a NCCL_ALGO set by environment to RING"},
       {"a NCCL_DEBUG set by environment to INFO"}},
      {"misconfigured.affinity",
       {"a Setting affinity for GPU 0 to 3"},
       {"a Setting affinity for GPU 0 to 0-47,96-143"}},
      {"misconfigured.host-identity",
       {begin('a', 0, 2), nodes('a', 0, 2, 2), begin('b', 1, 2), nodes('b', 1, 2, 2)},
       two_hosts({})},
      {"misconfigured.host-identity",
       {begin('a', 0, 2), nodes('a', 0, 2, 2), begin('b', 1, 2)},
       {begin('a', 0, 2), nodes('a', 0, 2, 2), begin('b', 1, 2), "a NCCL_HOSTID set by environment to x"}},
      {"fallback.confidential-computing",
       {"a CC On, Multi-GPU CC Off, workFifoBytes 1048576"},
       {"a CC Off, workFifoBytes 1048576"}},
      {"fallback.net-socket",
       two_hosts({"a Using network Socket"}),
       {begin('a', 0, 2), nodes('a', 0, 2, 1), "a Using network Socket"}},
      {"fallback.net-socket", two_hosts({"c Using network Socket"}), two_hosts({"a Using network IB"})},
      {"fallback.net-plugin",
       {"a NCCL_NET_PLUGIN set by environment to ofi", "a NET/Plugin: Could not find: libnccl-net-ofi.so"},
       {"a NET/Plugin: Could not find: libnccl-net.so"}},
      {"fallback.net-plugin-device", {"a NET/gIB : No device found."}, {"a NET/IB : No device found."}},
      {"fallback.net-plugin-failed",
       {"a Failed to initialize NET plugin AWS Libfabric"},
       {"a Failed to initialize NET plugin IB"}},
      {"fallback.p2p-disabled",
       {"a NCCL_P2P_DISABLE set by environment to 1"},
       {"a NCCL_P2P_DISABLE set by environment to 0"}},
      {"fallback.p2p-disabled",
       {"a NCCL_P2P_LEVEL set by environment to LOC"},
       {"a NCCL_P2P_LEVEL set by environment to NVL"}},
      {"fallback.p2p-refused",
       {"a Could not enable P2P between dev 1(=43000) and dev 0(=1b000)"},
       {"a Channel 00/0 : 0[0] -> 1[1] via P2P/IPC"}},
      {"fallback.shm",
       {"a + NVL[370.8] - NVS/0-0", "a Channel 00 : 0[0] -> 1[1] via SHM/direct/direct"},
       {"a + NVL[370.8] - NVS/0-0", "a Channel 00 : 0[0] -> 1[1] via SHM/direct/direct",
        "a NCCL_P2P_DISABLE set by environment to 1", "b Channel 00 : 0[0] -> 1[1] via SHM/direct/direct"}},
      {"fallback.shm",
       {"a + XGMI[48.0] - GPU/c9000", "a Channel 00 : 0[c1000] -> 1[c9000] via SHM/direct/direct comm 0xa0"},
       {"a + PCI[24.0] - GPU/c9000 (1)",
        "a Channel 00 : 0[c1000] -> 1[c9000] via SHM/direct/direct comm 0xa0"}},
      {"misconfigured.environment",
       {"a RCCL_MSCCL_ENABLE set by environment to 0.", "b RCCL_MSCCL_ENABLE set by environment to 1."},
       {"a RCCL_MSCCL_ENABLE set by environment to 1.", "b RCCL_MSCCL_ENABLE set by environment to 1."}},
      {"fallback.gdr",
       {"a Using network IB", "a NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'"},
       {"a Using network Socket", "a NET/Socket : GPU Direct RDMA Disabled for HCA 0 'eth0'"}},
      {"fallback.gdr",
       {"a Using network IB", "a Channel 00/0 : 0[0] -> 9[1] [send] via NET/IB/0"},
       {"a Using network IB", "a Channel 00/0 : 0[0] -> 9[1] [send] via NET/IB/0/GDRDMA"}},
      {"fallback.gdr-uneven",
       {"a Channel 00/0 : 0[0] -> 9[1] [send] via NET/IB/0/GDRDMA",
        "c Channel 00/0 : 9[1] -> 0[0] [send] via NET/IB/0"},
       {"a Channel 00/0 : 0[0] -> 9[1] [send] via NET/IB/0",
        "c Channel 00/0 : 9[1] -> 0[0] [send] via NET/IB/0"}},
      {"fallback.gdr-distance",
       {"a GPU Direct RDMA Disabled for GPU 3 / HCA 2 (distance 8 > 5)"},
       {"a GPU Direct RDMA Enabled for GPU 0 / HCA 0 (distance 4 <= 5), read 0 mode Default"}},
      {"fallback.nvls",
       {"a + NVL[370.8] - NVS/0-0", "a NVLS multicast support is not available on dev 0"},
       {"a + NVL[240.0] - NVS/0-0", "a NVLS multicast support is not available on dev 0"}},
      {"fallback.nvls-disabled",
       {"a NCCL_NVLS_ENABLE set by environment to 0."},
       {"a NCCL_NVLS_ENABLE set by environment to 1."}},
      {"fallback.collnet",
       {"a Communicator has 1 nodes which is less than CollNet node threshold 2, disabling CollNet"},
       {begin('a', 0, 1)}},
      {"fallback.graph-search",
       {"a Could not find a path for pattern 4, falling back to simple order"},
       {"a Pattern 4, crossNic 0, n"}},
      {"fallback.topology",
       {"a + PCI[0.4] - GPU/0-60 (0)"},
       {"a + PCI[48.0] - GPU/0-60 (0)", "a + PCI[1.0] - NIC/0-0"}},
      {"fallback.ll128", {"a Disabling LL128 over all PxN connections"}, {begin('a', 0, 1)}},
      {"misconfigured.rails",
       {"a NET/IB : There are mismatched physical devices between local (mlx5_0) and remote (mlx5_1)"},
       {begin('a', 0, 1)}},
      {"slow-nic.mtu",
       {"a NET/IB: Dev 0 Port 1 qpn 5 mtu 3 GID 3 (0/1)"},
       {"a NET/IB: Dev 0 Port 1 qpn 5 mtu 5 GID 3 (0/1)", "a NET/IB: Dev 0 Port 1 qpn 5 mtu 3 LID 7"}},
      {"evidence-missing.comm-dump",
       {"aW ncclCommDump() ProxyTrace:", "aW commDump for all active ops mapSizeMB:0.00",
        proxy_record("3->5(S)", "DONE")},
       {"aW ncclCommDump() ProxyTrace:", "aW commDump for all active ops mapSizeMB:0.00",
        proxy_record("3->5(S)", "WAITING_GPU")}},
      {"evidence-missing.latencies", latencies("AllReduce", 6, 6), latencies("AllReduce", 4, 8)},
      {"evidence-missing.latencies", latencies("AllGather", 10, 0), latencies("Broadcast", 10, 0)},
      {"transport-error.peer-lost",
       {"aW socketProgressOpt: Call to recv from 192.0.2.9<4> failed : Connection timed out"},
       {"aW socketProgressOpt: Call to recv from 192.0.2.9<4> failed : Connection reset by peer"}},
      {"rank-dead.connection",
       {"aW socketProgressOpt: Call to recv from 192.0.2.9<4> failed : Connection reset by peer"},
       {"aW socketProgressOpt: Call to recv from 192.0.2.9<4> failed : No route to host"}},
      {"rank-dead.store-gone",
       {"[rank3]: torch.distributed.DistNetworkError: failed to recv, got 0 bytes"},
       {"[rank3]: torch.distributed.DistNetworkError: The client socket has failed to connect to any address"}},
      {"evidence-missing.unknown-error",
       {"epoch 3: loss 0.5", "widget: error: the frobnicator is empty"},
       {"a Using network IB", "widget: error: the frobnicator is empty"}},
      {"rank-dead.process", {"    Reason: OOMKilled"}, {"    \"OOMKilled\": false,"}},
      {"misconfigured.shared-gpu",
       {"aW Multiple ranks detected using the same GPU on this node. Set NCCL_MULTI_RANK_GPU_ENABLE=1 to go on"},
       {begin('a', 0, 1)}},
      {"aborted.helper", {"aW NET/IB : unable to allocate requests"}, {begin('a', 0, 1)}},
      {"aborted.gpu-call", {"aW Unable to allocate memory of GPU memory (7 bytes)"}, {begin('a', 0, 1)}},
      {"fallback.topology-failed",
       {"aW Could not find local GPU with rank 7"},
       {"aW Could not find communicator matching window 0x7 (map hbits=7 count=7)"}},
      {"transport-error.failover",
       {"aW NET/IB: Replacing QP 12"},
       {"aW NET/IB: Could not find a replacement QP for the failed QP with qpIndex=3 (devIndex=0)"}},
      {"transport-error.failover",
       {"aW NET/IB: Device 3 marked as failed. Initiating recovery? Yes (send comm=0x7, outstandingRecovery=1)"},
       {"a NET/IB: init: Port recovery is disabled for the resiliency context on the send communicator (comm=0x7)",
        "aW NET/IB: The error is fatal (x). Cannot continue."}},
      {"transport-error.card-call",
       {"aW NET/IB: The error is fatal (x). Cannot continue."},
       {"aW NET/IB: check: Resiliency requires pre-posted receive work requests. Enabling pre-posting."}},
      {"joined-other-op.log", {"aW Mismatched collective detected, please check"}, {begin('a', 0, 1)}},
      {"aborted.argument",
       {"aW Broadcast : invalid root 9 (root should be in the 0..7 range)"},
       {"a Broadcast : invalid root 9"}},
      {"aborted.argument",
       {"aW Reduce : invalid type 99"},
       {"aW AllGather : invalid root 0 (root should be in the 0..-1 range)"}},
      {"aborted.communicator-gone",
       {"aW Recv : invalid root 2 (root should be in the 0..0 range)",
        "aW comm 0x7f10 has already been destroyed"},
       {"aW Broadcast : invalid root 9 (root should be in the 0..7 range)"}},
      {"aborted.communicator-gone",
       {"a comm 0x7f10 rank 2 nranks 4 cudaDev 0 busId 3b000 - Abort COMPLETE",
        "aW AllGather : invalid root 0 (root should be in the 0..-1 range)"},
       {"a comm 0x7f10 rank 2 nranks 4 cudaDev 0 busId 3b000 - Abort COMPLETE"}},
      {"joined-other-op.watchdog",
       {timeout(0, "ALLREDUCE"), timeout(1, "BROADCAST")},
       {timeout(0, "ALLREDUCE"), timeout(1, "ALLREDUCE")}},
      {"joined-other-op.fingerprint",
       {"RuntimeError: Detected mismatch between collectives on ranks. Rank 0 is running collective: "
        "CollectiveFingerPrint(SequenceNumber=4, OpType=ALLREDUCE, TensorShape=[1]), but Rank 1 is running "
        "collective: CollectiveFingerPrint(SequenceNumber=4, OpType=BROADCAST)."},
       {timeout(0, "ALLREDUCE")}},
      {"cross-comm-deadlock.watchdog",
       {timeout(0, "ALLREDUCE"), progress(1, 8), progress(0, 8, 7),
        "[rank1]: [PG ID 1 PG GUID 7 Rank 1] Watchdog caught "
        "collective operation timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, Timeout(ms)=1) ran for 2 "
        "milliseconds"},
       {timeout(0, "ALLREDUCE"), progress(1, 8)}},
      {"rank-dead.launcher",
       {"  rank      : 5 (local_rank: 1)", "  exitcode  : -9 (pid: 4856)"},
       {"  rank      : 5 (local_rank: 1)", "  exitcode  : -15 (pid: 4856)", "NCCL version 2.28.9"}},
      {"rank-dead.launcher",
       {"  rank      : 5 (local_rank: 1)", "  exitcode  : 137 (pid: 4856)"},
       {"  rank      : 5 (local_rank: 1)", "  exitcode  : 143 (pid: 4856)", "NCCL version 2.28.9"}},
      {"rank-dead.gpu-fault",
       {kPytorch +
        "[Rank 0] NCCL watchdog thread terminated with exception: CUDA error: uncorrectable ECC error"},
       {kPytorch +
        "[Rank 0] NCCL watchdog thread terminated with exception: CUDA error: an illegal memory access"}},
      {"rank-dead.cuda",
       {kPytorch +
        "[Rank 0] NCCL watchdog thread terminated with exception: CUDA error: an illegal memory access"},
       {kPytorch + "[Rank 0] NCCL watchdog thread terminated with exception: [Rank 0] Watchdog caught"}},
      {"rank-dead.remote",
       {kPytorch + "Collective WorkNCCL(SeqNum=3, OpType=ALLREDUCE, Timeout(ms)=1) raised the following "
                   "async exception: NCCL error: remote process exited or there was a network error"},
       {timeout(0, "ALLREDUCE")}},
      {"never-joined.watchdog",
       {timeout(0, "ALLREDUCE"), progress(1, 8)},
       {timeout(0, "ALLREDUCE"), progress(1, 9)}},
      {"stuck-in-gpu.watchdog",
       {group_of(2), timeout(0, "ALLREDUCE"), progress(1, 9)},
       {timeout(0, "ALLREDUCE"), progress(1, 9)}},
      {"aborted.watchdog-stuck",
       {kPytorch + "ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress"},
       {timeout(0, "ALLREDUCE")}},
      {"aborted.gil", {kPytorch + "Could not acquire GIL within 300 ms on exit"}, {timeout(0, "ALLREDUCE")}},
      {"aborted.watchdog",
       {kPytorch + "To avoid data inconsistency, we are taking the entire process down."},
       {timeout(0, "ALLREDUCE")}},
      {"evidence-missing.watchdog",
       {timeout(0, "ALLREDUCE"), progress(1, 9)},
       {timeout(0, "ALLREDUCE"), progress(1, 8)}},
      {"init-stuck.log",
       {begin('a', 0, 2), "cW NET/IB : Got completion with error 12, opcode 0, len 0"},
       {begin('a', 0, 2), complete('a', 0, 2), "cW NET/IB : Got completion with error 12, opcode 0, len 0"}},
      {"evidence-missing.init", {begin('a', 0, 2)}, {begin('a', 0, 2), complete('a', 0, 2)}},
      {"evidence-missing.init",
       {begin('a', 0, 2), begin('c', 1, 2), complete('c', 1, 2), kPytorch + "Could not acquire GIL within 3"},
       {begin('a', 0, 2),
        "a ncclCommSplit comm 0xa1 rank 0 nranks 1 cudaDev 0 nvmlDev 0 busId 1b000 parent 0xa0 splitCount 1 "
        "color 1 key 0- Init START",
        "a ncclCommSplit comm 0xa1 rank 0 nranks 1 cudaDev 0 nvmlDev 0 busId 1b000 parent 0xa0 splitCount 1 "
        "color 1 key 0- Init COMPLETE"}},
      {"init-stuck.slow",
       {begin('a', 0, 2),
        "a Init timings - ncclCommInitRank: rank 0 nranks 2 total 90.5 (kernels 0.31, bootstrap 90.0)"},
       {begin('a', 0, 2),
        "a Init timings - ncclCommInitRank: rank 0 nranks 2 total 3.4 (kernels 0.31, bootstrap 2.0)"}},
      {"transport-error.connect",
       {"aW socketPollConnect: connect to 192.0.2.9<39611> returned Connection timed out, exceeded error "
        "retry count after 35 attempts"},
       {"a socketPollConnect: connect to 192.0.2.9<39611> returned Connection refused, retrying (3/34) after "
        "sleep for 300 msec"}},
      {"transport-error.access",
       {"aW NET/IB : Got completion from peer 192.0.2.9<1> with error 4, opcode 0, len 0, vendor err 81 "
        "(Recv)"},
       {"aW NET/IB : Got completion with error 12, opcode 0, len 0, vendor err 129"}},
      {"transport-error.retries",
       {"aW NET/IB: Got completion from peer 192.0.2.9<1> with status=IBV_WC_RETRY_EXC_ERR(12) "
        "opcode=IBV_WC_SEND(0) vendor_err=129 hca m"},
       {"aW NET/IB : Got completion with error 5, opcode 0, len 0, vendor err 244"}},
      {"transport-error.retries",
       {"aW NET/IB: Got completion from peer 192.0.2.9<1> with status=12 opcode=0 len=0 vendor err 129 "
        "(Recv)"},
       {}},
      {"transport-error.size",
       {"aW NET/IB: Got completion from peer 192.0.2.9<1> with status=9 opcode=0 len=0 vendor err 138 "
        "(Send)"},
       {"aW NET/IB : Got completion with error 10, opcode 0, len 0"}},
      {"transport-error.remote-access",
       {"aW NET/IB : Got completion with error 10, opcode 0, len 0"},
       {"aW NET/IB : Got completion with error 4, opcode 0, len 0"}},
      {"transport-error.receiver-late",
       {"aW NET/IB: Got completion from peer 192.0.2.9<1> with status=IBV_WC_RNR_RETRY_EXC_ERR(13) opcode=0"},
       {"aW NET/IB : Got completion with error 12, opcode 0, len 0"}},
      {"transport-error.completion",
       {"aW NET/IB : Got completion with error 11, opcode 0, len 0"},
       {"aW NET/IB : Got completion with error 5, opcode 0, len 0"}},
      {"transport-error.truncated",
       {"aW Message truncated : received 8 bytes instead of 16"},
       {begin('a', 0, 1)}},
      {"rank-dead.ras",
       {"a RAS declaring peer 192.0.2.9<41777> as DEAD; rasDeadPeersHash 0x9"},
       {"a RAS thread terminating"}},
      {"rank-dead.connection",
       {"aW socketProgress: Connection closed by remote peer n2.cluster<47112>"},
       {"a RAS current socket connection with 192.0.2.9<1> closed by peer on receive; terminating it"}},
      {"aborted.communicator",
       {begin('a', 0, 1), "a comm 0xa0 rank 0 nRanks 1 cudaDev 0 busId 1b000 - Abort START"},
       {begin('a', 0, 1), "a comm 0xa0 rank 0 nranks 1 cudaDev 0 busId 1b000 - Destroy COMPLETE"}},
      {"evidence-missing.torn",
       {"a Using network IB", "h1:1:1 [0] NCCL ININFO 10-24", "a Using network IB"},
       {"a Using network IB", "h1:1:1 [0] NCCL IN"}},
      {"evidence-missing.no-line", {"Some sentence", "another one"}, {"a Using network IB"}},
      {"evidence-missing.damaged", {"a Using network IB", "a Using \x01 network"}, {"a Using network IB"}},
      {"evidence-missing.repeated",
       {"a Using network IB [repeated 7x across cluster]"},
       {"a Using network IB"}},
      {"evidence-missing.rank-logs",
       {begin('a', 0, 4), complete('a', 0, 4)},
       {begin('a', 0, 2), complete('a', 0, 2), begin('b', 1, 2), complete('b', 1, 2)}},
      {"aborted.xid",
       {"[12.3] NVRM: Xid (PCI:0000:18:00): 79, pid=88, GPU has fallen off the bus."},
       {"NVRM: loading"}},
      {"evidence-missing.workers",
       {"INFO shm_broadcast.py:466] No available shared memory broadcast block found in 60 seconds. This typically"},
       {"INFO shm_broadcast.py:466] a broadcast block was found in 60 seconds"}},
      {"evidence-missing.workers",
       {"WARNING shm_broadcast.py:396] No available block found in 60 second. "},
       {"WARNING shm_broadcast.py:396] No available block found in the cache"}},
      {"evidence-missing.store",
       {"[W104 TCPStore.cpp:347] [c10d] TCP client failed to connect/validate to host n0:5 - retrying (try=6): x"},
       {"[W104 TCPStore.cpp:347] [c10d] TCP client failed to connect/validate to host n0:5 - retrying (try=6): x",
        begin('a', 0, 1), complete('a', 0, 1)}},
      {"evidence-missing.slurm",
       {"srun: error: Unable to read a reply of the controller"},
       {"srun: error: n0: task 3: Killed"}},
      {"evidence-missing.slurm",
       {"srun: error: n0: tasks 0-3: Exited with exit code 1"},
       {"srun: job 7 queued"}},
      {"evidence-missing.slurm",
       {"[2031-02-03T04:05:06.552] error: Node configuration differs from hardware: Procs=16:16(hw)"},
       {"[2031-02-03T04:05:06.552] Node configuration is that of the hardware"}},
      {"evidence-missing.traceback",
       {"[rank3]: Traceback (most recent call last):", "[rank3]:   File \"/srv/train.py\", line 9, in step"},
       {"[rank3]: Traceback (most recent call last):", "[rank3]:   File \"/srv/train.py\", line 9, in step",
        "[rank3]: KeyError: 'x'"}},
      {"evidence-missing.traceback",
       {"Traceback (most recent call last):", "  File \"/srv/train.py\", line 9, in step", "torch.distr"},
       {"Traceback (most recent call last):", "  File \"/srv/train.py\", line 9, in step",
        "KeyboardInterrupt"}},
      {"evidence-missing.traceback",
       {"Traceback (most recent call last):", "  File \"/srv/train.py\", line 9, in step", "    run()"},
       {"Traceback (most recent call last):", "  File \"/srv/train.py\", line 9, in step", "torch.X: y",
        "done"}},
      {"evidence-missing.frame",
       {"[rank3]: frame #8: c10d::ProcessGroupNCCL::getNCCLComm(std::string const&) + 0x114c (0x7e in /a.so)"},
       {"frame #6: clone + 0x43 (0x7f in /lib/libc.so.6)"}},
      {"evidence-missing.frame",
       {"(Engine pid=7) ERROR [core.py:9]   File \"/srv/a.py\", line 9, in step", "(Engine pid=7) ERROR"},
       {"  File \"/srv/a.py\", line 9 in step"}},
      {"rank-dead.rendezvous",
       {"torch.distributed.elastic.rendezvous.api.RendezvousClosedError"},
       {"the rendezvous was closed"}},
      {"evidence-missing.deepep",
       {"Traceback (most recent call last):", "  File \"/srv/a.py\", line 9, in step",
        "RuntimeError: DeepEP error: CPU recv timeout"},
       {"Traceback (most recent call last):", "  File \"/srv/a.py\", line 9, in step", "RuntimeError: x"}},
      {"aborted.hip",
       {"RuntimeError: HIP error: invalid argument"},
       {"RuntimeError: CUDA error: invalid argument"}},
      {"init-stuck.store",
       {"[W104 TCPStore.cpp:1] [c10d] TCP client failed to connect/validate to host n0:5 - timed out (try=3): x"},
       {"[W104 TCPStore.cpp:1] [c10d] TCP client connected to host n0:5"}},
      {"aborted.gpu-lost",
       {"kernel: amdgpu 0000:43:00.0: amdgpu: GPU reset begin!"},
       {"kernel: amdgpu 0000:43:00.0: amdgpu: ring buffer is ready"}},
      {"aborted.gpu-lost",
       {"HW Exception by GPU node-4 (Agent handle: 0x55) reason :GPU Hang"},
       {"Exception by nobody"}},
      {"stuck-in-network.proxy-trace",
       {proxy_record("3->5(S)", "WAITING_GPU"), proxy_record("3->5(S)", "DONE")},
       {proxy_record("3->5(S)", "DONE"), proxy_record("5->3(R)", "DONE")}},
      {"rank-dead.process",
       {"E0101 api.py:1] failed (exitcode: -9) local_rank: 0 (pid: 88) of binary: /usr/bin/python"},
       {"E0101 api.py:1] failed (exitcode: -15) local_rank: 0 (pid: 88) of binary: /usr/bin/python"}},
      {"rank-dead.process",
       {"E0101 api.py:1] failed (exitcode: 137) local_rank: 0 (pid: 88) of binary: /bin/sh"},
       {"E0101 api.py:1] failed (exitcode: 143) local_rank: 0 (pid: 88) of binary: /bin/sh"}},
      {"rank-dead.process",
       {"Signal 6 (SIGABRT) received by PID 88"},
       {"Signal 6 (SIGABRT) received by PID 88", timeout(0, "ALLREDUCE")}},
      {"rank-dead.process",
       {"slurmstepd: error: Detected 1 oom_kill event in StepId=7.0"},
       {"slurmstepd: error: nothing"}},
      {"rank-dead.process",
       {"[2031-02-03 04:05:06] Child process unexpectedly failed with exitcode=139. pid=77"},
       {"[2031-02-03 04:05:06] Child process started. pid=77"}},
      {"rank-dead.process",
       {"torch.multiprocessing.spawn.ProcessExitedException: process 3 terminated with signal SIGSEGV"},
       {"process 3 terminated with exit code 0"}},
      {"rank-dead.process",
       {"The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR"},
       {"The actor is dead because it was killed by `ray.kill`."}},
      {"rank-dead.requested",
       {"Traceback (most recent call last):",
        "torch.distributed.elastic.multiprocessing.api.SignalException: Process 77 got signal: 1"},
       {"Process 77 started"}},
      {"rank-dead.ended",
       {"[INFO] [launch.py:131:sigkill_handler] Killing subprocess 77"},
       {"[INFO] [launch.py:131:sigkill_handler] Killing subprocess 77",
        "[ERROR] [launch.py:324:sigkill_handler] ['python3'] exits with return code = -9"}},
      {"rank-dead.ended",
       {"slurmstepd: error: *** STEP 6053.0 ON n1 CANCELLED AT 2031-02-03T04:05:06 ***"},
       {"slurmstepd: error: *** STEP 6053.0 ON n1 CANCELLED AT 2031-02-03T04:05:06 DUE TO TIME LIMIT ***"}},
      {"rank-dead.ended", {"  Process name: [[12167,1],10]"}, {"  Process name: worker"}},
      {"rank-dead.store",
       {"[rank1]:[W728 11:07:57.4 TCPStore.cpp:106] [c10d] sendBytes failed on SocketImpl(fd=60, "
        "addr=[localhost]:5, remote=[localhost]:6): Broken pipe"},
       {"[rank1]:[I728 11:07:57.4 TCPStore.cpp:106] [c10d] a TCPStore was made"}},
      {"never-joined.horovod",
       {"[0] [2031: W stall_inspector.cc:107] One or more tensors are waiting for remainder of ranks for more "
        "than 60 seconds. ",
        "[0] Missing ranks:", "[0] 3: [grad.a, grad.b ...]", "[0] 5!: [grad.a]",
        "[0] [2031: W next] 7: [this is none]"},
       {"Missing values:", "3: [a, b]"}},
      {"never-joined.horovod",
       {"W operations.cc:588] Allreduce_grad_0 [missing ranks: 2]",
        "One or more rank (marked by \"!\") is stalled for longer than 90 seconds. Will shutdown."},
       {"W operations.cc:588] Allreduce_grad_0 [ready tensors: 2]"}},
      {"never-joined.horovod",
       {"W operations.cc:588] Stalled ops: allreduce.a.0 [ready ranks: 4, 1, 0, 2], allreduce.b.0 [ready ranks: 4]"},
       {"W operations.cc:588] Allreduce_grad_0 has ready ranks: 2"}},
      {"never-joined.horovod",
       {"W operations.cc:588] Stalled ops: a.0 [ready ranks: 0, 1]"},
       {begin('a', 0, 1)}},
      {"init-stuck.gloo",
       {"[rank1]:[E528 08:52:46.1 ProcessGroupGloo.cpp:145] Gloo connectFullMesh failed with "
        "[/x/gloo/transport/tcp/pair.cc:144] no error"},
       {"[rank1]:[I528 08:52:46.1 ProcessGroupGloo.cpp:145] Gloo connectFullMesh done"}},
      {"evidence-missing.gloo",
       {"RuntimeError: [unbound_buffer.cc:84] Timed out waiting 1800000ms for recv operation to complete"},
       {"RuntimeError: [pair.cc:598] Connection closed by peer [198.51.100.4]:5341"}},
      {"misconfigured.threads",
       {"terminate called: what(): thread: Resource temporarily unavailable [system:11]"},
       {"read: Resource temporarily unavailable"}},
      {"misconfigured.rank-beyond",
       {"aW Invalid rank requested : 2/2"},
       {"aW Invalid NCCL_NTHREADS 7 (must be a multiple of 32)"}},
      {"aborted.cuda-teardown",
       {"h1:11:11 [0] transport/p2p.cc:9 NCCL WARN Cuda failure 1 'invalid argument'", "a init.cc:9 -> 1",
        "aW commReclaim: cleanup comm 0x5 rank 0 failed in destroy/abort, error 1"},
       {"h1:11:11 [0] transport/p2p.cc:9 NCCL WARN Cuda failure 1 'invalid argument'"}},
      {"aborted.teardown",
       {"aW commReclaim: cleanup comm 0x5 rank 0 failed in destroy/abort, error 1"},
       {"a comm 0xa0 rank 0 nranks 1 cudaDev 0 busId 1b000 - Destroy COMPLETE"}},
      {"fallback.cuda-peer",
       {"aW failed to open CUDA IPC handle : 217 peer access is not supported between these two devices"},
       {"aW failed to open CUDA IPC handle : 700 an illegal memory access was encountered"}},
      {"misconfigured.device",
       {"n1: Test CUDA failure common.cu:963 'invalid device ordinal'"},
       {"n1: Test CUDA failure common.cu:963 'an illegal memory access was encountered'"}},
      {"misconfigured.device",
       {"n1: Test HIP failure common.cu:1129 'hipErrorInvalidDevice'"},
       {"n1: Test HIP failure common.cu:1129 'hipErrorIllegalAddress'"}},
      {"rank-dead.size",
       {"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate more than 1EB memory."},
       {"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"}},
      {"rank-dead.gpu-memory",
       {"[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"},
       {begin('a', 0, 1)}},
      {"rank-dead.raised",
       {"Traceback (most recent call last):", "  File \"a.py\", line 3", "ValueError: a shape"},
       {"Traceback (most recent call last):", "torch.distributed.DistBackendError: it ended"}},
      {"never-joined.barrier",
       {"RuntimeError: Ranks 3, 7 failed to pass monitoredBarrier in 600000 ms"},
       {begin('a', 0, 1)}},
      {"never-joined.analyser",
       {"INFO: Not all ranks joining collective 3 at entry 2", "2031-03-03 INFO: missing ranks: {1, 5}"},
       {"INFO: missing ranks: set()"}},
      {"init-stuck.store",
       {"torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError"},
       {"RuntimeError: a socket was closed"}},
      {"init-stuck.store",
       {"DistStoreError: Timed out after 601 seconds waiting for clients. 7/8 clients joined."},
       {begin('a', 0, 1)}},
      {"aborted.wrong-results", {"# Out of bounds values : 5 FAILED"}, {"# Out of bounds values : 0 OK"}},
      {"aborted.exception",
       {"horovod/common: ncclAllReduce failed: unhandled system error"},
       {"horovod/common: ncclAllReduce was called"}},
      {"aborted.exception",
       {"RuntimeError: NCCL error in: NCCLUtils.cpp:77, unhandled cuda error, NCCL version 2.26.2"},
       {"RuntimeError: NCCL error in: NCCLUtils.cpp:77, remote process exited or there was a network error"}},
      {"rank-dead.exception",
       {"RuntimeError: NCCL error in: NCCLUtils.cpp:77, remote process exited or there was a network error"},
       {"RuntimeError: NCCL error in: NCCLUtils.cpp:77, unhandled cuda error"}},
      {"rank-dead.gloo",
       {"RuntimeError: [pair.cc:598] Connection closed by peer [198.51.100.4]:5341"},
       {begin('a', 0, 1)}},
      {"aborted.test", {"vm: Test NCCL failure common.cu:958 'unhandled system error'"}, {begin('a', 0, 1)}},
      {"transport-error.refused",
       {"aW NET/IB : mlx5_0:1 async fatal event on QP (0x7f) qpn=7: local access violation work queue error"},
       {"aW NET/IB : mlx5_0:1 async fatal event: local catastrophic error"}},
      {"transport-error.refused-event",
       {"aW NET/IB : mlx5_0:1 Got async event : local access violation work queue error"},
       {"aW NET/IB : mlx5_0:1 Got async event : port error"}},
      {"transport-error.card-event",
       {"aW mlx5_0:1 Got async event : local catastrophic error"},
       {"aW mlx5_0:1 Got async event : local access violation work queue error"}},
      {"transport-error.flushed",
       {"aW NET/IB : Got completion with error 5, opcode 0, len 0"},
       {"aW NET/IB : Got completion with error 10, opcode 0, len 0"}},
      {"fallback.nvls-cuda",
       {"h1:11:11 [0] transport/nvls.cc:254 NCCL WARN Cuda failure 1 'invalid argument'"},
       {"h1:11:11 [0] transport/p2p.cc:254 NCCL WARN Cuda failure 1 'invalid argument'"}},
      {"aborted.fabric-manager",
       {"aW Cuda failure 'system not yet initialized'"},
       {"aW Cuda failure 700 'x'"}},
      {"misconfigured.cuda-library",
       {"aW Cuda failure 'named symbol not found'"},
       {"aW Cuda failure 700 'x'"}},
      {"aborted.cuda-start", {"aW Cuda failure 3 'initialization error'"}, {"aW Cuda failure 700 'x'"}},
      {"misconfigured.device", {"aW Cuda failure 101 'invalid device ordinal'"}, {"aW Cuda failure 700 'x'"}},
      {"misconfigured.cuda-compat",
       {"aW Cuda failure 804 'forward compatibility was attempted on non supported HW'"},
       {"aW Cuda failure 803 'x'"}},
      {"fallback.cuda-peer",
       {"aW Cuda failure 217 'peer access is not supported between these two devices'"},
       {"aW Cuda failure 700 'x'"}},
      {"aborted.cuda-program",
       {"aW Cuda failure 700 'an illegal memory access was encountered'"},
       {"aW Cuda failure 1 'invalid argument'"}},
      {"aborted.cuda-program", {"aW HIP failure: 'unspecified launch failure'"}, {"aW HIP failure: 'x'"}},
      {"misconfigured.cuda-unsupported",
       {"aW Cuda failure 801 'operation not supported'"},
       {"aW Cuda failure 800 'operation not permitted'"}},
      {"misconfigured.mps",
       {"aW Cuda failure 805 'MPS client failed to connect to the MPS control daemon'"},
       {"aW Cuda failure 700 'x'"}},
      {"fallback.cuda-host-memory",
       {"h1:11:11 [0] transport/shm.cc:590 NCCL WARN Cuda failure 1 'invalid argument'"},
       {"h1:11:11 [0] transport/shm.cc:590 NCCL WARN Cuda failure 700 'x'"}},
      {"fallback.cuda-ipc",
       {"h1:11:11 [0] transport/p2p.cc:254 NCCL WARN Cuda failure 1 'invalid argument'"},
       {"h1:11:11 [0] enqueue.cc:254 NCCL WARN Cuda failure 1 'invalid argument'"}},
      {"fallback.gpu-handle",
       {"aW hipIpcGetMemHandle failed : invalid argument"},
       {"aW nvmlDeviceGetIndex() failed: unknown"}},
      {"aborted.cuda-hardware",
       {"RuntimeError: CUDA error: uncorrectable ECC error encountered"},
       {"RuntimeError: CUDA error: an illegal memory access was encountered"}},
      {"aborted.gpu-lost",
       {"failed call to cuDevicePrimaryCtxRetain: CUDA_ERROR_ECC_UNCORRECTABLE: uncorrectable ECC error encountered"},
       {begin('a', 0, 1)}},
      {"aborted.cuda-hardware",
       {"aW Cuda failure 220 'uncorrectable NVLink error detected during the execution'"},
       {"aW Cuda failure 224 'x'"}},
      {"aborted.cuda-hardware",
       {"aW Cuda failure 214 'uncorrectable ECC error encountered'"},
       {"aW Cuda failure 700 'x'"}},
      {"joined-other-op.network",
       {"aW NET/IB : peer 198.51.100.1<4> collective mismatch error local size 8 remote 16"},
       {"aW Mismatched collective detected, please check"}},
      {"fallback.gdr",
       {"a Channel 00/0 : 0[0] -> 9[1] [send] via NET/IB/0"},
       {"a Channel 00/0 : 0[0] -> 9[1] [send] via NET/AWS Libfabric/0"}},
      {"misconfigured.space",
       {"aW posix_fallocate of a segment: No space left on device"},
       {"a no space: No space left on device"}},
      {"misconfigured.open-files", {"aW creating a socket: Too many open files"}, {begin('a', 0, 1)}},
      {"misconfigured.ras-port",
       {"h1:11:11 [0] ras/client_support.cc:160 NCCL WARN Call to bind failed: Address already in use"},
       {"aW Call to bind failed: Address already in use"}},
      {"aborted.cuda-ending",
       {"aW Cuda failure 'driver shutting down'"},
       {"aW Cuda failure 3 'initialization error'"}},
      {"misconfigured.port", {"aW bind of port 29500: Address already in use"}, {begin('a', 0, 1)}},
      {"misconfigured.rights", {"aW opening a file: Operation not permitted"}, {begin('a', 0, 1)}},
      {"misconfigured.host-memory", {"aW a buffer of 12 bytes: allocation failed"}, {begin('a', 0, 1)}},
      {"misconfigured.address", {"aW address family 9 is not one that is known"}, {begin('a', 0, 1)}},
      {"misconfigured.library", {"aW plugin has incompatible version 3"}, {begin('a', 0, 1)}},
      {"fallback.fabric-call", {"aW rank 3 failed to NVLS register a buffer"}, {begin('a', 0, 1)}},
      {"transport-error.card-call",
       {"aW NET/IB: no such request"},
       {"aW NET/IB : mlx5_2:1 Got async event : port error"}},
      {"aborted.gpu-call", {"aW nvmlDeviceGetIndex() failed: unknown"}, {begin('a', 0, 1)}},
      {"aborted.usage", {"aW the thing must be a power of two"}, {begin('a', 0, 1)}},
      {"misconfigured.advice", {"aW Missing \"a=b\" from the kernel's command line"}, {begin('a', 0, 1)}},
      {"fallback.topology-failed", {"aW XML node without a name"}, {begin('a', 0, 1)}},
      {"fallback.msccl", {"aW MSCCL: too many of something"}, {begin('a', 0, 1)}},
      {"fallback.plugin", {"aW NET/OFI what a plugin says"}, {"a NET/OFI what a plugin says"}},
      {"aborted.helper",
       {"aW [Service thread] it was not to be had"},
       {"a [Service thread] it was not to be had"}},
      {"transport-error.connect-retries",
       {"a socketPollConnect: connect to 192.0.2.9<39611> returned Connection refused, retrying (34/34) "
        "after sleep for 3400 msec"},
       {"a socketPollConnect: connect to 192.0.2.9<39611> returned Connection refused, retrying (3/34) after "
        "sleep for 300 msec"}},
      {"aborted.warning",
       {"aW words that nobody knows", "a init.cc:9 -> 3"},
       {"aW words that nobody knows", "a init.cc:9 -> 7"}},
      {"evidence-missing.warning",
       {"aW words that nobody knows", "b Using network IB"},
       {"a words that nobody knows"}},
      {"evidence-missing.warning",
       {"aW Connected all rings"},
       {"aW words that nobody knows", "a init.cc:9 -> 3"}},
      {"evidence-missing.error-trace",
       {"aW [Proxy Service 8] Failed to execute operation Connect from rank 8, retcode 2",
        "a transport/net_ib.cc:664 -> 2"},
       {"aW Call to ibv_create_qp failed", "a transport/net_ib.cc:664 -> 2"}},
      {"evidence-missing.error-trace", {"a init.cc:9 -> 2"}, {"a misc/socket.cc:9 -> 3"}},
      {"evidence-missing.error-trace",
       {"a misc/socket.cc:9 -> 3", "a misc/socket.cc:58 -> 3"},
       {begin('a', 0, 1), "a misc/socket.cc:9 -> 3", "a misc/socket.cc:58 -> 3"}},
      {"misconfigured.driver-absent",
       {"Failed to initialize NVML: Driver/library version mismatch"},
       {"NVML library version: 550.54"}},
      {"aborted.gpu-lost",
       {"Unable to determine the device handle for GPU0000:03:00.0: Unknown Error"},
       {"Unable to determine the release of the GPU"}},
      {"aborted.pcie",
       {"pcieport 0000:00:03.0: AER: Uncorrected (Fatal) error received: 0000:00:03.0"},
       {"pcieport 0000:00:03.0: AER: Corrected error received: 0000:00:03.0"}},
      {"evidence-missing.port-down",
       {"mlx5_core 0000:18:00.0 ib0: Link down"},
       {"mlx5_core 0000:18:00.0 ib0: Link up"}},
      {"never-joined.rendezvous",
       {"DEADLINE_EXCEEDED: Barrier timed out. Barrier_id: x. Timed out task names: /job:w/task:1"},
       {"DEADLINE_EXCEEDED: Barrier x"}},
      {"never-joined.rendezvous-slow",
       {"rendezvous.cc:100] This thread has been waiting for `clique` for 20 seconds and may be stuck."},
       {"rendezvous.cc:100] This thread has been waiting for `clique` for 20 seconds and may be stuck.",
        "rendezvous.cc:120] Thread is unstuck! Warning above was a false-positive."}},
      {"rank-dead.worker",
       {"(EngineCore_0 pid=433) ERROR 09-01 10:00:00 [core.py:708] EngineCore failed to start."},
       {"(EngineCore_0 pid=433) INFO 09-01 10:00:00 [core.py:70] Initializing a V1 LLM engine"}},
      {"rank-dead.task",
       {"client.h:80] Terminating process because the JAX distributed service detected fatal errors. absl::Status: "
        "UNAVAILABLE: The following tasks are unhealthy (stopped sending heartbeats):",
        "/job:jax_worker/replica:0/task:3", "/job:jax_worker/replica:0/task:5", "The tasks have crashed."},
       {"/job:jax_worker/replica:0/task:3"}},
      {"rank-dead.task",
       {"coordination_service.cc:9] Task /job:jax_worker/replica:0/task:1 heartbeat timeout. This indicates that x"},
       {"coordination_service.cc:9] /job:jax_worker/replica:0/task:1 has connected to coordination service."}},
      {"rank-dead.task",
       {"agent.cc:450] Polled an error from coordination service (this can be an error from this or another task)."},
       {"agent.cc:280] Coordination agent has successfully connected."}},
      {"rank-dead.tensorflow",
       {"UnavailableError: Collective ops is aborted by: failed to connect to all addresses"},
       {"Collective ops were created"}},
      {"never-joined.rendezvous",
       {"F0101 rendezvous.cc:52] Termination timeout for `clique` exceeded. Exiting to ensure a consistent state."},
       {"Termination timeout is 40 s"}},
      {"never-joined.rendezvous-slow",
       {"collective_ops_utils.h:224] This thread has been waiting for 5000ms for and may be stuck: participant x"},
       {"collective_ops_utils.h:224] This thread has been waiting for 5000ms for and may be stuck: participant x",
        "collective_ops_utils.h:229] Thread is unstuck! Warning above was a false-positive."}},
      {"evidence-missing.worker-stuck",
       {"[2031-02-03 04:05:06 TP3] Watchdog timeout (self.watchdog_timeout=300)"},
       {"[2031-02-03 04:05:06 TP3] server_args=ServerArgs(watchdog_timeout=300)"}},
      {"evidence-missing.workers",
       {"TimeoutError: RPC call to execute_model timed out."},
       {"RPC call to execute_model took 3 s"}},
      {"evidence-missing.barrier",
       {"RuntimeError: Rank 1 successfully reached monitoredBarrier, but received errors while waiting for send/recv "
        "from rank 0. Please check rank 0 logs for faulty rank."},
       {"Rank 1 successfully reached monitoredBarrier"}},
      {"evidence-missing.deepep",
       {"DeepEP dispatch NVL receiver timeout, channel: 3, RDMA: 1, nvl: 5"},
       {"DeepEP dispatch with 24 SMs, 512 tokens"}},
      {"evidence-missing.deepep", {"RuntimeError: DeepEP error: CPU recv timeout"}, {"DeepEP is used"}},
      {"aborted.nvshmem",
       {"src/modules/transport/ibrc/ibrc.cpp:1426: NULL value get_device_list failed"},
       {"src/modules/transport/ibrc/ibrc.cpp:1426: value of the list"}},
      {"aborted.nvshmem",
       {"topo.cpp:469: [GPU 0] Peer GPU 1 is not accessible, exiting ..."},
       {"topo.cpp:469: [GPU 0] Peer GPU 1 is accessible"}},
      {"transport-error.ucx",
       {"[1.2] [n7:9:0] ib_mlx5_log.c:177  UCX  ERROR Transport retry count exceeded on mlx5_0:1/RoCE"},
       {"[1.2] [n7:9:0] ucp_context.c:1 UCX  INFO  Version 1.16.0"}},
      {"aborted.kernel-assert",
       {"IndexKernel.cu:92: operator(): block: [22,0,0], thread: [64,0,0] Assertion `index < sizes[i]` failed."},
       {"launched block: [22,0,0], thread: [64,0,0]"}},
      {"aborted.sxid",
       {"kernel: nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30 LTSSM Fault Up"},
       {"kernel: nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 28002, Non-fatal, Link 46"}},
      {"aborted.sxid-warned",
       {"kernel: nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 28002, Non-fatal, Link 46"},
       {"kernel: nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30 LTSSM Fault Up"}},
      {"aborted.cuda-capture",
       {"aW Cuda failure 'operation not permitted when stream is capturing'"},
       {"aW Cuda failure 'operation not permitted'"}},
      {"aborted.cuda-capture",
       {"aW Cuda failure 901 'operation failed due to a previous error during capture'"},
       {"aW Cuda failure 999 'unknown error'"}},
      {"aborted.window-space",
       {"aW Allocation failed. No suitable space found to accommodate size=0x7 within limit=0x9"},
       {"aW Failed to malloc 7 bytes"}},
      {"misconfigured.host-memory",
       {"aW Failed to malloc 7 bytes"},
       {"aW Allocation failed. No suitable space found to accommodate size=0x7 within limit=0x9"}},
      {"misconfigured.two-packages",
       {"[pip3] nvidia-nccl-cu12==2.29.3", "[pip3] nvidia-nccl-cu13==2.29.7"},
       {"[pip3] nvidia-nccl-cu12==2.29.3", "nvidia-nccl-cu12      2.27.3",
        "Requires: nvidia-nccl-cu13, numpy"}},
      {"misconfigured.two-packages",
       {"nvidia-nccl-cu11    2.14.3", "nvidia-nccl-cu12    2.27.3"},
       {"nvidia-nccl-cu12    2.27.3"}},
      {"misconfigured.driver-older",
       {"a cudaDriverVersion 11000", "NCCL version 2.14.3+cuda11.7"},
       {"a cudaDriverVersion 11000", "NCCL version 2.14.3+cuda11.7", "NCCL version 2.14.3+cuda11.0"}},
      {"misconfigured.cuda-library",
       {"aW Cuda failure 'API call is not supported in the installed CUDA driver'"},
       {"aW Cuda failure 'invalid argument'"}},
      {"misconfigured.cuda-library",
       {"RuntimeError: The NVIDIA driver on your system is too old (found version 11040)."},
       {"The NVIDIA driver is fine"}},
      {"aborted.fabric-manager",
       {"UserWarning: CUDA initialization: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions "
        "before calling NumCudaDevices() that might have already set an error? Error 802: system not yet initialized"},
       {"UserWarning: CUDA initialization: CUDA unknown error"}},
      {"misconfigured.library-absent",
       {"RuntimeError: Distributed package doesn't have NCCL built in"},
       {"Distributed package has NCCL built in"}},
      {"evidence-missing.store",
       {"[W socket.cpp:601] [c10d] The client socket has failed to connect to [n0]:29500 (errno: 110 - Connection "
        "timed out)."},
       {"[W socket.cpp:601] [c10d] The client socket has failed to connect to [n0]:29500 (errno: 97 - Address family "
        "not supported by protocol)."}},
      {"rank-dead.process", {"Killed"}, {"Jobs that were Killed"}},
      {"rank-dead.process",
       {"[rank3]: Killed"},
       {"[2031-02-03 04:05:06 TP3] Watchdog timeout (self.watchdog_timeout=300)", "Killed"}},
      {"rank-dead.process",
       {"[7.1] python3[4711]: segfault at 20 ip 00007f0c sp 00007ffd error 4 in libnccl.so.2[7f0c+1000]"},
       {"python3[4711]: no segfault at all"}},
      {"rank-dead.process",
       {"=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES", "=   EXIT CODE: 139"},
       {"=   EXIT CODE: 0"}},
      {"rank-dead.process",
       {"Abort(741942927) on node 19 (rank 19 in comm 0): Fatal error in PMPI_Alltoall: Other MPI error"},
       {"Abort was not called"}},
      {"rank-dead.process",
       {"pdsh@n0: n1: ssh exited with exit code 255"},
       {"pdsh@n0: n1: ssh exited with exit code 0"}},
      {"rank-dead.worker",
       {"ray.exceptions.ActorDiedError: The actor died because of an error raised in its creation task, ray::W()"},
       {"The actor is alive"}},
      {"rank-dead.worker",
       {"vllm.engine.async_llm_engine.AsyncEngineDeadError: Task finished unexpectedly."},
       {"vllm.engine.async_llm_engine: Task finished."}},
      {"evidence-missing.workers",
       {"ray.exceptions.RayChannelTimeoutError: System error: Timed out waiting for object available to read."},
       {"ray.exceptions.RayChannelError: closed"}},
      {"init-stuck.launch",
       {"ssh: connect to host n7 port 22: Connection refused"},
       {"ssh: connected to host n7 port 22"}},
      {"init-stuck.launch",
       {"ORTE was unable to reliably start one or more daemons."},
       {"ORTE started one or more daemons."}},
      {"init-stuck.launch",
       {"srun: error: Task launch for StepId=7.0 failed on node n7: Invalid job credential"},
       {"srun: job 7 has been allocated resources"}},
      {"init-stuck.store",
       {"[c10d] The IPv4 network addresses of (n0, 29500) cannot be retrieved (gai error: -2 - Name or service not "
        "known)."},
       {"[c10d] The IPv6 network addresses of (n0, 29500) cannot be retrieved (gai error: -2 - Name or service not "
        "known)."}},
      {"misconfigured.program-port",
       {"OSError: [Errno 98] Address already in use"},
       {"OSError: [Errno 12] x"}},
      {"misconfigured.program-port",
       {"[E socket.cpp:472] [c10d] The server socket has failed to listen on any local network address."},
       {"[I socket.cpp:472] [c10d] The server socket has started to listen on [::]:29500."}},
      {"aborted.cuda-graph",
       {"Exception: Capture cuda graph failed: Expected out tensor to have device cuda"},
       {"Capture cuda graph begin. avail mem=9.35 GB"}},
      {"aborted.cuda-start",
       {"RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use "
        "the 'spawn' start method"},
       {"RuntimeError: CUDA error: unknown error"}},
      {"aborted.gpu-lost",
       {"amdgpu 0000:c1:00.0: amdgpu: [gfxhub0] no-retry page fault (src_id:0 ring:24 vmid:8 pasid:32770)"},
       {"amdgpu 0000:c1:00.0: amdgpu: [gfxhub0] ready"}},
      {"rank-dead.process",
       {"Fatal Python error: Aborted"},
       {"Fatal Python error: Aborted", timeout(0, "ALLREDUCE")}},
      {"rank-dead.process",
       {"==== backtrace (tid:    319) ====", " 0 0x42520 __sigaction()  ???:0"},
       {"==== backtrace of the query ===="}},
      {"rank-dead.process",
       {"RuntimeError: DataLoader worker (pid 1234) is killed by signal: Bus error. "},
       {"DataLoader worker (pid 1234) is ready"}},
      {"aborted.gpu-lost",
       {":0:rocdevice.cpp :2982: Callback: Queue 0x7f aborting with error : HSA_STATUS_ERROR_EXCEPTION: code: 0x1016"},
       {":0:rocdevice.cpp :2982: Callback: Queue 0x7f"}},
      {"aborted.exception",
       {"Failed, NCCL error main.cu:41 'unhandled cuda error'"},
       {"Failed, MPI error main.cu:41"}},
      {"rank-dead.ended",
       {"torch.distributed.elastic.multiprocessing.errors.ChildFailedError: "},
       {"torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
        "failed (exitcode: -9) local_rank: 0 (pid: 88) of binary: /usr/bin/python"}},
      {"evidence-missing.watchdog",
       {"Timeout at NCCL work: 5, last enqueued NCCL work: 5, last completed NCCL work: 4."},
       {"last enqueued NCCL work: 5, last completed NCCL work: 4."}},
      {"rank-dead.worker",
       {"(W pid=9) ERROR 04-17 ray_utils.py:44] Error executing method 'init_device'. This might cause deadlock in "
        "distributed execution."},
       {"(W pid=9) ERROR 04-17 ray_utils.py:44] Error executing method 'init_device'."}},
      {"joined-other-op.analyser",
       {"world size: 128", "collective state: scheduled",
        culprits({22, 110},
                 "SIZE_OR_SYNTAX_MISMATCH, Expected input sizes: '[[7]]' does not match found input sizes: "
                 "'[[9]]'")},
       {"Culprit rank of the search: 7"}},
      {"joined-other-op.analyser",
       {"world size: 4", culprits({1, 2, 3}, "COLLECTIVE_TYPE_MISMATCH")},
       {begin('a', 0, 1)}},
      {"stuck-in-gpu.analyser",
       {culprits(
           {3},
           "COLLECTIVE_STATE_MISMATCH, Expected state: 'scheduled' does not match found state: 'started'")},
       {culprits({3}, "COLLECTIVE_DTYPE_MISMATCH")}},
      {"evidence-missing.announced",
       {announced(0, 1276), announced(0, 1277), announced(1, 1275), announced(0, 12)},
       {announced(0, 1277), announced(1, 1277)}},
      {"evidence-missing.announced",
       {announced(0, 7), announced(1, 6), begin('a', 0, 2)},
       {announced(0, 7), announced(1, 6), begin('a', 0, 2), complete('a', 0, 2),
        "a comm 0xa0 rank 0 nranks 2 cudaDev 0 busId 1b000 - Destroy COMPLETE"}},
      {"evidence-missing.error-trace",
       {"a init.cc:9 -> 2", "NCCL WARN Call to ibv_create_qp failed"},
       {"NCCL WARN Call to ibv_create_qp failed", "a init.cc:9 -> 2"}},
      {"evidence-missing.symptom",
       {"# The trainer hangs in its first barrier", "It has two hosts."},
       {"# The trainer starts", "It has two hosts."}},
      {"evidence-missing.symptom",
       {"Some nodes end with a bus error.", "Others go on."},
       {"Some nodes end with a bus error.", "a Using network IB"}},
      {"evidence-missing.unknown-error",
       {"# An error of the trainer", "widget: error: the frobnicator is empty"},
       {"# The trainer hangs with an error"}},
      {"aborted.wrong-results",
       {"#   size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw #wrong",
        "  1024  256  float  sum  -1  9.1  0.79  0.79  17  9.4  0.92  0.92  0"},
       {"#   size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw #wrong",
        "  1024  256  float  sum  -1  9.1  0.79  0.79  0  9.4  0.92  0.92  0", "a Using network IB"}},
      {"aborted.wrong-results",
       {"#   size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw #wrong",
        "  1024  256  float  none  0  9.1  0.79  0.79  0  9.4  0.92  0.92  3"},
       {"  1024  256  float  sum  -1  9.1  0.79  0.79  17  9.4  0.92  0.92  0"}},
      {"evidence-missing.workers",
       {"INFO 02-26 ray_utils.py:9] Waiting for creating a placement group of specs for 10 seconds. specs=[x]"},
       {"INFO 02-26 ray_utils.py:9] Created a placement group"}},
      {"aborted.sanitizer",
       {"========= Invalid __shared__ write of size 4 bytes"},
       {"========= COMPUTE-SANITIZER", "========= ERROR SUMMARY: 0 errors"}},
      {"aborted.sanitizer",
       {"========= Program hit cudaErrorInvalidValue (error 1) due to \"invalid argument\" on CUDA API call"},
       {"========= Program begins",
        "========= Program hit cudaErrorInvalidDeviceFunction (error 98) due to \"invalid device function\" on CUDA "
        "API call to cudaFuncGetAttributes."}},
      {"aborted.sanitizer",
       {"========= Error: Race reported between Write access at foo+0x10 and Read access at foo+0x20"},
       {"========= RACECHECK SUMMARY: 0 hazards displayed"}},
      {"aborted.nvshmem",
       {"/src/host/init/init.cu:1060: non-zero status: 7 nvshmem setup failed"},
       {"/src/host/init/init.cu:1060: status: 0"}},
      {"transport-error.card-dump",
       {"mlx5: n07: got completion with error:", "00000000 00000000 00000000 00000000"},
       {"mlx5: n07: got a completion"}},
      {"misconfigured.program-space",
       {"OSError: [Errno 28] No space left on device: '/tmp/x'"},
       {"OSError: [Errno 2] No such file or directory: '/tmp/x'"}},
      {"misconfigured.program-space",
       {"RuntimeError: unable to write to file </torch_77_12>"},
       {"RuntimeError: unable to write to file /data/x"}},
      {"misconfigured.program-space",
       {"ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm)."},
       {"A bus error is expected in a worker"}},
      {"rank-dead.process",
       {"all_reduce_perf: prov/x.c:177: cleanup: Assertion `is_empty(list)' failed."},
       {"Assertion tests have failed"}},
      {"rank-dead.process",
       {"[n1:7] Signal: Aborted (6)"},
       {"[n1:7] Signal: Aborted (6)", timeout(0, "ALLREDUCE")}},
      {"misconfigured.program-files",
       {"RuntimeError: unable to open shared memory object </torch_7> in read-write mode: Too many open files (24)"},
       {"Too many open files are no trouble here"}},
      {"misconfigured.program-files",
       {"RuntimeError: received 0 items of ancdata"},
       {"received 0 items of data"}},
      {"misconfigured.program-memory", {"  what():  std::bad_alloc"}, {"std::bad_alloc is caught"}},
      {"misconfigured.program-library",
       {"ImportError: libcupti.so.12: cannot open shared object file: No such file or directory"},
       {"Could not load dynamic library 'libx.so.7'; dlerror: libx.so.7: cannot open shared object file"}},
      {"misconfigured.program-library",
       {"./all_reduce_perf: error while loading shared libraries: libmpi.so.40: cannot open shared object file"},
       {"all shared libraries are loaded"}},
      {"misconfigured.name",
       {"socket.gaierror: [Errno -2] Name or service not known"},
       {"socket.gaierror: [Errno -5] No address associated with hostname",
        "'(MaxRetryError(\"HTTPSConnectionPool(host='hub', port=443): [Errno -2] Name or service not known\"))' "
        "thrown while requesting HEAD"}},
      {"misconfigured.program-port",
       {"ValueError: Port 30000 is already in use"},
       {"Port 30000 is in use by this server", "Port 29500 is already in use, trying port 29501"}},
      {"misconfigured.library-absent",
       {"Failed to load NCCL library from libnccl.so.2. It is expected on other hardware"},
       {"Loaded the NCCL library from libnccl.so.2"}},
      {"init-stuck.container",
       {"docker: Error response from daemon: could not select device driver \"\" with capabilities: [[gpu]]."},
       {"docker: the device driver is selected"}},
      {"init-stuck.container",
       {"worker-0   0/1     CrashLoopBackOff   7 (2m ago)   19m"},
       {"worker-0   1/1     Running   7 (2m ago)   19m"}},
      {"init-stuck.resources",
       {"ValueError: Cannot provide a placement group of placement_group_specs=[GPU: 1.0] within 1800 seconds."},
       {"Creating a placement group of specs"}},
      {"init-stuck.launch",
       {"srun: error: Unable to allocate resources: Requested node configuration is not available"},
       {"srun: job 7 has been allocated resources"}},
      {"init-stuck.gloo",
       {"[enforce fail at device.cc:212] ifa != nullptr. Unable to find interface for: [0.0.0.0]"},
       {"Found interface for: [0.0.0.0]"}},
      {"joined-other-op.gloo",
       {"RuntimeError: [enforce fail at pair.cc:446] op.preamble.length <= op.nbytes. 40 vs 4"},
       {"op.preamble.length is read"}},
      {"init-stuck.store",
       {"RuntimeError: connect() timed out. Original timeout was 1800000 ms."},
       {"RuntimeError: connect() was called"}},
      {"rank-dead.store-gone",
       {"[W dynamic_rendezvous.py:1267] The node 'n7_3_0' has failed to send a keep-alive heartbeat to the rendezvous "
        "'9' due to an error of type RendezvousConnectionError."},
       {"[W dynamic_rendezvous.py:1267] The node 'n7_3_0' has failed to shutdown the rendezvous '9' due to an error of "
        "type RendezvousConnectionError."}},
      {"evidence-missing.store",
       {"[W dynamic_rendezvous.py:1267] The node 'n7_3_0' has failed to send a keep-alive heartbeat to the rendezvous "
        "'9' due to an error of type RendezvousTimeoutError."},
       {"[I dynamic_rendezvous.py:1267] The node 'n7_3_0' has sent a keep-alive heartbeat to the rendezvous '9'."}},
      {"rank-dead.store",
       {"[W dynamic_rendezvous.py:1267] The node 'n7_3_0' has failed to shutdown the rendezvous '9' due to an error of "
        "type RendezvousConnectionError."},
       {"[I dynamic_rendezvous.py:1267] The node 'n7_3_0' has closed the rendezvous '9'."}},
      {"evidence-missing.mpi",
       {"[n1:77] *** An error occurred in MPI_Allreduce", "[n1:77] *** MPI_ERR_TRUNCATE: message truncated"},
       {"[n1:77] MPI_Allreduce was called"}},
      {"evidence-missing.workers",
       {"TimeoutError: Timed out waiting for engine core processes to start. This is often caused by slow loading"},
       {"Engine core processes have started"}},
      {"rank-dead.worker",
       {"RuntimeError: Worker failed with error 'size mismatch', please check the stack trace above for the root cause"},
       {"Worker is ready"}},
      {"rank-dead.process",
       {"  exitcode  : -11 (pid: 5277)"},
       {"  exitcode  : -15 (pid: 5277)", "  exitcode  : 0 (pid: 5278)"}},
      {"rank-dead.process",
       {"[rank: 1] Child process with PID 77 terminated with code -9. Forcefully terminating all other processes"},
       {"[rank: 1] Child process with PID 77 terminated with code 0."}},
      {"rank-dead.process",
       {"subprocess.CalledProcessError: Command '['/usr/bin/python', 'a.py']' died with <Signals.SIGSEGV: 11>."},
       {"subprocess.CalledProcessError: Command '['/usr/bin/python', 'a.py']' died with <Signals.SIGTERM: 15>."}},
      {"rank-dead.process",
       {"subprocess.CalledProcessError: Command '['torchrun']' returned non-zero exit status 1."},
       {"subprocess.CalledProcessError: Command '['torchrun']' returned non-zero exit status 1.",
        timeout(0, "ALLREDUCE")}},
      {"rank-dead.process",
       {"./run.sh: line 7: 31337 Bus error               (core dumped) ./all_reduce_perf -g 16"},
       {"./run.sh: line 7: a bus error (core dumped)"}},
      {"rank-dead.process",
       {"./run.sh: line 7: 31337 Killed                  python train.py"},
       {"./run.sh: line 7: nobody was Killed here"}},
      {"rank-dead.process", {"free(): invalid pointer"}, {"free(): is called"}},
      {"rank-dead.process",
       {"Worker ID: 84 Worker exit type: SYSTEM_ERROR Worker exit detail: Worker unexpectedly exits"},
       {"Worker ID: 84 Worker exit type: INTENDED_USER_EXIT Worker exit detail: Worker exits by a request"}},
      {"rank-dead.raised",
       {"[rank2]: ValueError: expected 8 experts, got 7"},
       {"[rank2]: ValueError: expected 8 experts, got 7", "a Using network IB"}},
      {"rank-dead.raised", {"  what():  basic_string::at: out of range"}, {"    except ValueError: pass"}},
      {"rank-dead.raised",
       {"[rank3]: KeyError: 'weights'"},
       {"Skipping an optional import: ModuleNotFoundError: No module named 'apex'"}},
      {"aborted.cuda-program",
       {"jaxlib.xla_extension.XlaRuntimeError: INTERNAL: CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was "
        "encountered"},
       {"failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected"}},
      {"aborted.cuda-program",
       {"CUDA error at sample.cu:41 code=700(cudaErrorIllegalAddress) \"cudaDeviceSynchronize()\""},
       {"CUDA at sample.cu:41 code=0"}},
      {"rank-dead.gpu-memory",
       {"jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8 bytes."},
       {"RESOURCE_EXHAUSTED is a status"}},
      {"fallback.plugin",
       {"192.0.2.7: WARN: Function: main Line: 66: NET/OFI OFI NCCL failure: 2"},
       {"192.0.2.7: INFO: Function: main Line: 66: NET/OFI Using 8 devices"}},
      {"rank-dead.ended",
       {"mpirun detected that one or more processes exited with non-zero status, thus causing the job to be terminated."},
       {"mpirun detected 8 slots"}},
      {"evidence-missing.profiler",
       {"aW Profiler init failed with error 3"},
       {"a PROFILER/Plugin: Loaded tape (v5)"}},
  };
}

TEST(LogRules, SpeakAndKeepSilent) {
  for (const Case& rule : cases()) {
    const auto spoken = findings_of(rule.speaks);
    const Finding* finding = find(spoken, rule.id);
    ASSERT_NE(finding, nullptr) << rule.id;
    EXPECT_FALSE(finding->evidence.empty()) << rule.id;
    const std::set<std::string> lines(finding->evidence.begin(), finding->evidence.end());
    EXPECT_EQ(lines.size(), finding->evidence.size()) << rule.id << " cites a line twice";
    EXPECT_EQ(finding->statement.find('{'), std::string::npos) << finding->statement;
    EXPECT_NE(finding->statement.substr(0, 2), ": ") << finding->statement;
    EXPECT_EQ(find(findings_of(rule.silent), rule.id), nullptr) << rule.id;
  }
}

// All that is said over the lines that trigger the rules.
std::string all_findings() {
  std::string text;
  for (const Case& rule : cases()) {
    for (const Finding& finding : findings_of(rule.speaks)) {
      if (id_text(finding.id) != rule.id) continue;
      text += std::string(id_text(finding.id)) + " (" + std::to_string(static_cast<int>(finding.severity)) +
              ", ranks";
      for (const int32_t rank : finding.ranks) text += ' ' + std::to_string(rank);
      text += ", hosts";
      for (const std::string& host : finding.hosts) text += ' ' + host;
      text += "): " + finding.statement + '\n';
      for (const std::string& line : finding.evidence) text += "  " + line + '\n';
      if (!finding.needed_evidence.empty()) text += "  settled by " + finding.needed_evidence + '\n';
    }
  }
  return text;
}
constexpr const char* kExpected = LOCKSTEP_SOURCE_DIR "/src/analysis/log_rules/said.txt";

TEST(LogRules, SayWhoWhatAndFromWhichLines) {
  std::ifstream file(kExpected);
  const std::string expected{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(all_findings(), expected)
      << "if this is what they should say: --gtest_also_run_disabled_tests writes it";
}
TEST(LogRules, DISABLED_WriteWhatTheySay) { std::ofstream(kExpected) << all_findings(); }

// Every shape that a warning is known to have, with samples in its holes.
std::vector<std::string> all_shapes() {
  constexpr std::pair<std::string_view, std::string_view> kHoles[] = {
      {"{int}", "7"},       {"{hex}", "0x1f"},    {"{num}", "1.5"},    {"{word}", "sample"},
      {"{text}", "sample"}, {"{skip}", "sample"}, {"{rest}", "sample"}};
  std::vector<std::string> shapes = {
#define KIND(...)
#define PATTERN(kind, text) text,
#include "readers/nccl_log/lines.def"
#undef PATTERN
#undef KIND
#define WORDS(kind, text) "x " text " y",
#include "readers/nccl_log/words.def"
#undef WORDS
  };
  for (std::string& shape : shapes) {
    for (const auto& [hole, sample] : kHoles) {
      for (size_t at = shape.find(hole); at != std::string::npos; at = shape.find(hole, at))
        shape.replace(at, hole.size(), sample);
    }
    if (shape.ends_with('$')) shape.pop_back();
  }
  return shapes;
}

TEST(LogRules, NoWarningIsSilent) {
  const std::vector<std::string> shapes = all_shapes();
  EXPECT_GT(shapes.size(), 500u);
  for (const std::string& shape : shapes) EXPECT_FALSE(findings_of({"aW " + shape}).empty()) << shape;
}

// How many of a host's processes have to share a core: at least three, and more than half.
TEST(LogRules, ManyProcessesOnOneCoreAreMoreThanHalfOfTheHost) {
  auto speaks = [](int on_one, int elsewhere) {
    std::vector<std::string> lines;
    for (int process = 0; process < on_one + elsewhere; ++process) {
      lines.push_back("h1:" + std::to_string(100 + process) +
                      ":5 [0] NCCL INFO [Proxy Progress] Device 0 CPU core " +
                      std::to_string(process < on_one ? 7 : 20 + process));
    }
    return find(findings_of(lines), "misconfigured.cores") != nullptr;
  };
  EXPECT_TRUE(speaks(3, 0));
  EXPECT_FALSE(speaks(2, 0));
  EXPECT_TRUE(speaks(4, 3));
  EXPECT_FALSE(speaks(4, 4));
}

TEST(LogRules, CardsMayDifferByOneChannel) {
  auto speaks = [](int on_first, int on_second) {
    std::vector<std::string> lines;
    for (int channel = 0; channel < on_first + on_second; ++channel)
      lines.push_back("a Channel 0" + std::to_string(channel) + "/0 : 0[0] -> 1[0] [send] via NET/IB/" +
                      (channel < on_first ? "0" : "1"));
    return find(findings_of(two_hosts(lines)), "slow-nic.load") != nullptr;
  };
  EXPECT_FALSE(speaks(2, 1));
  EXPECT_TRUE(speaks(3, 1));
}

TEST(LogRules, EveryRowHasACase) {
  std::set<std::string_view> tested;
  const auto all = cases();
  for (const Case& rule : all) tested.insert(rule.id);
#define RULE(function, id, ...) \
  EXPECT_TRUE(tested.contains(id_text(FindingId::k##id))) << id_text(FindingId::k##id);
#define RULES(function, id, ...) \
  EXPECT_TRUE(tested.contains(id_text(FindingId::k##id))) << id_text(FindingId::k##id);
#define MESSAGE(kind, when, id, ...) \
  EXPECT_TRUE(tested.contains(id_text(FindingId::k##id))) << id_text(FindingId::k##id);
#define UNMATCHED(id, ...) \
  EXPECT_TRUE(tested.contains(id_text(FindingId::k##id))) << id_text(FindingId::k##id);
#include "analysis/log_rules/rules.def"
#undef UNMATCHED
#undef MESSAGE
#undef RULES
#undef RULE
}

// Where RCCL speaks, no advice names a tool or setting that only NVIDIA's GPUs have, but of what only they
// print.
TEST(LogRules, AdviceOfRcclsLogsNamesAmdsTools) {
  const auto is_of_nvidia = [](std::string_view id) {
    for (const char* word : {"xid", "nvl", "fabric", "mps"})
      if (id.find(word) != id.npos && id != "slow-link.nvlink-uneven") return true;
    return false;
  };
  size_t changed = 0;
  for (const Case& rule : cases()) {
    if (is_of_nvidia(rule.id)) continue;
    std::vector<std::string> of_rccl = rule.speaks;
    of_rccl.push_back("a RCCL version : 2.21.5-HEAD:1234567");
    const auto plain = findings_of(rule.speaks), amd = findings_of(of_rccl);
    const Finding *before = find(plain, rule.id), *after = find(amd, rule.id);
    if (before == nullptr || after == nullptr) continue;
    changed += before->advice != after->advice;
    const std::string& advice = after->advice;
    for (const char* word :
         {"nvidia-smi", "Xid", "CUDA_LAUNCH", "compute-sanitizer", "MIG", "Fabric Manager"})
      EXPECT_EQ(advice.find(word), std::string::npos) << rule.id << ": " << advice;
    if (advice.find("CUDA_VISIBLE") != std::string::npos) {
      EXPECT_NE(advice.find("HIP_, ROCR_ and CUDA_VISIBLE"), std::string::npos) << advice;
    }
  }
  EXPECT_GT(changed, 12u);
}

TEST(LogRules, EvidenceIsFileAndLine) {
  const auto findings = findings_of({"a Using network IB", "a NCCL_P2P_DISABLE set by environment to 1"});
  const Finding* finding = find(findings, "fallback.p2p-disabled");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->evidence[0],
            "job.log:2: h1:11:11 [0] NCCL INFO NCCL_P2P_DISABLE set by environment to 1");
  EXPECT_EQ(finding->hosts, std::vector<std::string>{"h1"});
}

TEST(LogRules, TextIsNotCutWithinACharacter) {
  std::string words;
  while (words.size() < 300) words += "\xc3\xbc";
  for (const std::string& more : {words, 'x' + words}) {
    const auto findings = findings_of({"aW " + more});
    ASSERT_EQ(findings.size(), 1u);
    EXPECT_EQ(valid_utf8(findings[0].statement), findings[0].statement);
    EXPECT_TRUE(findings[0].evidence[0].ends_with("..."));
    EXPECT_EQ(valid_utf8(findings[0].evidence[0]), findings[0].evidence[0]);
  }
}

TEST(LogRules, BothEndsThatContradictEachOtherAreNamed) {
  const auto findings = findings_of(two_hosts({"a Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0",
                                               "c Channel 00/0 : 0[0] -> 1[0] [receive] via NET/Socket/0"}));
  const Finding* finding = find(findings, "evidence-missing.edges");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->ranks, (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(finding->hosts, (std::vector<std::string>{"h1", "h2"}));
}

TEST(LogRules, ARankThatIsNotKnownIsNotNamed) {
  const auto begin_of = [](char process, int rank) {
    return std::string(1, process) + " ncclCommInitRank comm 0x" + process + "0 rank " +
           std::to_string(rank) + " cudaDev 0 busId 1b000 commId 0xab - Init START";
  };
  const auto findings = findings_of(
      {begin_of('a', 0), begin_of('c', 1), call('a', "AllReduce", 0, 8), call('c', "AllGather", 0, 8)});
  const Finding* finding = find(findings, "joined-other-op.calls");
  ASSERT_NE(finding, nullptr);
  EXPECT_TRUE(finding->ranks.empty());
}

TEST(LogRules, ADamagedFileHidesNoCallsOfAnother) {
  readers::nccl_log::LogParser parser;
  parser.begin_file("whole.log");
  for (int number = 0; number < 10'001; ++number) parser.feed(log_text({call('a', "AllReduce", number, 8)}));
  parser.end_file();
  parser.begin_file("damaged.log");
  parser.feed(log_text({"c Using \x01 network"}));
  parser.end_file();
  EXPECT_NE(find(judge(parser.take()), "misconfigured.debug-level"), nullptr);
}

TEST(LogRules, CausesComeBeforeConsequences) {
  const auto findings =
      findings_of({"aW socketProgress: Connection closed by remote peer n2<47112>",
                   "bW NET/IB : Got completion with error 12, opcode 0, len 0, vendor err 129",
                   "cW NET/IB : mlx5_2:1 Got async event : port error"});
  ASSERT_EQ(findings.size(), 3u);
  EXPECT_EQ(id_text(findings[0].id), "transport-error.link-down");
  EXPECT_EQ(id_text(findings[1].id), "transport-error.retries");
  EXPECT_EQ(id_text(findings[2].id), "rank-dead.connection");
}

TEST(LogRules, AWorkerThatItsWatchdogEndedIsNotTheCause) {
  const std::string ray = "A worker died or was killed while executing a task by an unexpected system error.";
  EXPECT_EQ(findings_of({ray})[0].severity, Severity::kCritical);
  const auto findings =
      findings_of({ray, timeout(0, "ALLREDUCE"), kPytorch + "we are taking the entire process down."});
  EXPECT_EQ(id_text(findings[0].id), "evidence-missing.watchdog");
  ASSERT_NE(find(findings, "rank-dead.process"), nullptr);
  EXPECT_EQ(find(findings, "rank-dead.process")->severity, Severity::kWarning);
}

TEST(LogRules, OfAnActorThatDiedTheReasonIsTold) {
  const auto findings =
      findings_of({"ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.",
                   "The actor is dead because its node has died. Node x was drained"});
  const Finding* finding = find(findings, "rank-dead.process");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->statement,
            "a process ended: The actor is dead because its node has died. Node x was drained");
  EXPECT_EQ(finding->evidence.size(), 2u);
}

TEST(LogRules, RanksOutOfStepAreNotSaidToCallOneOperation) {
  const auto differing = [](const std::string& own, const std::string& other) {
    return findings_of(
        {"Detected mismatch between collectives on ranks. Rank 0 is running collective: "
         "CollectiveFingerPrint(" +
         own + "), but Rank 1 is running collective: CollectiveFingerPrint(" + other + ")"})[0];
  };
  const Finding apart = differing("SequenceNumber=18, OpType=ALLREDUCE", "SequenceNumber=30OpType=ALLREDUCE");
  EXPECT_EQ(
      apart.statement,
      "rank 0 calls ALLREDUCE as number 18 of their group, and rank 1 calls ALLREDUCE as number 30: they "
      "are out of step");
  EXPECT_FALSE(apart.op_index);
  const Finding same =
      differing("SequenceNumber=18, OpType=ALLREDUCE", "SequenceNumber=18, OpType=ALLREDUCE");
  EXPECT_EQ(same.statement,
            "rank 0 calls ALLREDUCE, and rank 1 calls it with other tensors, as operation 18 of their group");
  EXPECT_EQ(same.op_index, 17u);
  EXPECT_EQ(differing("OpType=BARRIER", "OpType=GATHER").statement,
            "rank 0 calls BARRIER, and rank 1 calls GATHER");
}

// PyTorch says ranks of the group; the mark before the line is that of the job.
TEST(LogRules, RanksOfAGroupAreNotTakenForRanksOfTheJob) {
  const auto line = [](const std::string& mark, int own, int other) {
    return mark + "RuntimeError: Detected mismatch between collectives on ranks. Rank " +
           std::to_string(own) + " is running collective: CollectiveFingerPrint(OpType=BARRIER), but Rank " +
           std::to_string(other) + " is running collective: CollectiveFingerPrint(OpType=GATHER)";
  };
  const Finding both = findings_of({line("[rank4]: ", 0, 1), line("[rank6]: ", 1, 0)})[0];
  EXPECT_EQ(both.ranks, (std::vector<int32_t>{4, 6}));
  EXPECT_EQ(both.statement, "rank 4 calls BARRIER, and rank 6 calls GATHER");
  const Finding one = findings_of({line("[rank4]: ", 0, 1)})[0];
  EXPECT_TRUE(one.ranks.empty()) << "the other's number is not known";
  EXPECT_EQ(one.statement, "rank 4 calls BARRIER, and rank 1 of a group calls GATHER");
  const Finding several =
      findings_of({line("[rank4]: ", 0, 1), line("[rank6]: ", 1, 0), line("[rank7]: ", 1, 0)})[0];
  EXPECT_TRUE(several.ranks.empty()) << "of two groups";
  EXPECT_EQ(findings_of({line("[rank4]: ", 4, 1)})[0].ranks, (std::vector<int32_t>{1, 4}));
  EXPECT_EQ(findings_of({line("", 4, 1)})[0].ranks, (std::vector<int32_t>{1, 4}));
}

TEST(LogRules, TheXidThatCausedAnotherIsTold) {
  const std::string head = "NVRM: Xid (PCI:0000:18:00): 45, ";
  for (const std::string tail : {"pid=7, name=python3, Ch 00000001", "Ch 00000001"})
    EXPECT_EQ(findings_of({head + tail + " caused by previous Xid 145"})[0].statement,
              "a GPU reported Xid 145 (PCI 0000:18:00)");
  EXPECT_EQ(findings_of({head + "pid=7, name=python3, Ch 00000001"})[0].statement,
            "a GPU reported Xid 45 (PCI 0000:18:00)");
}

TEST(LogRules, CallsThatDifferFollowATransferThatFailed) {
  const std::string mixed = "aW Mismatched collective detected, please check";
  EXPECT_EQ(id_text(findings_of({mixed})[0].id), "joined-other-op.log");
  const auto findings =
      findings_of({mixed, "bW NET/IB : Got completion with error 4, opcode 1, len 9, vendor err 81"});
  EXPECT_EQ(id_text(findings[0].id), "transport-error.access");
  EXPECT_EQ(findings[1].severity, Severity::kWarning);
}

TEST(LogRules, MissingRanksOfAStuckCreationAreNamed) {
  const auto findings =
      findings_of({begin('a', 0, 4), begin('c', 2, 4), kPytorch + "Could not acquire GIL within 300 ms"});
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(id_text(findings[0].id), "init-stuck.log");
  EXPECT_EQ(findings[0].statement,
            "ranks 0 and 2 began to create communicator 0xab of 4 ranks and did not complete it; ranks 1 "
            "and 3 do not mention it");
}

// Behind the line that another was written into stands what was left of that one.
TEST(LogRules, WhatStandsBehindATearIsNotCompared) {
  const std::string one = "h1:1:1 [0] NCCL INFO ", other = "h2:2:2 [0] NCCL INFO ";
  const auto findings_with = [&](const std::string& stated) {
    std::vector<std::string> lines;
    for (const int rank : {0, 1})
      lines.push_back((rank == 0 ? one : other) + "ncclCommInitRank comm 0xa0 rank " + std::to_string(rank) +
                      " nranks 2 cudaDev 0 nvmlDev 0 busId 1b000 commId 0xab - Init START");
    lines.push_back(other + "Using network Socket");
    lines.push_back(stated);
    return findings_of(lines);
  };
  const char* const kId = "misconfigured.networks";
  EXPECT_EQ(find(findings_with(one + "NET/SockOOB " + one + "Using network SocketET/IB : Using [RO]"), kId),
            nullptr);
  EXPECT_NE(find(findings_with(one + "Using network IB"), kId), nullptr);
  // Said once more by a whole line, it counts.
  const std::string torn = one + "NET/So" + one + "Using network IB";
  EXPECT_EQ(find(findings_with(torn), kId), nullptr);
  EXPECT_NE(find(findings_with(torn + "\n" + one + "Using network IB"), kId), nullptr);
}

}  // namespace
}  // namespace lockstep::analysis::log_rules
