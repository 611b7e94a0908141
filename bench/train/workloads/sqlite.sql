CREATE TABLE records(id INTEGER PRIMARY KEY, name TEXT, email TEXT, city TEXT, price REAL, weight REAL, date TEXT, address TEXT, token TEXT, note TEXT);
.mode csv
.import FOLDER/records.csv records
CREATE INDEX by_name ON records(name, city);
CREATE INDEX by_price ON records(price);
CREATE INDEX by_token ON records(token);
CREATE TABLE visits(at INTEGER, record INTEGER REFERENCES records(id), seconds REAL, PRIMARY KEY(at, record)) WITHOUT ROWID;
INSERT INTO visits SELECT 1700000000 + (id * 7919) % 2000000, id, weight * price FROM records;
CREATE VIRTUAL TABLE words USING fts5(note, name);
INSERT INTO words SELECT note, name FROM records WHERE id % 2 = 0;
DELETE FROM records WHERE id % 11 = 0;
UPDATE records SET price = price * 1.07, note = note || ' ' || city WHERE id % 5 = 0;
.shell touch "$READY"
.shell sleep 600
