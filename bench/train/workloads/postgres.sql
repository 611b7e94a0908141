CREATE TEMP TABLE records(id integer PRIMARY KEY, name text, email text, city text, price numeric,
  weight double precision, date date, address inet, token text, note text);
\set copy 'COPY records FROM ' :'records'
:copy;
CREATE INDEX ON records(name, city);
CREATE TEMP TABLE words AS SELECT id, unnest(string_to_array(note, ' ')) AS word FROM records;
ANALYZE;
BEGIN;
DECLARE sorted CURSOR FOR SELECT * FROM records ORDER BY note DESC, price;
FETCH 3 FROM sorted;
DECLARE numbers CURSOR FOR SELECT word, id FROM words ORDER BY id % 1009, word;
FETCH 3 FROM numbers;
SET enable_sort = off;
DECLARE grouped CURSOR FOR SELECT word, count(*), array_agg(id), max(id::float8) FROM words GROUP BY word;
FETCH 3 FROM grouped;
SET enable_mergejoin = off;
SET enable_nestloop = off;
DECLARE joined CURSOR FOR SELECT * FROM words JOIN records USING (id);
FETCH 3 FROM joined;
\! touch "$READY"
SELECT pg_sleep(600);
