#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Makes the table of FtraceEvent's messages (formats/perfetto/messages.h) from their .proto files.

protobuf-c's code for them would have several hundred kilobytes, of which only names, numbers and
types are of use.

usage: message_table.py OUTPUT FILE.proto..."""

import re
import sys

TYPES = {"string": "STRING", "bytes": "BYTES", "uint32": "UINT32", "int32": "NUMBER",
         "int64": "NUMBER", "uint64": "NUMBER", "bool": "NUMBER"}
FIELD = re.compile(r"(optional|repeated)\s+(\w+)\s+(\w+)\s+=\s+(\d+);")


class Names:
    """All names in one string, each once."""

    def __init__(self):
        self.offsets, self.text, self.size = {}, [], 0

    def offset(self, name):
        if name not in self.offsets:
            self.offsets[name] = self.size
            self.text.append(name)
            self.size += len(name) + 1
        return self.offsets[name]


def main():
    text = ""
    for path in sys.argv[2:]:
        with open(path, encoding="utf-8") as f:
            text += re.sub(r"//.*", "", f.read())
    messages = {name: FIELD.findall(body)
                for name, body in re.findall(r"^message (\w+) \{([^{}]*)\}", text, re.M)}
    events = re.search(r"oneof event \{([^}]*)\}", text)[1]
    events = sorted((name, message, int(number))
                    for message, name, number in re.findall(r"(\w+)\s+(\w+)\s+=\s+(\d+);", events)
                    if message in messages and name != "generic")
    names, message_rows, field_rows = Names(), [], []
    for name, message, number in events:
        fields = messages[message]
        message_rows.append(f"\t{{ {names.offset(name)}, {number}, {len(field_rows)}, {len(fields)} }}, /* {name} */\n")
        for label, kind, field, field_number in fields:
            if int(field_number) > 255:
                sys.exit(f"{message}.{field}: the number {field_number} is too large")
            repeated = " | PF_REPEATED_FIELD" if label == "repeated" else ""
            field_rows.append(f"\t{{ {names.offset(field)}, {field_number}, "
                              f"PF_TYPE_{TYPES[kind]}{repeated} }},\n")
    if max(names.size, len(field_rows)) > 65535:
        sys.exit("the table needs larger indices")
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        out.write('#include "formats/perfetto/messages.h"\n\n'
                  "const char pf_message_names[] =\n" +
                  "".join(f'\t"{name}\\0"\n' for name in names.text) + ";\n\n"
                  f"const uint16_t pf_message_count = {len(message_rows)};\n\n"
                  "const struct pf_message pf_messages[] = {\n" + "".join(message_rows) + "};\n\n"
                  "const struct pf_message_field pf_message_fields[] = {\n" + "".join(field_rows) +
                  "};\n")


if __name__ == "__main__":
    main()
