"""Stacks of programs that Metro has bundled, for Node and as bytecode of Hermes: what these throw, made readable, is what the program
threw before. Frames of Metro's own runtime are left aside."""
import os, subprocess
import harness
from harness import npm_path
from test_tools import frames

PACKAGES = "metro@0.82.5 hermes-engine-cli@0.12.0"
PROGRAM = {
    "main.js": """const { order } = require('./shop/ordered');

function openShop(stock) {
  return order(stock, 2);
}

openShop([{ name: 'lamp', left: 3 }, { name: 'chair', left: 0 }]);
""",
    "shop/ordered.js": """const { checkStock } = require('./stock');

function Clerk(wanted) {
  this.wanted = wanted;
}

Clerk.prototype.serve = function serve(stock) {
  stock.forEach((item) => {
    checkStock(item, this.wanted);
  });
};

exports.order = function order(stock, wanted) {
  const clerk = new Clerk(wanted);
  return clerk.serve(stock);
};
""",
    "shop/stock.js": """exports.checkStock = function checkStock(item, wanted) {
  if (item.left < wanted) throw new Error('sold out: ' + item.name);
  return item.left;
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


def bundled(work, *options):
    """The directory of a program that is bundled, as out.js and out.map."""
    modules = npm_path(work, PACKAGES, "metro/package.json")[:-len("metro/package.json") - 1]
    directory = os.path.join(work, "program")
    for name, text in PROGRAM.items():
        path = os.path.join(directory, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text)
    os.symlink(modules, os.path.join(directory, "node_modules"))
    run(directory, "node", "node_modules/metro/src/cli.js", "build", "main.js", "--out", "out.js", "--source-map", "-c", "metro.config.js", *options)
    return directory


def expect_readable(directory, stack, files):
    """Every frame of the program is where the program threw it; all but those that are nobody's function have its name."""
    truth = frames(thrown(directory, "node", "main.js"))
    done = subprocess.run([harness.SYMLOOM, "symbolicate", "-", "--symbols", files], input=stack, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    got = [frame for frame in frames(done.stdout) if frame[1] in ("main.js", "ordered.js", "stock.js")]
    named = {frame[1:]: frame[0] for frame in truth}
    assert len(got) >= 5, stack + done.stdout
    for function, *place in got:
        assert tuple(place) in named, f"{place} is not among {truth}: {stack}{done.stdout}"
    expected = ["checkStock", "serve", "order", "openShop"]
    assert [f for f, *_ in got if f in expected] == expected, stack + done.stdout
    print(f"        {len(got)} frames, all at a place of the truth")


def test_metro(work, share):
    directory = bundled(work, "--minify", "true")
    files = os.path.join(directory, "minified")
    os.mkdir(files)
    os.rename(os.path.join(directory, "out.js"), os.path.join(files, "out.js"))
    os.rename(os.path.join(directory, "out.map"), os.path.join(files, "out.js.map"))
    expect_readable(directory, thrown(directory, "node", "minified/out.js"), files)


def test_hermes(work, share):
    """The map from bytecode is that of Hermes' compiler, put behind Metro's."""
    directory = bundled(work, "--minify", "false")
    files, tools = os.path.join(directory, "compiled"), os.path.join(directory, "node_modules/hermes-engine-cli/linux64-bin")
    os.mkdir(files)
    for tool in ("hermes", "hermesc"):
        os.chmod(os.path.join(tools, tool), 0o755)
    run(directory, os.path.join(tools, "hermesc"), "-O", "-emit-binary", "-output-source-map", "-out", "compiled/app.bundle", "out.js")
    run(directory, "node", "compose.js", "compiled/app.bundle.map", "out.map", "compiled/app.bundle.map")
    expect_readable(directory, thrown(directory, os.path.join(tools, "hermes"), "-b", "compiled/app.bundle"), files)
