"""A second reader of Breakpad symbol files, the plain way: every record in a list, every question answered by a search."""
import bisect, re


class Text:
    def __init__(self, path):
        self.files, self.origins, self.functions, self.publics = {}, {}, [], []
        with open(path) as f:
            for line in f:
                self.record(line.rstrip("\n"))
        self.functions.sort(key=lambda f: f[0])
        self.publics.sort(key=lambda p: p[0])
        self.starts = [f[0] for f in self.functions]

    def record(self, line):
        kind, _, rest = line.partition(" ")
        rest = rest.removeprefix("m ")
        if kind == "FILE":
            number, _, name = rest.partition(" ")
            self.files[int(number)] = name
        elif kind == "INLINE_ORIGIN":
            number, _, name = rest.partition(" ")
            self.origins[int(number)] = name
        elif kind == "FUNC":
            start, size, _, name = rest.split(" ", 3)
            self.functions.append((int(start, 16), int(start, 16) + int(size, 16), name, [], []))
        elif kind == "PUBLIC":
            start, _, name = rest.split(" ", 2)
            self.publics.append((int(start, 16), name))
        elif kind == "INLINE":
            depth, line, file, origin, *ranges = rest.split()
            for start, size in zip(ranges[::2], ranges[1::2]):
                begin = int(start, 16)
                self.functions[-1][4].append((begin, begin + int(size, 16), int(depth), int(origin), int(file), int(line)))
        elif re.fullmatch("[0-9a-f]+", kind):
            size, line, file = rest.split()
            begin = int(kind, 16)
            self.functions[-1][3].append((begin, begin + int(size, 16), int(file), int(line)))

    def chain(self, address):
        """(name, file, line) of every function there, innermost first."""
        at = bisect.bisect_right(self.starts, address) - 1
        if at >= 0 and address < self.functions[at][1]:
            return self.inside(self.functions[at], address)
        end = self.functions[at][1] if at >= 0 else 0
        at = bisect.bisect_right(self.publics, (address, "\x7f")) - 1
        return [(self.publics[at][1], "", 0)] if at >= 0 and self.publics[at][0] >= end else []

    def inside(self, function, address):
        _, _, name, lines, inlined = function
        here = [(self.files.get(file, ""), line) for begin, end, file, line in lines if begin <= address < end]
        place, chain = (here or [("", 0)])[-1], []
        for _, _, _, origin, file, line in sorted((i for i in inlined if i[0] <= address < i[1]), key=lambda i: -i[2]):
            chain.append((self.origins[origin], *place))
            place = (self.files.get(file, ""), line)
        return chain + [(name, *place)]
