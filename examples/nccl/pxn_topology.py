# SPDX-License-Identifier: Apache-2.0
"""Puts a machine's network interfaces beside its first GPU, in a topology as NCCL writes it with NCCL_TOPO_DUMP_FILE.

    pxn_topology.py DUMPED.xml WRITTEN.xml

Read back with NCCL_TOPO_FILE, it makes the other GPUs reach the network best by way of that GPU: what NCCL calls PXN. Nothing gets faster
by it; it makes a machine with one host and no such network show the events.
"""
import sys
import xml.etree.ElementTree as ElementTree

BRIDGE = {"class": "0x060400", "vendor": "0x1000", "device": "0xc030", "subsystem_vendor": "0x1000", "subsystem_device": "0xa003",
          "link_speed": "32.0 GT/s PCIe", "link_width": "16"}


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    try:
        tree = ElementTree.parse(sys.argv[1])
    except (OSError, ElementTree.ParseError) as error:
        sys.exit(f"{sys.argv[1]}: {error}")
    parents = {child: parent for parent in tree.iter() for child in parent}
    gpus = [pci for pci in tree.iter("pci") if pci.find("gpu") is not None]
    interfaces = list(tree.iter("nic"))
    if not gpus or not interfaces:
        sys.exit(f"{sys.argv[1]}: {len(gpus)} GPUs and {len(interfaces)} network interfaces: nothing to do")
    for interface in interfaces:
        parents[interface].remove(interface)
    first = min(gpus, key=lambda pci: int(pci.find("gpu").get("dev")))
    bridge = ElementTree.SubElement(parents[first], "pci", {"busid": "ffff:fe:00.0", **BRIDGE})
    parents[first].remove(first)
    bridge.append(first)
    card = ElementTree.SubElement(bridge, "pci", {**BRIDGE, "busid": "ffff:ff:00.0", "class": "0x020000"})
    card.extend(interfaces)
    tree.write(sys.argv[2])


main()
