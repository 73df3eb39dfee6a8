#!/usr/bin/env python3
"""Prints the parts of a built program as an SPDX 2.3 document: its own code, what is linked into it, and the libraries it loads.

usage: sbom.py PROGRAM BUILD-DIRECTORY

The libraries are those of the linker's command and of the program's dynamic section. Their packages and versions are told by dpkg,
their licences by the machine-readable copyright files in /usr/share/doc: the licence of "Files: *", by its name in SPDX's list when
that is known, else with its text. What no such file says is NOASSERTION. SOURCE_DATE_EPOCH is the time of the document.
"""
import datetime, hashlib, json, os, re, subprocess, sys, urllib.parse, uuid

# Short names in Debian's copyright files and what SPDX's list calls them. Names that are equal but for case need no row.
SPDX_NAMES = {"expat": "MIT", "mit": "MIT", "bsd-2-clause": "BSD-2-Clause", "bsd-3-clause": "BSD-3-Clause", "zlib": "Zlib", "curl": "curl",
              "apache-2.0": "Apache-2.0", "apache-2-llvm-exceptions": "Apache-2.0 WITH LLVM-exception", "isc": "ISC",
              "gpl-2": "GPL-2.0-only", "gpl-2+": "GPL-2.0-or-later", "gpl-3": "GPL-3.0-only", "gpl-3+": "GPL-3.0-or-later",
              "lgpl-2.1": "LGPL-2.1-only", "lgpl-2.1+": "LGPL-2.1-or-later", "cc0-1.0": "CC0-1.0", "0bsd": "0BSD"}
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LOADED = ["libcurl.so.4"]  # at run time: service/fetch/libcurl.c


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


class Package:
    def __init__(self, name):
        self.name = name
        self.version, self.arch, self.source = output("dpkg-query", "-W", "-f", "${Version} ${Architecture} ${source:Package}",
                                                      name).split(" ")
        self.extracted = {}  # licences that are not in SPDX's list: id -> text
        self.licence, self.comment = self.read_licence()

    @property
    def id(self):
        return "SPDXRef-deb-" + re.sub(r"[^A-Za-z0-9.-]", "-", self.name.split(":")[0])

    def read_licence(self):
        path = f"/usr/share/doc/{self.name.split(':')[0]}/copyright"
        try:
            with open(path, errors="replace") as f:
                text = f.read()
        except FileNotFoundError:
            return "NOASSERTION", f"there is no {path}"
        if not text.startswith("Format:"):
            return "NOASSERTION", f"{path} is text for people"
        stanzas = [dict(re.findall(r"^([A-Za-z-]+):((?:.*)(?:\n[ \t].*)*)", stanza, re.M)) for stanza in re.split(r"\n\s*\n", text)]
        texts = {name.strip().lower(): rest for name, _, rest in (s["License"].partition("\n") for s in stanzas if "License" in s) if rest}
        main = next((s["License"] for s in stanzas if s.get("Files", "").strip() == "*" and "License" in s), None)
        if main is None:
            return "NOASSERTION", f"{path} names no licence of all files"
        names = sorted({s["License"].split("\n")[0].strip() for s in stanzas if "Files" in s and s.get("License", "").strip()})
        return self.expression(main.split("\n")[0].strip(), texts), f"{path} names: {', '.join(names)}"

    def expression(self, words, texts):
        """The licence in the grammar of SPDX: of Debian's "A or B, and C"."""
        parts = re.split(r"\s*(,?\s+\b(?:and|or)\b)\s+", words)
        if any("," in operator for operator in parts[1::2]) and len(parts) > 3:
            return "NOASSERTION"  # the comma binds
        out = [operator.strip(", ").upper() if i % 2 else self.one(operator.strip(), texts) for i, operator in enumerate(parts)]
        return "NOASSERTION" if "NOASSERTION" in out else " ".join(out)

    def one(self, name, texts):
        known = SPDX_NAMES.get(name.lower())
        if known:
            return known
        text = texts.get(name.lower())
        if not text:
            return "NOASSERTION"
        ref = "LicenseRef-Debian-" + re.sub(r"[^A-Za-z0-9.-]+", "-", f"{self.source}-{name}")
        self.extracted[ref] = {"licenseId": ref, "name": name, "extractedText": re.sub(r"(?m)^ \.?", "", text).strip("\n")}
        return ref

    def as_spdx(self):
        return {"name": self.name.split(":")[0], "SPDXID": self.id, "versionInfo": self.version, "supplier": "Organization: Debian",
                "downloadLocation": "NOASSERTION", "filesAnalyzed": False, "sourceInfo": f"Debian's source package {self.source}",
                "licenseConcluded": "NOASSERTION", "licenseDeclared": self.licence, "licenseComments": self.comment,
                "copyrightText": "NOASSERTION",
                "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                                  "referenceLocator": f"pkg:deb/debian/{self.name.split(':')[0]}@"
                                                      f"{urllib.parse.quote(self.version, safe='')}?arch={self.arch}"}]}


def packages_of(paths):
    """The Debian package that has each file. dpkg knows some below /lib that are in /usr/lib."""
    tries = {path: [os.path.normpath(path), os.path.normpath(path).removeprefix("/usr"), os.path.realpath(path)] for path in paths}
    found = subprocess.run(["dpkg-query", "-S", *{name for names in tries.values() for name in names}], capture_output=True, text=True)
    owners = {path: owner.split(",")[0] for owner, _, path in (line.rpartition(": ") for line in found.stdout.splitlines())}
    for path, names in tries.items():
        owner = next((owners[name] for name in names if name in owners), None)
        if not owner:
            raise SystemExit(f"{path} is of no package")
        yield path, owner


def linked_in(build):
    """Files whose code the linker has put into the program."""
    command = output("ninja", "-C", build, "-t", "commands", "service/cli/symloom").splitlines()[-1].split()
    archives = {word for word in command if word.endswith(".a") and word.startswith("/")}
    if any("llhttp" in word and word.endswith(".a") for word in command):
        archives.add("/usr/share/llhttp/llhttp.c")  # subprojects/llhttp builds it
    return sorted(archives)


def loaded(program):
    """Names of shared libraries and their files: those of the program's own architecture."""
    needed = re.findall(r"\(NEEDED\).*\[(.+)\]", output("readelf", "-d", program))
    known = re.findall(r"^\s*(\S+) \(.*\) => (\S+)$", output("/sbin/ldconfig", "-p"), re.M)
    for name in needed + LOADED:
        paths = [path for other, path in known if other == name and machine(path) == machine(program)]
        if not paths:
            raise SystemExit(f"{name} is not installed")
        yield name, paths[0]


def machine(path):
    """Class, byte order and processor of an ELF file."""
    with open(path, "rb") as f:
        head = f.read(20)
    return head[4:6] + head[18:20]


def own_licence():
    """The licence of the project and who has the rights."""
    with open(os.path.join(ROOT, "LICENSE")) as f:
        title, copyright = re.match(r"(.+) License\n\n(Copyright .+)\n", f.read()).groups()
    return SPDX_NAMES[title.lower()], copyright


def document(program, build):
    licence, copyright = own_licence()
    about = json.loads(output(program, "version", "--json"))
    with open(program, "rb") as f:
        digest = hashlib.sha256(f.read()).hexdigest()
    time = datetime.datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH") or os.stat(program).st_mtime), datetime.timezone.utc)
    own = {"name": "symloom", "SPDXID": "SPDXRef-symloom", "versionInfo": about["version"], "supplier": "Organization: the symloom authors",
           "downloadLocation": "NOASSERTION", "filesAnalyzed": False, "packageFileName": "symloom", "licenseConcluded": licence,
           "licenseDeclared": licence, "copyrightText": copyright, "primaryPackagePurpose": "APPLICATION",
           "sourceInfo": f"commit {about['commit']}", "checksums": [{"algorithm": "SHA256", "checksumValue": digest}]}
    uses = [("STATIC_LINK", path, os.path.basename(path)) for path in linked_in(build)]
    uses += [("DYNAMIC_LINK", path, name + " (when a download is wanted)" * (name in LOADED)) for name, path in loaded(program)]
    owners = dict(packages_of([path for _, path, _ in uses]))
    packages = {name: Package(name) for name in sorted(set(owners.values()))}
    files = {}  # of a kind and a package
    for kind, path, comment in uses:
        files.setdefault((kind, packages[owners[path]]), []).append(comment)
    relations = [{"spdxElementId": own["SPDXID"], "relationshipType": kind, "relatedSpdxElement": package.id, "comment": ", ".join(names)}
                 for (kind, package), names in files.items()]
    extracted = {id: info for package in packages.values() for id, info in package.extracted.items()}
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"symloom-{about['version']}",
            "documentNamespace": f"https://spdx.org/spdxdocs/symloom-{about['version']}-{uuid.uuid5(uuid.NAMESPACE_URL, digest)}",
            "creationInfo": {"created": f"{time:%Y-%m-%dT%H:%M:%SZ}", "creators": [f"Tool: symloom-sbom-{about['version']}"]},
            "packages": [own, *(package.as_spdx() for package in packages.values())],
            "relationships": [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": own["SPDXID"]},
                              *relations],
            **({"hasExtractedLicensingInfos": [extracted[key] for key in sorted(extracted)]} if extracted else {})}


if __name__ == "__main__":
    print(json.dumps(document(*sys.argv[1:]), indent=1))
