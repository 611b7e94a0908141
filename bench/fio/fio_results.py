"""fio's JSON becomes rows of a uzram result file (src/bench/results.hpp says what they mean).

A Measurement is one round of one operation; the rounds of a cell become a row. fio tells time in
whole milliseconds, and latency percentiles only round by round, so those of a row are the medians
over its rounds.
"""

import statistics
from dataclasses import dataclass, field

FORMAT = "uzram-bench-1"
PAGE = 4096
PERCENTILES = {"p50": "50.000000", "p99": "99.000000", "p999": "99.900000"}


class FioError(Exception):
    """fio did not do what was asked; the text is for people."""


@dataclass
class Usage:
    """What a process has used; the difference of two is what it used in between."""
    user_s: float = 0.0
    sys_s: float = 0.0
    context_switches: float = 0.0

    def __sub__(self, earlier):
        return Usage(self.user_s - earlier.user_s, self.sys_s - earlier.sys_s,
                     self.context_switches - earlier.context_switches)

    def __add__(self, other):
        return Usage(self.user_s + other.user_s, self.sys_s + other.sys_s,
                     self.context_switches + other.context_switches)


@dataclass
class Memory:
    """Bytes after a phase; None where the target does not tell."""
    orig_data_size: int | None = None
    compr_data_size: int | None = None
    mem_used_total: int | None = None
    peak: int | None = None


@dataclass
class Measurement:
    """One round of one operation."""
    bytes: int
    ios: int
    elapsed_s: float
    read_bytes: int
    write_bytes: int
    usage: Usage
    latency: dict | None
    submit_latency: dict | None
    memory: Memory = field(default_factory=Memory)


@dataclass
class Cell:
    """What the rounds of a row have in common."""
    target: str
    path: str
    algorithm: str
    corpus: str
    op: str
    state: str
    threads: int
    iodepth: int
    block_size: int


def only_job(document):
    """The entry of a run of one section with group_reporting."""
    jobs = document.get("jobs", [])
    if len(jobs) != 1:
        raise FioError(f"fio reported {len(jobs)} groups of jobs, expected 1")
    if jobs[0]["error"] != 0:
        raise FioError(f"job {jobs[0]['jobname']}: fio reports error {jobs[0]['error']}")
    return jobs[0]


def latency_of(part, kind):
    """fio's lat_ns or slat_ns as the result file has it; None where it was not measured."""
    times = part[kind]
    if times.get("N", 0) == 0 or "percentile" not in times:
        return None
    latency = {"min": times["min"], "avg": times["mean"]}
    for name, percentile in PERCENTILES.items():
        latency[name] = times["percentile"][percentile]
    latency["max"] = times["max"]
    latency["count"] = times["N"]
    return latency


def measure(document, directions):
    """A Measurement of what fio did in `directions`: some of read, write and trim.

    Usage is that of the whole job, its other directions included.
    """
    job = only_job(document)
    parts = [job[direction] for direction in directions]
    total = sum(part["io_bytes"] for part in parts)
    if total == 0:
        raise FioError(f"job {job['jobname']}: fio did no {' and '.join(directions)}")
    run_s = job["job_runtime"] / 1000
    whole = job["mixed"] if len(parts) > 1 else parts[0]
    return Measurement(
        bytes=total,
        ios=sum(part["total_ios"] for part in parts),
        # A run of less than a millisecond has runtime 0.
        elapsed_s=max(max(part["runtime"] for part in parts), 1) / 1000,
        read_bytes=job["read"]["io_bytes"] if "read" in directions else 0,
        write_bytes=job["write"]["io_bytes"] if "write" in directions else 0,
        usage=Usage(job["usr_cpu"] / 100 * run_s, job["sys_cpu"] / 100 * run_s, job["ctx"]),
        latency=latency_of(whole, "lat_ns"),
        submit_latency=latency_of(whole, "slat_ns"))


def spread(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values),
            "values": list(values)}


def merge_latencies(latencies):
    if any(latency is None for latency in latencies):
        return None
    count = sum(latency["count"] for latency in latencies)
    merged = {"min": min(latency["min"] for latency in latencies),
              "avg": sum(latency["avg"] * latency["count"] for latency in latencies) / count}
    for name in PERCENTILES:
        merged[name] = round(statistics.median(latency[name] for latency in latencies))
    merged["max"] = max(latency["max"] for latency in latencies)
    return merged


def quotient(dividend, divisor):
    return dividend / divisor if dividend is not None and divisor else None


def row(cell, rounds):
    """The row of a cell, from one Measurement for each round."""
    def over(value):
        return spread([value(measurement) for measurement in rounds])

    def median(value):
        return statistics.median(value(measurement) for measurement in rounds)

    mixed = rounds[0].read_bytes > 0 and rounds[0].write_bytes > 0
    memory = rounds[-1].memory
    return {
        "target": cell.target, "label": cell.target, "path": cell.path,
        "algorithm": cell.algorithm, "level": None, "mode": "", "streams": None,
        "corpus": cell.corpus, "op": cell.op, "state": cell.state, "threads": cell.threads,
        "iodepth": cell.iodepth, "block_size": cell.block_size, "rounds": len(rounds),
        "mb_per_s": over(lambda m: m.bytes / m.elapsed_s / 1e6),
        "iops": over(lambda m: m.ios / m.elapsed_s),
        "us_per_page": over(lambda m: m.elapsed_s * 1e6 * PAGE / m.bytes),
        "ratio_to_first": None, "ratio_to_codec": None,
        "elapsed_s": over(lambda m: m.elapsed_s),
        "read_mb_per_s": over(lambda m: m.read_bytes / m.elapsed_s / 1e6) if mixed else None,
        "write_mb_per_s": over(lambda m: m.write_bytes / m.elapsed_s / 1e6) if mixed else None,
        "user_s": median(lambda m: m.usage.user_s), "sys_s": median(lambda m: m.usage.sys_s),
        "context_switches": median(lambda m: m.usage.context_switches),
        "counters": "unavailable",
        "compr_ratio": quotient(memory.orig_data_size, memory.compr_data_size),
        "mem_ratio": quotient(memory.orig_data_size, memory.mem_used_total),
        "mem_used": memory.mem_used_total, "peak_memory": memory.peak,
        "latency_ns": merge_latencies([m.latency for m in rounds]),
        "submit_latency_ns": merge_latencies([m.submit_latency for m in rounds]),
    }


def result_file(machine, suite, parameters, notes, rows):
    return {"format": FORMAT, "machine": machine, "suite": suite, "parameters": parameters,
            "notes": notes, "interrupted": False, "rows": rows}
