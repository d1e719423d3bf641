"""A server of a line protocol on an event loop: `MICROSECONDS` is computed for, then `ok`.

usage: line.py PORT LOG: writes when each request began and when its reply was about to be sent and had been sent, in
ns of CLOCK_MONOTONIC. One thread serves all
connections: with several, a request would begin for the program once it has the interpreter's lock, and for its socket
before.
"""
import selectors, socket, sys, time

log = open(sys.argv[2], "w")
ready = selectors.DefaultSelector()
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
ready.register(listener, selectors.EVENT_READ)
while True:
    for key, _ in ready.select():
        if key.fileobj is listener:
            connection = listener.accept()[0]
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            ready.register(connection, selectors.EVENT_READ)
            continue
        data = key.fileobj.recv(64)
        begin = time.monotonic_ns()
        if not data:
            ready.unregister(key.fileobj)
            key.fileobj.close()
            continue
        until = begin + int(data) * 1000
        while time.monotonic_ns() < until:
            pass
        sends = time.monotonic_ns()
        key.fileobj.sendall(b"ok\n")
        log.write(f"{begin} {sends} {time.monotonic_ns()}\n")
        log.flush()
