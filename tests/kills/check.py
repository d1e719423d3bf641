#!/usr/bin/env python3
"""Kill whyslow at random moments, and see that nothing is left behind and nothing is half written.

usage: check.py [--bin PATH] [--kills N] [--seed N] [--only PART] [--folder DIR]     as root, with perf, cc and zstd

The parts are `record` (perf: with a probed function, as a flight recorder, until a slow call), `explain` of packed
recordings, `build` and `build --history`, `report`; a fifth of the kills go to `record`, the rest in equal numbers to
the other parts. KILL, TERM, INT and HUP come by turns, each at a random moment of the run's usual length. A kill counts
when the program still ran. `record` is also killed together with its script and recorder (ALL): then probes and ring
buffers stay, until `record --clean` or the next `record`. After each kill:

- no process of the run is alive, and no probe and no ring buffer of it is in the kernel;
- the folder of temporary files is empty;
- what `-o` names is not there, or is the old file or the new one, whole, for readers meanwhile as well, and nothing is
  beside it; KILL may leave a hidden name there, which the next run has to remove;
- the folder of a recording holds its finished files and no others, and the recording opens.

Prints a table and each failure. Exit status 1 after a failure.
"""
import argparse, collections, os, random, shutil, signal, subprocess, sys, tempfile, time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROBES, SYMBOLS = "/sys/kernel/tracing/uprobe_events", "/proc/kallsyms"
INSTANCES = "/sys/kernel/tracing/instances"
ALL, SIGNALS = "ALL", ["KILL", "TERM", "INT", "HUP"]
# Moments are chosen up to this part of the usual length, for runs that take longer than usual.
BEYOND = 1.1
# Seconds in which a recorder has to write the rest of its buffers.
PATIENCE = 60
HIDDEN = ".whyslow-"
FINISHED = {"perf.data", "trace.dat", "record.log", "environment.jsonl", "kallsyms"}
FORMATS = ["html", "md", "svg", "folded", "speedscope.json", "pb.gz"]
PROGRAM = """#include <unistd.h>
__attribute__((noinline)) int handle(int x) { usleep(x % 7 ? 1000 : 9000); return x + 1; }
int main(void) { int sum = 0; for (int i = 0; i < 100; i++) sum += handle(i); return sum == 7; }
"""
Run = collections.namedtuple("Run", "name words target old", defaults=[None, None])
Killed = collections.namedtuple("Killed", "pid status said")


def defaults():
    """A process in the background of a shell ignores INT."""
    for name in ("INT", "HUP", "TERM", "PIPE"):
        signal.signal(getattr(signal, "SIG" + name), signal.SIG_DFL)


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


class Scene:
    """The folder of all runs: inputs, outputs, temporary files; and the program."""

    def __init__(self, options):
        self.bin, self.dice = os.path.abspath(options.bin), random.Random(options.seed)
        self.folder = tempfile.mkdtemp(prefix="whyslow-kills-", dir=options.folder)
        self.temporary, self.out = self.path("temporary"), self.path("out")
        self.token = f"WHYSLOW_KILLED={os.path.basename(self.folder)}"
        self.environment = dict(os.environ, TMPDIR=self.temporary, HOME=self.folder)
        self.environment.update([self.token.split("=")])
        for folder in (self.temporary, self.out):
            os.mkdir(folder)
        with open(self.path("a.c"), "w") as file:
            file.write(PROGRAM)
        subprocess.run(["cc", "-O1", "-fno-omit-frame-pointer", "-o", self.path("a"), self.path("a.c")], check=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self, words):
        return subprocess.Popen([self.bin, *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, env=self.environment, cwd=self.folder, preexec_fn=defaults)

    def ask(self, words):
        """Exit status and stdout of a run to the end."""
        out = subprocess.run([self.bin, *words], stdin=subprocess.DEVNULL, capture_output=True, env=self.environment,
                             cwd=self.folder)
        return out.returncode, out.stdout + (out.stderr if out.returncode else b"")

    def finish(self, words):
        status, said = self.ask(words)
        if status:
            sys.exit(f"{' '.join(words)}: {said.decode(errors='replace')[-500:]}")

    def alive(self):
        """The processes of runs, without those that have ended and that nobody has waited for."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if self.token.encode() in (read(f"/proc/{pid}/environ") or b"").split(b"\0"):
                    stat = read(f"/proc/{pid}/stat").decode(errors="replace")
                    name, state = stat[stat.index("(") + 1:stat.rindex(")")], stat[stat.rindex(")") + 2]
                    found += [f"{name} ({pid})"] if state not in "ZX" else []
            except (OSError, AttributeError, ValueError):
                pass  # It has ended.
        return found

    def scripts(self, pid):
        """The groups of processes that a run has begun."""
        children = read(f"/proc/{pid}/task/{pid}/children") or b""
        return [int(child) for child in children.split() if os.getpgid(int(child)) == int(child)]


def probes(pid):
    return [line for line in (read(PROBES) or b"").decode().splitlines() if f":whyslow_{pid}/" in line]


def ring_buffers(pid):
    """The instances of tracefs of a run: `whyslow_PID`, `whyslow_PID_chosen`."""
    names = os.listdir(INSTANCES) if os.path.isdir(INSTANCES) else []
    return [name for name in names if f"{name}_".startswith(f"whyslow_{pid}_")]


def kill(scene, run, how, length, reader=None):
    """Kill a run at a random moment; `None` if it had ended. `reader` is started at a moment before."""
    process, moment = scene.start(run.words), scene.dice.uniform(0, length * BEYOND)
    before = scene.dice.uniform(0, moment)
    time.sleep(before)
    if reader:
        reader()
    time.sleep(moment - before)
    ran = process.poll() is None
    if ran and how == ALL:
        # The program goes first: otherwise it would see the end of its script.
        process.send_signal(signal.SIGSTOP)
        try:
            groups = scene.scripts(process.pid)
        except OSError:
            groups = []
        process.kill()
        for group in groups:
            os.killpg(group, signal.SIGKILL)
    elif ran:
        process.send_signal(getattr(signal, "SIG" + how))
    said = process.communicate()[1].decode(errors="replace")
    return Killed(process.pid, process.returncode, said) if ran else None


def wrong_status(run, how, killed):
    """What is wrong with how it ended."""
    number = getattr(signal, "SIG" + ("KILL" if how == ALL else how))
    if killed.status in (0, -number) or run.name.startswith("record") and killed.status == 1:
        return []
    return [f"exit status {killed.status}: {killed.said.strip()[-200:]}"]


def left(scene):
    """What no run may leave, after a time in which a recorder writes the rest of its buffers."""
    until = time.monotonic() + PATIENCE
    while (alive := scene.alive()) and time.monotonic() < until:
        time.sleep(0.02)
    wrong = [f"{name} still runs" for name in alive]
    return wrong + [f"{name} is left in TMPDIR" for name in os.listdir(scene.temporary)]


def recorded(scene, how, killed, counts):
    """What is wrong behind a killed `record`."""
    wrong, made = [], probes(killed.pid) + ring_buffers(killed.pid)
    if made and how == ALL:
        counts["probes and ring buffers removed by the next"] += 1
        words = ["record", "--clean"] if scene.dice.random() < 0.5 else \
            ["record", "--with", "perf", "-d", "50ms", "--no-open", "-o", scene.path("next")]
        status, said = scene.ask(words)
        shutil.rmtree(scene.path("next"), ignore_errors=True)
        wrong += [f"{' '.join(words[:3])}: {said[-200:]!r}"] if status else []
        made = probes(killed.pid) + ring_buffers(killed.pid)
    wrong += [f"a probe or ring buffer is left: {line}" for line in made]
    folder = os.path.join(scene.out, "recording")
    names = set(os.listdir(folder)) if os.path.exists(folder) else set()
    if how == ALL:
        return wrong
    wrong += [f"{name} is left in the recording" for name in sorted(names - FINISHED)]
    table = read(os.path.join(folder, "kallsyms"))
    if table is not None and table.count(b"\n") < 0.99 * (read(SYMBOLS) or b"").count(b"\n"):
        wrong.append("kallsyms is half a table")
    for line in (read(os.path.join(folder, "environment.jsonl")) or b"").splitlines()[:-1]:
        wrong += [] if line.startswith(b"{") and line.endswith(b"}") else [f"environment.jsonl has {line[:100]!r}"]
    if "perf.data" in names:
        status, said = scene.ask(["info", folder])
        wrong += [f"info: {said[-300:]!r}"] if status else []
    return wrong


def written(scene, run, new, how, counts):
    """What is wrong with the target of a killed run and beside it."""
    found, wrong = read(run.target), []
    which = "absent" if found is None else "old" if found == run.old else "new" if found == new else None
    if which is None or which == "absent" and run.old is not None:
        wrong.append(f"the output is {which or 'half written'}")
    counts[which] += 1
    beside = [name for name in os.listdir(scene.out) if name != os.path.basename(run.target)]
    if how == "KILL" and beside and all(name.startswith(HIDDEN) for name in beside):
        counts["hidden, removed by the next"] += 1
        scene.finish(run.words)
        beside = [name for name in os.listdir(scene.out) if name != os.path.basename(run.target)]
    return wrong + [f"{name} is beside the output" for name in beside]


class Reader:
    """`info` of a database beside the one that writes it: its answer is of the old one or the new one."""

    def __init__(self, scene, run, new):
        self.scene, self.words, self.process = scene, ["info", "--json", run.target], None
        self.answers = []
        for content in (run.old, new):
            with open(run.target, "wb") as file:
                file.write(content)
            self.answers.append(scene.ask(self.words))

    def start(self):
        self.process = subprocess.Popen([self.scene.bin, *self.words], stdin=subprocess.DEVNULL, cwd=self.scene.folder,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.scene.environment)

    def wrong(self):
        out, said = self.process.communicate()
        right = (self.process.returncode, out) in self.answers
        return [] if right else [f"a reader got {self.process.returncode}: {said.decode()[-200:] or out[:200]!r}"]


def prepare(scene, run):
    """The files before a run."""
    for entry in os.scandir(scene.out):
        shutil.rmtree(entry) if entry.is_dir() else os.remove(entry)
    if run.old is not None:
        with open(run.target, "wb") as file:
            file.write(run.old)


def usual(scene, run):
    """The median length of three runs in seconds, and what they write."""
    lengths, new = [], None
    for _ in range(3):
        prepare(scene, run)
        began = time.monotonic()
        process = scene.start(run.words)
        said = process.communicate()[1].decode(errors="replace")
        lengths.append(time.monotonic() - began)
        if process.returncode:
            sys.exit(f"{run.name}: {said[-500:]}")
        found = read(run.target) if run.target else None
        if new is not None and found != new:
            sys.exit(f"{run.name}: two runs do not write the same")
        new = found
    return sorted(lengths)[1], new


def hit(scene, run, kills, counts):
    """Kill a run until it was hit `kills` times. Returns the failures."""
    length, new = usual(scene, run)
    reader = Reader(scene, run, new) if run.old is not None and run.words[0] == "build" else None
    ways = SIGNALS + [ALL] if run.name.startswith("record") else SIGNALS
    failures, done = [], 0
    while done < kills:
        how = ways[done % len(ways)]
        prepare(scene, run)
        killed = kill(scene, run, how, length, reader and reader.start)
        wrong = (reader.wrong() if reader else []) + left(scene)
        if killed is None:
            counts["had ended"] += 1
        else:
            done += 1
            counts[how] += 1
            wrong += wrong_status(run, how, killed)
            if run.name.startswith("record"):
                wrong += recorded(scene, how, killed, counts)
            if run.target:
                wrong += written(scene, run, new, how, counts)
        failures += [f"{run.name}, {how}: {one}" for one in wrong]
    return failures


def recordings(scene):
    """A recording whose executions are calls, and packed forms of it."""
    whole = scene.path("recording")
    scene.finish(["record", "--with", "perf", "--no-open", "--uprobe", "handle", "-o", whole, "--", scene.path("a")])
    packed = [scene.path("a.data.gz"), scene.path("a.data.zst"), scene.path("z.data")]
    for program, to in zip((["gzip", "-1"], ["zstd", "-q", "-1"]), packed):
        with open(to, "wb") as file, open(f"{whole}/perf.data", "rb") as plain:
            subprocess.run(program, stdin=plain, stdout=file, check=True)
    line = ["perf", "record", "-q", "-a", "-z", "-k", "mono", "-e", "sched:sched_switch,sched:sched_waking"]
    subprocess.run([*line, "-o", packed[2], "--", scene.path("a")], check=False, capture_output=True)
    return whole, packed + [f"{ROOT}/fixtures/recorders/{name}" for name in ("zstd.data", "overwrite.data", "v7.dat")]


def runs(scene):
    """The runs of each part."""
    whole, packed = recordings(scene)
    to = os.path.join(scene.out, "recording")
    record = ["record", "--with", "perf", "--no-open", "-o", to]
    probed = ["--uprobe", "handle", "--", scene.path("a")]
    parts = {"record": [
        Run("record", [*record, "-d", "100ms"]),
        Run("record --uprobe", [*record, *probed]),
        Run("record --overwrite", [*record, "-d", "100ms", "--overwrite", "1s"]),
        Run("record --until", [*record, "--until", "latency>1s", *probed]),
    ]}
    parts["explain"] = [Run(f"explain {os.path.basename(path)}", ["stats", "count", path]) for path in packed[3:]]
    parts["explain"] += [Run(f"explain {os.path.basename(path)}", ["explain", path]) for path in packed[:2]]
    parts["explain"] += [Run("explain --memory", ["explain", "--memory", "256MiB", packed[0]]),
                         Run("dump z.data", ["dump", packed[2]])]
    parts["build"] = []
    for kind, ending in ((["build"], "why"), (["build", "--history"], "history")):
        other, target = scene.path(f"old.{ending}"), os.path.join(scene.out, f"a.{ending}")
        scene.finish([*kind, "-o", other, f"{ROOT}/fixtures/traces/lock-contention"])
        for old in (None, read(other)):
            name = " ".join(kind) + (" over another" if old else "")
            parts["build"].append(Run(name, [*kind, "-o", target, packed[0]], target, old))
    parts["report"] = []
    for number, ending in enumerate(FORMATS):
        target, old = os.path.join(scene.out, f"a.{ending}"), b"older" if number % 2 else None
        parts["report"].append(Run(f"report .{ending}", ["report", "-o", target, packed[0]], target, old))
    return parts


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--bin", default=os.environ.get("WHYSLOW", f"{ROOT}/target/release/whyslow"))
    ap.add_argument("--kills", type=int, default=200)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--only", choices=["record", "explain", "build", "report"])
    ap.add_argument("--folder")
    options = ap.parse_args()
    scene = Scene(options)
    failures, all_kills = [], 0
    try:
        of_record = options.kills // 5
        others = options.kills - of_record
        for position, (part, of_part) in enumerate(runs(scene).items()):
            if options.only not in (None, part):
                continue
            kills = of_record if part == "record" else others * position // 3 - others * (position - 1) // 3
            for number, run in enumerate(of_part):
                counts = collections.Counter()
                own = kills * (number + 1) // len(of_part) - kills * number // len(of_part)
                wrong = hit(scene, run, own, counts)
                shown = ", ".join(f"{what} {count}" for what, count in counts.items())
                print(f"{run.name:28} {own:4} kills, {len(wrong)} wrong: {shown}", flush=True)
                print("".join(f"  {one}\n" for one in wrong), end="", flush=True)
                failures += wrong
                all_kills += own
    finally:
        shutil.rmtree(scene.folder)
    print(f"{all_kills} kills, {len(failures)} failures")
    sys.exit(1 if failures else 0)


main()
