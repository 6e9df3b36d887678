# SPDX-License-Identifier: Apache-2.0
"""Ways to damage what programs read: bytes, numbers and texts of text formats, words of binary ones, rows of SQLite files.

Each function takes a random.Random and the bytes (or the path) to change, and changes them in the same way for the same seed.
"""
import re
import sqlite3

# Where signs, widths and doubles end.
NUMBERS = [0, 1, -1, 127, 128, 255, 256, 65535, 65536, 2**31 - 1, 2**31, -2**31, 2**32 - 1, 2**32, 10**18, 2**53 + 1,
           2**63 - 1, -2**63, 2**64 - 1]
WORDS = [b"-1", b"18446744073709551615", b"1e308", b"-1e308", b"1e-400", b"NaN", b"9" * 30, b"null", b'""', b"[]", b"{}", b"true",
         b"\\u0000", b"\\ud800", b"\xff\xfe", b"\x00", b"\x1b]0;x\x07", b"\xc2\x9b31m", b"\n"]
TEXTS = [b"A" * 5000, b"</script><img src=x onerror=alert(1)>", b"\\u001b[31m", b"=1+1", b"../../../etc/passwd", b""]
NUMBER = re.compile(rb"-?\d+(\.\d+)?")
STRING = re.compile(rb'"[^"\n]{0,60}"')
SEARCHED = 200_000  # bytes of a text in which places to change are looked for


def change_bytes(random, data):
    """A few bits, bytes, words, pieces cut out, doubled or zeroed, or the end."""
    data = bytearray(data or b"x")
    for _ in range(random.choice([1, 1, 2, 3, 6, 15])):
        at = random.randrange(len(data))
        size = random.choice([1, 4, 8, 16, 64, 1000])
        way = random.randrange(8)
        if way == 0:
            data[at] ^= 1 << random.randrange(8)
        elif way == 1:
            data[at] = random.randrange(256)
        elif way == 2:
            put_number(random, data, at)
        elif way == 3:
            del data[at:at + size]
        elif way == 4:
            data[at:at] = data[at:at + size]
        elif way == 5:
            data[at:at + size] = bytes(len(data[at:at + size]))
        elif way == 6:
            data[at:at] = random.choice(WORDS)
        else:
            del data[at:]
        if not data:
            data = bytearray(b"x")
    return bytes(data)


def put_number(random, data, at):
    """A number in place of an aligned word."""
    width = random.choice([1, 2, 4, 8])
    at -= at % width
    value = random.choice(NUMBERS) if random.random() < 0.6 else random.getrandbits(64)
    data[at:at + width] = (value & ((1 << 8 * width) - 1)).to_bytes(width, "little")


def change_words(random, data):
    """Words of a binary format, of those that are not zero, often in its first KiB, where sizes and counts stand."""
    data = bytearray(data or b"x")
    for _ in range(random.choice([1, 1, 2, 4, 8])):
        for _ in range(50):
            at = random.randrange(min(len(data), 1200) if random.random() < 0.3 else len(data))
            if data[at]:
                break
        put_number(random, data, at)
    return bytes(data)


def change_text(random, data):
    """Numbers and strings of a text format."""
    for _ in range(random.choice([1, 1, 2, 4, 10])):
        pattern = NUMBER if random.random() < 0.5 else STRING
        places = list(pattern.finditer(data[:SEARCHED]))
        if not places:
            return change_bytes(random, data)
        place = random.choice(places)
        if pattern is NUMBER:
            new = random.choice(WORDS) if random.random() < 0.7 else str(random.choice(NUMBERS)).encode()
        elif random.random() < 0.4:
            new = random.choice(places).group()
        else:
            new = b'"' + random.choice(TEXTS) + b'"'
        data = data[:place.start()] + new + data[place.end():]
    return data


VALUES = NUMBERS[:-1] + [None, 1.5, float("inf"), -1e308, "", "text", "x" * 5000, b"\x00\xff", "\x1b]0;x\x07\x1b[2J", "=cmd|1", "a\x00b",
                         "</script><img src=x onerror=alert(1)>"]


def change_sql(random, path):
    """Values, rows, columns and tables of a SQLite file; bytes of one that SQLite itself cannot read."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        change_tables(random, connection)
        readable = True
    except sqlite3.Error:
        readable = False
    finally:
        connection.close()
    if not readable:
        path.write_bytes(change_bytes(random, path.read_bytes()))


def change_tables(random, connection):
    tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
    for _ in range(random.choice([1, 2, 4, 10]) if tables else 0):
        table = random.choice(tables)
        columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
        if not columns:
            continue
        try:
            change_table(random, connection, table, columns)
        except sqlite3.Error:
            pass  # what the constraints of the table do not allow


def change_table(random, connection, table, columns):
    column, most = random.choice(columns), random.choice([1, 1, 2, 10, 10000])
    skipped = random.randrange(200)
    some = f'rowid IN (SELECT rowid FROM "{table}" LIMIT {most} OFFSET {skipped})'
    way = random.randrange(10)
    if way < 5:
        connection.execute(f'UPDATE "{table}" SET "{column}" = ? WHERE {some}', (random.choice(VALUES),))
    elif way == 5:
        connection.execute(f'DELETE FROM "{table}" WHERE {some}')
    elif way == 6:
        connection.execute(f'UPDATE "{table}" SET "{column}" = "{random.choice(columns)}"')
    elif way == 7:
        connection.execute(f'ALTER TABLE "{table}" DROP COLUMN "{column}"')
    elif way == 8:
        connection.execute(f'DROP TABLE "{table}"')
    else:
        replace_by_view(random, connection, table, columns)


def replace_by_view(random, connection, table, columns):
    """A view of the table's name whose query has no end, or rows of any size."""
    value = random.choice(["x", "zeroblob(900000000)", "x'1b5d'"])
    connection.execute(f'DROP TABLE "{table}"')
    connection.execute(f'CREATE VIEW "{table}" AS WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r) SELECT '
                       + ", ".join(f'{value} AS "{column}"' for column in columns) + " FROM r")
