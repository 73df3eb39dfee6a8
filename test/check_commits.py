#!/usr/bin/env python3
"""Subjects of commits are "area: imperative summary" of at most 72 characters: what CONTRIBUTING.md says of a change that is sent.

usage: check_commits.py [COMMIT]

Looks at the commits since COMMIT (default: since the rule holds), without merges; of a checkout that has no such history, at the ones
that it has, and outside of a checkout at none. Prints those that are wrong; status 1 if there is one.
"""
import os, re, subprocess, sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SINCE = "8fde9b057313"
SUBJECT = re.compile(r"[a-z0-9_./-]+(, [a-z0-9_./-]+)*: \S.*[^.\s]")
LONGEST = 72


def git(*command):
    done = subprocess.run(["git", "-C", ROOT, *command], capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else None


def subjects(since):
    """(short id, subject) of the commits."""
    known = git("merge-base", "--is-ancestor", since, "HEAD") is not None
    shallow = git("rev-parse", "--is-shallow-repository") == "true\n"
    commits = [f"{since}..HEAD"] if known else ["HEAD"] if shallow else ["-1", "HEAD"]
    text = git("log", "--no-merges", "--format=%h %s", *commits)
    return [line.split(" ", 1) for line in (text or "").splitlines()]


def main():
    found = subjects(sys.argv[1] if len(sys.argv) > 1 else SINCE)
    wrong = [f"{commit} {subject}: {len(subject)} characters, at most {LONGEST}" for commit, subject in found if len(subject) > LONGEST]
    wrong += [f"{commit} {subject}: is not 'area: imperative summary'" for commit, subject in found if not SUBJECT.fullmatch(subject)]
    print("\n".join(wrong) or f"{len(found)} subjects")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
