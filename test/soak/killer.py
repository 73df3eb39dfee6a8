"""Kills a worker of each service every second, as the system does when memory is short: nobody may notice."""
import collections, contextlib, os, random, signal, threading


def children(pid):
    with contextlib.suppress(OSError):
        with open(f"/proc/{pid}/task/{pid}/children") as f:
            return [int(child) for child in f.read().split()]
    return []


def workers(service):
    """The workers are children of the launcher, which is the service's only child."""
    return [worker for launcher in children(service.process.pid) for worker in children(launcher)]


class WorkerKiller:
    """While it is open. `services`: a function that returns the running ones. `counts["workers killed"]` is the number of kills."""

    def __init__(self, services, seed=1):
        self.services, self.rng, self.counts, self.over = services, random.Random(seed), collections.Counter(), threading.Event()
        self.thread = threading.Thread(target=self.kill_each_second)

    def kill_each_second(self):
        while not self.over.wait(1):
            for service in self.services():
                if found := workers(service):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(self.rng.choice(found), signal.SIGKILL)
                        self.counts["workers killed"] += 1

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
