#!/usr/bin/env python3
"""Adds up the JUnit files that ctest --output-junit wrote.

Arguments: the files. Output: one line for each failed or skipped test, then "P F S": the numbers of
tests passed, failed and skipped. A failed test's line is followed by the end of what it printed,
indented; a skipped test's line ends with the reason the test printed.
Exit code 2 when a file cannot be read or is not what ctest writes.
"""

import re
import sys
import xml.etree.ElementTree as ElementTree


# How much of a failed test's output is shown.
SHOWN_LINES = 40


def skip_reason(case):
    """The reason a test gave: what it printed after SKIPPED:, or GoogleTest's message."""
    output = case.findtext("system-out") or ""
    given = re.search(r"^SKIPPED: (.*)$", output, re.MULTILINE)
    if given:
        return given.group(1)
    # GoogleTest prints "FILE:LINE: Skipped", the message, and only then the "[  SKIPPED ]" line.
    given = re.search(r": Skipped\n(.*?)\n*\[  SKIPPED \]", output, re.DOTALL)
    if given and given.group(1).strip():
        return " ".join(given.group(1).split())
    skipped = case.find("skipped")
    return skipped.get("message", "") if skipped is not None else ""


def classify(case):
    """One of passed, failed, skipped for a testcase element."""
    status = case.get("status")
    if status == "run" and case.find("failure") is None:
        return "passed"
    if status in ("notrun", "disabled") and case.find("failure") is None:
        # ctest also reports a program that is missing as notrun; that is no skip.
        message = skip_reason(case)
        return "failed" if "Unable to find" in message else "skipped"
    return "failed"


def parse(name):
    """The root element of a file; bytes that XML does not allow, as tests may print, are dropped."""
    with open(name, encoding="utf-8", errors="replace") as file:
        text = re.sub("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "", file.read())
    # A declaration of the encoding is refused in text that is decoded already.
    return ElementTree.fromstring(re.sub(r"^<\?xml[^>]*\?>", "", text))


def main(files):
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for name in files:
        try:
            root = parse(name)
        except (OSError, ElementTree.ParseError) as error:
            print(f"sum_junit.py: {name}: {error}", file=sys.stderr)
            return 2
        if root.tag != "testsuite":
            print(f"sum_junit.py: {name}: expected <testsuite>, found <{root.tag}>", file=sys.stderr)
            return 2
        for case in root.iter("testcase"):
            verdict = classify(case)
            counts[verdict] += 1
            if verdict == "failed":
                print(f"failed: {case.get('name')}")
                output = (case.findtext("system-out") or "").splitlines()
                for line in output[-SHOWN_LINES:]:
                    print(f"    {line}")
            elif verdict == "skipped":
                print(f"skipped: {case.get('name')}: {skip_reason(case)}")
    print(counts["passed"], counts["failed"], counts["skipped"])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
