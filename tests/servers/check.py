"""Record real servers under load, beside two loud strangers, and compare the executions with the programs' own logs.

usage: check.py [--bin PATH] [--keep DIR] [SERVER ...]     as root, with perf and cc; a server
                                                          that is not installed is left out

For each server: `serve:` and `call:` executions equal the log in number within 2 % and in duration within 5 % at the
median and the 99th percentile; and the answer where no question was asked, on a recording around the load and on one of
the server (`--pid`), is about the server. Servers that keep no log of durations (Redis, memcached, nginx) are held to the log of their client alone.
Exit status 1 where anything differs.
"""
import argparse, json, os, shutil, socket, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
COUNT, DURATION = 0.02, 0.05


def tool(name):
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/bin:/usr/lib/go/bin")


class Server:
    """`prepare` is called with the port before the server starts, `fill` when it listens."""

    def __init__(self, kind, needs, comm, command, logs=True, prepare=None, fill=None):
        self.kind, self.needs, self.comm, self.command = kind, needs, comm, command
        self.logs, self.prepare, self.fill = logs, prepare, fill


def servers(folder):
    """All servers; {port} and {log} are filled in."""
    python, node, java = f"{folder}/line-python", tool("node"), tool("java")
    os.symlink(sys.executable, python)
    subprocess.run(["cc", "-O1", "-pthread", "-o", f"{folder}/load", f"{HERE}/load.c"], check=True)

    def with_class(port):
        subprocess.run([tool("javac"), "-d", folder, f"{HERE}/Line.java"], check=True)

    def with_go(port):
        environment = dict(os.environ, GOCACHE=f"{folder}/go", GO111MODULE="off", HOME=folder)
        subprocess.run([tool("go"), "build", "-o", f"{folder}/line-go", f"{HERE}/line.go"], check=True, env=environment)

    def with_nginx(port):
        site = f"{folder}/site"
        os.makedirs(site, exist_ok=True)
        for name, size in [("small", 1_000), ("large", 3_000_000)]:
            with open(f"{site}/{name}", "w") as out:
                out.write("x" * size + "\nthe end\n")
        os.chmod(folder, 0o755)
        with open(f"{folder}/nginx.conf", "w") as out:
            out.write(
                f"daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/error.log;\n"
                f"user root; events {{}} http {{ access_log off; keepalive_requests 100000;\n"
                f"server {{ listen 127.0.0.1:{port}; root {site}; }} }}\n"
            )

    return [
        Server("python", ["python3"], "line-python", [python, f"{HERE}/line.py", "{port}", "{log}"]),
        Server("node", ["node"], "node", [node, f"{HERE}/line.js", "{port}", "{log}"]),
        Server("java", ["java", "javac"], "java", [java, "-cp", folder, "Line", "{port}", "{log}"], prepare=with_class),
        Server("go", ["go"], "line-go", [f"{folder}/line-go", "{port}", "{log}"], prepare=with_go),
        Server("redis", ["redis-server"], "redis-server",
               ["redis-server", "--port", "{port}", "--save", "", "--dir", folder], logs=False),
        Server("memcached", ["memcached"], "memcached",
               ["memcached", "-u", "root", "-l", "127.0.0.1", "-p", "{port}", "-I", "4m"], logs=False,
               fill=fill_memcached),
        Server("nginx", ["nginx"], "nginx", [tool("nginx"), "-c", f"{folder}/nginx.conf"], logs=False,
               prepare=with_nginx),
    ]


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def await_port(port):
    for _ in range(400):
        try:
            return socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.05)
    sys.exit(f"nothing listens on port {port}")


def fill_memcached(port):
    with socket.create_connection(("127.0.0.1", port)) as one:
        for name, size in [("small", 100), ("large", 2_000_000)]:
            one.sendall(f"set {name} 0 0 {size}\r\n".encode() + b"x" * size + b"\r\n")
            one.recv(100)


def durations(path):
    """The least and the greatest duration of each request or call: a log has a time on either side of a send."""
    with open(path) as log:
        lines = [[int(time) for time in line.split()] for line in log]
    return [sorted(times[at] - times[0] for times in lines) for at in (1, -1)]


def percentile(values, percent):
    return values[min(len(values) - 1, -(-len(values) * percent // 100) - 1)]


def run(bin_path, words):
    out = subprocess.run([bin_path, *words], capture_output=True, text=True)
    if out.returncode:
        sys.exit(f"whyslow {' '.join(words)}: {out.stderr.strip()}")
    return out.stdout


def compare(bin_path, recording, task, log, failures):
    lines = run(bin_path, ["executions", "--json", "--task", task, recording]).splitlines()
    found = sorted(json.loads(line)["duration_ns"] for line in lines)
    least, most = durations(log)
    row = [f"{len(found)}/{len(least)}"]
    if abs(len(found) - len(least)) > COUNT * len(least):
        failures.append(f"{task}: {len(found)} executions, {len(least)} in the log")
    for percent in (50, 99):
        got, low, high = (percentile(values, percent) if values else 0 for values in (found, least, most))
        row.append(f"p{percent} {got / 1e6:.3f}/{low / 1e6:.3f}-{high / 1e6:.3f} ms")
        if not low * (1 - DURATION) <= got <= high * (1 + DURATION):
            failures.append(f"{task}: p{percent} is {got} ns, {low} to {high} ns in the log")
    print(f"  {task:22} {'  '.join(row)}")


def hold(server, folder, options):
    port, log, calls = free_port(), f"{folder}/{server.kind}.log", f"{folder}/{server.kind}.calls"
    if server.prepare:
        server.prepare(port)
    command = [word.format(port=port, log=log) for word in server.command]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    loud = "while :; do head -c 3000000 /dev/urandom | gzip -9 > /dev/null; done"
    strangers = [subprocess.Popen(["sh", "-c", loud], start_new_session=True) for _ in range(2)]
    recordings = [f"{folder}/{server.kind}-{how}" for how in ("command", "server")]
    failures = []
    try:
        await_port(port)
        if server.fill:
            server.fill(port)
        load = [f"{folder}/load", server.kind, str(port), calls]
        record = ["record", "--with", "perf"]
        # The system calls of the server, too.
        run(options.bin, [*record, "--full", "-o", recordings[0], "--no-open", "--", *load])
        compare(options.bin, recordings[0], "call:load", calls, failures)
        if server.logs:
            compare(options.bin, recordings[0], f"serve:{server.comm}", log, failures)
        with subprocess.Popen(load):
            time.sleep(0.3)
            run(options.bin, [*record, "-o", recordings[1], "--no-open", "--pid", str(process.pid), "-d", "2s"])
        for recording in recordings:
            answer = json.loads(run(options.bin, ["explain", "--json", recording]))
            sentence = answer["verdict"]["sentence"]
            print(f"  {os.path.basename(recording):22} {sentence[:110]}")
            if server.comm not in sentence.split(":")[0]:
                failures.append(f"{recording}: the answer is about {answer['task']}")
    finally:
        for stranger in strangers:
            os.killpg(stranger.pid, 9)
        process.terminate()
        process.wait()
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="target/release/whyslow")
    parser.add_argument("--keep", help="folder for the recordings (default: a temporary one)")
    parser.add_argument("servers", nargs="*")
    options = parser.parse_args()
    options.bin = os.path.abspath(options.bin)
    folder = tempfile.mkdtemp() if options.keep is None else os.path.abspath(options.keep)
    os.makedirs(folder, exist_ok=True)
    failed = False
    for server in servers(folder):
        if options.servers and server.kind not in options.servers:
            continue
        missing = [name for name in server.needs if not tool(name)]
        if missing:
            print(f"{server.kind}: left out, {missing[0]} is not installed")
            continue
        print(server.kind)
        failures = hold(server, folder, options)
        for failure in failures:
            print(f"  DIFFERS: {failure}")
        failed |= bool(failures)
    if options.keep is None:
        shutil.rmtree(folder)
    sys.exit(failed)


main()
