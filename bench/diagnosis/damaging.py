# SPDX-License-Identifier: Apache-2.0
"""Damages of one file, as disks, networks and copies make them. Each takes a random.Random and a bytearray, which it changes."""
PAGE = 4096


def used(data, size):
    """Where pieces of a size begin that hold anything."""
    return [at for at in range(0, len(data), size) if any(data[at:at + size])]


def overwrite(rng, data, size):
    at = min(rng.choice(used(data, 16)) + rng.randrange(16), max(len(data) - size, 0))
    data[at:at + size] = rng.randbytes(len(data[at:at + size]))


def scattered(rng, data):
    places = used(data, 16)
    for _ in range(32):
        data[min(rng.choice(places) + rng.randrange(16), len(data) - 1)] = rng.randrange(256)


def page(rng, data):
    at = rng.choice(used(data, PAGE))
    data[at:at + PAGE] = bytes(len(data[at:at + PAGE]))


def cut(rng, data):
    del data[rng.randrange(min(64, len(data) - 1), len(data)):]


def lose_lines(rng, data):
    """Up to 20 lines that a collector dropped."""
    lines = bytes(data).splitlines(keepends=True)
    at = rng.randrange(len(lines))
    del lines[at:at + rng.randrange(1, 21)]
    data[:] = b"".join(lines)


def tear(rng, data):
    """Eight lines into which the next one was written, as of writers of one stream."""
    for _ in range(8):
        lines = bytes(data).splitlines(keepends=True)
        at = rng.randrange(max(len(lines) - 1, 1))
        middle = rng.randrange(len(lines[at]))
        data[:] = b"".join([*lines[:at], lines[at][:middle], *lines[at + 1:at + 2], lines[at][middle:], *lines[at + 2:]])


LINE_KINDS = {"lines lost": lose_lines, "torn": tear}
KINDS = {"bytes": lambda rng, data: overwrite(rng, data, 32), "scattered": scattered,
         "burst": lambda rng, data: overwrite(rng, data, rng.randrange(256, 4096)), "page": page, "cut": cut}
