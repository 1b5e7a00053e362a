#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""tests/names.py [TREE]: checks that no two files define a function of the same name.

So a search for a name finds one definition, and no static library hides a function of another one:
the linker takes the first. The exit status is 1, with a line for each name that
several files under lib, daemon, cli, agent and libtraced define.
"""
import collections
import pathlib
import re
import sys

TREE = pathlib.Path(sys.argv[1] if sys.argv[1:] else pathlib.Path(__file__).resolve().parents[1])
TOPS = ("agent", "cli", "daemon", "lib", "libtraced")
# A build has one of these.
ALTERNATIVES = (
    {"agent/mqtt.c", "agent/no_mqtt.c"},
    {"agent/main.c", "cli/main.c", "cli/multi.c", "daemon/service/main.c", "libtraced/example.c"},
    {"daemon/service/loop_epoll.c", "daemon/service/loop_systemd.c"},
    {"lib/symbols/elf_file.c", "lib/symbols/elf_file_none.c"},
)
# Not code: comments, strings and character constants. They may hold braces.
OTHER = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S)
# A definition begins in column 1, and so does its brace. The name stands before the first
# parenthesis that does not belong to an attribute.
DEFINITION = re.compile(r"^(?P<head>\w[^;={}]*)\n\{", re.M)
ATTRIBUTE = re.compile(r"\b__attribute__\s*\(\(.*?\)\)|\b_\w+_(?:\s*\([^()]*\))?(?=\s)", re.S)
NAME = re.compile(r"\b(\w+)\s*\(")


def functions(text):
    for definition in DEFINITION.finditer(OTHER.sub(" ", text)):
        name = NAME.search(ATTRIBUTE.sub(" ", definition["head"]))
        if name:
            yield name[1]


def main():
    files = collections.defaultdict(set)
    for top in TOPS:
        for path in sorted((TREE / top).rglob("*.[ch]")):
            for name in functions(path.read_text()):
                files[name].add(str(path.relative_to(TREE)))
    shared = {name: sorted(paths) for name, paths in sorted(files.items())
              if len(paths) > 1 and not any(paths <= some for some in ALTERNATIVES)}
    for name, paths in shared.items():
        print(f"{name}: {', '.join(paths)}")
    print(f"{len(files)} functions, {len(shared)} names that several files define")
    sys.exit(1 if shared or not files else 0)


if __name__ == "__main__":
    main()
