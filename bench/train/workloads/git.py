"""Writes a history for git fast-import: a tree of small sources and one large one, and commits that
each change a few of them. The process is then told that all is written, and may stay."""
import random
import sys

LINES, COMMITS, CHANGES, LARGE_EVERY = 100, 300, 40, 10

rng = random.Random(4)
out = sys.stdout.buffer
lines = open(sys.argv[1], "rb").read(12 << 20).splitlines(keepends=True)
files = {f"part{at // LINES % 60:02}/source{at // LINES:05}.h": lines[at:at + LINES]
         for at in range(0, len(lines), LINES)}
paths = list(files)
large = lines[:len(lines) // 12]


def put(path, content):
    body = b"".join(content)
    out.write(b"M 100644 inline %s\ndata %d\n%s\n" % (path.encode(), len(body), body))


def change(content, number):
    for at in rng.sample(range(len(content)), min(len(content), 3)):
        content[at] = content[at].replace(b" ", b" v%d_" % number, 1)


for number in range(COMMITS):
    message = b"Change %d: %s" % (number, rng.choice(lines).strip()[:60])
    out.write(b"commit refs/heads/main\ncommitter Trainer <trainer@example.org> %d +0000\ndata %d\n%s\n" %
              (1700000000 + number * 3600, len(message), message))
    for path in rng.sample(paths, CHANGES) if number else paths:
        change(files[path], number)
        put(path, files[path])
    if number % LARGE_EVERY == 0:
        change(large, number)
        put("large.h", large)
out.write(b"checkpoint\nprogress imported\n")
