#!/usr/bin/env python3
"""Includes obey the order of layers in src/README.md.

A file of src/FOLDER includes headers of its own folder and of folders above it in the table, and
of include/uzram what its layer may know. Public headers include only public headers. Folders
missing from the table, and rows without a folder, are violations too.
"""

import os
import re
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Vocabulary for every layer; every other public header describes what the engine implements.
VOCABULARY = {"uzram/error.hpp", "uzram/fifo.hpp", "uzram/request.hpp"}
ENGINE = "engine"
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)
SOURCES = (".cpp", ".hpp", ".h", ".cc", ".c")


def layers_of(readme):
    """The folders of the table, bottom layer first."""
    return re.findall(r"^\| `(\w+)` \|", readme, re.MULTILINE)


def includes_of(text):
    return [quoted or angled for quoted, angled in INCLUDE.findall(text)]


def may_include(folder, header, layers):
    """Whether a file of the layer `folder` may include `header`, a path as it is written."""
    if header.startswith("uzram/"):
        return header in VOCABULARY or layers.index(folder) >= layers.index(ENGINE)
    owner = header.split("/")[0]
    if "/" not in header or owner not in layers:
        return True
    return layers.index(owner) <= layers.index(folder)


def source_files(folder):
    for path, _, names in os.walk(folder):
        for name in sorted(names):
            if name.endswith(SOURCES):
                yield os.path.join(path, name)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def violations(root):
    """One line for each violation in the tree below root."""
    found = []
    source = os.path.join(root, "src")
    layers = layers_of(read(os.path.join(source, "README.md")))
    if ENGINE not in layers:
        return [f"src/README.md: expected a table of layers with a row `{ENGINE}`"]
    for layer in layers:
        if not os.path.isdir(os.path.join(source, layer)):
            found.append(f"src/README.md: there is no folder src/{layer}")
    for folder in sorted(os.listdir(source)):
        files = list(source_files(os.path.join(source, folder)))
        if files and folder not in layers:
            found.append(f"src/{folder}: not in the table of src/README.md")
            continue
        for path in files:
            for header in includes_of(read(path)):
                if not may_include(folder, header, layers):
                    found.append(f"{os.path.relpath(path, root)}: includes {header}")
    for path in source_files(os.path.join(root, "include")):
        for header in includes_of(read(path)):
            if header.split("/")[0] in layers:
                found.append(f"{os.path.relpath(path, root)}: includes {header}")
    return found


class LayersTest(unittest.TestCase):
    def check_tree(self, files):
        table = "| folder | holds |\n|---|---|\n| `base` | x |\n| `engine` | x |\n| `cli` | x |\n"
        with tempfile.TemporaryDirectory() as root:
            for name, text in {"src/README.md": table, "src/base/a.hpp": "",
                               "src/engine/a.hpp": "", "src/cli/a.hpp": "", **files}.items():
                os.makedirs(os.path.dirname(os.path.join(root, name)), exist_ok=True)
                with open(os.path.join(root, name), "w", encoding="utf-8") as file:
                    file.write(text)
            return violations(root)

    def test_this_tree_obeys(self):
        self.assertEqual(violations(ROOT), [])

    def test_downward_includes_and_vocabulary_pass(self):
        text = '#include <vector>\n#include "base/a.hpp"\n#include "uzram/device.hpp"\n'
        self.assertEqual(self.check_tree({"src/engine/b.cpp": text,
                                          "src/base/b.cpp": '#include "uzram/error.hpp"\n'}), [])

    def test_an_upward_include_is_found(self):
        self.assertEqual(self.check_tree({"src/base/b.cpp": '#include "engine/a.hpp"\n'}),
                         ["src/base/b.cpp: includes engine/a.hpp"])

    def test_an_upward_include_in_angle_brackets_is_found(self):
        self.assertEqual(self.check_tree({"src/engine/x/b.hpp": "# include <cli/a.hpp>\n"}),
                         ["src/engine/x/b.hpp: includes cli/a.hpp"])

    def test_the_device_below_the_engine_is_found(self):
        self.assertEqual(self.check_tree({"src/base/b.cpp": '#include "uzram/device.hpp"\n'}),
                         ["src/base/b.cpp: includes uzram/device.hpp"])

    def test_a_public_header_that_includes_a_private_one_is_found(self):
        self.assertEqual(self.check_tree({"include/uzram/b.hpp": '#include "base/a.hpp"\n'}),
                         ["include/uzram/b.hpp: includes base/a.hpp"])

    def test_a_folder_missing_from_the_table_is_found(self):
        self.assertEqual(self.check_tree({"src/more/b.cpp": ""}),
                         ["src/more: not in the table of src/README.md"])


if __name__ == "__main__":
    unittest.main()
