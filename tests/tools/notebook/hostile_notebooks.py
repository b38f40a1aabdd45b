"""Notebooks that try to escape, to read host data, or to exhaust resources. None of them may succeed.

`PROBES` do not damage their kernel, so that they can share one. `DESTROYERS` need their own kernels. An attack that
succeeds prints ESCAPED. `{…}` is replaced by facts about the host, which make the attacks stronger.
"""

import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass

from foretell.tools.notebook.notebook import PythonCell
from foretell.tools.notebook.sandbox import ARCHITECTURES, DENIED
from foretell.tools.notebook.session import CellResult

TOOLS = '''
import ctypes, errno, os, socket, subprocess, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)

def attempt(what, attack):
    try:
        got = attack()
    except Exception as error:
        name = errno.errorcode.get(getattr(error, "errno", None) or 0, "")
        print(what, "->", type(error).__name__, name)
    else:
        print("ESCAPED", what, repr(got)[:200])

def call(name, *arguments):
    """A function of the C library; OSError where it fails."""
    if getattr(libc, name)(*arguments) == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return "worked"

def syscall(number, *arguments):
    return call("syscall", ctypes.c_long(number), *map(ctypes.c_long, arguments))

def connect(family, kind, address):
    with socket.socket(family, kind) as door:
        door.settimeout(2)
        door.connect(address)
        door.send(b"hello")
        return "connected"
'''


@dataclass(frozen=True, kw_only=True)
class Attack:
    """A notebook with one cell, and the expected report."""

    name: str
    code: str
    says: str
    """A pattern for the whole report."""
    how: str = "done"
    """The expected endings of its cell, separated by a bar."""
    seconds: float = 20.0
    """The time limit of the cell; short for attacks that never end."""

    def cell(self, names: Mapping[str, str]) -> PythonCell:
        """Return its code with the facts about the host filled in."""
        place = ARCHITECTURES.get(platform.machine(), (0, 0))[0]
        code = self.code.replace("{syscalls}", repr({name: numbers[place] for name, numbers in DENIED.items()}))
        for name, value in names.items():
            code = code.replace("{" + name + "}", value)
        return PythonCell(source=TOOLS + code)

    def fault(self, result: CellResult) -> str | None:
        """Return what is wrong: it escaped, ended in another way, or its report does not match; else None."""
        contained = "ESCAPED" not in result.report and result.how in self.how.split("|")
        reported = re.search(self.says, result.report, re.DOTALL)
        return None if contained and reported else f"{result.how}: {result.report[:2_000]}"


NETWORK = (
    Attack(
        name="tcp to the internet",
        code="attempt('tcp', lambda: connect(socket.AF_INET, socket.SOCK_STREAM, ('1.1.1.1', 53)))",
        says="tcp -> OSError ENETUNREACH",
    ),
    Attack(
        name="tcp over IPv6",
        code="attempt('tcp6', lambda: connect(socket.AF_INET6, socket.SOCK_STREAM, ('2606:4700:4700::1111', 53)))",
        says="tcp6 -> OSError ENETUNREACH",
    ),
    Attack(
        name="udp to the internet",
        code="attempt('udp', lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('8.8.8.8', 53)))",
        says="udp -> OSError ENETUNREACH",
    ),
    Attack(
        name="names of hosts",
        code="attempt('dns', lambda: socket.getaddrinfo('example.com', 80))",
        says="dns -> gaierror",
    ),
    Attack(
        name="the host's own server",
        code="attempt('localhost', lambda: connect(socket.AF_INET, socket.SOCK_STREAM, ('127.0.0.1', {port})))",
        says="localhost -> ConnectionRefusedError",
    ),
    Attack(
        name="a web page",
        code="""
import urllib.request
attempt('http', lambda: urllib.request.urlopen('http://127.0.0.1:{port}/', timeout=2).read())
attempt('https', lambda: urllib.request.urlopen('https://example.com/', timeout=2).read())
""",
        says="http -> URLError.*https -> URLError",
    ),
    Attack(
        name="a socket of the host by its path",
        code="attempt('unix', lambda: connect(socket.AF_UNIX, socket.SOCK_STREAM, {unix_path!r}))",
        says="unix -> FileNotFoundError",
    ),
    Attack(
        name="a socket of the host without a path",
        code="attempt('abstract', lambda: connect(socket.AF_UNIX, socket.SOCK_STREAM, {abstract!r}))",
        says="abstract -> ConnectionRefusedError",
    ),
    Attack(
        name="raw packets",
        code="""
attempt('raw', lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP))
attempt('packet', lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
""",
        says="raw -> PermissionError.*packet -> OSError EAFNOSUPPORT",
    ),
    Attack(
        name="the machine below a virtual machine",
        code="attempt('vsock', lambda: socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM))",
        says="vsock -> OSError EAFNOSUPPORT",
    ),
    Attack(
        name="a network device of its own",
        code="""
result = subprocess.run(['/bin/sh', '-c', 'ip link add x0 type dummy'], capture_output=True)
print('link', result.returncode != 0)
""",
        says="link True",
    ),
)

FILES = (
    Attack(
        name="passwords",
        code="for name in ('shadow', 'passwd'): attempt(name, lambda: open('/etc/' + name).read())",
        says="shadow -> FileNotFoundError.*passwd -> FileNotFoundError",
    ),
    Attack(
        name="homes and keys",
        code="""
for path in ('/home', '/root/.ssh', '/root/.bash_history', '/var', '/run', '/srv', '/sys', '/boot', {home!r} + '/.ssh'):
    attempt(path, lambda: os.listdir(path))
""",
        says="/home -> FileNotFoundError.*/root/.ssh -> FileNotFoundError.*/sys -> FileNotFoundError",
    ),
    Attack(
        name="a secret file whose path is known",
        code="attempt('secret', lambda: open({secret!r}).read())",
        says="secret -> FileNotFoundError",
    ),
    Attack(
        name="variables of the host",
        code="""
print(sorted(os.environ))
for path in ('/proc/self/environ', '/proc/1/environ'):
    try:
        text = open(path).read()
    except OSError as error:
        text = type(error).__name__
    print(path, 'ESCAPED' if 'canary' in text.lower() else 'clean')
print('ESCAPED' if 'canary' in str(os.environ).lower() else 'clean')
""",
        says="self/environ clean.*1/environ clean.*clean",
    ),
    Attack(
        name="memory of the first process",
        code="""
attempt('mem', lambda: open('/proc/1/mem', 'rb').read(8))
attempt('write', lambda: open('/proc/1/mem', 'wb').write(b'x'))
print(sorted(int(name) for name in os.listdir('/proc') if name.isdigit()))
attempt('host process', lambda: open('/proc/{process}/environ').read())
""",
        says=r"write -> (PermissionError|OSError EROFS).*\[1, 2.*host process -> FileNotFoundError",
    ),
    Attack(
        name="ptrace",
        code="""
attempt('ptrace', lambda: call('ptrace', 16, 1, 0, 0))
attempt('read memory', lambda: call('process_vm_readv', 1, 0, 0, 0, 0, 0))
""",
        says="ptrace -> PermissionError.*read memory -> PermissionError",
    ),
    Attack(
        name="writing outside",
        code="""
for path in ('/x', '/usr/x', '/etc/x', '/bin/x', '/api/x', '/proc/x', '/dev/x', os.__file__, sys.executable):
    attempt(path, lambda: open(path, 'a').write('x'))
""",
        says="/x -> OSError EROFS.*/usr/x -> OSError EROFS.*/api/x -> OSError EROFS",
    ),
    Attack(
        name="settings of the machine",
        code="""
for name in ('sys/kernel/core_pattern', 'sys/vm/stat_interval', 'sysrq-trigger', 'self/oom_score_adj'):
    attempt(name, lambda: open('/proc/' + name, 'w').write('|/bin/sh'))
""",
        says="core_pattern -> (PermissionError|OSError EROFS).*stat_interval -> (PermissionError|OSError EROFS)",
    ),
    Attack(
        name="memory and disks as devices",
        code="""
for name in ('mem', 'kmem', 'kmsg', 'vda', 'sda', 'fuse', 'kvm', '../proc/kcore', '../proc/kmsg'):
    attempt(name, lambda: open('/dev/' + name, 'rb').read(16))
attempt('mknod', lambda: os.mknod('disk', 0o600 | 0o060000, os.makedev(8, 0)))
attempt('mknod in tmp', lambda: os.mknod('/tmp/mem', 0o600 | 0o020000, os.makedev(1, 1)))
""",
        says="mem -> FileNotFoundError.*mknod -> PermissionError.*mknod in tmp -> PermissionError",
    ),
    Attack(
        name="second names for files outside",
        code="""
attempt('link', lambda: os.link(sys.executable, 'python'))
attempt('link to a setting', lambda: os.link('/etc/ld.so.cache', 'cache'))
attempt('proc link', lambda: os.link('/proc/self/fd/0', 'null', follow_symlinks=True))
""",
        says="link -> OSError EXDEV.*link to a setting -> (OSError EXDEV|FileNotFoundError)",
    ),
    Attack(
        name="the root behind the root",
        code="""
for path in ('/proc/1/root/etc/shadow', '/proc/1/cwd/../../etc/shadow', '../../../etc/shadow', '/oldroot', '/newroot'):
    attempt(path, lambda: open(path).read())
os.makedirs('a/b', exist_ok=True)
attempt('up', lambda: open('/notebook/a/b/../../../../../..' + {secret!r}).read())
""",
        says="shadow -> (PermissionError|FileNotFoundError).*up -> FileNotFoundError",
    ),
    Attack(
        name="files that were left open",
        code="""
for name in os.listdir('/proc/self/fd'):
    try:
        target = os.readlink('/proc/self/fd/' + name)
    except OSError:
        continue
    if target.startswith('/') and not target.startswith(('/dev/', '/proc/', '/notebook', '/tmp', '/usr/', '/wire')):
        print('ESCAPED', target)
print('looked')
""",
        says="looked",
    ),
)

PRIVILEGES = (
    Attack(
        name="mount",
        code="""
attempt('mount', lambda: call('mount', b'none', b'/tmp', b'tmpfs', 0, 0))
attempt('umount', lambda: call('umount2', b'/proc', 2))
attempt('remount', lambda: call('mount', b'', b'/', b'', 32 | 4096, 0))
""",
        says="mount -> PermissionError.*umount -> PermissionError.*remount -> PermissionError",
    ),
    Attack(
        name="a namespace of its own",
        code="""
for flag in (0x10000000, 0x00020000, 0x20000000, 0x40000000):
    attempt(hex(flag), lambda: call('unshare', flag))
print(subprocess.run(['unshare', '-Ur', 'id'], capture_output=True).returncode != 0)
""",
        says="0x10000000 -> PermissionError.*0x40000000 -> PermissionError.*True",
    ),
    Attack(
        name="chroot",
        code="attempt('chroot', lambda: os.chroot('/tmp'))",
        says="chroot -> PermissionError",
    ),
    Attack(
        name="becoming somebody else",
        code="""
attempt('setuid', lambda: os.setuid(0) if os.getuid() else os.setuid(1))
attempt('setgroups', lambda: os.setgroups([0]))
status = dict(line.split(':', 1) for line in open('/proc/self/status'))
print('caps', int(status['CapEff'], 16), int(status['CapBnd'], 16), 'nnp', status['NoNewPrivs'].strip())
""",
        says="setuid -> (PermissionError|OSError EINVAL).*setgroups -> PermissionError.*caps 0 0 nnp 1",
    ),
    Attack(
        name="programs that lend root's rights",
        code="""
import stat
lenders = [path for path in ('/usr/bin/su', '/usr/bin/passwd', '/usr/bin/mount', '/usr/bin/sudo', '/usr/bin/newgrp')
           if os.path.exists(path) and os.stat(path).st_mode & stat.S_ISUID]
mounted = [line.split() for line in open('/proc/self/mountinfo')]
print('nosuid', all('nosuid' in row[5] for row in mounted))
for path in lenders[:2]:
    print(path, subprocess.run([path, '-c', 'id -u'], capture_output=True, stdin=subprocess.DEVNULL, timeout=10).stdout)
""",
        says="nosuid True",
    ),
    Attack(
        name="higher limits",
        code="""
import resource
for name in ('AS', 'NOFILE', 'FSIZE', 'CPU', 'CORE', 'NPROC'):
    number = getattr(resource, 'RLIMIT_' + name)
    hard = resource.getrlimit(number)[1]
    if hard == resource.RLIM_INFINITY and name != 'NPROC':
        print('ESCAPED', name, 'is unlimited')
    elif hard != resource.RLIM_INFINITY:
        attempt(name, lambda: resource.setrlimit(number, (hard + 1, hard + 1)))
""",
        says="AS -> ValueError.*NOFILE -> ValueError.*CPU -> ValueError",
    ),
    Attack(
        name="going first",
        code="""
attempt('nice', lambda: os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0) - 5))
attempt('realtime', lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50)))
""",
        says="nice -> PermissionError.*realtime -> PermissionError",
    ),
    Attack(
        name="deep system calls",
        code="""
for name, number in {syscalls}.items():
    attempt(name, lambda: syscall(number, 0, 0, 0, 0, 0, 0))
""",
        says="bpf -> PermissionError.*io_uring_setup -> PermissionError.*keyctl -> Perm.*memfd_create -> Perm",
    ),
    Attack(
        name="the machine itself",
        code="""
attempt('reboot', lambda: call('reboot', 0x01234567))
attempt('hostname', lambda: socket.sethostname('mine'))
attempt('clock', lambda: time.clock_settime(time.CLOCK_REALTIME, 0))
""",
        says="reboot -> PermissionError.*hostname -> PermissionError.*clock -> PermissionError",
    ),
    Attack(
        name="signals to the host",
        code="""
import signal
attempt('host', lambda: os.kill({process}, signal.SIGKILL))
attempt('parent', lambda: os.kill({parent}, signal.SIGTERM))
os.kill(1, signal.SIGKILL)
time.sleep(0.2)
print('still here', os.path.exists('/proc/1'))
""",
        says="host -> ProcessLookupError.*parent -> ProcessLookupError.*still here True",
    ),
    Attack(
        name="a terminal to type into",
        code="""
import fcntl, termios
attempt('tty', lambda: open('/dev/tty').read(1))
attempt('type', lambda: fcntl.ioctl(0, termios.TIOCSTI, b'x'))
print(os.readlink('/proc/self/fd/0'))
""",
        says="tty -> OSError ENXIO.*type -> OSError",
    ),
    Attack(
        name="modules of the system's kernel",
        code="""
print(subprocess.run(['/bin/sh', '-c', 'modprobe dummy || insmod /x.ko'], capture_output=True).returncode != 0)
attempt('keys', lambda: open('/proc/keys').read() or 1 / 0)
""",
        says="True",
    ),
)

APPEARANCE = (
    Attack(
        name="colours, bells and turned text",
        code=r"print('\x1b[31mred\x1b[0m \x1b]0;title\x07 \x07 \u202eevil \x9b31m done')",
        says=r"\Ared   evil 31m done\Z",
    ),
    Attack(
        name="scripts in HTML",
        code="""
from IPython.display import HTML, Javascript, SVG, display
display(HTML('<table><tr><td onclick="alert(1)">cell</td></tr></table><script>alert(1)</script>'))
display(HTML('<img src=x onerror=alert(1)><a href="javascript:alert(1)">here</a><form action=/><input autofocus>'))
display(Javascript('alert(1)'))
display({'text/html': '<iframe src="https://example.com"></iframe>', 'text/plain': 'frame'}, raw=True)
display({'image/svg+xml': '<svg onload="alert(1)"/>', 'text/plain': 'drawing'}, raw=True)
""",
        says=".",
    ),
    Attack(
        name="an image that is none",
        code="""
import base64
from IPython.display import display
display({'image/png': base64.b64encode(b'<script>alert(1)</script>').decode(), 'text/plain': 'picture'}, raw=True)
display({'image/png': 'not base64 at all!', 'text/plain': 'another'}, raw=True)
""",
        says=r"picture\n\[image/png left out.*another\n\[image/png left out",
    ),
    Attack(
        name="halves of characters",
        code="print('a\\ud800b'); '\\udfff'",
        says="a.b",
        how="done|failed",
    ),
    Attack(
        name="reading from the keyboard",
        code="input('your password: ')",
        says="StdinNotImplementedError",
        how="failed",
    ),
)

PROBES = (*NETWORK, *FILES, *PRIVILEGES, *APPEARANCE)

BOMBS = (
    Attack(
        name="fork bomb",
        code="""
while True:
    try:
        os.fork()
    except OSError:
        pass
""",
        says="interrupted|killed",
        how="interrupted|dead",
        seconds=1.5,
    ),
    Attack(
        name="fork bomb of a shell",
        code="subprocess.run(['/bin/sh', '-c', 'b() { b | b & b; }; b'])\ntime.sleep(60)",
        says=".",
        how="done|interrupted|dead",
        seconds=1.5,
    ),
    Attack(
        name="thread bomb",
        code="""
while True:
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
""",
        says="can't start new thread|killed",
        how="failed|dead",
    ),
    Attack(
        name="all memory at once",
        code="x = bytearray(50 * 1024 ** 3)",
        says="MemoryError",
        how="failed",
    ),
    Attack(
        name="memory little by little",
        code="x = []\nwhile True:\n    x.append(bytearray(b'x') * 10_000_000)",
        says="MemoryError|memory, more than the",
        how="failed|dead",
    ),
    Attack(
        name="memory of many processes",
        code="""
for _ in range(8):
    if os.fork() == 0:
        x = bytearray(b'x') * 120_000_000
        time.sleep(60)
        os._exit(0)
time.sleep(60)
""",
        says="MiB of memory, more than the 400 MiB allowed",
        how="dead",
    ),
    Attack(
        name="memory as files",
        code="""
for folder in ('/tmp', '/dev/shm'):
    def fill():
        for number in range(100):
            with open(folder + '/' + str(number), 'wb') as file:
                file.write(b'x' * 4_000_000)
    attempt(folder, fill)
""",
        says="/tmp -> OSError ENOSPC.*/dev/shm -> OSError ENOSPC",
    ),
    Attack(
        name="memory that outlives who touched it",
        code="""
import mmap
attempt('shared', lambda: mmap.mmap(-1, 1 << 20))
attempt('zero', lambda: mmap.mmap(os.open('/dev/zero', os.O_RDWR), 1 << 20))
attempt('thread', lambda: call('clone', 0, 0, 0x10f00, 0))
pair = socket.socketpair()
pair[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8 << 20)
print('buffer', pair[0].getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) < 8 << 20)
""",
        says="shared -> PermissionError.*zero -> (PermissionError|OSError).*buffer True",
    ),
    Attack(
        name="memory in sockets that nobody accepts",
        code="""
door = socket.socket(socket.AF_UNIX)
door.bind('/tmp/door')
door.listen(4_096)
for _ in range(4_000):
    with socket.socket(socket.AF_UNIX) as caller:
        caller.setblocking(False)
        try:
            caller.connect('/tmp/door')
            while True:
                caller.send(bytes(65_536))
        except BlockingIOError:
            pass
time.sleep(60)
""",
        says="MiB of memory, more than the 400 MiB allowed",
        how="dead",
    ),
    Attack(
        name="large files under way in a socket",
        code="""
inner, outer = (socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(2))
for number in range(8):
    with open('hidden', 'wb', buffering=0) as file:
        os.unlink('hidden')
        file.write(b'x' * 4_000_000)
        socket.send_fds(inner[0], [b'x'], [file.fileno()])
socket.send_fds(outer[0], [b'x'], [one.fileno() for one in inner])
del inner
time.sleep(60)
""",
        says="its files grew beyond the 24 MiB allowed",
        how="dead",
    ),
    Attack(
        name="one huge file",
        code="attempt('file', lambda: open('huge', 'wb').write(b'x' * 50_000_000))",
        says="file -> OSError EFBIG",
    ),
    Attack(
        name="many large files",
        code="""
for number in range(100):
    with open('large' + str(number), 'wb') as file:
        file.write(b'x' * 4_000_000)
time.sleep(60)
""",
        says="its files grew beyond the 24 MiB allowed",
        how="dead",
    ),
    Attack(
        name="large files without names",
        code="""
held = []
for number in range(50):
    file = open('hidden', 'wb', buffering=0)
    os.unlink('hidden')
    file.write(b'x' * 4_000_000)
    held.append(file)
time.sleep(60)
""",
        says="its files grew beyond the 24 MiB allowed",
        how="dead",
    ),
    Attack(
        name="countless files",
        code="""
for number in range(50_000):
    open(str(number), 'w').close()
time.sleep(60)
""",
        says="more than the 2,000 files allowed",
        how="dead",
    ),
    Attack(
        name="countless temporary files",
        code="""
for number in range(50_000):
    os.mknod('/tmp/' + str(number))
time.sleep(60)
""",
        says="more than the 2,000 temporary files allowed",
        how="dead",
    ),
    Attack(
        name="directories without end",
        code="""
while True:
    os.mkdir('d')
    os.chdir('d')
""",
        says="deep",
        how="dead",
    ),
    Attack(
        name="open files without end",
        code="held = []\nwhile True:\n    held.append(open('/dev/null'))",
        says="Too many open files|The kernel died",
        how="failed|dead",
        seconds=1.5,
    ),
)

FLOODS = (
    Attack(
        name="huge output in one go",
        code="print('y' * 50_000_000)",
        says=r"characters left out\]",
    ),
    Attack(
        name="output without end",
        code="while True:\n    print('y' * 1_000)",
        says="interrupted",
        how="interrupted|dead",
        seconds=1.5,
    ),
    Attack(
        name="output in countless pieces",
        code="for _ in range(6_000): print('.', end='', flush=True)",
        says=r"further output left out|interrupted",
        how="done|interrupted",
    ),
    Attack(
        name="output past Python",
        code="for _ in range(2_000): os.write(1, b'z' * 10_000)",
        says="characters left out|z",
    ),
    Attack(
        name="shouting past Jupyter",
        code="while True: os.write(sys.stderr._original_stdstream_copy, b'x' * 65_536)",
        says="The kernel died|interrupted",
        how="interrupted|dead",
        seconds=1.5,
    ),
    Attack(
        name="huge value",
        code="'x' * 20_000_000",
        says=r"characters left out\]",
    ),
    Attack(
        name="huge displays",
        code="""
from IPython.display import HTML, display
display(HTML('<b>' + 'w' * 20_000_000))
display({'image/png': 'A' * 30_000_000, 'text/plain': 'p'}, raw=True)
for _ in range(300):
    display('again')
""",
        says="outputs left out",
    ),
    Attack(
        name="huge exception",
        code="raise ValueError('e' * 30_000_000)",
        says="ValueError",
        how="failed",
    ),
    Attack(
        name="messages past the cutter",
        code="""
kernel = get_ipython().kernel
for _ in range(3):
    kernel.iopub_socket.send_multipart([b'x', b'y' * 30_000_000])
time.sleep(60)
""",
        says="message of more than",
        how="dead",
    ),
    Attack(
        name="rubbish on the wire",
        code="""
import stat
for name in os.listdir('/proc/self/fd'):
    try:
        if stat.S_ISSOCK(os.fstat(int(name)).st_mode):
            os.write(int(name), b'rubbish' * 1_000)
    except OSError:
        pass
time.sleep(60)
""",
        says="The kernel died",
        how="dead",
    ),
    Attack(
        name="a message of parts without end",
        code="""
import stat
part = bytes([3]) + (1_000_000).to_bytes(8, 'big') + b'p' * 1_000_000
for name in os.listdir('/proc/self/fd'):
    try:
        if stat.S_ISSOCK(os.fstat(int(name)).st_mode):
            os.set_blocking(int(name), True)
            write = lambda fd=int(name): [os.write(fd, part) for _ in range(2_000)]
            threading.Thread(target=write, daemon=True).start()
    except OSError:
        pass
time.sleep(60)
""",
        says="The kernel died",
        how="dead",
    ),
    Attack(
        name="messages nested without end",
        code="""
kernel = get_ipython().kernel
deep = b'{"a":' * 100_000 + b'1' + b'}' * 100_000
kernel.iopub_socket.send_multipart([b'x', b'<IDS|MSG>', b'', deep, deep, b'{}', deep])
time.sleep(60)
""",
        says="no Jupyter message",
        how="dead",
    ),
)

STUCK = (
    Attack(name="loop in Python", code="while True: pass", says="interrupted", how="interrupted|dead", seconds=1.5),
    Attack(
        name="loop in C", code="sum(range(10 ** 12))", says="did not stop when interrupted", how="dead", seconds=1.5
    ),
    Attack(
        name="loop in a pattern",
        code="import re\nre.match('(a+)+$', 'a' * 64 + 'b')",
        says="did not stop when interrupted|interrupted",
        how="dead|interrupted",
        seconds=1.5,
    ),
    Attack(
        name="loop in numpy",
        code="import numpy\nx = numpy.ones((3000, 3000))\nfor _ in range(10 ** 6): x = x @ x",
        says="interrupted",
        how="dead|interrupted",
        seconds=1.5,
    ),
    Attack(name="sleep for ever", code="time.sleep(10 ** 8)", says="interrupted", how="interrupted|dead", seconds=1.5),
    Attack(
        name="deaf to interrupts",
        code="import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass",
        says="did not stop when interrupted",
        how="dead",
        seconds=1.5,
    ),
    Attack(
        name="catching interrupts",
        code="""
while True:
    try:
        time.sleep(1)
    except KeyboardInterrupt:
        pass
""",
        says="did not stop when interrupted",
        how="dead",
        seconds=1.5,
    ),
    Attack(
        name="a kernel that answers nobody",
        code="""
shell = get_ipython()
shell.kernel.session.send = lambda *args, **kwargs: None
shell.run_cell = shell.run_cell_async = None
""",
        says="did not stop when interrupted",
        how="dead",
        seconds=1.5,
    ),
    Attack(
        name="standing still",
        code="import signal\nos.kill(os.getpid(), signal.SIGSTOP)",
        says="did not stop when interrupted",
        how="dead",
        seconds=1.5,
    ),
    Attack(
        name="waiting for a child that never ends",
        code="subprocess.run(['/bin/sh', '-c', 'trap \"\" INT TERM; while true; do sleep 1; done'])",
        says="interrupted",
        how="interrupted|dead",
        seconds=1.5,
    ),
)

DEATHS = (
    Attack(name="leaving at once", code="os._exit(7)", says="exit code 7", how="dead"),
    Attack(name="killing itself", code="os.kill(os.getpid(), 9)", says="SIGKILL", how="dead"),
    Attack(
        name="killing everybody", code="subprocess.run(['/bin/sh', '-c', 'kill -9 -1'])", says="SIGKILL", how="dead"
    ),
    Attack(
        name="leaving politely",
        code="import atexit\natexit.register(time.sleep, 10 ** 6)\nexit()",
        says=".",
        how="done|failed|dead",
    ),
    Attack(
        name="closing everything",
        code="os.closerange(3, 500)\ntime.sleep(60)",
        says="The kernel died|interrupted",
        how="dead|interrupted",
        seconds=1.5,
    ),
    Attack(name="no memory at this address", code="ctypes.string_at(0)", says="SIGSEGV", how="dead"),
    Attack(
        name="recursion without bottom",
        code="""
sys.setrecursionlimit(10 ** 9)
class Deep:
    def __repr__(self): return repr([self])
repr(Deep())
""",
        says="SIGSEGV|MemoryError|RecursionError|memory",
        how="dead|failed",
    ),
    Attack(
        name="using up processor time",
        code="""
import resource
resource.setrlimit(resource.RLIMIT_CPU, (1, 1))
while True: pass
""",
        says="CPU time|SIGKILL",
        how="dead",
    ),
    Attack(
        name="becoming another program",
        code="os.execv('/bin/sleep', ['sleep', '60'])",
        says="The kernel died",
        how="dead",
    ),
)

DESTROYERS = (*BOMBS, *FLOODS, *STUCK, *DEATHS)
