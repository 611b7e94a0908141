# shellcheck shell=bash
# shellcheck disable=SC2154 # variables that collect sets
# Sourced by collect: databases. Servers listen on sockets in the work folder only.

program_redis() {
  local socket=$work/redis.sock
  start redis-server --save '' --port 0 --unixsocket "$socket" --dir "$work/home" --loglevel warning
  wait_until 20 test -S "$socket"
  redis-cli -s "$socket" --pipe <"$data/records.redis"
  sample
}

program_memcached() {
  local socket=$work/memcached.sock
  start memcached -u root -m 256 -s "$socket" -t 1
  wait_until 20 test -S "$socket"
  /usr/bin/python3 "$here/workloads/memcached.py" "$data" "$socket"
  sample
}

program_sqlite() {
  sed "s,FOLDER,$data," "$here/workloads/sqlite.sql" >"$work/home/sqlite.sql"
  READY=$work/ready start sqlite3 :memory: ".read $work/home/sqlite.sql"
  wait_ready
  sample
}

# as_postgres COMMAND...: the server refuses to run as root. Without a new process, as runuser has one.
as_postgres=(setpriv --reuid postgres --regid postgres --clear-groups)

# Its shared buffers are shared, and no part of a sample: what counts are the backend's sorts, hashes
# and temporary tables.
program_postgres() {
  local bin folder=$work/postgres
  bin=$(find /usr/lib/postgresql -name initdb -printf '%h\n' 2>/dev/null | sort -V | tail -n 1)
  [[ -n $bin ]] || skip 'postgresql is not installed'
  rm -rf "$folder"
  install -d -o postgres -g postgres -m 700 "$folder"
  HOME=$folder "${as_postgres[@]}" "$bin/initdb" -D "$folder/data" -E UTF8 --locale=C.UTF-8 -A trust >>"$work/log"
  HOME=$folder start "${as_postgres[@]}" "$bin/postgres" -D "$folder/data" -k "$folder" -h '' \
    -c fsync=off -c work_mem=256MB -c temp_buffers=64MB -c shared_buffers=16MB
  wait_until 20 test -S "$folder/.s.PGSQL.5432"
  READY=$work/ready start_helper psql -h "$folder" -U postgres -v ON_ERROR_STOP=1 \
    -v "records=$data/records.tsv" -f "$here/workloads/postgres.sql" postgres
  wait_ready
  sample
}

program_mariadb() {
  local folder=$work/mariadb socket=$work/mariadb.sock
  command -v mariadb-install-db >/dev/null || skip 'mariadb-install-db is not installed'
  rm -rf "$folder"
  mariadb-install-db --no-defaults --user=root --datadir="$folder" --skip-test-db >>"$work/log" 2>&1
  start mariadbd --no-defaults --user=root --datadir="$folder" --socket="$socket" --skip-networking \
    --innodb-buffer-pool-size=96M --innodb-flush-log-at-trx-commit=0 --local-infile=1 \
    --max-heap-table-size=256M --tmp-table-size=256M --pid-file="$folder/pid"
  wait_until 30 test -S "$socket"
  sed "s,RECORDS,$data/records.tsv," "$here/workloads/mariadb.sql" |
    mariadb --no-defaults -u root -S "$socket" --local-infile=1
  sample
}
