"""Kernels that were compiled when the package was built: what is loaded, and what is compiled on demand instead."""

import ast
import inspect
import json
import os
import shutil
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import pytest

from neardup_gpu.kernels import _ahead, _numba, _processor, _pycc
from neardup_gpu.kernels._cpu import Rare, declared_kinds

pytestmark = pytest.mark.skipif(
    sys.platform == "win32" or shutil.which("cc") is None, reason="needs a C compiler, to make a module"
)

SUMS = """
from ._cpu import jit, parallel

@jit("uint64[::1], uint64")
def above(values, bound):
    found = 0
    for value in values:
        found += value > bound
    return found

@parallel("uint64[::1], uint64[::1]", is_wide=True)
def double(begin, end, values, doubled):
    for i in range(begin, end):
        doubled[i] = 2 * values[i]
"""
CALLS = """
import logging, sys
logging.basicConfig(level="DEBUG", format="%(message)s")
logging.getLogger("numba").setLevel("WARNING")
import numpy as np
from package.sums import above, double
values, doubled = np.arange(5, dtype=np.uint64), np.empty(5, np.uint64)
double(5, values, doubled)
print(above(values, 2), doubled, "numba" in sys.modules)
"""
RIGHT = "2 [0 2 4 6 8]"
DEMAND = "kernels are compiled when they are first used, and kept where they can be: "


def run(folder: Path, code: str, **environment: str) -> subprocess.CompletedProcess:
    """Run code in a folder that holds the package."""
    added = {"NEARDUP_CACHE_DIR": os.fspath(folder / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
    added |= {"PYTHONPATH": "", "PYTHONSAFEPATH": ""}  # so that the package of this folder is imported
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, **added, **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A package of two kernels, with our files and a module of their code."""
    package = tmp_path_factory.mktemp("built") / "package"
    package.mkdir()
    kernels = Path(_ahead.__file__).parent
    for name in ["ahead", "cache", "cached", "cpu", "numba", "processor", "pycc", "calls", "stand_ins", "turn"]:
        shutil.copy(kernels / f"_{name}.py", package)
    (package / "__init__.py").touch()
    (package / "sums.py").write_text(SUMS)
    run(package.parent, "import pathlib, package._pycc as p; print(p.build(pathlib.Path('package')))")
    return package


@pytest.fixture
def package(built, tmp_path):
    """A copy of that package, to be damaged."""
    return Path(shutil.copytree(built, tmp_path / "package"))


def is_compiled_on_demand(package, reason, **environment):
    """Check that kernels give the right result without the module, and that the log says why, once."""
    done = run(package.parent, CALLS, **environment)
    assert done.stdout == f"{RIGHT} True\n"
    assert [line for line in done.stderr.splitlines() if line.startswith(DEMAND)] == [DEMAND + reason]


def module_of(package: Path) -> Path:
    """Return the module of all functions."""
    (module,) = package.glob(f"_ahead_{list(_pycc.LEVELS)[-1]}_*.so")
    return module


def change_index(package, **values):
    path = package / _ahead.INDEX
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def test_a_module_is_loaded_without_numba(package):
    done = run(package.parent, CALLS)
    assert (done.stdout, done.stderr) == (f"{RIGHT} False\n", "")
    assert not (package.parent / "cache").exists()


def test_other_sources(package):
    with (package / "sums.py").open("a") as file:
        file.write("\n# changed\n")
    is_compiled_on_demand(package, "they were made of other sources than these")


def test_files_that_no_code_depends_on_may_change(package):
    with (package / "_pycc.py").open("a") as file:
        file.write("\n# changed\n")
    assert run(package.parent, CALLS).stdout == f"{RIGHT} False\n"


def test_new_sources_over_an_installed_package(built, package):
    """A stale module and its index stay where an installer did not remove them."""
    (package / "sums.py").write_text(SUMS.replace("value > bound", "value >= bound"))
    done = run(package.parent, CALLS)
    assert done.stdout == "3 [0 2 4 6 8] True\n"
    shutil.copytree(built, package, dirs_exist_ok=True)  # the old version again
    assert run(package.parent, CALLS).stdout == f"{RIGHT} False\n"


@pytest.mark.parametrize("other", ["cpython-399-x86_64-linux-gnu", "cpython-311-x86_64-linux-musl"])
def test_another_python(package, other):
    """Such as one that links another C library: all of it is in the names of extension modules."""
    change_index(package, suffix=f".{other}.so")
    is_compiled_on_demand(package, f"they are for .{other}.so, and this Python takes {_ahead.suffix()}")


@pytest.mark.parametrize("damage", ["truncated", "changed", "empty"])
def test_a_damaged_module_is_not_loaded(package, damage):
    module = module_of(package)
    content = bytearray(module.read_bytes())
    if damage == "truncated":
        content = content[: len(content) // 2]
    elif damage == "changed":
        content[len(content) // 2] ^= 1
    else:
        content = bytearray()
    module.write_bytes(content)
    is_compiled_on_demand(package, f"{module.name} is damaged")


def test_no_module_beside_the_index(package):
    module = module_of(package)
    module.unlink()
    path = package.parent / "package" / module.name
    is_compiled_on_demand(package, f"{module.name} cannot be loaded ([Errno 2] No such file or directory: '{path}')")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "JSONDecodeError: "),
        ("\xff", "UnicodeDecodeError: "),
        ("null", "TypeError: "),
        ("[]", "TypeError: "),
        ("{}", "KeyError: 'sources')"),
        ('{"sources": "", "suffix": "", "modules": {}}', "KeyError: 'levels')"),
        ('{"sources": "", "suffix": "", "modules": {}, "levels": []}', "IndexError: "),
        ('{"sources": "", "suffix": "", "modules": {}, "levels": [{"features": 1}]}', "TypeError: "),
        ('{"sources": "", "suffix": "", "modules": {}, "levels": [{"features": []}]}', "KeyError: 'functions')"),
        (
            '{"sources": "", "suffix": "", "modules": {}, "levels": [{"features": [], "functions": "none"}]}',
            "ValueError: ",
        ),
    ],
)
def test_an_index_that_cannot_be_read(monkeypatch, tmp_path, content, said):
    (tmp_path / _ahead.INDEX).write_bytes(content.encode("latin-1"))
    monkeypatch.setattr(_ahead, "FOLDER", tmp_path)
    found, reason = _ahead.index.__wrapped__()
    assert found == {} and reason.startswith(f"{_ahead.INDEX} cannot be read ({said}")


def test_an_index_that_is_a_folder(package):
    (package / _ahead.INDEX).unlink()
    (package / _ahead.INDEX).mkdir()
    path = package.parent / "package" / _ahead.INDEX
    is_compiled_on_demand(
        package, f"{_ahead.INDEX} cannot be read (IsADirectoryError: [Errno 21] Is a directory: '{path}')"
    )


def test_without_an_index(package):
    (package / _ahead.INDEX).unlink()
    is_compiled_on_demand(package, "none came with this installation")


def test_a_function_that_was_left_out(package):
    change_index(package, levels=[{"features": [], "functions": {}}])
    done = run(package.parent, CALLS)
    assert done.stdout == f"{RIGHT} True\n"
    assert f"{DEMAND}sums.double was left out of them" in done.stderr


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="needs root, to mount a file system")
def test_a_file_system_without_programs(package):
    mounted = package.parent / "mounted"
    mounted.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "noexec", "tmpfs", mounted], capture_output=True).returncode:
        pytest.skip("mounting is not allowed")
    try:
        copy = Path(shutil.copytree(package, mounted / "package"))
        done = run(mounted, CALLS)
        assert done.stdout == f"{RIGHT} True\n"
        assert f"{DEMAND}{module_of(copy).name} cannot be loaded (" in done.stderr
        assert "failed to map segment" in done.stderr
    finally:
        subprocess.run(["umount", mounted], check=True)


def test_a_loader_that_refuses(package):
    """As on a file system without programs, or beside another C library."""
    refusing = """
from importlib.machinery import ExtensionFileLoader
before = ExtensionFileLoader.create_module
def create_module(self, spec):
    if "_ahead_" in spec.origin:
        raise ImportError("failed to map segment from shared object")
    return before(self, spec)
ExtensionFileLoader.create_module = create_module
"""
    done = run(package.parent, refusing + CALLS)
    assert done.stdout == f"{RIGHT} True\n"
    reason = f"{module_of(package).name} cannot be loaded (failed to map segment from shared object)"
    assert done.stderr.count(DEMAND + reason) == 1


def test_a_zip_file(package):
    archive = package.parent / "package.zip"
    with zipfile.ZipFile(archive, "w") as zipped:
        for file in sorted(package.iterdir()):
            zipped.write(file, f"package/{file.name}")
    shutil.rmtree(package)
    done = run(package.parent, f"import sys; sys.path.insert(0, {str(archive)!r})\n{CALLS}")
    assert done.stdout == f"{RIGHT} True\n"
    assert f"{DEMAND}extension modules cannot be loaded from a zip file" in done.stderr


@pytest.mark.skipif(not _processor.is_x86(), reason="modules for other processors need no features")
class TestProcessor:
    def test_a_feature_that_is_missing(self, package):
        lacking = "import package._processor as p; p.ICE_LAKE -= {'bmi2', 'avx2'}\n"
        done = run(package.parent, lacking + CALLS)
        assert done.stdout == f"{RIGHT} True\n"
        assert f"{DEMAND}this processor lacks avx2, bmi2\n" in done.stderr

    @pytest.mark.parametrize("lacks", [True, False])
    def test_vectors_of_512_bits(self, package, lacks):
        """A processor that has them takes one of the two functions from another module."""
        if not lacks and not _processor.features() >= _processor.ICE_LAKE:
            pytest.skip("this processor lacks them")
        before = "import package._processor as p; p.ICE_LAKE -= {'avx512vl'}\n" if lacks else ""
        after = "import package._ahead as ahead; print(ahead._module.cache_info().currsize)"
        done = run(package.parent, before + CALLS + after)
        assert (done.stdout, done.stderr) == (f"{RIGHT} False\n{1 if lacks else 2}\n", "")

    def test_a_damaged_module_of_vectors_of_512_bits(self, package):
        """The module of all functions has the function, too."""
        (module,) = package.glob("_ahead_icelake_server_*.so")
        module.write_bytes(b"")
        done = run(package.parent, CALLS)
        assert (done.stdout, done.stderr) == (f"{RIGHT} False\n", "")

    def test_without_the_carryless_product(self, package):
        reason = "NEARDUP_CLMUL=0 asks for kernels without the carry-less product"
        is_compiled_on_demand(package, reason, NEARDUP_CLMUL="0")

    @pytest.mark.parametrize("problem", ["absent", "silent"])
    def test_a_system_that_does_not_say(self, monkeypatch, problem):
        def read_text(path):
            if problem == "absent":
                raise FileNotFoundError
            return "processor: 0\n"

        monkeypatch.setattr(sys, "platform", "linux")
        monkeypatch.setattr(Path, "read_text", read_text)
        assert _processor.features.__wrapped__() == frozenset()


def test_two_hundred_threads_load_a_module_once(package):
    code = """
import sys, threading
import numpy as np
from package import _ahead
from package.sums import above, double
loaded, before = [], _ahead.ExtensionFileLoader.exec_module
def exec_module(self, module):
    loaded.extend([module] * ("_ahead_" in self.name))
    before(self, module)
_ahead.ExtensionFileLoader.exec_module = exec_module
together, right = threading.Barrier(200), []
def call():
    values, doubled = np.arange(100, dtype=np.uint64), np.empty(100, np.uint64)
    together.wait()
    double(100, values, doubled)
    right.append(above(values, 49) == 50 and (doubled == 2 * values).all())
threads = [threading.Thread(target=call) for _ in range(200)]
for each in threads: each.start()
for each in threads: each.join()
names = {each.__name__ for each in loaded}
print(len(loaded) == len(names) > 0, len(right), all(right), "numba" in sys.modules)
"""
    assert run(package.parent, code).stdout == "True 200 True False\n"


def test_nobody_waits_long_for_a_thread_whose_turn_it_is(package):
    """A thread may end, or do other work, while it has the turn to take Python's lock."""
    code = """
import time
import numpy as np
from package._turn import turn
from package.sums import above
values = np.arange(100, dtype=np.uint64)
above(values, 49)
mine, right, began = turn[0], True, time.perf_counter()
for _ in range(100):
    turn[0] = 12345  # another thread's
    right &= above(values, 49) == 50 and turn[0] == mine
print(mine != 0, right, time.perf_counter() - began < 10)
"""
    assert run(package.parent, code).stdout == "True True True\n"


def test_two_hundred_threads_compile_once(package):
    (package / _ahead.INDEX).unlink()
    code = """
import threading
import numpy as np
from package import _cpu
from package.sums import above
compiled = []
_cpu.listeners.append(lambda begins: compiled.append(begins))
together, found = threading.Barrier(200), []
def call():
    values = np.arange(100, dtype=np.uint64)
    together.wait()
    found.append(above(values, 49))
threads = [threading.Thread(target=call) for _ in range(200)]
for each in threads: each.start()
for each in threads: each.join()
print(found == [50] * 200, compiled)
"""
    assert run(package.parent, code).stdout == "True [True, False]\n"


def test_a_fork_while_a_module_is_loaded(package):
    """The new process has a thread less, and no lock that this thread would have released."""
    code = """
import os, threading
import numpy as np
from package import _ahead
from package.sums import above
loading, before = threading.Event(), _ahead.ExtensionFileLoader.exec_module
def exec_module(self, module):
    if "_ahead_" in self.name:
        loading.set()
        threading.Event().wait(0.3)
    before(self, module)
_ahead.ExtensionFileLoader.exec_module = exec_module
values = np.arange(100, dtype=np.uint64)
thread = threading.Thread(target=above, args=(values, 49))
thread.start()
loading.wait()
child = os.fork()
if not child:
    os._exit(above(values, 49))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert run(package.parent, code).stdout == "50\n"


def test_a_signal_handler_forks_and_calls_a_kernel_while_the_index_is_read(package):
    code = """
import os, signal
import numpy as np
from package import _ahead
from package.sums import above
values, before = np.arange(100, dtype=np.uint64), _ahead.features
def features():
    if not told:
        told.append(True)
        signal.raise_signal(signal.SIGUSR1)
    return before()
def handle(*_):
    child = os.fork()
    if not child:
        os._exit(above(values, 49))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
told, _ahead.features = [], features
signal.signal(signal.SIGUSR1, handle)
print(above(values, 49))
"""
    assert run(package.parent, code).stdout == "50\n50\n"


# --------------------------------------------------------------------------------------------- declared signatures


def signatures():
    return [(name, each) for name, function in _pycc.declared().items() for each in function.signatures]


def kind_of(numba_type):
    """The kind that `declared_kinds` should give for a Numba type."""
    from numba.core import types
    from numba.np.numpy_support import as_dtype

    if isinstance(numba_type, types.Array):
        return as_dtype(numba_type.dtype), numba_type.ndim, numba_type.layout == "C"
    if isinstance(numba_type, types.BaseTuple):
        return tuple(map(kind_of, numba_type))
    if isinstance(numba_type, types.NoneType):
        return "NoneType"
    return as_dtype(numba_type).kind.replace("u", "i")


def test_declared_signatures_mean_the_same_to_numba():
    assert len(signatures()) > 100
    for _, signature in signatures():
        assert declared_kinds(signature) == tuple(map(kind_of, _numba.argument_types(signature))), signature


@pytest.mark.parametrize("name", [name for name, function in _pycc.declared().items() if function.signatures])
def test_no_function_returns_an_array_that_it_was_given(name):
    """Modules borrow arrays: such a result would not keep its memory."""
    (function,) = ast.parse(textwrap.dedent(inspect.getsource(_pycc.declared()[name].py_func))).body
    given = {argument.arg for argument in function.args.args}
    returned = [node.value for node in ast.walk(function) if isinstance(node, ast.Return) and node.value is not None]
    for value in (each for whole in returned for each in getattr(whole, "elts", [whole])):
        while isinstance(value, (ast.Attribute, ast.Subscript)):
            value = value.value
        assert not (isinstance(value, ast.Name) and value.id in given), ast.unparse(value)


def test_declared_numbers_have_64_bits():
    """Compiled code would cut a number to fewer bits without an error."""
    from numba.core import types

    for name, signature in signatures():
        for each in _numba.argument_types(signature):
            numbers = each if isinstance(each, types.BaseTuple) else [each]
            assert all(n.bitwidth == 64 for n in numbers if isinstance(n, (types.Integer, types.Float))), name


def test_the_modules_hold_every_declared_signature():
    found, reason = _ahead.index()
    if not found:
        pytest.skip(f"no modules: {reason}")
    held = {(name, each) for level in found["levels"] for name, entries in level.items() for each in entries}
    usual = {(name, each) for name, each in signatures() if not isinstance(each, Rare)}
    assert usual <= held <= set(signatures())
    for name in found["modules"]:  # Numba names an expression of arrays by its address: write a loop
        assert b"numba_array_expr" not in Path(_ahead.__file__).with_name(name).read_bytes()


def test_equal_sources_give_equal_modules(package):
    before = {file.name: file.read_bytes() for file in package.glob("_ahead*")}
    for file in package.glob("_ahead*"):
        if file.suffix != ".py":
            file.unlink()
    run(package.parent, "import pathlib, package._pycc as p; p.build(pathlib.Path('package'))", PYTHONHASHSEED="7")
    assert {file.name: file.read_bytes() for file in package.glob("_ahead*")} == before


@pytest.mark.parametrize("is_new", [False, True])
def test_a_build_for_this_machine_compiles_each_function_for_one_level(is_new, monkeypatch):
    *newer, last = _pycc.LEVELS
    functions = _pycc.declared().values()
    assert _pycc._chosen("all")[last] == [*functions]
    monkeypatch.setattr(_pycc, "features", lambda: set().union(*_pycc.LEVELS.values()) if is_new else set())
    chosen = _pycc._chosen("usual")
    assert len(chosen) == 1 + bool(is_new and newer)
    assert sorted(each.name for some in chosen.values() for each in some) == sorted(each.name for each in functions)
    assert all(each.is_wide for level in newer for each in chosen.get(level, []))


@pytest.mark.parametrize("which", ["all", "usual"])
def test_shares_of_processes_are_all_signatures_once(which):
    shares = _pycc._shares(list(_pycc.declared().values()), which, 3)
    wanted = [(name, each) for name, each in signatures() if which == "all" or not isinstance(each, Rare)]
    assert sorted((f.name, each) for share in shares for f, each in share) == sorted(wanted)
    assert all(shares)


def test_a_kernel_that_cannot_be_compiled_fails_the_build(package):
    (package / "sums.py").write_text(SUMS + "\n@jit('uint64')\ndef wrong(a):\n    return a.nothing\n")
    code = """
import pathlib, subprocess, package._pycc as p
try:
    p.build(pathlib.Path("package"))
except subprocess.CalledProcessError as error:
    print(error.returncode)
"""
    done = run(package.parent, code)
    assert done.stdout == "1\n" and "nothing" in done.stderr
