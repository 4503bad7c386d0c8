#!/usr/bin/env python3
"""The commands of a page: commands.py PAGE.md

A command is a line of an indented block, or of a ```sh block, whose first word is a program's. A
line that ends with a backslash goes on in the next. A comment in the page,

    <!-- not run: REASON "WORDS" "WORDS" ... -->

names commands that no test can run by words that are in them, and says why. Prints `run COMMAND`
or `skip REASON: COMMAND`, a line each, in the order of the page. Words that are in no command are
an error: a mark must not outlive what it marks."""
import re
import sys

PROGRAMS = ("hwnas", "scripts/", "make", "sudo", "ssh-copy-id", "cp", "sed", "python3", "sh", "sbatch",
            "kubectl", "cc", "initdb", "createdb", "export", "man", "pip")
MARK = re.compile(r"<!-- not run: ([^\"]*?) ((?:\"[^\"]*\" ?)+)-->")


def commands_of(text):
    inside, open_line = None, ""
    for line in text.splitlines():
        if line.startswith("```"):
            inside = None if inside is not None else line[3:]
            continue
        if inside is None and not line.startswith("    ") or inside not in (None, "sh"):
            open_line = ""
            continue
        words = open_line + line.strip()
        if words.endswith("\\"):
            open_line = words[:-1]
            continue
        open_line = ""
        first = words.split(" ", 1)[0]
        if any(first == p or p.endswith("/") and first.startswith(p) for p in PROGRAMS):
            yield words


def main(page):
    text = open(page, encoding="utf-8").read()
    marks = [(reason, words, []) for reason, quoted in MARK.findall(text)
             for words in re.findall('"([^"]*)"', quoted)]
    for command in commands_of(text):
        found = [m for m in marks if m[1] in command]
        for m in found:
            m[2].append(command)
        print(f"skip {found[0][0]}: {command}" if found else f"run {command}")
    idle = [words for _, words, used in marks if not used]
    if idle:
        sys.exit(f"{page}: marked as not run, and in no command: {idle}")


main(sys.argv[1])
