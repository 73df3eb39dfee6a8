"""The pages of the documentation, and the blocks in them.

Commands are in two kinds of fenced blocks. All of a page run in order, in one shell.

    ```console
    $ command            lines that begin with "$ ", and what follows up to the end of a quotation or of a <<END
    what it prints       "..." stands for anything in a line; a line "..." for any lines
    ```

    ```sh
    command              a script; what it prints is not shown
    ```

A command must succeed, unless the one that follows is `echo $?`. Blocks of ```yaml are configurations of the service. A comment in
the line before a block says that it cannot be tried everywhere:

    <!-- not run: REASON -->
    <!-- needs PROGRAM PROGRAM -->   it runs where all of them are installed
"""
import glob, os, re, shutil

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGES = ["README.md", *sorted(os.path.relpath(path, ROOT) for path in glob.glob(os.path.join(ROOT, "doc/*.md")))]
COMMENT = re.compile(r"<!-- (not run: |needs )(.+) -->")


class Block:
    def __init__(self, line, language, comment):
        self.line, self.language, self.lines, self.reason = line, language, [], None
        found = COMMENT.fullmatch(comment)
        if found and found[1] == "needs ":
            missing = [program for program in found[2].split() if not shutil.which(program)]
            self.reason = f"needs {' '.join(missing)}" if missing else None
        elif found:
            self.reason = found[2]

    @property
    def has_commands(self):
        return self.language in ("console", "sh")


def read(page):
    with open(os.path.join(ROOT, page)) as f:
        return f.read()


def blocks(page):
    """The fenced blocks of a page."""
    block, before = None, ""
    for number, line in enumerate(read(page).split("\n"), 1):
        if line.startswith("```"):
            if block:
                yield block
                block = None
            else:
                block = Block(number, line[3:].strip(), before)
        elif block:
            block.lines.append(line)
        before = line.strip() or before


def prose(page):
    """The page without its fenced blocks, with as many lines."""
    return re.sub(r"^```.*?^```", lambda block: "\n" * block[0].count("\n"), read(page), flags=re.M | re.S)


def is_whole(command):
    """Whether a command ends with the line: no open quotation, no <<END without its END, no backslash at the end."""
    document = re.search(r"<<'?(\w+)'?", command)
    if document:
        return command.endswith("\n" + document[1])
    return command.count("'") % 2 == 0 and not command.endswith("\\")


class Step:
    """A command, and what the page says that it prints: None if it does not show that."""

    def __init__(self, where, command):
        self.where, self.command, self.output = where, command, None


def steps(page):
    for block in blocks(page):
        if not block.has_commands or block.reason:
            continue
        if block.language == "sh":
            yield Step(f"{page}:{block.line}", "\n".join(block.lines))
            continue
        step = None
        for number, line in enumerate(block.lines, block.line + 1):
            if step and not is_whole(step.command):
                step.command += "\n" + line
            elif line.startswith("$ "):
                if step:
                    yield step
                step = Step(f"{page}:{number}", line[2:])
            elif step:
                step.output = (step.output or "") + line + "\n"
            else:
                raise AssertionError(f"{page}:{number}: output without a command")
        if step:
            yield step
