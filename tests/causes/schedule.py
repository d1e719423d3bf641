"""Who had the CPU while a thread waited for it, from the text of `perf script`: a reading that shares nothing with
whyslow's, so that a neighbour that a plant did not bring counts as true where it was.
"""
import re, subprocess

LINE = re.compile(r"\s*\[(\d+)\]\s+(\d+)\.(\d+):\s+sched:sched_(switch|waking|wakeup_new): +(.*)")
SWITCH = re.compile(r"prev_comm=(.*) prev_pid=(\d+) prev_prio=\S+ prev_state=(\S+) ==> next_comm=(.*) next_pid=(\d+)")
WAKE = re.compile(r"comm=(.*) pid=(\d+) ")


def read(path, thread):
    """The spans in which the thread of that name was runnable, with the CPU on which it then ran; the runs of all
    threads: CPU, start, end, name."""
    command = ["perf", "script", "-i", path, "--ns", "-F", "cpu,time,event,trace", "-G"]
    waits, runs, current, since, on_cpu = [], [], {}, None, False
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as script:
        for line in script.stdout:
            parts = LINE.match(line)
            if not parts:
                continue
            cpu, time, text = int(parts[1]), int(parts[2]) * 1_000_000_000 + int(parts[3]), parts[5]
            if parts[4] != "switch":
                woken = WAKE.match(text)
                if woken and woken[1] == thread and since is None and not on_cpu:
                    since = time
                continue
            switch = SWITCH.match(text)
            if not switch:
                continue
            if cpu in current:
                runs.append((cpu, current[cpu][0], time, current[cpu][1]))
            current[cpu] = (time, switch[4])
            if switch[1] == thread:
                since, on_cpu = (time if switch[3].startswith("R") else None), False
            if switch[4] == thread:
                if since is not None:
                    waits.append((since, time, cpu))
                since, on_cpu = None, True
    return waits, runs


def holders(path, thread, spans):
    """By name, for how long others had the CPU for which the thread waited, in some spans of time."""
    waits, runs = read(path, thread)
    total = {}
    for start, end in spans:
        for since, until, cpu in waits:
            low, high = max(start, since), min(end, until)
            for of, begin, stop, name in runs if low < high else []:
                ns = min(high, stop) - max(low, begin)
                if of == cpu and ns > 0:
                    total[name] = total.get(name, 0) + ns
    return total
