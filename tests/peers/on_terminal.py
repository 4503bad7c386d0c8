"""on_terminal.py COLUMNS COMMAND...: runs a command on a terminal of its own, and prints what it printed there."""
import fcntl
import os
import pty
import struct
import sys
import termios

columns, command = int(sys.argv[1]), sys.argv[2:]
child, terminal = pty.fork()
if child == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    os.execvp(command[0], command)
printed = b""
while True:
    try:
        some = os.read(terminal, 65536)
    except OSError:  # Linux says so when nobody has the terminal open any more
        break
    if not some:
        break
    printed += some
# All of it together: two reads may share a line's end.
sys.stdout.buffer.write(printed.replace(b"\r\n", b"\n"))
sys.stdout.flush()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
