#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""embed.py PAGE STYLE SCRIPT... : writes C source with the page, its style and its scripts.

The scripts become one function. The page's content security policy names the hashes of script and
style. So the browser runs no other code in the file, whatever the trace contains."""

import base64
import hashlib
import re
import sys
import zlib


def source_hash(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def read(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    # The page names the licence once, for all its parts.
    return re.sub(r"\A(/\*|//|<!--) SPDX[^\n]*\n", "", text)


def shorten(text):
    """A script or a style without lines that are only a comment, and without indentation. No text of ours has several
    lines."""
    lines = (line.strip() for line in text.split("\n"))
    return "\n".join(line for line in lines if line and not line.startswith("//"))


def check_names(script):
    """The scripts share one scope, in which a second function would replace the first in silence."""
    names = re.findall(r"^(?:async )?(?:function\*?|class|const|let) (\w+)", script, re.M)
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        sys.exit(f"several scripts define {', '.join(twice)}")


def main():
    page, style, *scripts = sys.argv[1:]
    style = "\n" + shorten(re.sub(r"/\*.*?\*/", "", read(style), flags=re.S)) + "\n"
    scripts = [read(script) for script in scripts]
    check_names("\n".join(scripts))
    script = "\n(() => {\n'use strict';\n" + "\n".join(map(shorten, scripts)) + "})();\n"
    for text, end in ((style, "</style"), (script, "</script"), (script, "<!--")):
        if end in text.lower():
            sys.exit(f"'{end}' would end what is embedded")
    policy = (f"default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; "
              f"script-src {source_hash(script)}; style-src {source_hash(style)}")
    html = read(page)
    for place, text in (("@POLICY@", policy), ("@STYLE@", style), ("@SCRIPT@", script)):
        if html.count(place) != 1:
            sys.exit(f"the page must have one {place}")
        html = html.replace(place, text)
    data = html.encode()
    packed = zlib.compress(data, 9)
    print('#include "formats/html/html.h"\nconst unsigned char html_page_packed[] = {')
    for i in range(0, len(packed), 24):
        print(",".join(map(str, packed[i:i + 24])) + ",")
    print("};\nconst size_t html_page_packed_len = sizeof(html_page_packed);")
    print(f"char html_page_space[{len(data)}];\nconst size_t html_page_len = sizeof(html_page_space);")


main()
