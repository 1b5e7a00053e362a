#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""tests/claims.py [TREE]: checks that the tests exist that the documents name.

These are paths below tests/, also of programs without their .c; files in backquotes such as `test_x.c`;
attacks, in quotes behind `tests/attack` and in tables of attacks; and checks behind tests/vm/run -c. The
exit status is 1, with a line for each that is missing, or if a document that makes claims names none.
"""
import pathlib
import re
import sys

TREE = pathlib.Path(sys.argv[1] if sys.argv[1:] else pathlib.Path(__file__).resolve().parents[1])
TESTS = TREE / "tests"
CLAIMANTS = ("docs/security.md", "docs/reliability.md")
PATH = re.compile(r"(?<![\w/])tests/[\w./-]*\w")
FILE = re.compile(r"`((?:test|fuzz)_\w+\.c)`")
SCRIPT = re.compile(r"`(\w+\.py)`")  # in other documents also examples
ATTACK = re.compile(r'`tests/attack`, ((?:"[^"]+"(?:,? and )?)+)')
TABLE = re.compile(r"^\| attack \|.*\n\|[-|]+\n((?:\|.*\n)+)", re.M)
CHECKS = re.compile(r"tests/vm/run -c ([\w,]+)")


def words_of(pattern, *paths):
    return {word for path in paths for word in re.findall(pattern, path.read_text())}


def main():
    sources = [p for p in TESTS.rglob("*") if not {"corpus", "data"} & set(p.relative_to(TESTS).parts)]
    files = {p.name for p in sources}
    attacks = words_of(r'Attack\("([^"]+)"', *(TESTS / "attack").glob("*.py"))
    # Any word of these is taken for a check.
    checks = words_of(r"\w+", TESTS / "vm/checks.py", *TESTS.glob("*/meson.build"))

    def missing(name, text):
        yield from (p for p in PATH.findall(text) if not (TREE / p).exists() and not (TREE / (p + ".c")).exists())
        named = FILE.findall(text) + (SCRIPT.findall(text) if name in CLAIMANTS else [])
        yield from (f for f in named if f not in files)
        named = [name for names in ATTACK.findall(re.sub(r"\s+", " ", text)) for name in re.findall(r'"([^"]+)"', names)]
        yield from (f"attack {name}" for name in named if name not in attacks)
        rows = [row.split("|")[1].strip() for table in TABLE.findall(text) for row in table.splitlines()]
        yield from (f"attack {row}" for row in rows if not any(row.startswith(name) for name in attacks))
        yield from (f"check {c}" for c in ",".join(CHECKS.findall(text)).split(",") if c and c not in checks)

    wrong = 0
    documents = [*TREE.glob("*.md"), *(TREE / "docs").glob("*.md")]
    for path in sorted(documents):
        name, text = str(path.relative_to(TREE)), path.read_text()
        for what in sorted(set(missing(name, text))):
            print(f"{name}: no test: {what}")
            wrong += 1
        if name in CLAIMANTS and not (FILE.search(text) and ATTACK.search(text) or TABLE.search(text)):
            print(f"{name}: it names no test")
            wrong += 1
    print(f"{len(documents)} documents, {wrong} tests missing")
    sys.exit(1 if wrong or not {TREE / c for c in CLAIMANTS} <= set(documents) else 0)


if __name__ == "__main__":
    main()
