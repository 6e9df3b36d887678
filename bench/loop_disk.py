# SPDX-License-Identifier: Apache-2.0
"""A file system of its own in a file, for what is measured beside a load on it, or while harm comes to it. Needs root and a mkfs; `lacks`
says what is missing."""
import contextlib
import os
import pathlib
import shutil
import subprocess
import threading
import time

LOADS = ("quiet", "others write and sync", "frozen for 5 s")
HARMS = ("filled by others", "files cut to nothing", "unmounted", "quota hit")
HARM_AFTER, FREEZE_AFTER, FROZEN = 2, 1, 5  # seconds
FREEZABLE = ("ext4", "xfs", "btrfs")


def quietly(*command):
    return subprocess.run([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


@contextlib.contextmanager
def beside(work):
    """`work` on a thread; it is given an event that says that it is to end."""
    is_over = threading.Event()
    thread = threading.Thread(target=work, args=(is_over,))
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


@contextlib.contextmanager
def writing(folder, megabytes):
    """dd with fsync, then sync, again and again. Gives a list that grows by an entry for each."""
    written = []

    def write(is_over):
        while not is_over.is_set():
            if quietly("dd", "if=/dev/zero", f"of={folder}/fill", "bs=1M", f"count={megabytes}", "conv=fsync"):
                written.append(megabytes)
            quietly("sync", "-f", folder)

    with beside(write):
        yield written


class Disk:
    def __init__(self, folder, kind, megabytes=1024):
        self.image, self.under, self.at, self.kind, self.megabytes = folder / "image", folder / "under", folder / "mounted", kind, megabytes
        self.lacks = None

    def __enter__(self):
        make = {"bindfs": "mkfs.ext4", "tmpfs": "mount"}.get(self.kind, f"mkfs.{self.kind}")
        if os.geteuid() != 0:
            self.lacks = "not root"
        elif missing := [program for program in (make, *("bindfs",) * (self.kind == "bindfs")) if shutil.which(program) is None]:
            self.lacks = f"no {missing[0]}"
        else:
            self.at.mkdir()
            self.under.mkdir()
            with open(self.image, "wb") as image:
                image.truncate(self.megabytes << 20)
            if not ((self.kind == "tmpfs" or quietly(make, "-q", self.image)) and self.mount()):
                self.lacks = "cannot mount it"
        return self

    def __exit__(self, *_):
        for place in (self.at, self.under):
            quietly("umount", "-l", place)
        self.image.unlink(missing_ok=True)

    def mount(self):
        if self.kind == "tmpfs":
            return quietly("mount", "-t", "tmpfs", "-o", f"size={self.megabytes}m", "tmpfs", self.at)
        below = self.under if self.kind == "bindfs" else self.at
        return quietly("mount", "-o", "loop", self.image, below) and (below == self.at or quietly("bindfs", self.under, self.at))

    def can(self, what):
        if what.startswith("frozen"):
            return self.kind in FREEZABLE
        if what == "quota hit":
            return self.kind == "btrfs"  # the others' do not hold root
        return what != "unmounted" or self.kind != "tmpfs"  # nothing would be left to look at

    def load(self, name):
        if name.startswith("others"):
            return writing(self.at, self.megabytes // 8)
        return beside(self.freeze) if name.startswith("frozen") else contextlib.nullcontext()

    def freeze(self, _):
        time.sleep(FREEZE_AFTER)
        quietly("fsfreeze", "--freeze", self.at)
        time.sleep(FROZEN)
        quietly("fsfreeze", "--unfreeze", self.at)

    @contextlib.contextmanager
    def harm(self, name, run):
        def do(_):
            time.sleep(HARM_AFTER)
            if name == "filled by others":
                quietly("dd", "if=/dev/zero", f"of={self.at}/fill", "bs=1M")
            elif name == "files cut to nothing":
                for file in pathlib.Path(run).glob("*.lks"):
                    os.truncate(file, 0)
            elif name == "unmounted":
                quietly("umount", "-l", self.at)
            else:
                quietly("btrfs", "quota", "enable", self.at)
                quietly("btrfs", "qgroup", "limit", "8M", "0/5", self.at)

        with beside(do):
            yield
        if name == "unmounted":
            quietly("umount", "-l", self.under)
            self.mount()
