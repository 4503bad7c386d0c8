"""A process that has loaded PyTorch, and forks for each training: a small one takes less time than to load PyTorch.

serve() listens at a Unix socket, which hwnas names in HWNAS_FORK_SERVER. hand_over() in another process sends the
server its command line, environment and standard files, and waits: so whoever started that process hears what the fork
says, and how it ends. The fork ends when that process is told to end, or is gone, or when the server is. The server does
nothing but load and fork, so a fork is what a process is that has just loaded PyTorch. Where there is no server, or it
cannot fork, that process does its work itself."""
import ctypes
import json
import os
import selectors
import signal
import socket
import sys

VARIABLE = "HWNAS_FORK_SERVER"
MOST_BYTES = 1 << 20  # of a request
SECONDS = 2  # for a request, once a client is there
BEGUN = b"begun"
PR_SET_PDEATHSIG = 1


def end(process, number):
    """A fork and what it started."""
    try:
        os.killpg(process, number)
    except ProcessLookupError:  # it does not lead its group yet
        os.kill(process, number)


class Client:
    """A process that handed its work over, and the fork that does it."""

    def __init__(self, events, connection):
        self.events, self.connection, self.files = events, connection, []

    def read(self):
        """Raises OSError or ValueError where it is gone before it has said what it wants."""
        self.connection.settimeout(SECONDS)
        request, self.files, _, _ = socket.recv_fds(self.connection, MOST_BYTES, 3)
        self.connection.settimeout(None)
        self.request = json.loads(request)

    def refuse(self):
        for file in self.files:
            os.close(file)
        self.connection.close()

    def take_place(self, server):
        """In the fork."""
        os.setpgid(0, 0)
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != server:
            os._exit(1)
        for number, file in enumerate(self.files):
            os.dup2(file, number)
            os.close(file)
        self.connection.close()
        os.chdir(self.request["folder"])
        os.sched_setaffinity(0, self.request["cores"])
        os.environ.clear()
        os.environ.update(self.request["environment"])
        sys.argv = self.request["arguments"]

    def watch(self, process):
        """In the server. Raises OSError where there are too many files."""
        self.process, self.ended = process, os.pidfd_open(process)
        for file in self.files:
            os.close(file)
        self.events.register(self.connection, selectors.EVENT_READ, self.hear)
        self.events.register(self.ended, selectors.EVENT_READ, self.bury)
        try:
            self.connection.send(BEGUN)
        except OSError:  # it is gone, as will be heard
            pass

    def hear(self):
        try:
            is_told = bool(self.connection.recv(1))
        except ConnectionError:
            is_told = False
        if not is_told:
            self.events.unregister(self.connection)
        end(self.process, signal.SIGTERM if is_told else signal.SIGKILL)

    def bury(self):
        self.events.unregister(self.ended)
        os.close(self.ended)
        end(self.process, signal.SIGKILL)  # what it left behind; its number is its own until it is waited for
        _, status = os.waitpid(self.process, 0)
        if self.connection in self.events.get_map():
            self.events.unregister(self.connection)
            try:
                self.connection.send(str(status).encode())
            except OSError:  # it does not want to know any more
                pass
        self.connection.close()


def serve(path, load):
    """load() loads what forks need; who connects meanwhile waits. Returns in forks alone."""
    os.close(os.pidfd_open(os.getpid()))  # where that cannot be, a server is of no use
    server = os.getpid()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(path)
    listener.listen(64)
    print("ready", flush=True)
    load()
    events = selectors.DefaultSelector()
    events.register(listener, selectors.EVENT_READ)
    while True:
        (key, _), *_ = events.select()  # one: what it does may undo the others
        if key.data:
            key.data()
            continue
        client, process = Client(events, listener.accept()[0]), None
        try:
            client.read()
            process = os.fork()
            if process == 0:
                break
            client.watch(process)
        except (OSError, ValueError):
            client.refuse()
            if process:
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, 0)
    for key in list(events.get_map().values()):
        key.fileobj.close() if key.fileobj is not key.fd else os.close(key.fd)
    events.close()
    client.take_place(server)


def receive(connection):
    """b"": there is nobody any more."""
    try:
        return connection.recv(64)
    except ConnectionError:
        return b""


def pass_on(connection):
    """The server is told to end the fork, if it is there."""
    try:
        connection.send(b".")
    except OSError:  # it ended, and the fork with it: who waits for it hears that
        pass


def hand_over():
    """To the server, if there is one: then this process ends as the fork did."""
    path = os.environ.get(VARIABLE)
    if not path:
        return
    request = {"arguments": sys.argv, "environment": dict(os.environ), "folder": os.getcwd(),
               "cores": sorted(os.sched_getaffinity(0))}
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        connection.connect(path)
        socket.send_fds(connection, [json.dumps(request).encode()], [0, 1, 2])
    except OSError:  # it is gone, or cannot be told as much
        return
    if receive(connection) != BEGUN:  # before that, being told to end is the end of both
        return
    signal.signal(signal.SIGTERM, lambda *_: pass_on(connection))
    status = receive(connection)
    if not status:
        sys.exit(f"{os.path.basename(sys.argv[0])}: the process that had loaded PyTorch ended")
    status = int(status)
    if os.WIFSIGNALED(status):
        if os.WTERMSIG(status) != signal.SIGKILL:
            signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    os._exit(os.waitstatus_to_exitcode(status))
