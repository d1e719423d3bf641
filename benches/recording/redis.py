#!/usr/bin/env python3
"""What a recording costs a busy server: the CPU time of redis-server for a request, without and with `whyslow record`.

    redis.py WHYSLOW [--rounds 3] [--requests 120000] [--plan NAME ...]

Needs root, perf, redis-server and redis-benchmark. The plans run in alternation, each round once; the table has their
medians, the ratio to the runs without a recording, requests a second, bytes, and what `record` says about losses. The
server is the worst case: it makes two system calls for 8 us of work.
"""

import argparse
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

PORT = "7781"
# Above other work of the machine.
FIRST = ["nice", "-n", "-10"]


def cpu_ns(pid):
    with open(f"/proc/{pid}/schedstat") as file:
        return int(file.read().split()[0])


def requests(server, count):
    """CPU time of the server for each request, in us, and requests a second."""
    before = cpu_ns(server)
    command = ["redis-benchmark", "-p", PORT, "-c", "20", "-t", "get", "-n", str(count), "-q"]
    out = subprocess.run(FIRST + command, capture_output=True, text=True, check=True).stdout
    rates = re.findall(r"([\d.]+) requests per second", out)
    return (cpu_ns(server) - before) / count / 1000, float(rates[-1])


def recorded(whyslow, options, server, count):
    """The same while a recording runs; with its bytes, and its last line."""
    folder = tempfile.mkdtemp(prefix="whyslow-redis-")
    command = [whyslow, "record", "--no-open", "-o", os.path.join(folder, "r")] + options
    recorder = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    lines = []
    for line in recorder.stderr:
        lines.append(line)
        if "recording into" in line:
            break
    else:
        sys.exit("".join(lines))
    time.sleep(0.5)
    measured = requests(server, count)
    recorder.send_signal(signal.SIGINT)
    lines += recorder.stderr.readlines()
    recorder.wait()
    said = [line.strip() for line in lines if line.startswith("recorded ")]
    size = sum(os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(folder) for name in names)
    shutil.rmtree(folder)
    return measured, size, said[0] if said else "".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("whyslow")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--requests", type=int, default=120_000)
    parser.add_argument("--plan", action="append")
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="whyslow-redis-server-")
    server = subprocess.Popen(
        FIRST + ["redis-server", "--port", PORT, "--save", "", "--appendonly", "no", "--dir", folder],
        stdout=subprocess.DEVNULL,
    )
    bystander = subprocess.Popen(["sleep", "100000"])
    try:
        time.sleep(1)
        plans = {
            "none": None,
            "light": [],
            "bystander": ["--pid", str(bystander.pid)],
            "server": ["--pid", str(server.pid)],
            "full": ["--full"],
        }
        if options.plan:
            plans = {name: plan for name, plan in plans.items() if name == "none" or name in options.plan}
        results = {name: [] for name in plans}
        for _ in range(options.rounds):
            for name, plan in plans.items():
                if plan is None:
                    results[name].append((requests(server.pid, options.requests), 0, ""))
                else:
                    results[name].append(recorded(options.whyslow, plan, server.pid, options.requests))
        base = statistics.median(cpu for (cpu, _), _, _ in results["none"])
        print(f"{'plan':10} {'us/request':>10} {'ratio':>6} {'requests/s':>10} {'MB':>6}")
        for name, runs in results.items():
            cpu = statistics.median(cpu for (cpu, _), _, _ in runs)
            rate = statistics.median(rate for (_, rate), _, _ in runs)
            size = statistics.median(size for _, size, _ in runs) / 1e6
            print(f"{name:10} {cpu:10.2f} {cpu / base:6.2f} {rate:10.0f} {size:6.0f}")
            for _, _, said in runs:
                if said and "nothing lost" not in said:
                    print(f"           {said}")
    finally:
        bystander.kill()
        server.terminate()
        server.wait()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
