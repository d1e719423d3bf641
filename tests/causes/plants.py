"""The causes that `check.py` plants: how each one is set up, and which words an answer has that names it.

A plant starts programs and limits control groups around the server of `shop.c`; what the answer must name follows from
that alone, not from what some recording shows. `named` are words of which one must be in the sentence, `never` words
that it must not have. A plant has worked where its own log covers most of what the slow requests took beyond the
median (`is_logged`); of a quota the kernel's counter is the log. Strangers are kept `apart`, on CPU 1 beside the server
on CPU 0, where they would add as much by themselves. `waits_for_a_cpu`: who had the CPU is a right answer, too.
"""
import os, subprocess, time

QUOTA = r"quota|throttl|held back|cpu\.max"


class Plant:
    def __init__(self, name, what, words, named, start=None, limits=(), never=QUOTA, is_logged=True, apart=False,
                 waits_for_a_cpu=True):
        self.name, self.what, self.words, self.start = name, what, words, start
        self.named, self.limits, self.never, self.is_logged, self.apart = named, limits, never, is_logged, apart
        self.waits_for_a_cpu = waits_for_a_cpu


class Limit:
    """A value of a control group, by controller: the file and the text in version 2 and in version 1."""

    def __init__(self, controller, two, one):
        self.controller, self.two, self.one = controller, two, one


class Groups:
    """A control group of our own in each hierarchy that is needed, below the root; removed at the end."""

    def __init__(self, name):
        self.name, self.made, self.version = name, [], None
        with open("/proc/mounts") as mounts:
            lines = [line.split() for line in mounts]
        self.one = {word: at for _, at, kind, words, *_ in lines if kind == "cgroup" for word in words.split(",")}
        self.two = next((at for _, at, kind, *_ in lines if kind == "cgroup2"), None)

    def make(self, controller):
        """The folder of the group and its version, 1 or 2."""
        unified = []
        if self.two:
            with open(f"{self.two}/cgroup.controllers") as names:
                unified = names.read().split()
        if controller in self.one:
            root, version = self.one[controller], 1
        elif controller in unified or (self.two and controller == "freezer"):
            root, version = self.two, 2
            if controller != "freezer":
                write(f"{root}/cgroup.subtree_control", f"+{controller}")
        else:
            raise Unavailable(f"no control group of {controller}")
        folder = f"{root}/{self.name}"
        if folder not in self.made:
            os.makedirs(folder)
            self.made.append(folder)
        self.version = version
        return folder, version

    def remove(self):
        for folder in self.made:
            for _ in range(100):
                try:
                    os.rmdir(folder)
                    break
                except OSError:
                    time.sleep(0.05)
            else:
                print(f"  left: {folder}")
        self.made = []


class Unavailable(Exception):
    """What this machine lacks for a plant."""


class Scene:
    """One run: its folder, the programs beside the server, and what ends them."""

    def __init__(self, folder, shop, groups):
        self.folder, self.shop, self.groups = folder, shop, groups
        self.log, self.programs, self.undo, self.words = f"{folder}/shop.log", [], [], []
        self.environment = dict(os.environ, PLANT_LOG=f"{folder}/plant.log")

    def program(self, *words, prefix=()):
        command = [*prefix, self.shop, *map(str, words)]
        self.programs.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, env=self.environment))

    def end(self):
        for program in self.programs:
            program.kill()
            program.wait()
        for command in self.undo:
            subprocess.run(command, check=False)
        self.groups.remove()


def write(path, text):
    try:
        with open(path, "w") as file:
            file.write(text)
    except OSError as error:
        raise Unavailable(f"{path}: {error.strerror}") from error


def run(*words):
    try:
        subprocess.run(words, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise Unavailable(f"{' '.join(words[:5])} is refused") from error


def data(scene, name, size):
    """A file of random bytes, of which no page is in the cache."""
    path = f"{scene.folder}/{name}"
    with open(path, "wb") as file:
        for _ in range(size >> 20):
            file.write(os.urandom(1 << 20))
        file.flush()
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return path


def packers(scene):
    """Four neighbours of equal priority on CPU 0, which compute in joint bursts, 40 % of the time in all."""
    for _ in range(4):
        scene.program("burn", "packer", 0, "other", 40, 410)


def hog(scene):
    scene.program("burn", "firmwared", 0, "fifo", 40, 210)


def inversion(scene):
    path = f"{scene.folder}/stock"
    os.mkfifo(path)
    scene.program("wake", "indexer", 0, 30, path)
    scene.words.append(f"stock={path}")


def import_beside(scene):
    scene.words.append(f"map={data(scene, 'prices', 12 << 20)}")


def archive_beside(scene):
    scene.words.append(f"read={data(scene, 'archive', 16 << 20)}")


def stopper(scene):
    scene.program("stop", "backupd", f"{scene.log}.pid")


def freezer(scene):
    folder, version = scene.groups.make("freezer")
    scene.words.append(f"group={folder}/cgroup.procs")
    state = [f"{folder}/cgroup.freeze", "1", "0"] if version == 2 else [f"{folder}/freezer.state", "FROZEN", "THAWED"]
    scene.program("freeze", "checkpointd", *state)


def network(scene):
    """The server asks a program in another network namespace; a bulk transfer fills the queue on the way there."""
    space, ends = f"whyslow-{os.getpid()}", ("whyslow0", "whyslow1")
    scene.undo += [["ip", "link", "delete", ends[0]], ["ip", "netns", "delete", space]]
    run("ip", "netns", "add", space)
    run("ip", "link", "add", ends[0], "type", "veth", "peer", "name", ends[1], "netns", space)
    run("ip", "address", "add", "10.231.7.1/30", "dev", ends[0])
    run("ip", "link", "set", ends[0], "up")
    for words in (["address", "add", "10.231.7.2/30", "dev", ends[1]], ["link", "set", ends[1], "up"]):
        run("ip", "-n", space, *words)
    slow = ["rate", "16mbit"]
    try:
        run("tc", "qdisc", "add", "dev", ends[0], "root", "netem", "delay", "1ms", *slow, "limit", "1000")
    except Unavailable:
        run("tc", "qdisc", "add", "dev", ends[0], "root", "tbf", *slow, "burst", "4kb", "limit", "200kb")
    scene.program("answer", "stockd", 7431, prefix=["ip", "netns", "exec", space])
    time.sleep(0.3)
    scene.program("fill", "mirrord", "10.231.7.2:7431")
    scene.words.append("ask=10.231.7.2:7431")


def disk_numbers(path):
    """`MAJOR:MINOR` of the disk, not the partition, that holds a path."""
    device = os.stat(path).st_dev
    node = os.path.realpath(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
    if os.path.exists(f"{node}/partition"):
        node = os.path.dirname(node)
    try:
        with open(f"{node}/dev") as file:
            return file.read().strip()
    except OSError as error:
        raise Unavailable("the file system of the folder is on no disk") from error


def plants(folder):
    """All plants; `folder` is on the disk that is limited."""
    quota = [Limit("cpu", [("cpu.max", "20000 100000")],
                   [("cpu.cfs_period_us", "100000"), ("cpu.cfs_quota_us", "20000")])]
    weight = [Limit("cpu", [("cpu.weight", "10")], [("cpu.shares", "102")])]
    memory = [Limit("memory", [("memory.max", "24M")], [("memory.limit_in_bytes", "24M")])]

    def disk():
        numbers = disk_numbers(folder)
        two, one = f"{numbers} rbps=4194304", f"{numbers} 4194304"
        return [Limit("io", [("io.max", two)], [("blkio.throttle.read_bps_device", one)])]

    return [
        Plant("quota", "20 ms of CPU per 100 ms, of which `reporter` of the same program uses most", ["report"], QUOTA,
              limits=quota, never=r"while \S+ ran|process (gzip|head)", is_logged=False, waits_for_a_cpu=False),
        Plant("bound", "bound to a CPU that four `packer` use in bursts", ["none", "cpu=0", "work=4000"], r"packer",
              packers, apart=True),
        Plant("real-time", "bound to a CPU that `firmwared` (SCHED_FIFO) takes for 40 ms", ["none", "cpu=0"],
              r"firmwared", hog),
        Plant("weight", "a tenth of the usual weight, bound to a CPU that four `packer` use in bursts",
              ["none", "cpu=0"], r"packer|priority|weight", packers, limits=weight, apart=True),
        Plant("inversion", "`indexer` (SCHED_FIFO) keeps the holder of its lock from running, and itself",
              ["stock", "cpu=0"], r"indexer", inversion, apart=True),
        Plant("memory", "24 MiB of memory, of which `importer` takes the mapped pages", ["import", "cpu=0"],
              r"fault|reclaim|memory|disk|look_up", import_beside, limits=memory, apart=True),
        Plant("disk", "4 MiB a second from the disk, which `archiver` of the same program uses up", ["archive"],
              r"disk|pread", archive_beside, limits=disk, never="CPU quota"),
        Plant("frozen", "`checkpointd` freezes the control group for 60 ms", ["none"],
              r"frozen|freez|checkpointd|suspend", freezer),
        Plant("stopped", "`backupd` stops the process (SIGSTOP) for 60 ms", ["none"], r"stopped|backupd|signal",
              stopper),
        Plant("network", "asks over a slow link, whose queue `mirrord` fills", ["none"],
              r"network|packet|does not show", network),
    ]
