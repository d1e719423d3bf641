"""Plant causes of delays on a real kernel, record them, and hold the answers to what was planted.

usage: check.py [--bin PATH] [--only PLANT] [--times N] [--keep] [--folder DIR]     as root, with perf and cc

Each of the ten plants is recorded alone and beside two loud strangers, by `whyslow record` (call stacks and the
environment) and by a plain `perf record` of switches, wake-ups and system calls (neither): 40 runs, each of a quarter
of a minute and longer. A run in which the plant did not cause most of the delays, by its own log and that of the
requests, is made anew once, and then counts for nothing. Right is what was planted, and who had the CPU for a third of
the extra time by the text of `perf script`. Prints a table. Exit status 1 where a confident answer is wrong, or where
the throttled time in it is more than 5 % off the kernel's count.
"""
import argparse, json, os, re, shutil, signal, subprocess, sys, tempfile, time

sys.dont_write_bytecode = True
from plants import Groups, Scene, Unavailable, plants, write
from schedule import holders

HERE = os.path.dirname(os.path.abspath(__file__))
REQUESTS, TRIES, OFF = 400, 2, 0.05
# A plant has worked: the part of the slow requests' extra time in its log, that time in ns, how often it throttled.
SHARE, EXTRA, THROTTLED = 0.5, 8_000_000, 5
# From this part of the extra time on, whoever had the CPU meanwhile is a right answer as well.
HELD = 0.33
RIGHT, HALF, UNSURE, WRONG = OUTCOMES = ("right and sure", "right, not sure", "not sure", "wrong and sure")
# What is asked: nothing, and about the requests that the log has.
QUESTIONS = {"no question": [], "`--task call:clerk`": ["--task", "call:clerk"]}
# perf ends its recording when its child is stopped, so that is a shell which waits for the server.
APART = ["sh", "-c", '"$@"; exit $?', "sh"]
LOUD = "while :; do head -c 3000000 /dev/urandom | gzip -9 > /dev/null; done"
BY_HAND = ["sched:sched_switch", "sched:sched_waking", "sched:sched_wakeup_new", "sched:sched_process_fork",
           "sched:sched_process_exec", "sched:sched_process_exit", "task:task_newtask", "task:task_rename",
           "raw_syscalls:sys_enter", "raw_syscalls:sys_exit"]


def limit(scene, plant):
    """Sets the limits; the folder of the group that has a quota, else none."""
    quota, limits = None, plant.limits() if callable(plant.limits) else plant.limits
    for of in limits:
        controller = "blkio" if of.controller == "io" and "blkio" in scene.groups.one else of.controller
        folder, version = scene.groups.make(controller)
        for name, text in of.two if version == 2 else of.one:
            write(f"{folder}/{name}", text)
        scene.words.append(f"group={folder}/cgroup.procs")
        quota = folder if controller == "cpu" else quota
    return quota


def throttled(folder):
    """How often a group was throttled, and for how many nanoseconds."""
    with open(f"{folder}/cpu.stat") as file:
        counts = {name: int(value) for name, value in map(str.split, file)}
    return counts["nr_throttled"], counts.get("throttled_time", counts.get("throttled_usec", 0) * 1000)


def record(options, scene, plant, by_hand):
    recording = f"{scene.folder}/recording"
    command = [scene.shop, "serve", plant.words[0], scene.log, str(REQUESTS), *plant.words[1:], *scene.words]
    if by_hand:
        events = [word for event in BY_HAND for word in ("-e", event)]
        recorder = ["perf", "record", "-a", "-k", "mono", "-m", "16M", "-o", recording, *events, "--", *APART]
    else:
        recorder = [options.bin, "record", "--with", "perf", "--no-open", "-o", recording, "--"]
    out = subprocess.run([*recorder, *command], capture_output=True, text=True, env=scene.environment)
    if out.returncode:
        sys.exit(f"{' '.join(recorder[:3])}: {out.stderr.strip()[-500:]}")
    return recording


def spans(path):
    """The starts and ends in a log, in order of time; none where there is no log."""
    try:
        with open(path) as log:
            return sorted(tuple(map(int, line.split())) for line in log)
    except FileNotFoundError:
        return []


def overlap(span, others):
    """How much of a span the union of others, in order of their starts, covers."""
    covered, at = 0, span[0]
    for start, end in others:
        start, end = max(start, at), min(end, span[1])
        if start < end:
            covered, at = covered + end - start, end
    return covered


class Truth:
    """Of the slowest twentieth of the requests: the extra time of each on average, the part of it that the plant's own
    log covers, and by name the parts for which others had the CPU that the server's thread waited for."""

    def __init__(self, scene, plant, recording):
        requests = sorted(spans(scene.log), key=lambda span: span[1] - span[0])
        log = spans(scene.environment["PLANT_LOG"])
        slow, usual = requests[-max(len(requests) // 20, 1):], requests[len(requests) // 2]
        extra = max(sum(end - start for start, end in slow) - len(slow) * (usual[1] - usual[0]), 1)
        covered = sum(overlap(span, log) for span in slow) - len(slow) * overlap(usual, log)
        self.extra, self.share = extra / len(slow), covered / extra
        # While a quota or a signal holds a thread back, it does not matter who runs.
        of = holders(recording, "worker", slow) if plant.waits_for_a_cpu else {}
        self.others = {name: ns / extra for name, ns in of.items() if ns >= HELD * extra}

    def shown(self):
        others = "".join(f", {name} {part:.0%}" for name, part in sorted(self.others.items()))
        return f"{self.extra / 1e6:.1f} ms extra: planted {self.share:.0%}{others}"


def explain(options, recording, *words):
    out = subprocess.run([options.bin, "explain", "--json", *words, recording], capture_output=True, text=True)
    return json.loads(out.stdout) if out.returncode == 0 else sys.exit(f"explain: {out.stderr.strip()}")


def played(options, plant, loud, by_hand, folder):
    """One run: the scene, which has ended, its recording, and what the group's counter grew by."""
    scene = Scene(tempfile.mkdtemp(prefix=f"{plant.name}-", dir=folder), options.shop, Groups(f"whyslow-{os.getpid()}"))
    strangers = []
    try:
        quota = limit(scene, plant)
        if plant.start:
            plant.start(scene)
        if loud:
            bound = ["taskset", "-c", "1"] if plant.apart else []
            strangers = [subprocess.Popen([*bound, "sh", "-c", LOUD], start_new_session=True) for _ in range(2)]
        time.sleep(0.3)
        recording = record(options, scene, plant, by_hand)
        return scene, recording, throttled(quota) if plant.name == "quota" else None
    finally:
        for stranger in strangers:
            os.killpg(stranger.pid, 9)
            stranger.wait()
        scene.end()


def answered(options, plant, loud, by_hand, folder):
    """The same with the truth, and an answer to each question; none where the plant has not worked."""
    scene, recording, counted = played(options, plant, loud, by_hand, folder)
    truth = Truth(scene, plant, recording if by_hand else f"{recording}/perf.data")
    has_worked = (truth.share >= SHARE if plant.is_logged else counted[0] >= THROTTLED) and truth.extra >= EXTRA
    answers = []
    for words in QUESTIONS.values() if has_worked else []:
        # Where no question was asked it may have been the same.
        is_known = answers and words and answers[0]["task"] == words[-1]
        answers.append(answers[0] if is_known else explain(options, recording, *words))
    return scene.folder, answers, truth, counted


def cause_of(answer):
    """The sentence, without what it says of the task before and after it."""
    return re.sub(r"^[^:,]*, its [^:]*: ", "", answer["verdict"]["sentence"].split(" Analysed: ")[0])


def judged(plant, truth, answer):
    """One of [`OUTCOMES`]."""
    verdict = answer["verdict"]
    sentence = cause_of(answer)
    names = "|".join([plant.named, *map(re.escape, truth.others)])
    named = re.search(names, sentence, re.I) and not re.search(plant.never, sentence, re.I)
    if verdict["confident"]:
        return RIGHT if named else WRONG
    return HALF if named else UNSURE


def off_the_counter(answer, counted):
    """What an answer says of a quota that the kernel counted otherwise; empty where it says nothing."""
    said = re.search(r"throttled it (\d+) times for ([\d.]+) (s|ms)", cause_of(answer))
    if not said:
        return []
    ns = float(said[2]) * (1e9 if said[3] == "s" else 1e6)
    pairs = [("times", int(said[1]), counted[0]), ("ns", ns, counted[1])]
    return [f"{said[0]}: {of} {what} by cpu.stat" for what, of_answer, of in pairs if abs(of_answer - of) > OFF * of]


def hold(options, plant, loud, by_hand, folder):
    """The outcomes of a run, one for each question, and what does not hold of them."""
    how = f"{plant.name:10} {'loud' if loud else 'alone':6}{'by hand' if by_hand else 'record':8}"
    for _ in range(TRIES):
        run_folder, answers, truth, counted = answered(options, plant, loud, by_hand, folder)
        if answers:
            break
        print(f"  {how} made anew ({truth.shown()})")
        shutil.rmtree(run_folder)
    else:
        return [], []
    outcomes = [judged(plant, truth, answer) for answer in answers]
    print(f"  {how} {truth.shown()}")
    failures = [f"{how}: {of['task']}: {outcome}" for of, outcome in zip(answers, outcomes) if outcome == WRONG]
    for answer, outcome in zip(answers, outcomes):
        print(f"    {outcome}: {answer['task']}: {cause_of(answer)}")
        failures += [f"{how}: {off}" for off in (off_the_counter(answer, counted) if counted else [])]
    if not (options.keep and failures):
        shutil.rmtree(run_folder)
    return outcomes, failures


def table(rows):
    """The outcomes, for each question."""
    for at, question in enumerate(QUESTIONS):
        print(f"\n| {question}: planted | recorded by | {' | '.join(OUTCOMES)} |\n|---|---|{'---|' * len(OUTCOMES)}")
        for (what, how), runs in rows.items():
            outcomes = [outcomes[at] for outcomes in runs if outcomes]
            print(f"| {what} | {how} | {' | '.join(str(outcomes.count(of)) for of in OUTCOMES)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="target/release/whyslow")
    parser.add_argument("--only", action="append", help="this plant (repeatable)")
    parser.add_argument("--times", type=int, default=1, help="so many runs of each kind (default: 1)")
    parser.add_argument("--keep", action="store_true", help="keep the recordings whose answers do not hold")
    parser.add_argument("--folder", help="where recordings go (default: a temporary folder); its disk is limited, too")
    options = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))
    options.bin = os.path.abspath(options.bin)
    folder = tempfile.mkdtemp(dir=options.folder)
    options.shop = f"{folder}/shop"
    compiler = ["cc", "-O1", "-fno-omit-frame-pointer", "-pthread"]
    subprocess.run([*compiler, "-o", options.shop, f"{HERE}/shop.c"], check=True)
    failures, rows = [], {}
    for plant in plants(folder):
        if options.only and plant.name not in options.only:
            continue
        print(f"{plant.name}: {plant.what}")
        for by_hand in (False, True):
            row = rows.setdefault((plant.what, "perf by hand" if by_hand else "`whyslow record`"), [])
            for loud in (False, True) * options.times:
                try:
                    outcomes, failed = hold(options, plant, loud, by_hand, folder)
                except Unavailable as reason:
                    outcomes, failed = [], []
                    print(f"  left out: {reason}")
                row.append(outcomes)
                failures += failed
    table(rows)
    if not options.keep:
        shutil.rmtree(folder)
    for failure in failures:
        print(f"DIFFERS: {failure}")
    sys.exit(bool(failures))


main()
