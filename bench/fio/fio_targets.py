"""What fio is run against: a block device, held exclusively, or an export of an NBD server."""

import errno
import fcntl
import os
import re
import socket
import stat
import struct
import urllib.parse

from fio_results import FioError, Memory, Usage

BLKDISCARD = 0x1277


class BlockDevice:
    """Opened exclusively, so that nobody mounts it meanwhile and nothing that is mounted, swapped
    on or held by another driver is opened at all."""

    def __init__(self, path):
        self.given = path
        try:
            self._fd = os.open(path, os.O_RDWR | os.O_EXCL | os.O_CLOEXEC)
        except OSError as error:
            hint = ("; it is mounted, swapped on or held by another driver, expected one that is "
                    "free" if error.errno == errno.EBUSY else "")
            raise FioError(f'"{path}": {error.strerror}{hint}') from error
        if not stat.S_ISBLK(os.fstat(self._fd).st_mode):
            os.close(self._fd)
            raise FioError(f'"{path}": expected a block device or an NBD URI')
        self.size_bytes = os.lseek(self._fd, 0, os.SEEK_END)
        self._folder = os.path.join("/sys/block", os.path.basename(os.path.realpath(path)))

    def close(self):
        os.close(self._fd)

    def option(self):
        # In a file name fio takes a colon for the end of a name.
        return "filename=" + self.given.replace(":", "\\:")

    def engine(self, engine):
        return engine

    def empty(self, _run_fio, size_bytes):
        """Discards the first `size_bytes`; False when it cannot."""
        try:
            fcntl.ioctl(self._fd, BLKDISCARD, struct.pack("QQ", 0, size_bytes))
        except OSError:
            return False
        try:
            # zram measures its peak from here on.
            with open(os.path.join(self._folder, "mem_used_max"), "w", encoding="ascii") as file:
                file.write("0")
        except OSError:
            pass
        return True

    def algorithm(self):
        """Of a zram device: the one in brackets; empty for others."""
        found = re.search(r"\[(\S+)\]", self._attribute("comp_algorithm"))
        return found.group(1) if found else ""

    def memory(self):
        numbers = [int(number) for number in self._attribute("mm_stat").split()]
        if len(numbers) < 5:
            return Memory()
        # orig_data_size compr_data_size mem_used_total mem_limit mem_used_max …
        return Memory(numbers[0], numbers[1], numbers[2], numbers[4])

    def usage(self):
        # The kernel works in fio's processes or in threads of nobody's.
        return Usage()

    def _attribute(self, name):
        try:
            with open(os.path.join(self._folder, name), encoding="ascii") as file:
                return file.read()
        except OSError:
            return ""


class NbdExport:
    def __init__(self, uri):
        self.given = uri
        self.size_bytes = None
        self._server = server_of(uri)

    def close(self):
        pass

    def option(self):
        return "uri=" + self.given

    def engine(self, _engine):
        return "nbd"

    def empty(self, run_fio, size_bytes):
        """Discards the first `size_bytes`; False when the server cannot."""
        try:
            run_fio("empty.fio", "empty", {"SIZE": size_bytes})
        except FioError:
            return False
        return True

    def algorithm(self):
        return ""

    def memory(self):
        status = self._read("status")
        found = re.search(r"^VmHWM:\s*(\d+) kB", status, re.MULTILINE)
        return Memory(peak=int(found.group(1)) << 10 if found else None)

    def usage(self):
        """Of the server, where it is a process of this machine."""
        numbers = self._read("stat").rpartition(")")[2].split()
        if len(numbers) < 13:
            return Usage()
        ticks = os.sysconf("SC_CLK_TCK")
        return Usage(int(numbers[11]) / ticks, int(numbers[12]) / ticks, self._switches())

    def _switches(self):
        total = 0
        try:
            tasks = os.listdir(f"/proc/{self._server}/task")
        except OSError:
            return 0
        for task in tasks:
            status = self._read(f"task/{task}/status")
            total += sum(int(number) for number in
                         re.findall(r"^\w*voluntary_ctxt_switches:\s*(\d+)", status, re.MULTILINE))
        return total

    def _read(self, name):
        if self._server is None:
            return ""
        try:
            with open(f"/proc/{self._server}/{name}", encoding="utf-8", errors="replace") as file:
                return file.read()
        except OSError:
            return ""


def server_of(uri):
    """The process at the other end of a Unix socket; None where there is none to be seen. The
    kernel names the one that called listen, so pid 1 stands for a socket that systemd made."""
    parsed = urllib.parse.urlsplit(uri)
    path = urllib.parse.parse_qs(parsed.query).get("socket", [""])[0]
    if not parsed.scheme.endswith("+unix"):
        return None
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(path)
        except OSError as error:
            raise FioError(f'"{uri}": {error.strerror}; check that a server listens at '
                           f'"{path}"') from error
        credentials = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    pid = struct.unpack("3i", credentials)[0]
    return pid if pid > 1 and os.path.exists(f"/proc/{pid}") else None


def open_target(text):
    """Raises FioError."""
    return NbdExport(text) if text.startswith("nbd") else BlockDevice(text)
