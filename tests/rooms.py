#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""tests/rooms.py [TREE]: checks each #include against the table "The rooms" of docs/architecture.md.

A room may include itself, the rooms that its last column names, and whatever those may include. The
exit status is 1, with a line for each include that the table does not allow, or for a source
file that lies in no room. Room names in the last column are relative to the room's own top folder.
"""
import pathlib
import re
import sys

TREE = pathlib.Path(sys.argv[1] if sys.argv[1:] else pathlib.Path(__file__).resolve().parents[1])
TOPS = ("agent", "cli", "daemon", "include", "lib", "libtraced", "proto")
# Where "x/y.h" is looked for, in the compiler's order.
ROOTS = ("lib", "", "include", "cli", "libtraced")


def read_table():
    """The rooms, and what each may include, from the table."""
    text = (TREE / "docs/architecture.md").read_text()
    section = text.split("\n## The rooms\n", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| `([\w/]+)` \|.*\| ?([^|]*?) ?\|$", section, re.M)
    return {name: [word for word in re.split(r"[,\s]+", may.replace("`", "")) if word] for name, may in rows}


def expand(word, rooms):
    """The rooms that a word of the table stands for."""
    if word in rooms or any(name.startswith(word + "/") for name in rooms):
        return {name for name in rooms if name == word or name.startswith(word + "/")}
    sys.exit(f"docs/architecture.md: no room is named {word}")


def allowed(name, rooms, seen):
    """name, and all that it may include, directly or not."""
    if name not in seen:
        seen.add(name)
        for word in rooms[name]:
            for other in expand(word, rooms):
                allowed(other, rooms, seen)
    return seen


def room_of(path, rooms):
    for folder in path.parents:
        if str(folder) in rooms:
            return str(folder)
    return None


def resolve(name, source):
    """The file of the tree that an include names; None: one of the build or of the system."""
    name = name.replace(".pb-c.h", ".proto")
    for root in (str(source.parent), *ROOTS):
        path = pathlib.Path(root) / name
        if (TREE / path).is_file():
            return path
    return None


def main():
    rooms = read_table()
    may = {name: allowed(name, rooms, set()) for name in rooms}
    wrong = checked = 0
    for top in TOPS:
        for file in sorted((TREE / top).rglob("*.[ch]")):
            source = file.relative_to(TREE)
            room = room_of(source, rooms)
            if not room:
                print(f"{source}: lies in no room of docs/architecture.md")
                wrong += 1
                continue
            for number, line in enumerate(file.read_text().splitlines(), 1):
                include = re.match(r'#include "([^"]+)"', line)
                target = include and resolve(include[1], source)
                if not target:
                    continue
                checked += 1
                other = room_of(target, rooms)
                if other not in may[room]:
                    print(f"{source}:{number}: {room} may not include {other} ({include[1]})")
                    wrong += 1
    print(f"{checked} includes of {len(rooms)} rooms, {wrong} wrong")
    sys.exit(1 if wrong or not checked else 0)


if __name__ == "__main__":
    main()
