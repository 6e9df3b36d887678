#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Texts on a terminal of 80 columns fit it, and tables lack no column where nobody limits them.

Usage: width_test.py SOURCE_TREE FOLDER_OF_PROGRAMS
"""
import fcntl
import os
import pathlib
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
import unittest

SOURCE, BIN = (pathlib.Path(argument).resolve() for argument in (sys.argv.pop(1), sys.argv.pop(1)))
DATA = SOURCE / "tests/data"
COLUMNS = 80
CODES = re.compile(r"\x1b\[[0-9;]*m")


def on_terminal(words, folder, columns=COLUMNS):
    """What the command prints on a terminal of so many columns, without colours."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen([BIN / "lockstep", *map(str, words)], stdin=subprocess.DEVNULL, stdout=its, stderr=subprocess.DEVNULL, cwd=folder,
                          env={**os.environ, "TERM": "xterm"}) as running:
        os.close(its)
        said = b""
        while True:
            try:
                piece = os.read(ours, 1 << 16)
            except OSError:  # so Linux says that the other end is closed
                break
            if not piece:
                break
            said += piece
    os.close(ours)
    assert running.returncode in (0, 1, 2, 3), (words, running.returncode, said)
    return CODES.sub("", said.decode()).replace("\r\n", "\n")


def matrices(gpus):
    """As p2pBandwidthLatencyTest prints them; of one pair a slow one."""
    lines = ["[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]"]
    lines += [f"Device: {gpu}, NVIDIA H100 80GB HBM3, pciBusID: {gpu + 16:x}, pciDeviceID: 0, pciDomainID:0" for gpu in range(gpus)]
    lines += ["Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)", "   D\\D" + "".join(f"{gpu:6d} " for gpu in range(gpus))]
    for source in range(gpus):
        lines.append(f"{source:6d} " + "".join(
            f"{2510 if source == target else 150 if (source, target) == (1, 2) else 390:6.2f} " for target in range(gpus)))
    return "\n".join(lines) + "\n"


def headings(text):
    """The headings above each rule."""
    lines = text.split("\n")
    return [re.split(r" {2,}", lines[i - 1].strip()) for i, line in enumerate(lines) if re.fullmatch(r" *-+( +-+)+", line)]


def is_too_wide(line):
    """What nobody can break may jut out: a path, an address, a command to copy."""
    return not line.lstrip().startswith("lockstep ") and len(line) > COLUMNS and len(line.split()) > 1 and line.rfind(" ", 0, COLUMNS + 1) > len(line) - len(line.lstrip())


class Widths(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.place = pathlib.Path(cls.folder.name)
        for name, *options in (("hang", "--mode", "deep", "--fault", "never-joined"), ("good", "--mode", "deep", "--marks"), ("lite", "--mode", "lite"),
                               ("late", "--fault", "host-late"), ("slow", "--mode", "deep", "--fault", "slow-link", "--ranks-per-host", "2")):
            subprocess.run([BIN / "lockstep-sim-job", "--ranks", "8", "--steps", "30", "--seed", "3", *options, "-o", cls.place / name], check=True,
                           stdout=subprocess.DEVNULL)
        subprocess.run([BIN / "lockstep", "merge", "-o", "good.db", "good"], cwd=cls.place, check=True, capture_output=True)
        (cls.place / "p2p.txt").write_text(matrices(16))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def commands(self):
        for run in ("hang", "good", "lite", "late", "slow", "good.db", DATA / "kineto", DATA / "inspector", DATA / "flight_recorder/hang"):
            for verb in ("diagnose", "summary", "info", "show"):
                yield verb, run
            yield "diagnose", "-v", run
        for run in ("hang", "good", "lite", "slow"):
            yield "show", "--comm", "mesh_dp:1", "--op", "5", run
            yield "top", "--once", run
            yield "control", "--show", run
        for folder in sorted((DATA / "logs").iterdir()):
            yield "logs", folder
            yield "logs", "-v", folder
            yield "diagnose", folder
        for paste in sorted((DATA / "pastes").iterdir()):
            yield "diagnose", paste
        yield "compare", "good", "late"
        yield "compare", "--all", "--gate", "step<=1.03", "good", "slow"
        yield ("explain",)
        yield "explain", "never-joined"
        yield "links", "--checks"
        yield "links", "--from", "p2p.txt"
        yield ("fleet",)
        yield ("version",)
        commands = re.findall(r"^COMMAND\((\w+)\)", (SOURCE / "src/cli/commands.def").read_text(), re.MULTILINE)
        for verb in commands:
            yield verb, "--help"
        yield ("help",)

    def test_all_texts_fit(self):
        wide = []
        for words in self.commands():
            for line in on_terminal(words, self.place).split("\n"):
                if is_too_wide(line):
                    wide.append(f"{' '.join(map(str, words))}: {len(line)}: {line}")
        self.assertEqual(wide, [])

    def test_columns_without_room_are_named(self):
        for words in (("summary", "good"), ("info", "good"), ("show", "good"), ("compare", "--all", "good", "late")):
            whole = subprocess.run([BIN / "lockstep", *words], capture_output=True, text=True, cwd=self.place,
                                   env={name: value for name, value in os.environ.items() if name != "COLUMNS"}).stdout
            self.assertNotIn("No room for", whole)
            self.assertEqual(on_terminal(words, self.place, 1000).count("No room for"), 0)
            narrow = on_terminal(words, self.place)
            for wide_one, narrow_one in zip(headings(whole), headings(narrow)):
                named = re.search(rf"No room for ([^;]*); ", re.sub(r"\n +", " ", narrow[narrow.index("  ".join(narrow_one[-1:])):]))
                missing = [heading for heading in wide_one if heading not in narrow_one]
                if missing:
                    self.assertEqual(named.group(1).split(", "), missing, words)


if __name__ == "__main__":
    unittest.main()
