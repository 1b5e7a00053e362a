#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""tests/words.py [TREE]: checks that no comment begins without its subject, as "What is left" does.

"As FUNCTION(), ..." compares with a function, and is allowed. The exit status is 1, with a line for
each comment that begins so.
"""
import pathlib
import re
import sys

TREE = pathlib.Path(sys.argv[1] if sys.argv[1:] else pathlib.Path(__file__).resolve().parents[1])
TOPS = ("agent", "cli", "contrib", "daemon", "debian", "include", "lib", "libtraced", "scripts", "systemd", "tests")
HEADLESS = re.compile(r"(?:/\*|#|//) (?:(?:What|Of|Those|Who|Where|That|Whose|So) [a-z]|As (?!\w+\(|above)[a-z]).*")


def main():
    wrong = checked = 0
    for top in TOPS:
        for path in sorted((TREE / top).rglob("*")):
            name = path.relative_to(TREE)
            # Recorded data and fuzzing inputs are as they are.
            if not path.is_file() or {"data", "corpus", "__pycache__"} & set(name.parts):
                continue
            checked += 1
            for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
                for found in HEADLESS.findall(line):
                    print(f"{name}:{number}: {found}")
                    wrong += 1
    print(f"{checked} files, {wrong} comments without a subject")
    sys.exit(1 if wrong or not checked else 0)


if __name__ == "__main__":
    main()
