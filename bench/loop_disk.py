# SPDX-License-Identifier: Apache-2.0
"""A file system of its own in a file, for what is measured beside a load on it. Needs root and a mkfs; `lacks` says what is missing."""
import contextlib
import os
import shutil
import subprocess
import threading


def quietly(*command):
    return subprocess.run([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


class LoopDisk:
    def __init__(self, folder, kind, megabytes=1024):
        self.image, self.at, self.kind, self.megabytes = folder / "image", folder / "mounted", kind, megabytes
        self.lacks = None

    def __enter__(self):
        make = f"mkfs.{self.kind}"
        if os.geteuid() != 0:
            self.lacks = "not root"
        elif shutil.which(make) is None:
            self.lacks = f"no {make}"
        else:
            self.at.mkdir()
            with open(self.image, "wb") as image:
                image.truncate(self.megabytes << 20)
            if not (quietly(make, "-q", self.image) and quietly("mount", "-o", "loop", self.image, self.at)):
                self.lacks = "cannot mount a loop device"
        return self

    def __exit__(self, *_):
        if self.lacks is None:
            quietly("umount", self.at)
        self.image.unlink(missing_ok=True)

    @contextlib.contextmanager
    def writer(self):
        """dd with fsync, then sync, again and again."""
        is_over = threading.Event()

        def write():
            while not is_over.is_set():
                quietly("dd", "if=/dev/zero", f"of={self.at}/fill", "bs=1M", f"count={self.megabytes // 8}", "conv=fsync")
                quietly("sync", "-f", self.at)

        thread = threading.Thread(target=write)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()

    @contextlib.contextmanager
    def frozen(self):
        """After a second, for four."""
        def freeze():
            quietly("sleep", 1)
            quietly("fsfreeze", "--freeze", self.at)
            quietly("sleep", 4)
            quietly("fsfreeze", "--unfreeze", self.at)

        thread = threading.Thread(target=freeze)
        thread.start()
        try:
            yield
        finally:
            thread.join()
