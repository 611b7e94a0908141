// Objects, maps, closures, typed arrays, buffers and an index of words.
const fs = require('fs');
const [data, ready] = process.argv.slice(2);
const lines = (name) => fs.readFileSync(`${data}/${name}`, 'utf8').split('\n').filter(Boolean);

class Record {
  constructor(f) {
    this.id = +f[0]; this.name = f[1]; this.email = f[2]; this.city = f[3]; this.price = +f[4];
    this.weight = +f[5]; this.date = new Date(f[6]); this.token = BigInt('0x' + f[8]); this.words = f[9].split(' ');
  }
}
const records = lines('records.tsv').slice(0, 30000).map((line) => new Record(line.split('\t')));
const parsed = lines('records.json').slice(0, 20000).map((line) => JSON.parse(line));
const byCity = new Map();
for (const one of records) {
  if (!byCity.has(one.city)) byCity.set(one.city, new Set());
  byCity.get(one.city).add(one);
}
const index = {};
lines('docs.txt').slice(0, 80000).forEach((line, number) => {
  for (const word of line.split(/\W+/)) (index['w' + word] ||= []).push(number);
});
const tree = (depth, at) => depth === 0 ? records[at % records.length]
  : { left: tree(depth - 1, 2 * at), right: tree(depth - 1, 2 * at + 1), depth, weight: at / 3 };
const root = tree(15, 1);
const series = Float64Array.from({ length: 400000 }, (_, at) => Math.sin(at / 70) * 50 + (at % 13));
const counts = Int32Array.from({ length: 400000 }, (_, at) => (at * 7919) % 65536);
const closures = records.slice(0, 8000).map((one) => () => one.price * series[one.id % 1000]);
const source = fs.readFileSync(`${data}/source.txt`).subarray(0, 6 << 20);
const cache = Buffer.from(source);
fs.writeFileSync(ready, '');
setTimeout(() => console.log(parsed.length, root.depth, counts.length, closures.length, cache.length), 600000);
