"""Requests without a pause, from several threads, on the host's socket and through a web server."""
import threading

from lib import wire
from lib.wait import wait_until

# Runs in the network of the machine: `METHOD PATH`, over one kept connection, until its input ends.
THROUGH_HTTP = """
import http.client, sys, threading
method, path = sys.argv[1:]
ended = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
connection = http.client.HTTPConnection("127.0.0.1", 80, timeout=30)
while not ended.is_set():
    try:
        connection.request(method, path, body=b"x" * 100 if method == "POST" else None)
        answer = connection.getresponse()
        answer.read()
        print(answer.status, flush=True)
        if answer.status != 200:
            connection.close()
    except (OSError, http.client.HTTPException) as e:
        print(repr(e), flush=True)
        connection.close()
"""


class Load:
    """Between its beginning and its end every request is counted; `failed` has those without a whole 200."""

    def __init__(self, machine, direct, through_http=()):
        """`direct`: (path, text of the answer) for each thread; `through_http`: (method, path) for each program."""
        self.machine, self.direct, self.through_http = machine, direct, through_http
        self.counts, self.failed, self.ended = {}, [], threading.Event()
        self.lock = threading.Lock()

    def __enter__(self):
        self.threads = [threading.Thread(target=self.ask_socket, args=pair) for pair in self.direct]
        self.programs = [self.machine.client(THROUGH_HTTP, *pair) for pair in self.through_http]
        self.threads += [threading.Thread(target=self.read_program, args=pair)
                         for pair in zip(self.programs, self.through_http, strict=True)]
        for thread in self.threads:
            thread.start()
        self.wait_more(3)
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.wait_more(3)       # what came last works too
        self.ended.set()
        for program in self.programs:
            program.stdin.close()
        for thread in self.threads:
            thread.join()
        for program in self.programs:
            program.wait(30)
            program.stdout.close()

    def wait_more(self, more):
        """Until each has had `more` answers."""
        before = dict(self.counts)
        names = [*self.direct, *self.through_http]
        wait_until(lambda: all(self.counts.get(n, 0) >= before.get(n, 0) + more for n in names), 60, f"answers: {self.counts}")

    def count(self, name, problem):
        with self.lock:
            self.counts[name] = self.counts.get(name, 0) + 1
            if problem:
                self.failed.append((name, problem))

    def ask_socket(self, path, text):
        while not self.ended.is_set():
            try:
                answer = wire.request(self.machine.host_socket(), path, timeout=60)
                fine = answer.status == 200 and answer.complete and text in answer.text
                self.count((path, text), None if fine else repr(answer))
            except OSError as e:
                self.count((path, text), repr(e))

    def read_program(self, program, name):
        for line in program.stdout:
            self.count(name, None if line == "200\n" else line.strip())
