#!/usr/bin/env python3
"""Paths and commands that the documents quote exist.

In every Markdown file: what stands in `backticks` and looks like a path of this repository exists,
relative to the root, to the document, to src or to include; a bare file name exists somewhere.
A program may be named by its source without .cpp.
Words in capitals are placeholders (`tests/unit/FOLDER`) and match anything. What begins with build/
is made by building. Commands of the form ./NAME, in code blocks too, exist and are executable.
"""

import fnmatch
import os
import re
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SKIPPED_FOLDERS = {".git", "build", ".cache"}
EXTENSIONS = (".hpp", ".cpp", ".h", ".md", ".py", ".sh", ".scd", ".txt", ".json", ".cmake")
# A path has no spaces and none of the signs of options, assignments, URLs and alternatives.
PATH = re.compile(r"^\.{0,2}[\w.*-]*(/[\w.*-]*)*$")
COMMAND = re.compile(r"(?<![\w./])\./([\w.-]+)(?![\w/])")


def tree_of(root):
    """All files and folders, relative to root, folders without a trailing slash."""
    entries = set()
    for path, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in SKIPPED_FOLDERS]
        for name in folders + files:
            entries.add(os.path.relpath(os.path.join(path, name), root))
    return entries


def is_path(quoted, tree):
    """Whether a quoted text claims to be a path of this repository."""
    if not PATH.match(quoted) or quoted.startswith(("/", "build/")):
        return False
    if "/" not in quoted:
        return quoted.endswith(EXTENSIONS)
    first = next((part for part in quoted.split("/") if part not in ("", ".", "..")), "")
    return (quoted.startswith(("./", "../")) or quoted.endswith(EXTENSIONS)
            or first in {entry.split("/")[0] for entry in tree})


def exists(quoted, document, tree):
    bases = ("", os.path.dirname(document), "src", "include")
    if "/" not in quoted:
        bases += tuple(os.path.dirname(entry) for entry in tree)
    for base in bases:
        name = os.path.normpath(os.path.join(base, quoted))
        pattern = re.sub(r"[A-Z]{2,}", "*", name)
        if name in tree or f"{name}.cpp" in tree or any(fnmatch.fnmatchcase(entry, pattern) for entry in tree):
            return True
    return False


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def violations(root):
    """One line for each quoted path or command that does not hold."""
    found = []
    tree = tree_of(root)
    for document in sorted(entry for entry in tree if entry.endswith(".md")):
        text = read(os.path.join(root, document))
        for command in sorted(set(COMMAND.findall(text))):
            path = os.path.join(root, command)
            if not (os.path.isfile(path) and os.access(path, os.X_OK)):
                found.append(f"{document}: ./{command} is no executable file")
        prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
        for quoted in sorted(set(re.findall(r"`([^`\n]+)`", prose))):
            if is_path(quoted, tree) and not exists(quoted, document, tree):
                found.append(f"{document}: `{quoted}` does not exist")
    return found


class PathsTest(unittest.TestCase):
    def check_tree(self, text):
        with tempfile.TemporaryDirectory() as root:
            os.makedirs(os.path.join(root, "src", "base"))
            for name, content in {"README.md": text, "src/base/size.hpp": "", "plain": "",
                                  "run": "#!/bin/sh\n"}.items():
                with open(os.path.join(root, name), "w", encoding="utf-8") as file:
                    file.write(content)
            os.chmod(os.path.join(root, "run"), 0o755)
            return violations(root)

    def test_this_tree_holds(self):
        self.assertEqual(violations(ROOT), [])

    def test_the_readme_names_both_commands(self):
        self.assertLessEqual({"quickstart", "check"},
                             set(COMMAND.findall(read(os.path.join(ROOT, "README.md")))))

    def test_what_exists_passes(self):
        self.assertEqual(self.check_tree("`src/base`, `src/base/size.hpp`, `base/size.hpp`,\n"
                                         "`size.hpp`, `src/FOLDER/size.hpp`, `src/*/size.hpp`,\n"
                                         "`--size N`, `a/b`, `build/release/x`, `/usr/x`, ./run"),
                         [])

    def test_a_missing_path_is_found(self):
        self.assertEqual(self.check_tree("see `src/base/gone` and `src/FOLDER/gone.hpp`"),
                         ["README.md: `src/FOLDER/gone.hpp` does not exist",
                          "README.md: `src/base/gone` does not exist"])

    def test_a_missing_file_name_is_found(self):
        self.assertEqual(self.check_tree("see `gone.hpp`"),
                         ["README.md: `gone.hpp` does not exist"])

    def test_a_missing_command_is_found_in_a_code_block(self):
        self.assertEqual(self.check_tree("```\n./gone --fast\n```\n"),
                         ["README.md: ./gone is no executable file"])

    def test_a_command_that_is_not_executable_is_found(self):
        self.assertEqual(self.check_tree("run ./plain"),
                         ["README.md: ./plain is no executable file"])


if __name__ == "__main__":
    unittest.main()
