"""Objects, dictionaries, sets, a heap, a parsed tree and arrays of numbers."""
import ast
import collections
import heapq
import json
import pathlib
import sys
import time

import numpy

data, ready = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])


class Record:
    def __init__(self, fields):
        self.number, self.name, self.mail, self.city = int(fields[0]), *fields[1:4]
        self.price, self.weight, self.note = float(fields[4]), float(fields[5]), fields[9].split()


lines = (data / "records.tsv").read_text(encoding="utf-8").splitlines()
records = [Record(line.split("\t")) for line in lines[:25000]]
by_city = collections.defaultdict(list)
for record in records:
    by_city[record.city].append(record)
parsed = [json.loads(line) for line in open(data / "records.json", encoding="utf-8")][::4]
index = collections.defaultdict(list)
text = (data / "docs.txt").read_text(encoding="utf-8", errors="replace")[:6 << 20]
for place, word in enumerate(text.split()):
    index[word].append(place)
pairs = collections.Counter(zip(text.split()[:150000], text.split()[1:150001]))
heap = [(record.price, record.number) for record in records]
heapq.heapify(heap)
packages = [dict(line.split(": ", 1) for line in part.splitlines() if ": " in line)
            for part in (data / "packages.txt").read_text(encoding="utf-8").split("\n\n")[:6000]]
trees = [ast.parse(path.read_text()) for path in sorted(pathlib.Path(json.__file__).parent.parent.glob("*.py"))[:25]]
random = numpy.random.default_rng(1)
prices = numpy.array([record.price for record in records])
walk = numpy.cumsum(random.normal(size=700000))
table = numpy.sort(random.integers(0, 1 << 20, 500000)).astype(numpy.int32)
matrix = numpy.outer(prices[:600], numpy.arange(600, dtype=numpy.float32)).astype(numpy.float32)
image = (128 + 60 * numpy.sin(numpy.add.outer(numpy.arange(900), numpy.arange(900)) / 40)).astype(numpy.uint8)
ready.touch()
time.sleep(600)
