"""A job of tasks whose driver is killed after each stage, and started again until it ends."""

import os
import signal

import troubled
from faults import judge

SCRIPT = """
import sys
from pathlib import Path
sys.path[:0] = [{support!r}, {here!r}]
import troubled, {module} as tests
troubled.trouble(setattr, troubled.dead_after, Path("marks"))
tests.in_tasks(Path.cwd(){options})
"""


def killed_after_each(stages, box, file, output="tasks", options=""):
    """See that `in_tasks` of a file of tests survives: nothing of its output is there before the end, all afterwards.

    Parameters
    ----------
    stages : sequence of str
        In their order.
    box : path
        The folder of the job, with its work folder "work".
    file : str
        The file of tests.
    output : str, default "tasks"
        The name of the output.
    options : str, default ""
        Further arguments of `in_tasks`, as source.
    """
    support, (here, name) = os.path.dirname(troubled.__file__), os.path.split(file)
    script = SCRIPT.format(support=support, here=here, module=name.removesuffix(".py"), options=options)
    for stage in stages:
        ended = judge._fork_server().run(box, script, {})
        assert ended.status == -signal.SIGKILL, ended.errors
        assert (box / "marks" / f"{stage}-dead").exists() and not (box / output).exists()
    ended = judge._fork_server().run(box, script, {})
    assert ended.status == 0, ended.errors
    assert not (box / "work").exists() and not list(box.glob(".*"))
