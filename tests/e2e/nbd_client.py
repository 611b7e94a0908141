#!/usr/bin/env python3
"""A small NBD client that says exactly what happened, which the usual clients do not.

usage: nbd_client.py SOCKET EXPORT COMMAND ARGUMENT...

  fill OFFSET LENGTH SEED   write random bytes that SEED determines; stops at the first error and
                            prints "BYTES ERROR": how much was written, and OK or the error's name
  check OFFSET LENGTH SEED  read and compare with what fill writes; exit code 1 at a difference
  zero OFFSET LENGTH        read and expect zeroes; exit code 1 at anything else
  touch STEP                read one page at every multiple of STEP; all must be zeroes
  trim OFFSET LENGTH        discard, in requests of at most 1 GiB
  size                      print the export's size
  half OFFSET               send a WRITE of 1 MiB with half of its payload, print "sent" and sleep
  deaf COUNT                send COUNT reads of 1 MiB, print "sent", and sleep without receiving

Sizes are bytes; K, M, G and T may follow. Exit code 3: the connection broke.
"""

import random
import socket
import struct
import sys
import time

BLOCK = 65536
PAGE = 4096
READ, WRITE, DISC, TRIM = 0, 1, 2, 4
ERRORS = {0: "OK", 1: "EPERM", 5: "EIO", 12: "ENOMEM", 22: "EINVAL", 28: "ENOSPC",
          75: "EOVERFLOW", 95: "ENOTSUP", 108: "ESHUTDOWN"}


def size(text):
    """A number with an optional binary unit, in bytes."""
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
    return int(text[:-1]) * units[text[-1]] if text[-1] in units else int(text)


def pattern(seed, offset):
    """The BLOCK bytes that belong at an offset; no two blocks are alike."""
    return random.Random(f"{seed}:{offset}").randbytes(BLOCK)


class Client:
    """One connection, one request at a time. A broken connection raises ConnectionError."""

    def __init__(self, path, export):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.handle = 0
        self.size = self._negotiate(export.encode())

    def _receive(self, length):
        data = bytearray(length)
        view = memoryview(data)
        while view:
            count = self.socket.recv_into(view)
            if count == 0:
                raise ConnectionError("the server closed the connection")
            view = view[count:]
        return data

    def _negotiate(self, name):
        magic, option_magic, flags = struct.unpack(">8s8sH", self._receive(18))
        assert magic == b"NBDMAGIC" and option_magic == b"IHAVEOPT" and flags & 1
        self.socket.sendall(struct.pack(">I", flags & 3))
        body = struct.pack(">I", len(name)) + name + struct.pack(">H", 0)
        self.socket.sendall(struct.pack(">8sII", b"IHAVEOPT", 7, len(body)) + body)
        export_size = None
        while True:
            _, _, kind, length = struct.unpack(">QIII", self._receive(20))
            data = self._receive(length)
            if kind & 0x80000000:
                raise ConnectionError(f"export refused: {data.decode(errors='replace')}")
            if kind == 1:
                return export_size
            if kind == 3 and data[:2] == b"\0\0":
                export_size, = struct.unpack(">Q", data[2:10])

    def send(self, command, offset, length, payload=b""):
        self.handle += 1
        header = struct.pack(">IHHQQI", 0x25609513, 0, command, self.handle, offset, length)
        self.socket.sendall(header + payload)

    def request(self, command, offset, length, payload=b""):
        """Returns the error number and, for a read without one, the data."""
        self.send(command, offset, length, payload)
        magic, error, handle = struct.unpack(">IIQ", self._receive(16))
        assert magic == 0x67446698 and handle == self.handle
        data = self._receive(length) if command == READ and error == 0 else b""
        return error, data

    def read(self, offset, length):
        error, data = self.request(READ, offset, length)
        if error:
            sys.exit(f"read at {offset}: {ERRORS.get(error, error)}")
        return data

    def close(self):
        self.send(DISC, 0, 0)
        self.socket.close()


def blocks(offset, length):
    return range(size(offset), size(offset) + size(length), BLOCK)


def fill(client, offset, length, seed):
    written = 0
    for at in blocks(offset, length):
        error, _ = client.request(WRITE, at, BLOCK, pattern(seed, at))
        if error:
            print(written, ERRORS.get(error, error))
            return
        written += BLOCK
    print(written, "OK")


def check(client, offset, length, seed):
    for at in blocks(offset, length):
        if client.read(at, BLOCK) != pattern(seed, at):
            sys.exit(f"the {BLOCK} bytes at {at} are not what was written")


def zero(client, offset, length):
    for at in blocks(offset, length):
        if client.read(at, BLOCK).count(0) != BLOCK:
            sys.exit(f"the {BLOCK} bytes at {at} are not all zero")


def touch(client, step):
    for at in range(0, client.size, size(step)):
        if client.read(at, PAGE).count(0) != PAGE:
            sys.exit(f"the page at {at} is not all zero")


def trim(client, offset, length):
    at, end = size(offset), size(offset) + size(length)
    while at < end:
        part = min(end - at, 1 << 30)
        error, _ = client.request(TRIM, at, part)
        if error:
            sys.exit(f"trim at {at}: {ERRORS.get(error, error)}")
        at += part


def show_size(client):
    print(client.size)


def sleep_after_sending():
    print("sent", flush=True)
    time.sleep(3600)


def half(client, offset):
    client.send(WRITE, size(offset), 1 << 20, bytes(1 << 19))
    sleep_after_sending()


def deaf(client, count):
    for index in range(int(count)):
        client.send(READ, index << 20, 1 << 20)
    sleep_after_sending()


COMMANDS = {"fill": fill, "check": check, "zero": zero, "touch": touch, "trim": trim,
            "size": show_size, "half": half, "deaf": deaf}


def main(arguments):
    if len(arguments) < 3 or arguments[2] not in COMMANDS:
        sys.exit(__doc__)
    try:
        client = Client(arguments[0], arguments[1])
        COMMANDS[arguments[2]](client, *arguments[3:])
        client.close()
    except OSError as error:
        print(f"nbd_client.py: {error}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
