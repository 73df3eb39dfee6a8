#!/usr/bin/env python3
"""What the documents for operators list is what there is: messages that the program prints, alerts, keys that need a restart.

usage: check_documents.py

- Messages are the headings in code of doc/troubleshooting.md: "### `cannot listen on ...`". What stands between "..." has to be in a
  text of the sources, in that order.
- doc/operations.md names every alert of deploy/prometheus/alerts.yml, and no other.
- Its chapter on reloading names every key that service/cli/run/reload.c keeps until a restart.

Prints what is wrong; status 1 if there is anything.
"""
import glob, os, re, sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')      # a text in C
BETWEEN = re.compile(r'"(?:\s|SL_STR_FMT)*"')  # from one to its neighbour


def read(path):
    with open(os.path.join(ROOT, path), errors="replace") as f:
        return f.read()


def texts():
    """Texts of the sources, neighbouring ones joined."""
    for folder in ("lib", "service"):
        for path in glob.glob(os.path.join(ROOT, folder, "**/*.c"), recursive=True):
            yield from LITERAL.findall(BETWEEN.sub(lambda gap: "%s" if "FMT" in gap[0] else "", read(path)))


def unprinted():
    page = "doc/troubleshooting.md"
    messages = re.findall(r"^### `(.+)`$", read(page), re.M)
    known = sorted(set(texts()), key=len)
    for message in messages:
        pattern = re.compile(".*".join(map(re.escape, message.split("..."))))
        if not any(pattern.search(text) for text in known):
            yield f"{page}: nothing prints {message!r}"
    if len(messages) < 30:
        yield f"{page}: {len(messages)} messages"


def other_alerts(operations):
    alerts = set(re.findall(r"^ +- alert: (\w+)$", read("deploy/prometheus/alerts.yml"), re.M))
    named = set(re.findall(r"`(Symloom\w+)`", operations))
    for alert in sorted(alerts ^ named):
        yield f"doc/operations.md: {alert} is " + ("not in the table" if alert in alerts else "no alert")


def other_keys(operations):
    chapter = re.search(r"\n## Reload the configuration\n(.*?)\n## ", operations, re.S)[1]
    sentence = re.search(r"These keys need a restart(.*?)\n\n", chapter + "\n\n", re.S)[1]
    kept = re.search(r"\bfixed\[\] = \{(.*?)\};", read("service/cli/run/reload.c"), re.S)[1]
    keys = {key + "*" * key.endswith(".") for key in LITERAL.findall(kept)}
    for key in sorted(keys ^ set(re.findall(r"`([\w.*]+)`", sentence))):
        yield f"doc/operations.md: {key} " + ("needs a restart" if key in keys else "needs no restart")


def main():
    operations = read("doc/operations.md")
    wrong = [*unprinted(), *other_alerts(operations), *other_keys(operations)]
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
