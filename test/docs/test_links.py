"""That links of the documents lead somewhere, that the files they name exist, and that their tables of contents are complete."""
import os, re

import pages

DOCUMENTS = ["CONTRIBUTING.md", *pages.PAGES]
LINK = re.compile(r"\]\(([^)\s]+)\)")
FILE = re.compile(r"`((?:doc|deploy|test|lib|service)/[\w./-]+)`")
LANGUAGES = {"console", "sh", "yaml", "json", "c", "ini", "text", "js", "html", "python", "java", "xml", "nginx", "cmake", "rust"}


def headings(page):
    return re.findall(r"^(#+) (.+?)\s*$", pages.prose(page), re.M)


def anchors(page):
    """The names that GitHub gives to headings."""
    found = []
    for _, title in headings(page):
        title = re.sub(r"\[(.*?)\]\(.*?\)", r"\1", title)
        name = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        found.append(name if name not in found else f"{name}-{found.count(name)}")
    return found


def test_links_lead_to_existing_pages_and_headings(work, shared):
    wrong = []
    for page in DOCUMENTS:
        for target in LINK.findall(pages.prose(page)):
            path, _, anchor = target.partition("#")
            if re.match(r"[a-z]+:", target):
                continue
            path = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
            if not os.path.exists(os.path.join(pages.ROOT, path)):
                wrong.append(f"{page}: {target}: no such file")
            elif anchor and anchor not in anchors(path):
                wrong.append(f"{page}: {target}: no such heading")
    assert not wrong, "\n".join(wrong)


def test_named_files_exist(work, shared):
    wrong = [f"{page}: {path}" for page in DOCUMENTS for path in FILE.findall(pages.prose(page))
             if not os.path.exists(os.path.join(pages.ROOT, path))]
    assert not wrong, "\n".join(wrong)


def test_readme_is_short_and_leads_to_every_page(work, shared):
    readme = pages.read("README.md")
    assert readme.count("\n") <= 200, f"{readme.count(chr(10))} lines"
    missing = [page for page in pages.PAGES if not page.endswith("README.md") and f"]({page})" not in readme]
    assert not missing, missing


def test_tables_of_contents_are_complete(work, shared):
    """One that lists any heading of its page lists all of the second level."""
    wrong = []
    for page in DOCUMENTS:
        listed = re.findall(r"^- \[(.+?)\]\(#", pages.prose(page), re.M)
        missing = [title for level, title in headings(page) if level == "##" and title not in listed] if listed else []
        wrong += [f"{page}: {title}" for title in missing]
    assert not wrong, "\n".join(wrong)


def test_every_command_is_in_a_block_that_runs(work, shared):
    """No command escapes: blocks say what they are, and none is only indented."""
    wrong = []
    for page in pages.PAGES:
        wrong += [f"{page}:{block.line}: a block of {block.language or 'no language'}" for block in pages.blocks(page)
                  if block.language not in LANGUAGES]
        wrong += [f"{page}:{number}: {line}" for number, line in enumerate(pages.prose(page).split("\n"), 1) if line.startswith("    $ ")]
    assert not wrong, "\n".join(wrong)
