#!/usr/bin/env python3
"""Reads CHANGELOG.md.

usage: changelog.py check VERSION     status 1 and the reason when VERSION cannot be released
       changelog.py notes VERSION     prints what is said of VERSION
       changelog.py debian VERSION    prints the changelog of the Debian package, which begins with VERSION

Versions are headings "## [X.Y.Z] - YYYY-MM-DD", newest first; their changes are lists below the headings of Keep a Changelog.
"""
import datetime, os, re, sys, textwrap

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KINDS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
MAINTAINER = "the symloom authors <symloom@packages.debian.org>"


class Version:
    def __init__(self, name, date):
        self.name, self.date = name, date  # the date of [Unreleased] is None
        self.lines = []

    @property
    def notes(self):
        return "\n".join(self.lines).strip() + "\n"

    def changes(self):
        """Texts as they are in the file: before any list ("", paragraph), and (kind, item) of the lists."""
        kind, text = "", []
        for line in [*self.lines, "### "]:
            heading, item = line.startswith("### "), line.startswith("- ")
            if (heading or item or not line.strip()) and text:
                yield kind, " ".join(text)
                text = []
            if heading:
                kind = line[4:]
            elif line.strip():
                text.append(line[2:] if item else line.strip())


def read(path=os.path.join(ROOT, "CHANGELOG.md")):
    """The versions, newest first. Raises ValueError when the file is not in its form."""
    versions = []
    with open(path) as f:
        for number, line in enumerate(f.read().splitlines(), 1):
            if line.startswith("## "):
                match = re.fullmatch(r"## \[(?:(Unreleased)|(\d+\.\d+\.\d+))\](?: - (\d{4}-\d\d-\d\d))?", line)
                if not match or bool(match[1]) == bool(match[3]) or (match[1] and versions):
                    raise ValueError(f"CHANGELOG.md:{number}: a version is '## [X.Y.Z] - YYYY-MM-DD', the first may be '## [Unreleased]'")
                versions.append(Version(match[1] or match[2], match[3] and datetime.date.fromisoformat(match[3])))
            elif line.startswith("### ") and line[4:] not in KINDS:
                raise ValueError(f"CHANGELOG.md:{number}: changes are {', '.join(KINDS)}")
            elif versions:
                versions[-1].lines.append(line)
    released = [v for v in versions if v.date]
    for newer, older in zip(released, released[1:]):
        if newer.date < older.date or numbers(newer) <= numbers(older):
            raise ValueError(f"CHANGELOG.md: {newer.name} of {newer.date} is before {older.name} of {older.date}")
    for version in released:
        if not any(kind for kind, _ in version.changes()):
            raise ValueError(f"CHANGELOG.md: nothing is said of {version.name}")
    if not released:
        raise ValueError("CHANGELOG.md: there is no version")
    return versions


def numbers(version):
    return tuple(map(int, version.name.split(".")))


def check(name):
    """Raises ValueError when the version cannot be released."""
    versions = read()
    if not versions[0].date:
        if versions[0].notes.strip():
            raise ValueError("CHANGELOG.md: there are changes below [Unreleased]: give them a version and a date")
        versions.pop(0)
    if versions[0].name != name:
        raise ValueError(f"CHANGELOG.md: the newest version is {versions[0].name}, and meson.build has {name}")


def of(name):
    for version in read():
        if version.name == name:
            return version
    raise ValueError(f"CHANGELOG.md: there is no version {name}")


def debian(name):
    """The versions from this one on, in the form of deb-changelog(5)."""
    of(name)
    entries = []
    for version in read():
        if not version.date or numbers(version) > tuple(map(int, name.split("."))):
            continue
        lines, last = [], ""
        for kind, text in version.changes():
            if kind != last:
                lines += [""] * bool(lines) + [f"  [ {kind} ]"]
                last = kind
            lines += textwrap.wrap(text, 78, initial_indent="  * ", subsequent_indent="    ", break_long_words=False,
                                   break_on_hyphens=False)
        day = datetime.datetime.combine(version.date, datetime.time())
        lines += ["", f" -- {MAINTAINER}  {day:%a, %d %b %Y %H:%M:%S} +0000"]
        entries.append("\n".join([f"symloom ({version.name}) unstable; urgency=medium", "", *lines, ""]))
    return "\n".join(entries)


def main():
    command, name = sys.argv[1:]
    answer = {"check": check, "notes": lambda name: of(name).notes, "debian": debian}[command](name)
    sys.stdout.write(answer or "")


if __name__ == "__main__":
    try:
        main()
    except ValueError as error:
        sys.exit(str(error))
