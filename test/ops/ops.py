"""What these tests share: commands that must succeed, the package, a second root directory."""
import functools, os, shutil, subprocess, tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SYMLOOM = None  # path of the release build, set by run.py
DEADLINE = 900


def run(*command, status=0, **options):
    """Standard output; the command must end with the status."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, errors="replace", **options)
    if status is not None and done.returncode != status:
        raise AssertionError(f"{' '.join(command)}: status {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    return done.stdout


def build_packages(directory):
    return run(os.path.join(ROOT, "deploy/debian/build.sh"), SYMLOOM, directory).splitlines()


class Shared:
    def __init__(self, work):
        self.work = work

    @functools.cached_property
    def packages(self):
        """The debug information's, and the program's."""
        return build_packages(os.path.join(self.work, "deb"))

    @property
    def package(self):
        return self.packages[1]

    @functools.cached_property
    def bare(self):
        """A root directory with Debian 12 as it comes, as a tar file: tests unpack it."""
        root, tar = os.path.join(self.work, "bare"), os.path.join(self.work, "bare.tar")
        run("debootstrap", "--variant=minbase", "bookworm", root, "http://deb.debian.org/debian")
        run("tar", "-C", root, "-cf", tar, ".")
        shutil.rmtree(root)
        return tar

    def root(self):
        """A fresh copy of it."""
        root = tempfile.mkdtemp(dir=self.work)
        os.chmod(root, 0o755)
        run("tar", "-C", root, "-xpf", self.bare)
        for name in ("/etc/resolv.conf", "/etc/apt/sources.list", "/etc/apt/apt.conf.d/00proxy"):
            if os.path.exists(name):
                shutil.copy(name, root + name)
        return root


def inside(root, *command, status=0, **options):
    """As `run`, in the root directory, with a /proc of its own and without a network."""
    script = f"mount -t proc proc {root}/proc && exec chroot {root} \"$@\""
    return run("unshare", "--mount", "--pid", "--fork", "sh", "-c", script, "sh", *command, status=status, **options)
