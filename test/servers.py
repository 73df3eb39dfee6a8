"""Real programs on loopback that tests start, and waiting for them: on free ports, below a temporary directory,
ended by their own process id."""
import contextlib, os, random, signal, socket, subprocess, tempfile, time

DEADLINE = 60   # seconds after which something that should have happened is a failure


def wait_until(what, condition):
    end = time.monotonic() + DEADLINE
    while not (value := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"waited in vain for {what}")
        time.sleep(0.005)
    return value


def free_port():
    """Below those that the kernel gives to connections and to servers of other tests: who asked has it free until it is used."""
    while True:
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", random.SystemRandom().randrange(10000, 32000)))
            return probe.getsockname()[1]


@contextlib.contextmanager
def nginx(work, root):
    """Serves the files below `root`; yields the URL."""
    port = free_port()
    home = tempfile.mkdtemp(dir=work)
    conf = os.path.join(home, "nginx.conf")
    with open(conf, "w") as f:
        f.write(f"""{"user root; " if os.geteuid() == 0 else ""}daemon off; pid {home}/pid; error_log {home}/error.log; worker_processes 1;
events {{ worker_connections 2048; }}
http {{
  access_log off; client_body_temp_path {home}/b; proxy_temp_path {home}/p; fastcgi_temp_path {home}/f;
  uwsgi_temp_path {home}/u; scgi_temp_path {home}/s;
  server {{ listen 127.0.0.1:{port}; root {root}; }}
}}
""")
    with serving(["nginx", "-c", conf], port):
        yield f"http://127.0.0.1:{port}/"


@contextlib.contextmanager
def debuginfod(work, root):
    """A real debuginfod over the files below `root`; yields the URL."""
    port = free_port()
    home = tempfile.mkdtemp(dir=work)
    with serving(["debuginfod", "-d", f"{home}/db", "-p", str(port), "-F", root, "-t", "0"], port):
        yield f"http://127.0.0.1:{port}/"


def end(process):
    """Of a server that has a session of its own. debuginfod misses a signal that comes while it starts: it is told again."""
    for _ in range(DEADLINE):
        os.killpg(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(1)
            return
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextlib.contextmanager
def serving(command, port):
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)

    def answers():
        if process.poll() is not None:
            raise AssertionError(f"{command[0]} ended with {process.returncode}")
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    try:
        wait_until(command[0], answers)
        yield
    finally:
        end(process)
