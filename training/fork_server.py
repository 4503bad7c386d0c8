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
import time
import traceback

VARIABLE = "HWNAS_FORK_SERVER"
MOST_BYTES = 1 << 20  # of a request
SECONDS = 2  # for a request, once a client is there
PATIENCE = 120  # seconds for a server to load PyTorch and to fork; one that is stopped or stuck never does
BEGUN = b"begun"
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
KILL_ROUNDS, KILL_PAUSE = 1000, 0.005


def prctl(option, value):
    ctypes.CDLL(None).prctl(option, value)


def end_with(parent):
    """This process ends when its parent does."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


class Client:
    """A process that handed its work over: its connection, what it wants, and its standard files."""

    def __init__(self, connection):
        """Raises OSError or ValueError where it is gone before it has said what it wants."""
        self.connection, self.files = connection, []
        try:
            connection.settimeout(SECONDS)
            request, self.files, _, _ = socket.recv_fds(connection, MOST_BYTES, 3)
            connection.settimeout(None)
            self.request = json.loads(request)
            if is_closed(connection):
                raise ValueError("it does its work itself")
        except (OSError, ValueError):
            self.close()
            raise

    def close_files(self):
        for file in self.files:
            os.close(file)

    def close(self):
        self.close_files()
        self.connection.close()

    def take_place(self):
        for number, file in enumerate(self.files):
            os.dup2(file, number)
        self.close()
        os.chdir(self.request["folder"])
        os.sched_setaffinity(0, self.request["cores"])
        os.environ.clear()
        os.environ.update(self.request["environment"])
        sys.argv = self.request["arguments"]

    def send(self, what):
        try:
            self.connection.send(what)
        except OSError:  # it is gone, as will be heard, or does not want to know any more
            pass


def children_of_this():
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        return {int(child) for child in file.read().split()}


class Keeper:
    """The parent of a training: it inherits whoever that starts and leaves, and ends them all with it."""

    def __init__(self, client, training):
        self.client, self.training = client, training

    def tell(self, number):
        """The training's group, and who left that and lost its parent."""
        children = children_of_this()
        of_group = [(os.killpg, self.training)] if self.training in children else []  # its number is its own until then
        for send, process in (*of_group, *((os.kill, child) for child in children - {self.training})):
            try:
                send(process, number)
            except OSError:  # it has no group of its own yet, is gone, or is not ours to end
                pass

    def watch(self):
        """Until the training has ended."""
        ended, events = os.pidfd_open(self.training), selectors.DefaultSelector()
        events.register(ended, selectors.EVENT_READ)
        events.register(self.client.connection, selectors.EVENT_READ)
        while ended not in [key.fileobj for key, _ in events.select()]:
            is_told = bool(receive(self.client.connection))
            if not is_told:
                events.unregister(self.client.connection)
            self.tell(signal.SIGTERM if is_told else signal.SIGKILL)

    def end_all(self):
        """Returns how the training ended. What the kernel does not let go of in seconds is left to it."""
        of_training = signal.SIGKILL
        for _ in range(KILL_ROUNDS):
            self.tell(signal.SIGKILL)
            try:
                while (found := os.waitpid(-1, os.WNOHANG))[0]:
                    of_training = found[1] if found[0] == self.training else of_training
            except ChildProcessError:
                break
            time.sleep(KILL_PAUSE)
        return of_training


def do(client, server):
    """In a fork of the server, which becomes the keeper. Returns in the training."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    end_with(server)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    itself = os.getpid()
    training = os.fork()
    if training == 0:
        os.setpgid(0, 0)
        end_with(itself)
        return client.take_place()
    os.setpgid(training, training)
    client.close_files()
    client.send(BEGUN)
    keeper = Keeper(client, training)
    keeper.watch()
    client.send(str(int(keeper.end_all())).encode())
    os._exit(0)


def reap(*_):
    """Forks that have ended; what they cost is part of what this process did."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def serve(path, load):
    """load() loads what forks need; who connects meanwhile waits. Returns in trainings alone."""
    os.close(os.pidfd_open(os.getpid()))  # where this or that cannot be, a server is of no use
    children_of_this()
    server = os.getpid()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(path)
    listener.listen(64)
    print("ready", flush=True)
    load()
    signal.signal(signal.SIGCHLD, reap)
    while True:
        try:
            client = Client(listener.accept()[0])
        except (OSError, ValueError):
            continue
        try:
            is_fork = os.fork() == 0
        except OSError:  # the client does its work itself
            is_fork = False
        if is_fork:
            break
        client.close()
    listener.close()
    do(client, server)


def end_after(work):
    """Ends a training as a program would that is only that work. What the server had loaded is not taken apart, which takes
    PyTorch's modules longer than a small training."""
    status = 0
    try:
        work()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        if status and not isinstance(end.code, int):
            print(end.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
        status = 1
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        status = 120  # as Python has it
    os._exit(status & 0xFF)


def receive(connection, seconds=None):
    """b"": there is nobody any more, or nobody who says anything in time."""
    try:
        connection.settimeout(seconds)
        return connection.recv(64)
    except (ConnectionError, TimeoutError):
        return b""


def is_closed(connection):
    """At the other end; who is there has nothing to say yet."""
    try:
        return not connection.recv(64, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False


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
    if receive(connection, PATIENCE) != BEGUN:  # before that, being told to end is the end of both
        connection.close()
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
