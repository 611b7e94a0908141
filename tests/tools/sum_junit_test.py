#!/usr/bin/env python3
"""sum_junit.py counts what ctest writes."""

import contextlib
import io
import os
import tempfile
import unittest

import sum_junit

GTEST_SKIP = "[ RUN ]\na_test.cpp:2: Skipped\nthis machine has no zram\n[  SKIPPED ] A.b (0 ms)\n"


def case(name, status, inner="", output=""):
    return (f'<testcase name="{name}" status="{status}">{inner}'
            f"<system-out>{output}</system-out></testcase>")


class SumJunitTest(unittest.TestCase):
    def run_on(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "results.xml")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            output = io.StringIO()
            with contextlib.redirect_stdout(output), contextlib.redirect_stderr(io.StringIO()):
                status = sum_junit.main([path])
        return status, output.getvalue().splitlines()

    def run_on_cases(self, *cases):
        return self.run_on('<?xml version="1.0" encoding="UTF-8"?>\n<testsuite>'
                           + "".join(cases) + "</testsuite>")

    def test_each_verdict_is_counted(self):
        status, lines = self.run_on_cases(
            case("good", "run", "", "fine"), case("good2", "run"),
            case("bad", "fail", "<failure/>", "first\nsecond\n"),
            case("skip", "notrun", '<skipped message="SKIP_RETURN_CODE=77"/>',
                 "SKIPPED: no loop device\n"))
        self.assertEqual(status, 0)
        self.assertEqual(lines, ["failed: bad", "    first", "    second",
                                 "skipped: skip: no loop device", "2 1 1"])

    def test_the_reason_of_a_googletest_skip_is_found(self):
        _, lines = self.run_on_cases(case("A.b", "notrun", "<skipped/>", GTEST_SKIP))
        self.assertEqual(lines, ["skipped: A.b: this machine has no zram", "0 0 1"])

    def test_a_missing_program_is_a_failure_not_a_skip(self):
        _, lines = self.run_on_cases(
            case("a", "notrun", '<skipped message="Unable to find executable"/>'))
        self.assertEqual(lines, ["failed: a", "0 1 0"])

    def test_bytes_that_xml_does_not_allow_are_dropped(self):
        status, lines = self.run_on_cases(case("a", "run", "", "\x01\x1b[0m"))
        self.assertEqual((status, lines), (0, ["1 0 0"]))

    def test_what_ctest_does_not_write_is_refused(self):
        self.assertEqual(self.run_on("<html/>")[0], 2)
        self.assertEqual(self.run_on("no XML")[0], 2)


if __name__ == "__main__":
    unittest.main()
