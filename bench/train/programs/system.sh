# shellcheck shell=bash
# shellcheck disable=SC2154 # variables that collect sets
# Sourced by collect: daemons, tools of every day and a whole machine.

# names_of COUNT FORMAT: with the number and the name of a package.
names_of() {
  sed -n 's/^Package: //p' "$data/packages.txt" | awk '!seen[$0]++' |
    awk -v count="$1" -v format="$2" 'NR <= count { printf format "\n", $0, NR % 250, NR % 61, NR }'
}

start_nginx() {
  {
    printf 'daemon off; master_process off; user root; pid %s; error_log stderr;\n' "$work/home/nginx.pid"
    printf 'events {}\nhttp {\n  access_log off; map_hash_max_size 65536; map_hash_bucket_size 256; types_hash_max_size 4096;\n'
    # shellcheck disable=SC2016 # nginx's variables
    printf '  include /etc/nginx/mime.types;\n  map $uri $moved {\n'
    names_of 12000 '    /pool/%s/%d "/archive/%d/%d.html";'
    printf '  }\n  server {\n    listen unix:%s;\n' "$work/home/nginx.sock"
    names_of 1500 '    location /%s/ { add_header X-Part "%d-%d"; return 200 "page %d"; }'
    printf '  }\n}\n'
  } >"$work/home/nginx.conf"
  start nginx -c "$work/home/nginx.conf" -p "$work/home"
}

start_resolvers() {
  {
    printf 'server:\n  chroot: ""\n  username: ""\n  pidfile: ""\n  use-syslog: no\n  num-threads: 1\n'
    printf '  interface: 127.0.0.1@5353\n  directory: "%s"\nremote-control:\n  control-enable: no\nserver:\n' "$work/home"
    names_of 12000 '  local-data: "%s.example.org. 3600 IN A 10.1.%d.%d"'
  } >"$work/home/unbound.conf"
  start unshare --net unbound -d -p -c "$work/home/unbound.conf"
  names_of 20000 '%s.example.net 10.2.%d.%d' | awk '{ print $2, $1 }' >"$work/home/hosts"
  start unshare --net dnsmasq --keep-in-foreground --conf-file=/dev/null --no-resolv --port=5354 \
    --user=root --pid-file= --addn-hosts="$work/home/hosts" --cache-size=5000
}

# Its queue fills, as the server it should send to cannot be reached.
start_rsyslog() {
  cat >"$work/home/rsyslog.conf" <<END
module(load="imuxsock" SysSock.Use="off")
input(type="imuxsock" Socket="$work/home/log.sock" RateLimit.Interval="0")
action(type="omfwd" Target="127.0.0.1" Port="9" Protocol="tcp" action.resumeRetryCount="-1"
  queue.type="LinkedList" queue.size="100000")
END
  start unshare --net rsyslogd -n -i "$work/home/rsyslog.pid" -f "$work/home/rsyslog.conf"
  wait_until 20 test -S "$work/home/log.sock"
  head -n 8000 "$data/records.tsv" | cut -f 2,4,8,10 |
    logger --socket "$work/home/log.sock" --tag session --priority daemon.info
}

start_small_daemons() {
  start dbus-daemon --session --nofork --nopidfile --address="unix:path=$work/home/bus"
  ssh-keygen -q -t ed25519 -N '' -f "$work/home/key"
  mkdir -p /run/sshd
  start unshare --net /usr/sbin/sshd -D -e -f /dev/null -p 2222 -h "$work/home/key" -o PidFile=none
  # With a /run of its own, to leave alone the journal of this machine.
  start unshare --mount sh -c "mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/journal &&
    exec /lib/systemd/systemd-journald"
}

program_daemons() {
  start_nginx
  start_resolvers
  start_rsyslog
  start_small_daemons
  sleep 5
  sample
}

# git_stopped_after SIZE COMMAND...: the command, kept from ending by output that is not read further.
# Where it stops does not depend on the machine's speed.
git_stopped_after() {
  local size=$1 reached=$work/home/reached.$2
  shift
  # shellcheck disable=SC2016 # of the inner shell
  start sh -c 'size=$1 reached=$2; shift 2
    git "$@" | { head -c "$size" >/dev/null; : >"$reached"; exec sleep 600; }' sh "$size" "$reached" "$@"
  wait_until 90 test -e "$reached"
}

# Tables of objects, deltas and their bases: what git holds when it serves, packs and imports.
program_git() {
  local history=$work/home/history
  git init -q --bare -b main "$work/home/repository"
  cd "$work/home/repository" || return
  /usr/bin/python3 "$here/workloads/git.py" "$data/source.txt" >"$history"
  start sh -c "{ cat '$history'; exec sleep 600; } | git fast-import --quiet"
  wait_until 90 grep -q '^progress imported' "$work/log"
  git_stopped_after 1 pack-objects --all --stdout --no-reuse-delta --threads=1
  git_stopped_after 400K rev-list --objects --all
  # In the order of their names, so that bases of deltas are kept.
  git_stopped_after 30M cat-file --batch --batch-all-objects
  sample
}

# Their windows and tables of matches; a list of files.
program_archivers() {
  local command
  for command in 'gzip -9' 'bzip2 -9' 'zstd -q -12 -T1' 'xz -5 -T1' 'zstd -q -19 -T1'; do
    start sh -c "exec $command -c '$data/packages.txt' >/dev/null"
    run_for 1
  done
  start tar -C / -c --sort=name -f /dev/null usr/share usr/include usr/lib
  run_for 1
  mkdir "$work/home/empty"
  start rsync -an --no-inc-recursive /usr/share /usr/include /usr/lib "$work/home/empty"
  run_for 2
  sample
}

# --- a guest ---

# What the guest runs: file systems in memory, and a few processes that sort and count text.
write_guest_init() {
  cat <<'INIT'
#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs -o size=60% tmp /tmp
cd /tmp
mkdir packages
split -l 400 /data/packages.txt packages/part
tar -c packages | gzip -1 >packages.tar.gz
for part in packages/*[aeiou]; do cp "$part" "$part.copy"; done
sort /data/docs.txt >sorted &
awk '{ for (i = 1; i <= NF; i++) count[$i]++ } END { for (word in count) print count[word], word
  system("sleep 1000") }' /data/docs.txt >words &
sleep 25
echo ready >/dev/ttyS0
while true; do find / -xdev >list 2>/dev/null; sort -r list >reversed; sleep 1; done
INIT
}

# kernel.sh is that of tests/guest, which finds the kernel and keeps it.
guest_kernel() {
  # shellcheck disable=SC2034 # of kernel.sh
  cache=${UZRAM_GUEST_CACHE:-${XDG_CACHE_HOME:-$real_home/.cache}/uzram/guest}
  # shellcheck source=../../../tests/guest/kernel.sh
  source "$root/tests/guest/kernel.sh"
  mkdir -p "$cache"
  prepare_kernel linux-image-6.12-amd64
}

program_guest() {
  local tree=$work/home/tree
  guest_kernel
  mkdir -p "$tree"/{bin,data,dev,proc,sys,tmp}
  cp "$(command -v busybox)" "$tree/bin/busybox"
  head -c 12M "$data/packages.txt" >"$tree/data/packages.txt"
  head -c 6M "$data/docs.txt" >"$tree/data/docs.txt"
  write_guest_init >"$tree/init"
  chmod 755 "$tree/init"
  (cd "$tree" && find . | cpio -o -H newc --quiet) >"$work/home/initrd"
  start qemu-system-x86_64 -m 384M -display none -monitor none -nodefaults -no-reboot -cpu max \
    -kernel "$kernel_dir/vmlinuz" -initrd "$work/home/initrd" -append 'console=ttyS1 quiet' \
    -serial "file:$work/home/said" -serial null
  wait_until 120 test -s "$work/home/said"
  sample
}
