#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""File-local names differ within a target, whose sources are compiled as one (cmake/lockstep.cmake): a clash shows only in presets whose batches
bring the two together. Sources of cmake/apart.txt share no unit."""
import collections
import re

import source_tree

CALL = re.compile(r"\b(lockstep_room|lockstep_test|foreach)\s*\(([^)]*)\)")
NOT_CODE = re.compile(r'//(?! namespace)[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"', re.DOTALL)
CONSTANT = re.compile(r"\b(k[A-Z]\w*)(?=\s*(?:\[[^\]]*\]\s*)?(?:=(?!=)|\{))")
TYPE = re.compile(r"^(?:class|struct|union|enum(?: class)?) (\w+)[^;]*$")
ALIAS = re.compile(r"^using (\w+) = ([^;]*)")
FUNCTION = re.compile(r"^(?!return\b|else\b|using\b|namespace\b|class\b|struct\b|enum\b|template\b|TEST)[A-Za-z_][\w:<>,&*\s\[\]]*?[\s&*](\w+)\(([^()]*)\)[^;=]*\{", re.MULTILINE)


def targets():
    """Sources of each room and test program."""
    found = collections.defaultdict(list)
    for path in source_tree.tracked("*CMakeLists.txt"):
        loops = {}
        for call, body in CALL.findall(re.sub(r"#[^\n]*", "", source_tree.read(path))):
            words = body.split()
            if call == "foreach":
                loops["${" + words[0] + "}"] = words[words.index("ITEMS") + 1:] if "ITEMS" in words else []
                continue
            part, name = ("TESTS", "") if call == "lockstep_test" else ("", words.pop(0))
            for word in words:
                if word.isupper():
                    part = word
                elif part == "SOURCES":
                    found[path, name].append(path.parent / word)
                elif part == "TESTS" and "ALONE" not in words:
                    found[path, "tests"] += [path.parent / test for test in loops.get(word, [word])]
    return found


def local_names(text):
    """What unnamed namespaces and static functions name, by namespace and name; what an alias stands for, else ""."""
    names, inside, block = {}, [], collections.defaultdict(list)
    for line in NOT_CODE.sub("", text).split("\n"):
        if match := re.match(r"namespace ([\w:]*) ?\{$", line):
            inside.append(match[1])
        elif line.startswith("}  // namespace") and inside:
            inside.pop()
        elif "" in inside or line.startswith("static "):
            where = "::".join(inside)
            block[where].append(line)
            if re.match(r"(?:static |inline )*(?:constexpr|const|constinit)\b", line):
                names.update({(where, name): "" for name in CONSTANT.findall(line)})
            if match := TYPE.match(line):
                names[where, match[1]] = ""
            if match := ALIAS.match(line):
                names[where, match[1]] = match[2]
    for where, lines in block.items():
        for name, parameters in FUNCTION.findall("\n".join(lines)):
            kinds = [re.sub(r"\s*\b\w+\s*$", "", re.sub(r"\s*=.*", "", one)).strip() for one in parameters.split(",")]
            names[where, f"{name}({', '.join(kinds)})"] = ""
    return names


def main():
    apart = re.compile("|".join(line for line in source_tree.read("cmake/apart.txt").splitlines() if not line.startswith("#")))
    problems, files = set(), 0
    for sources in targets().values():
        of = collections.defaultdict(dict)
        for path in sources:
            if apart.fullmatch(str(path)) or not (source_tree.ROOT / path).is_file():
                continue
            files += 1
            for key, stands_for in local_names(source_tree.read(path)).items():
                of[key][str(path)] = stands_for
        problems |= {f"{' and '.join(paths)}: both have a file-local '{name}'" for (_, name), paths in of.items()
                     if len(paths) > 1 and ("" in paths.values() or len(set(paths.values())) > 1)}
    source_tree.finish(sorted(problems), f"{files} sources share units without a clash")


main()
