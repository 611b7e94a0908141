"""Fills a memcached as the sites that use it do: rows, pages, counters and sessions."""
import json
import pathlib
import pickle
import socket
import sys

data = pathlib.Path(sys.argv[1])
server = socket.socket(socket.AF_UNIX)
server.connect(sys.argv[2])


def put(key, value):
    server.sendall(b"set %s 0 0 %d noreply\r\n%s\r\n" % (key.encode(), len(value), value))


paragraphs = (data / "docs.txt").read_text(encoding="utf-8", errors="replace")[:8 << 20].split("\n\n")
for number, line in enumerate(open(data / "records.json", encoding="utf-8")):
    row = json.loads(line)
    put(f"row:{row['id']}", line.encode())
    put(f"count:{row['id']}", str(number * 37 % 10007).encode())
    if number % 3 == 0:
        put(f"session:{row['token']}", pickle.dumps({"user": row["name"], "cart": [row["price"]] * (number % 9),
                                                     "seen": row["note"].split()}))
    if number % 8 == 0:
        text = paragraphs[number // 8 % len(paragraphs)]
        put(f"page:{number}", f"<html><body><h1>{row['name']}</h1><p>{text}</p></body></html>".encode())
server.sendall(b"version\r\n")
server.recv(100)
