"""Stacks of programs that Metro has bundled with three libraries, for Node and as bytecode of Hermes: what these throw, made readable,
is what the program threw before. Frames of Metro's own runtime are left aside."""
import os, shutil, subprocess
import harness
from harness import npm_path
from test_tools import frames

PACKAGES = "metro@0.82.5 hermes-engine-cli@0.12.0 terser@5.44.1 lodash@4.18.1 eventemitter3@5.0.1 ramda@0.32.0"
LIBRARIES = ("lodash", "eventemitter3", "ramda")
PROGRAM = {
    "main.js": """Error.stackTraceLimit = 30;
const { order } = require('./shop/ordered');

function openShop(stock) {
  return order(stock, 2);
}

openShop([{ name: 'lamp', left: 3 }, { name: 'chair', left: 0 }]);
""",
    "shop/ordered.js": """const forEach = require('../lib/lodash/forEach');
const EventEmitter = require('../lib/eventemitter3');
const { checkStock } = require('./stock');

function Clerk(wanted) {
  this.wanted = wanted;
  this.desk = new EventEmitter();
  this.desk.on('wanted', this.bedienen, this);
}

Clerk.prototype.bedienen = function bedienen(item) {
  checkStock([item], this.wanted);
};

Clerk.prototype.serve = function serve(stock) {
  const label = '🛒 𝒾𝓃 ' + stock.length;
  forEach(stock, (item) => {
    this.desk.emit('wanted', item, label);
  });
};

exports.order = function order(stock, wanted) {
  const clerk = new Clerk(wanted);
  return clerk.serve(stock);
};
""",
    "shop/stock.js": """const reduce = require('../lib/ramda/src/reduce');

const größe = (sum, item) => {
  if (!item.left) throw new Error('sold out: ' + item.name + ' 🪑');
  return sum + item.left;
};

exports.checkStock = function checkStock(items, wanted) {
  return reduce(größe, 0, items) >= wanted;
};
""",
    "metro.config.js": "module.exports = {projectRoot: __dirname, watchFolders: [require('fs').realpathSync('node_modules')], resolver: {useWatchman: false}};\n",
    "compose.js": """const { composeSourceMaps } = require('metro-source-map'), fs = require('fs');
const maps = process.argv.slice(3).map(path => JSON.parse(fs.readFileSync(path, 'utf8')));
fs.writeFileSync(process.argv[2], JSON.stringify(composeSourceMaps(maps)));
""",
    "package.json": "{}",
}


def run(directory, *command):
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}: {done.stdout[-1500:]} {done.stderr[-1500:]}"


def thrown(directory, *command):
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True)
    assert "sold out" in done.stdout + done.stderr, done.stdout + done.stderr
    return done.stdout + done.stderr


def bundled(work, *options, line_end="\n"):
    """The directory of a program that is bundled, as out.js and out.map."""
    modules = npm_path(work, PACKAGES, "metro/package.json")[:-len("metro/package.json") - 1]
    directory = os.path.join(work, "program")
    for name, text in PROGRAM.items():
        path = os.path.join(directory, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", newline="") as f:
            f.write(text.replace("\n", line_end))
    for library in LIBRARIES:
        shutil.copytree(os.path.join(modules, library), os.path.join(directory, "lib", library))
    os.symlink(modules, os.path.join(directory, "node_modules"))
    run(directory, "node", "node_modules/metro/src/cli.js", "build", "main.js", "--out", "out.js", "--source-map", "-c", "metro.config.js", *options)
    return directory


def expect_readable(directory, stack, files, least, inlined=()):
    """At least so many frames of the program and its libraries are where the program threw them: a minifier maps what it merges to a
    place beside. The program's own functions are there in their order, but those that were `inlined`."""
    truth = frames(thrown(directory, "node", "main.js"))
    done = subprocess.run([harness.SYMLOOM, "symbolicate", "-", "--symbols", files], input=stack, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    of_truth, places = {name for _, name, _ in truth}, {frame[1:] for frame in truth}
    got = [frame for frame in frames(done.stdout) if frame[1] in of_truth]
    right, named = [frame for frame in got if frame[1:] in places], sum(frame in truth for frame in got)
    print(f"        {len(truth)} frames were thrown, {len(got)} of these files by the bundle; {len(right)} at a place of the truth, {named} of them with its name")
    own = [frame for frame in got if frame[1] in ("main.js", "ordered.js", "stock.js")]
    assert len(right) >= least and set(own) <= set(right), done.stdout[-3000:]
    expected = [name for name in ("größe", "checkStock", "bedienen", "serve", "order", "openShop") if name not in inlined]
    assert [name for name, *_ in own if name in expected] == expected, done.stdout[-3000:]


def minified(directory):
    files = os.path.join(directory, "minified")
    os.mkdir(files)
    os.rename(os.path.join(directory, "out.js"), os.path.join(files, "out.js"))
    os.rename(os.path.join(directory, "out.map"), os.path.join(files, "out.js.map"))
    return files


def check_metro(work, line_end="\n"):
    directory = bundled(work, "--minify", "true", line_end=line_end)
    files = minified(directory)
    expect_readable(directory, thrown(directory, "node", "minified/out.js"), files, 14)


def test_metro_bundle_is_mapped(work, share):
    check_metro(work)


def test_metro_bundle_of_crlf_files_is_mapped(work, share):
    check_metro(work, "\r\n")


def test_metro_bundle_minified_by_terser_is_mapped(work, share):
    """A map of a map, made by another tool than Metro's."""
    directory = bundled(work, "--minify", "false")
    run(directory, "node", "node_modules/terser/bin/terser", "out.js", "-c", "-m", "--source-map", "content=out.map,url=out.js.map,includeSources",
        "-o", "small.js")
    os.rename(os.path.join(directory, "small.js"), os.path.join(directory, "out.js"))
    os.rename(os.path.join(directory, "small.js.map"), os.path.join(directory, "out.map"))
    files = minified(directory)
    expect_readable(directory, thrown(directory, "node", "minified/out.js"), files, 14, ["openShop"])


def test_hermes_bytecode_is_mapped(work, share):
    """The map from bytecode is that of Hermes' compiler, put behind Metro's."""
    directory = bundled(work, "--minify", "false")
    files, tools = os.path.join(directory, "compiled"), os.path.join(directory, "node_modules/hermes-engine-cli/linux64-bin")
    os.mkdir(files)
    for tool in ("hermes", "hermesc"):
        os.chmod(os.path.join(tools, tool), 0o755)
    run(directory, os.path.join(tools, "hermesc"), "-O", "-emit-binary", "-output-source-map", "-out", "compiled/app.bundle", "out.js")
    run(directory, "node", "compose.js", "compiled/app.bundle.map", "out.map", "compiled/app.bundle.map")
    expect_readable(directory, thrown(directory, os.path.join(tools, "hermes"), "-b", "compiled/app.bundle"), files, 15)
