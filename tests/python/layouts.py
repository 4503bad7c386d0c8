"""Compares what hwnas.py declares with the headers: sizes and offsets of structs, values of enumerators,
and the kinds of what functions take and return. Usage: layouts.py INCLUDE-FOLDER..., in an empty folder."""
import ctypes
import re
import subprocess
import sys

import hwnas

INCLUDES = [f"-I{folder}" for folder in sys.argv[1:]]
HEADERS = "".join(f"#include <{name}.h>\n" for name in ("hwnas", "hwnas/optimize", "hwnas/page", "hwnas/profile"))


def declared_by_headers():
    """{"hwnas_costs": size, "hwnas_costs.macs": "offset size", "HWNAS_E_IO": value}"""
    lines = []
    for name, struct in hwnas._STRUCTS.items():
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        for field, *_ in struct._fields_:
            lines.append(f'printf("{name}.{field} %zu %zu\\n", offsetof({name}, {field}), '
                         f"sizeof((({name} *)0)->{field}));")
    lines += [f'printf("{name} %d\\n", (int){name});' for name in hwnas._ENUMERATORS]
    with open("layouts.c", "w") as f:
        f.write(f"{HEADERS}#include <stdio.h>\nint main(void)\n{{\n" + "\n".join(lines) + "\n}\n")
    subprocess.run(["cc", *INCLUDES, "layouts.c", "-o", "layouts"], check=True)
    printed = subprocess.run("./layouts", check=True, capture_output=True, text=True).stdout
    return dict(line.split(" ", 1) for line in printed.splitlines())


def declared_by_python():
    found = {}
    for name, struct in hwnas._STRUCTS.items():
        found[name] = str(ctypes.sizeof(struct))
        for field, *_ in struct._fields_:
            place = getattr(struct, field)
            found[f"{name}.{field}"] = f"{place.offset} {place.size}"
    found.update({name: str(value) for name, value in hwnas._ENUMERATORS.items()})
    return found


def kind_in_c(declaration):
    words = declaration.replace("const", "").replace("volatile", "").split()
    text = " ".join(words)
    if "*" in text or "[" in text or text.endswith("_function"):
        return "pointer"
    kinds = {"void": "nothing", "int": "int", "hwnas_status": "int", "hwnas_format": "int", "hwnas_precision": "int",
             "double": "double", "_Bool": "bool", "size_t": "unsigned 8", "uint64_t": "unsigned 8",
             "int64_t": "signed 8"}
    return kinds[text]


def kind_in_python(kind):
    if kind is None:
        return "nothing"
    if kind in (ctypes.c_int, hwnas._Status):
        return "int"
    if kind is ctypes.c_double:
        return "double"
    if kind is ctypes.c_bool:
        return "bool"
    if kind in (ctypes.c_size_t, ctypes.c_uint64):
        return "unsigned 8"
    if kind is ctypes.c_int64:
        return "signed 8"
    return "pointer"


def functions_of_headers():
    with open("all.c", "w") as f:
        f.write(HEADERS)
    subprocess.run(["cc", *INCLUDES, "-aux-info", "declared.txt", "-fsyntax-only", "all.c"], check=True)
    found = {}
    with open("declared.txt") as f:
        for line in f:
            match = re.search(r"extern (.*?)(hwnas_[a-z0-9_]+) \((.*)\);", line)
            if match and match[2] in hwnas._FUNCTIONS:
                arguments = [] if match[3] == "void" else match[3].split(", ")
                found[match[2]] = [kind_in_c(match[1])] + [kind_in_c(a) for a in arguments]
    return found


def compare(what, ours, theirs):
    wrong = [f"{key}: {ours.get(key)} in hwnas.py, {theirs.get(key)} in the headers"
             for key in sorted({*ours, *theirs}) if ours.get(key) != theirs.get(key)]
    print(f"{len(ours)} {what} compared")
    print("\n".join(wrong))
    return len(wrong)


wrong = compare("layouts", declared_by_python(), declared_by_headers())
wrong += compare("functions", {name: [kind_in_python(k) for k in kinds] for name, kinds in hwnas._FUNCTIONS.items()},
                 functions_of_headers())
sys.exit(wrong > 0)
