"""Compares what a debug file answers with what its Breakpad form answers, address by address.

The text cannot say everything; a difference is put into the first class that explains it:

  behind-symbol   the file knows where the symbol ends, the text does not: PUBLIC records reach to the next record
  inside-function a symbol inside a function takes over in the file; in the text no PUBLIC stands inside a FUNC
  plt             the text names the sections of calls to other libraries
  overlap         functions overlap: in the file the later one wins, the text is ordered by address
  piece           a compiler's piece of a function, or its clone, has a symbol of its own: the file shows it, the text has
                  the name that debug information gives
"""
import bisect, collections, json, random, re

from harness import ok


def lookup(path, addresses, *options):
    text = "".join(f"0x{a:x}\n" for a in addresses)
    answers = []
    for line in ok("lookup", "-e", path, "--output-style", "json", *options, input=text).splitlines():
        answers.append([(s["FunctionName"], s["FileName"], s["Line"]) for s in json.loads(line)["Symbol"]])
    if len(answers) != len(addresses):
        raise AssertionError(f"{len(answers)} answers to {len(addresses)} addresses")
    return answers


class Text:
    """FUNC and PUBLIC records of a symbol file."""

    def __init__(self, path):
        self.functions, self.publics = [], []
        with open(path) as f:
            for line in f:
                if m := re.match(r"FUNC (?:m )?([0-9a-f]+) ([0-9a-f]+) [0-9a-f]+ (.*)", line):
                    start = int(m[1], 16)
                    self.functions.append((start, start + int(m[2], 16), m[3]))
                elif m := re.match(r"PUBLIC (?:m )?([0-9a-f]+) [0-9a-f]+ (.*)", line):
                    self.publics.append(int(m[1], 16))
        self.starts = [f[0] for f in self.functions]
        if self.starts != sorted(self.starts) or self.publics != sorted(self.publics):
            raise AssertionError("the records are out of order")

    def covering(self, address):
        at = bisect.bisect_right(self.starts, address)
        return [f for f in self.functions[max(0, at - 64):at] if f[0] <= address < f[1]]

    def addresses(self, count, seed):
        """Both ends of records, and what lies between."""
        chosen = random.Random(seed)
        edges = [e for f in self.functions for e in (f[0], f[1] - 1, f[1])] + self.publics
        low, high = min(edges), max(edges) + 64
        return ([chosen.choice(edges) for _ in range(count // 3)]
                + [a for f in chosen.choices(self.functions or [(low, high, "")], k=count // 3)
                   for a in (chosen.randrange(f[0], f[1]),)]
                + [chosen.randrange(low, high) for _ in range(count // 3)])


def same_but_for_pieces(direct, back):
    """Whether the outermost function has a suffix (`.cold`, ` [clone .isra.0]`) more, and nothing else differs."""
    if [d[1:] for d in direct] != [b[1:] for b in back] or direct[:-1] != back[:-1]:
        return False
    long, short = direct[-1][0], back[-1][0]
    return short != "" and long.startswith((short + ".", short + " [clone ."))


def classify(text, address, direct, back):
    covering = text.covering(address)
    if back[-1][0].startswith("<.plt"):
        return "plt"
    if same_but_for_pieces(direct, back):
        return "piece"
    if not covering and not direct[0][0] and not back[0][1]:
        return "behind-symbol"
    if len(covering) > 1:
        return "overlap"
    if len(covering) == 1 and covering[0][2] == back[-1][0] and not direct[0][1]:
        return "inside-function"
    return "other"


def compare(path, work_file, count=3000, seed=1, dump=(), options=("--relative-address",)):
    """Counter of classes; "same" where both agree. The second value has an example of each class."""
    ok("dump-syms", "--inlines", *dump, "-o", work_file, path)
    text = Text(work_file)
    addresses = text.addresses(count, seed)
    result, examples = collections.Counter(), {}
    for address, direct, back in zip(addresses, lookup(path, addresses, *options), lookup(work_file, addresses)):
        kind = "same" if direct == back else classify(text, address, direct, back)
        result[kind] += 1
        examples.setdefault(kind, (hex(address), direct, back))
    return result, examples
