"""Generates what the programs of bench/train work on, the same in every run: records (as TSV, JSON,
CSV, Redis' protocol), sources to compile, pages to browse, documents and drawings. Words are those of
docs.txt, which collect has put into the folder that is the only argument."""

import json
import math
import os
import random
import re
import struct
import sys
import zlib

RECORDS = 60000
FIRST = ("Ada Alan Anita Barbara Bjarne Chen Dmitri Edsger Elena Fatima Frances Grace Haruki Ines Ivan "
         "James Jean John Katherine Ken Leslie Linus Margaret Maria Mei Niklaus Olga Peter Radia Rosa "
         "Sanjay Tim Tomasz Ursula Wei Yukihiro Zoe").split()
LAST = ("Allen Backus Borg Cerf Dijkstra Estrin Fernandez Goldberg Hamilton Hopper Ivanova Jensen Kay "
        "Knuth Lamport Liskov Lovelace McCarthy Nakamura Okafor Perlman Ritchie Rossi Schmidt Stroustrup "
        "Tanaka Thompson Torvalds Turing Wang Wirth Yilmaz Zuse").split()
CITIES = ("Amsterdam Berlin Bologna Boston Delhi Dublin Helsinki Kyiv Lagos Lisboa London Madrid "
          "Montréal München Nairobi Osaka Oslo Paris Praha Santiago Seoul Sydney Tallinn Zürich").split()
FIELDS = "id name email city price weight date address token note".split()


def words_of(text):
    return re.findall(r"[A-Za-z][a-z]{2,14}", text)


def make_records(rng, words):
    for number in range(RECORDS):
        first, last = rng.choice(FIRST), rng.choice(LAST)
        at = rng.randrange(len(words) - 20)
        yield [1000000 + number * 3 + rng.randrange(3), f"{first} {last}",
               f"{first}.{last}{number % 97}@example.org".lower(), rng.choice(CITIES),
               round(rng.lognormvariate(3, 1), 2), round(rng.gauss(70, 12), 1),
               f"20{rng.randrange(10, 27):02}-{rng.randrange(1, 13):02}-{rng.randrange(1, 29):02}",
               f"10.{rng.randrange(8)}.{rng.randrange(256)}.{rng.randrange(256)}",
               f"{rng.getrandbits(64):016x}", " ".join(words[at:at + rng.randrange(4, 20)])]


def write(folder, name, parts):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.writelines(parts)


def redis_command(*parts):
    """Of Redis' protocol, as redis-cli --pipe takes it."""
    encoded = [str(part) for part in parts]
    return f"*{len(encoded)}\r\n" + "".join(f"${len(part.encode())}\r\n{part}\r\n" for part in encoded)


def redis_commands(records):
    for record in records:
        fields = dict(zip(FIELDS, record))
        key = f"user:{fields['id']}"
        yield redis_command("HSET", key, *[part for field in fields.items() for part in field])
        yield redis_command("ZADD", "by-price", fields["price"], key)
        yield redis_command("SADD", f"city:{fields['city']}", fields["id"])
        yield redis_command("RPUSH", f"day:{fields['date']}", fields["note"])
        if fields["id"] % 4 == 0:
            yield redis_command("SET", f"session:{fields['token']}", json.dumps(fields), "EX", 86400)
        if fields["id"] % 8 == 0:
            yield redis_command("XADD", "events", f"{fields['id']}-1", "ip", fields["address"], "w",
                                fields["weight"])


def c_source(rng, words, count):
    """Functions of switches, loops and calls over a few structures."""
    yield "".join(f"#include <{name}.h>\n" for name in
                  "stdio stdlib string math errno signal pthread sys/socket netinet/in".split())
    for number in range(count):
        word = rng.choice(words).lower()
        fields = rng.randrange(3, 9)
        members = "".join(f"  {rng.choice(['int', 'double', 'char *', 'unsigned long'])} field_{at};\n"
                          for at in range(fields))
        yield f"struct {word}_{number} {{\n  int count;\n{members}  struct {word}_{number} *next;\n}};\n"
        cases = "".join(f"    case {rng.randrange(at * 10, at * 10 + 9)}: total += "
                        f"item->count * {rng.randrange(1, 99)}; break;\n" for at in range(rng.randrange(2, 12)))
        call = f"  total += run_{rng.randrange(number)}(0, size / 2);\n" if number else ""
        yield (f"int run_{number}(void *data, int size) {{\n  struct {word}_{number} *item = data;\n"
               f"  int total = {rng.randrange(1000)};\n  for (; item; item = item->next) {{\n"
               f"    switch (item->count & 127) {{\n{cases}    default: printf(\"{word} %d\\n\", total);\n"
               f"    }}\n    for (int at = 0; at < size; at++) total ^= at * {rng.randrange(3, 77)};\n  }}\n"
               f"{call}  return total;\n}}\n")


def cxx_source(rng, words, count):
    """Instances of containers, variants, ranges and a class hierarchy of templates."""
    yield "".join(f"#include <{name}>\n" for name in
                  "algorithm any chrono functional future iostream map memory optional random ranges "
                  "regex set sstream string tuple unordered_map variant vector".split())
    yield """template <int N, typename T> struct node : node<N - 1, T> {
  std::map<std::string, std::vector<T>> index; std::unordered_map<int, std::set<T>> seen;
  virtual std::size_t add(const std::string& key, const T& value) {
    index[key].push_back(value); seen[N].insert(value);
    return index.size() + node<N - 1, T>::add(key, value); } };
template <typename T> struct node<0, T> { virtual ~node() = default;
  virtual std::size_t add(const std::string&, const T&) { return 0; } };
"""
    for number in range(count):
        word = f"{rng.choice(words).lower()}_{number}"
        depth = rng.randrange(2, 7)
        yield f"""struct {word} {{ int id = {rng.randrange(9999)}; std::string text = "{rng.choice(words)}";
  double weight = {rng.random():.6f}; auto operator<=>(const {word}&) const = default; }};
using any_{word} = std::variant<int, std::string, {word}, std::vector<{word}>>;
std::size_t use_{word}(const std::vector<{word}>& items) {{
  node<{depth}, {word}> tree; std::size_t total = 0;
  for (const auto& item : items | std::views::filter([](const auto& one) {{ return one.id > {rng.randrange(99)}; }}))
    total += tree.add(item.text, item);
  std::vector<any_{word}> all(items.begin(), items.end());
  for (const auto& one : all) total += std::visit([](const auto& value) {{ return sizeof(value); }}, one);
  auto sorted = items; std::ranges::sort(sorted, {{}}, &{word}::weight);
  std::function<bool(const {word}&)> test = [&](const {word}& one) {{
    return std::regex_search(one.text, std::regex("{rng.choice(words)}.*")); }};
  return total + std::ranges::count_if(sorted, test); }}
"""


def rust_source(rng, words, count):
    yield "use std::collections::{BTreeMap, HashMap, HashSet};\nuse std::fmt::Debug;\n"
    yield """pub trait Shape: Debug { fn area(&self) -> f64; fn name(&self) -> String; }
pub fn total<T: Shape>(all: &[T]) -> f64 { all.iter().map(|one| one.area()).sum() }
"""
    for number in range(count):
        word = f"{rng.choice(words).capitalize()}{number}"
        yield f"""#[derive(Debug, Clone, PartialEq)]
pub struct {word} {{ pub id: u32, pub text: String, pub sizes: Vec<f64>, pub more: Option<Box<{word}>> }}
impl Shape for {word} {{
    fn area(&self) -> f64 {{ self.sizes.iter().fold({rng.random():.4f}, |a, b| a * b) }}
    fn name(&self) -> String {{ format!("{rng.choice(words)} {{}} {{:?}}", self.id, self.more) }} }}
pub fn use_{number}(all: &[{word}]) -> HashMap<String, BTreeMap<u32, {word}>> {{
    let mut found: HashMap<String, BTreeMap<u32, {word}>> = HashMap::new();
    let seen: HashSet<u32> = all.iter().map(|one| one.id % {rng.randrange(3, 99)}).collect();
    for one in all.iter().filter(|one| seen.contains(&one.id) || total(all) > {rng.random() * 100:.3f}) {{
        found.entry(one.name()).or_default().insert(one.id, one.clone()); }}
    let mut sorted: Vec<_> = all.iter().map(|one| (one.text.clone(), one.id)).collect();
    sorted.sort(); println!("{{:?}}", sorted); found }}
"""
    yield "fn main() {}\n"


def png(rng, width, height):
    """A photograph of sorts: smooth colours, an edge and some grain."""
    a, b, edge = rng.uniform(20, 90), rng.uniform(20, 90), rng.uniform(0.3, 0.7) * height
    rows = []
    for y in range(height):
        row = bytearray(b"\0")
        for x in range(width):
            light = 90 if y + 20 * math.sin(x / a) > edge else 0
            row += bytes((int(80 + 60 * math.sin(x / a) + light * 0.5 + rng.random() * 6),
                          int(100 + 50 * math.cos(y / b) + light * 0.2 + rng.random() * 6),
                          int(140 + 40 * math.sin((x + y) / b) - light + rng.random() * 6)))
        rows.append(bytes(row))

    def chunk(kind, body):
        return (struct.pack(">I", len(body)) + kind + body +
                struct.pack(">I", zlib.crc32(kind + body)))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(b"".join(rows), 6)) + chunk(b"IEND", b""))


def escaped(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")


def html_page(paragraphs, records, images, script):
    yield ("<!doctype html><meta charset=utf-8><title>Records</title><style>body{font:15px serif;"
           "margin:2em} table{border-collapse:collapse} td{border:1px solid #ccc;padding:2px 6px} "
           "p:nth-child(3n){column-count:2;color:#335} .card{float:left;box-shadow:2px 2px 5px #888;"
           "border-radius:6px;margin:4px;padding:8px;width:14em}</style>\n")
    for number, text in enumerate(paragraphs):
        yield f"<h3 id=s{number}>Section {number}</h3><p>{escaped(text)}</p>\n"
        if number % 40 == 0:
            yield f"<img src={images[number // 40 % len(images)]} width=400 loading=eager>\n"
    yield "<table>"
    for record in records[:3000]:
        yield "<tr>" + "".join(f"<td>{escaped(str(value))}</td>" for value in record) + "</tr>\n"
    yield "</table>"
    for record in records[3000:4000]:
        yield f"<div class=card><b>{record[1]}</b><br><a href='mailto:{record[2]}'>{record[2]}</a></div>\n"
    yield f"<canvas id=c width=900 height=600></canvas><script>{script}</script>\n"


SCRIPT = """
const rows = [...document.querySelectorAll('tr')].map(row => ({
  id: +row.cells[0].innerText, name: row.cells[1].innerText, price: +row.cells[4].innerText,
  words: row.cells[9].innerText.split(' ')}));
const index = new Map();
for (const row of rows) for (const word of row.words) {
  if (!index.has(word)) index.set(word, []);
  index.get(word).push(row);
}
const series = Float64Array.from({length: 200000}, (_, i) => Math.sin(i / 50) * 100 + i % 17);
const history = rows.map((row, i) => ({...row, at: new Date(1.6e12 + i * 6e4), tags: new Set(row.words)}));
const c = document.getElementById('c').getContext('2d');
rows.forEach((row, i) => { c.fillStyle = `hsl(${row.id % 360} 60% 50%)`;
  c.fillRect(i % 900, 600 - row.price, 3, row.price); });
c.fillText(`${index.size} words`, 20, 20);
"""


def flat_document(paragraphs, records):
    """A text document of OpenDocument in one file."""
    yield ('<?xml version="1.0" encoding="UTF-8"?><office:document office:version="1.2" '
           'office:mimetype="application/vnd.oasis.opendocument.text" '
           'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
           'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" '
           'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"><office:body><office:text>')
    for number, text in enumerate(paragraphs):
        if number % 12 == 0:
            yield f'<text:h text:outline-level="{1 + number // 12 % 3}">Section {number}</text:h>\n'
        yield f"<text:p>{escaped(text)}</text:p>\n"
    yield '<table:table><table:table-column table:number-columns-repeated="6"/>'
    for record in records[:800]:
        yield "<table:table-row>" + "".join(
            f"<table:table-cell><text:p>{escaped(str(value))}</text:p></table:table-cell>"
            for value in record[:6]) + "</table:table-row>\n"
    yield "</table:table></office:text></office:body></office:document>\n"


def drawing(rng, records):
    yield ('<svg xmlns="http://www.w3.org/2000/svg" width="2000" height="2000"><defs>'
           '<linearGradient id="g"><stop offset="0" stop-color="#369"/><stop offset="1" '
           'stop-color="#fc6"/></linearGradient></defs>\n')
    for number, record in enumerate(records[:2500]):
        x, y = rng.uniform(0, 1900), rng.uniform(0, 1900)
        curve = " ".join(f"{rng.gauss(x, 40):.2f},{rng.gauss(y, 40):.2f}" for _ in range(9))
        fill = "url(#g)" if number % 9 == 0 else f"#{rng.getrandbits(24):06x}"
        yield (f'<g id="g{number}" transform="rotate({rng.uniform(0, 360):.1f} {x:.1f} {y:.1f})">'
               f'<path d="M {x:.2f},{y:.2f} C {curve} Z" fill="{fill}" stroke="#333" opacity="0.7"/>'
               f'<text x="{x:.1f}" y="{y:.1f}" font-size="9">{escaped(record[1])}</text></g>\n')
    yield "</svg>\n"


def main():
    folder = sys.argv[1]
    rng = random.Random(1)
    with open(os.path.join(folder, "docs.txt"), encoding="utf-8", errors="replace") as file:
        docs = file.read()
    words = words_of(docs[:8 << 20])
    paragraphs = [" ".join(part.split()) for part in docs[:6 << 20].split("\n\n")]
    paragraphs = [part for part in paragraphs if 200 < len(part) < 3000]
    paragraphs = [part for part in paragraphs if part.isprintable()]
    records = list(make_records(rng, words))
    write(folder, "records.tsv", ("\t".join(map(str, record)) + "\n" for record in records))
    write(folder, "records.csv", (",".join(map(str, record)) + "\n" for record in records))
    write(folder, "sheet.csv", (",".join(map(str, record)) + "\n" for record in records[:20000]))
    write(folder, "records.json",
          (json.dumps(dict(zip(FIELDS, record)), ensure_ascii=False) + "\n" for record in records))
    write(folder, "records.redis", redis_commands(records[:40000]))
    write(folder, "source.c", c_source(rng, words, 6000))
    write(folder, "source.cpp", cxx_source(rng, words, 250))
    write(folder, "source.rs", rust_source(rng, words, 1000))
    images = [f"image{number}.png" for number in range(6)]
    for number, name in enumerate(images):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(png(rng, 480 + 40 * number, 360))
    half = len(paragraphs) // 2
    write(folder, "chromium.html", html_page(paragraphs[:half][:1500], records, images, SCRIPT))
    write(folder, "firefox.html", html_page(paragraphs[half:][:1500], records[20000:], images[3:], SCRIPT))
    write(folder, "document.fodt", flat_document(paragraphs[-2500:], records))
    write(folder, "drawing.svg", drawing(rng, records))


main()
