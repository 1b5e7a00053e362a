#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""tests/names.py [TREE]: checks that no two files define a static function of the same name.

So a search for a name finds one definition. The exit status is 1, with a line for each name that
several files under lib, daemon, cli, agent and libtraced define.
"""
import collections
import pathlib
import re
import sys

TREE = pathlib.Path(sys.argv[1] if sys.argv[1:] else pathlib.Path(__file__).resolve().parents[1])
TOPS = ("agent", "cli", "daemon", "lib", "libtraced")
# Not code: comments, strings and character constants. They may hold braces.
OTHER = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S)
# A definition begins in column 1, and so does its brace. The name stands before the first
# parenthesis that does not belong to an attribute.
DEFINITION = re.compile(r"^static\b(?P<head>[^;={}]*)\n\{", re.M)
ATTRIBUTE = re.compile(r"\b__attribute__\s*\(\(.*?\)\)|\b_\w+_(?:\s*\([^()]*\))?(?=\s)", re.S)
NAME = re.compile(r"\b(\w+)\s*\(")


def static_functions(text):
    for definition in DEFINITION.finditer(OTHER.sub(" ", text)):
        name = NAME.search(ATTRIBUTE.sub(" ", definition["head"]))
        if name:
            yield name[1]


def main():
    files = collections.defaultdict(set)
    for top in TOPS:
        for path in sorted((TREE / top).rglob("*.[ch]")):
            for name in static_functions(path.read_text()):
                files[name].add(str(path.relative_to(TREE)))
    shared = {name: sorted(paths) for name, paths in sorted(files.items()) if len(paths) > 1}
    for name, paths in shared.items():
        print(f"{name}: {', '.join(paths)}")
    print(f"{len(files)} static functions, {len(shared)} names that several files define")
    sys.exit(1 if shared or not files else 0)


if __name__ == "__main__":
    main()
