"""Small programs, each with an id of its own, and packages that hold them."""
import bz2, gzip, io, lzma, os, re, struct, subprocess, tarfile, zipfile


class Program:
    """A program of one function: whole, its debug file, stripped."""

    def __init__(self, directory, name, lines=1):
        self.name, self.function = name, f"f_{name}"
        self.source = os.path.join(directory, f"{name}.c")
        with open(self.source, "w") as f:
            f.write(f"int {self.function}(int a)\n{{\n    return a * {len(name) + 3};\n}}\n" + "\n" * lines + f"int main(void) {{ return {self.function}(1); }}\n")
        run = lambda *command: subprocess.run(command, cwd=directory, check=True, capture_output=True, text=True).stdout
        run("gcc", "-g", "-O0", "-fno-pie", "-no-pie", "-Wl,--build-id=sha1", "-o", name, f"{name}.c")
        run("objcopy", "--only-keep-debug", name, f"{name}.debug")
        run("strip", "-o", f"{name}.stripped", name)
        self.directory = directory
        self.whole, self.debug, self.stripped = (open(os.path.join(directory, name + end), "rb").read() for end in ("", ".debug", ".stripped"))
        self.build_id = re.search(r"Build ID: ([0-9a-f]+)", run("readelf", "-n", name)).group(1)
        self.address = int(re.search(rf"([0-9a-f]+) T {self.function}\n", run("nm", name)).group(1), 16) - 0x400000

    @property
    def path(self):
        """Where debug packages have its debug file."""
        return f"usr/lib/debug/.build-id/{self.build_id[:2]}/{self.build_id[2:]}.debug"

    def module(self):
        return {"type": "elf", "code_id": self.build_id, "image_addr": "0x10000000", "image_size": 0x100000}


def programs(work, count, prefix="p"):
    directory = os.path.join(work, f"programs-{prefix}")
    os.makedirs(directory)
    return [Program(directory, f"{prefix}{i}") for i in range(count)]


def tar(files, format=tarfile.GNU_FORMAT):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=format) as archive:
        for name, data in files.items():
            info = data if isinstance(data, tarfile.TarInfo) else tarfile.TarInfo(name)
            info.name = name
            if isinstance(data, bytes):
                info.size = len(data)
            archive.addfile(info, io.BytesIO(data) if isinstance(data, bytes) else None)
    return out.getvalue()


def link(target, kind=tarfile.SYMTYPE):
    info = tarfile.TarInfo()
    info.type, info.linkname = kind, target
    return info


def command(*words):
    return lambda data: subprocess.run(words, input=data, check=True, capture_output=True).stdout


PACKERS = {
    "": lambda data: data, "gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "zst": command("zstd", "-q"),
    "blocks.xz": command("xz", "-T2", "--block-size=8KiB"),
    "frames.zst": lambda data: b"".join(command("zstd", "-q")(data[i:i + 8192]) for i in range(0, len(data), 8192)),
    "members.gz": lambda data: b"".join(gzip.compress(data[i:i + 8192]) for i in range(0, len(data), 8192)),
}


def ar(files):
    out = b"!<arch>\n"
    for name, data in files.items():
        out += f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(data):<10}`\n".encode() + data + b"\n" * (len(data) % 2)
    return out


def deb(files, package="x", version="1.0-1", source=None, packer="xz"):
    control = f"Package: {package}\nVersion: {version}\nArchitecture: amd64\n" + (f"Source: {source}\n" if source else "")
    return ar({"debian-binary": b"2.0\n", "control.tar.gz": gzip.compress(tar({"./control": control.encode()})),
               f"data.tar.{packer.split('.')[-1]}": PACKERS[packer](tar({"./" + name: data for name, data in files.items()}))})


def cpio(files):
    out = b""
    for number, (name, data) in enumerate([*files.items(), ("TRAILER!!!", b"")]):
        mode = 0o100644 if data or name != "TRAILER!!!" else 0
        fields = [number + 1, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0]
        head = b"070701" + "".join(f"{field:08X}" for field in fields).encode() + name.encode() + b"\0"
        out += head + b"\0" * (-len(head) % 4) + data + b"\0" * (-len(data) % 4)
    return out


def rpm_header(tags):
    entries, data = b"", b""
    for tag, text in tags.items():
        entries += struct.pack(">IIII", tag, 6, len(data), 1)
        data += text.encode() + b"\0"
    return b"\x8e\xad\xe8\x01\0\0\0\0" + struct.pack(">II", len(tags), len(data)) + entries + data


def rpm(files, name="x", version="1.0", release="1", source="x-1.0-1.src.rpm", packer="xz"):
    lead = struct.pack(">4sBBHH66sHH16x", b"\xed\xab\xee\xdb", 3, 0, 0, 1, name.encode(), 1, 5)
    signature = rpm_header({1000: "abc"})
    header = rpm_header({1000: name, 1001: version, 1002: release, **({1044: source} if source else {})})
    return lead + signature + b"\0" * (-len(signature) % 8) + header + PACKERS[packer](cpio({"./" + n: data for n, data in files.items()}))


def zipped(files):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()
