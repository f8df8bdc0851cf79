"""The self-test and the choice of a GPU, given what is not there."""

from .judge import case


@case(says=("'abacus'", "reference, cpu, gpu"))
def a_self_test_of_a_backend_that_is_not_there(box):
    return ["selftest", "--engine", "abacus"]


@case(says="what others are compared with")
def a_self_test_of_the_reference(box):
    return ["selftest", "--engine", "reference"]


@case(says=("--device 0", "leave one of them out"))
def a_self_test_of_the_cpu_on_a_device(box):
    return ["selftest", "--engine", "cpu", "--device", "0"]


@case(says="seed -1 is negative")
def a_self_test_with_a_negative_seed(box):
    return ["selftest", "--engine", "cpu", "--seed", "-1"]


@case(says="--seed")
def a_self_test_with_a_seed_that_is_no_number(box):
    return ["selftest", "--engine", "cpu", "--seed", "1e3"]


@case(says=("--device must be >= 0, got -3", "counted from 0"))
def a_self_test_on_a_negative_device(box):
    return ["selftest", "--device", "-3"]


@case(says="--engine 'gpu'", environment={"CUDA_VISIBLE_DEVICES": ""}, fresh=True)
def a_self_test_of_a_gpu_that_is_hidden(box):
    return ["selftest", "--engine", "gpu"]


@case(says="'abacus'", environment={"NEARDUP_BACKEND": "abacus"})
def a_self_test_of_a_backend_by_variable(box):
    return ["selftest", "--json"]


SMALL = """
from neardup_gpu import cli
from neardup_gpu.installation import selftest
from neardup_gpu.kernels import minhash
selftest.LARGE, selftest.SMALL = 1 << 10, (0, 30)
"""
"""A self-test takes half a minute; this makes it short."""


@case(status=1, stdout="pipe", max_seconds=60)
def a_self_test_that_nobody_reads(box):
    return f"{SMALL}raise SystemExit(cli.main(['selftest', '--engine', 'cpu']))"


@case(says="negative")
def a_self_test_from_python_with_a_negative_seed(box):
    return "from neardup_gpu.installation import selftest; selftest.run('cpu', seed=-5)"


@case(status=0, says="'minhash', 'failed', 'ValueError: no bits'", max_seconds=300)  # it may compile all kernels
def a_kernel_that_fails_hides_no_other(box):
    return f"""{SMALL}
def fails(*arguments):
    raise ValueError("no bits")
minhash.cpu = fails
found = selftest.run("cpu", seed=1)
assert [row["kernel"] for row in found["kernels"]] == [*selftest.kernel_modules(), selftest.WHOLE]
assert sum(row["agrees"] for row in found["kernels"]) == len(found["kernels"]) - 2  # it, and the whole job
print([(row["kernel"], row["verdict"], row.get("problem")) for row in found["kernels"]])
"""
