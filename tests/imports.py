#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""tests/imports.py [TREE]: checks that what tests import from each other's files is there. Those of guests,
benchmarks and soaks are run by hand, so nothing else finds such a fault in time. The exit status is 1, with
a line for each name that is missing, or if nothing is imported at all.
"""
import ast
import pathlib
import sys

TREE = pathlib.Path(sys.argv[1] if sys.argv[1:] else pathlib.Path(__file__).resolve().parents[1])


def is_python(path):
    with path.open("rb") as f:
        return path.suffix == ".py" or b"python3" in f.readline(100)


def names_of(module):
    """Names that a module's top level defines, also under `if` and `try`."""
    todo, names = list(module.body), set()
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {(a.asname or a.name).partition(".")[0] for a in node.names}
        else:
            names |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
            todo += [n for n in ast.iter_child_nodes(node) if isinstance(n, ast.stmt)]
    return names


def main():
    paths = [p for folder in ("tests", "scripts") for p in (TREE / folder).rglob("*")
             if p.is_file() and not {"data", "corpus"} & set(p.parts) and is_python(p)]
    modules = {p: ast.parse(p.read_text(), p) for p in paths}
    found = missing = 0
    for path, module in sorted(modules.items()):
        for node in ast.walk(module):
            # A file of one name may be in several folders: the nearest is meant, or any may do.
            files = [p for p in paths if isinstance(node, ast.ImportFrom) and p.stem == node.module and p.suffix]
            beside = [p for p in files if p.parent == path.parent]
            if not files:
                continue
            there = set().union(*(names_of(modules[p]) for p in beside or files))
            for name in (a.name for a in node.names if a.name not in there | {"*"}):
                print(f"{path.relative_to(TREE)}:{node.lineno}: {node.module} has no {name}")
                missing += 1
            found += 1
    print(f"{len(paths)} files, {found} imports of each other's, {missing} names missing")
    sys.exit(1 if missing or not found else 0)


if __name__ == "__main__":
    main()
