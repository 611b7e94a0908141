#!/usr/bin/env python3
"""bench/fio makes result files of what fio writes."""

import copy
import importlib.machinery
import importlib.util
import os
import sys
import unittest

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "bench", "fio"))
import fio_results  # noqa: E402
import fio_targets  # noqa: E402


def load_run():
    """The program itself, which has no .py in its name."""
    loader = importlib.machinery.SourceFileLoader("fio_run",
                                                  os.path.join(ROOT, "bench", "fio", "run"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("fio_run", loader))
    sys.modules["fio_run"] = module
    loader.exec_module(module)
    return module


fio_run = load_run()


def times(low, mean, high, count):
    return {"min": low, "max": high, "mean": mean, "stddev": 1.0, "N": count,
            "percentile": {"50.000000": low + 1, "99.000000": high - 2, "99.900000": high - 1}}


def part(io_bytes, runtime_ms, lat, slat=None):
    return {"io_bytes": io_bytes, "total_ios": io_bytes // 4096, "runtime": runtime_ms,
            "lat_ns": lat, "slat_ns": slat or {"min": 0, "max": 0, "mean": 0.0, "N": 0}}


NOTHING = part(0, 0, {"min": 0, "max": 0, "mean": 0.0, "N": 0})

# fio 3.33's randrw with two jobs, cut down to what is read.
MIXED = {
    "fio version": "fio-3.33",
    "jobs": [{
        "jobname": "mixed-rand", "error": 0,
        "read": part(4096 * 600, 200, times(100, 150.0, 900, 600)),
        "write": part(4096 * 400, 250, times(200, 350.0, 950, 400)),
        "trim": NOTHING,
        "mixed": part(4096 * 1000, 250, times(100, 230.0, 950, 1000), times(10, 20.0, 90, 1000)),
        "job_runtime": 500, "usr_cpu": 10.0, "sys_cpu": 40.0, "ctx": 77}],
}
CELL = fio_results.Cell("/dev/zram1", "fio, sync", "lzo", "compress-50", "randrw", "", 2, 1, 4096)


class ConversionTest(unittest.TestCase):
    def setUp(self):
        self.document = copy.deepcopy(MIXED)
        self.job = self.document["jobs"][0]

    def measured(self, *directions):
        return fio_results.measure(self.document, directions)

    def test_both_directions_of_a_mixed_job_count_over_the_longer_time(self):
        row = fio_results.row(CELL, [self.measured("read", "write")])
        self.assertAlmostEqual(row["mb_per_s"]["median"], 4096 * 1000 / 0.25 / 1e6)
        self.assertAlmostEqual(row["read_mb_per_s"]["median"], 4096 * 600 / 0.25 / 1e6)
        self.assertAlmostEqual(row["write_mb_per_s"]["median"], 4096 * 400 / 0.25 / 1e6)
        self.assertAlmostEqual(row["iops"]["median"], 4000)
        self.assertAlmostEqual(row["us_per_page"]["median"], 250)
        self.assertEqual(row["elapsed_s"]["values"], [0.25])

    def test_one_direction_has_no_directions_apart(self):
        row = fio_results.row(CELL, [self.measured("read")])
        self.assertIsNone(row["read_mb_per_s"])
        self.assertAlmostEqual(row["mb_per_s"]["median"], 4096 * 600 / 0.2 / 1e6)

    def test_shares_of_cpu_become_seconds(self):
        row = fio_results.row(CELL, [self.measured("read", "write")])
        self.assertAlmostEqual(row["user_s"], 0.05)
        self.assertAlmostEqual(row["sys_s"], 0.2)
        self.assertEqual(row["context_switches"], 77)
        self.assertEqual(row["counters"], "unavailable")

    def test_latencies_are_those_of_the_whole_job(self):
        row = fio_results.row(CELL, [self.measured("read", "write")])
        self.assertEqual(row["latency_ns"], {"min": 100, "avg": 230.0, "p50": 101, "p99": 948,
                                             "p999": 949, "max": 950})
        self.assertEqual(row["submit_latency_ns"]["avg"], 20.0)
        self.assertIsNone(fio_results.row(CELL, [self.measured("read")])["submit_latency_ns"])

    def test_rounds_become_a_spread_and_their_latencies_one(self):
        first = self.measured("read", "write")
        self.job["write"]["runtime"] = 500
        self.job["mixed"]["lat_ns"] = times(50, 330.0, 2000, 3000)
        row = fio_results.row(CELL, [first, self.measured("read", "write")])
        self.assertEqual(row["rounds"], 2)
        self.assertEqual(row["elapsed_s"], {"median": 0.375, "min": 0.25, "max": 0.5,
                                            "values": [0.25, 0.5]})
        self.assertEqual(row["latency_ns"]["min"], 50)
        self.assertEqual(row["latency_ns"]["max"], 2000)
        self.assertAlmostEqual(row["latency_ns"]["avg"], 305)

    def test_a_run_of_no_time_is_taken_for_a_millisecond(self):
        self.job["read"]["runtime"] = 0
        self.assertEqual(self.measured("read").elapsed_s, 0.001)

    def test_what_fio_did_not_do_is_an_error(self):
        with self.assertRaisesRegex(fio_results.FioError, "mixed-rand: fio did no trim"):
            self.measured("trim")
        self.job["error"] = 5
        with self.assertRaisesRegex(fio_results.FioError, "reports error 5"):
            self.measured("read")
        self.document["jobs"] = []
        with self.assertRaisesRegex(fio_results.FioError, "0 groups of jobs"):
            self.measured("read")

    def test_memory_is_that_after_the_last_round(self):
        measurement = self.measured("read", "write")
        measurement.memory = fio_results.Memory(1000, 250, 500, 600)
        row = fio_results.row(CELL, [self.measured("read", "write"), measurement])
        self.assertEqual((row["compr_ratio"], row["mem_ratio"], row["mem_used"],
                          row["peak_memory"]), (4, 2, 500, 600))
        measurement.memory = fio_results.Memory(0, 0, 0, 0)
        self.assertIsNone(fio_results.row(CELL, [measurement])["compr_ratio"])


class RunTest(unittest.TestCase):
    def test_jobs_have_the_size_of_the_experiment(self):
        gib3 = 3 << 30
        self.assertEqual(fio_run.job_bytes(gib3, 1), 2764 << 20)
        self.assertEqual(fio_run.job_bytes(gib3, 9), 34 << 20)
        # The rule of the experiment leaves nothing at ten jobs.
        self.assertEqual(fio_run.job_bytes(gib3, 10), gib3 // 10 // 10 * 9 // 4096 * 4096)
        self.assertEqual(fio_run.job_bytes(1 << 20, 10), (1 << 20) // 10 // 10 * 9 // 4096 * 4096)

    def test_reads_come_before_the_writes_and_after_them(self):
        options = fio_run.parse_arguments(["/dev/none", "--json", "x", "--size", "64M",
                                           "--jobs", "1-2,4"])
        groups = list(fio_run.streams_groups(options))
        self.assertEqual(len(groups), 2 * 3)
        self.assertEqual([(step.ops[0][0], step.state) for step in groups[0]],
                         [("read", "holes"), ("randread", "holes"), ("write", ""),
                          ("randwrite", ""), ("rw", ""), ("randrw", ""), ("read", "stored"),
                          ("randread", "stored")])
        self.assertEqual([group[0].jobs for group in groups], [1, 2, 4, 1, 2, 4])

    def test_every_step_is_a_section_of_its_job_file(self):
        for suite, (make_groups, _) in fio_run.GROUPS.items():
            options = fio_run.parse_arguments(["/dev/none", "--json", "x", "--size", "1G",
                                               "--suite", suite])
            for step in (step for group in make_groups(options) for step in group):
                with open(os.path.join(ROOT, "bench", "fio", step.job_file),
                          encoding="ascii") as file:
                    self.assertIn(f"\n[{step.section}]\n", file.read())

    def test_a_size_that_is_too_small_for_the_jobs_is_refused(self):
        options = fio_run.parse_arguments(["/dev/none", "--json", "x", "--size", "32M",
                                           "--suite", "discard"])
        with self.assertRaisesRegex(fio_results.FioError, "at least 67108864"):
            list(fio_run.discard_groups(options))

    def test_numbers_and_sizes_are_read_as_elsewhere(self):
        self.assertEqual(fio_run.parse_numbers("1-3,8"), [1, 2, 3, 8])
        self.assertEqual(fio_run.parse_size("2GiB"), 2 << 30)
        self.assertEqual(fio_run.parse_size("4096"), 4096)
        for bad in ("", "0", "3-1", "a", "1,,2"):
            with self.assertRaises(fio_run.argparse.ArgumentTypeError):
                fio_run.parse_numbers(bad)
        for bad in ("", "0", "4X", "-1"):
            with self.assertRaises(fio_run.argparse.ArgumentTypeError):
                fio_run.parse_size(bad)

    def test_what_is_no_target_is_refused(self):
        with self.assertRaisesRegex(fio_results.FioError, "expected a block device"):
            fio_targets.open_target("/dev/null")
        with self.assertRaisesRegex(fio_results.FioError, "check that a server listens"):
            fio_targets.open_target("nbd+unix:///disk?socket=/nonexistent/socket")


if __name__ == "__main__":
    unittest.main()
