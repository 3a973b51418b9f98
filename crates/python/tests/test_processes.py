"""Forks, exits, locks and signals: each in a process of its own."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import nandex

# A shell starts background processes with interrupts ignored, and their children inherit that.
HEARS_INTERRUPTS = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"


def run(code: str, path: Path, *, status: int = 0) -> str:
    """The output of a program, with `path` in its arguments."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), str(path)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == status, done.stderr
    return done.stdout + done.stderr


def test_a_child_is_told_that_its_handles_are_its_parents(path: Path) -> None:
    shown = run(
        """
        import os, sys, nandex
        db = nandex.open(sys.argv[1], ram="16MiB")
        pages, entries = db.map("m"), None
        pages["a"] = "1"
        entries = iter(pages)
        child = os.fork()
        if child == 0:
            for call in (lambda: pages["a"], lambda: next(entries), db.close, lambda: db.map("n")):
                try:
                    call()
                except nandex.ForkedError as error:
                    assert isinstance(error, RuntimeError) and "opened by the parent" in str(error)
                    assert "spawn" in str(error)
                else:
                    os._exit(3)
            del pages, db, entries
            sys.exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        pages["b"] = "2"
        assert pages.get_many(["a", "b"]) == [b"1", b"2"]
        db.close()
        print("parent is whole")
        """,
        path,
    )
    assert shown == "parent is whole\n"
    with nandex.open(path, mode="r") as db:
        assert len(db.map("m")) == 2


def test_a_forked_worker_opens_the_file_itself(path: Path) -> None:
    with nandex.open(path, ram="16MiB") as db:
        db.map("m")["a"] = "1"
    shown = run(
        """
        import multiprocessing, sys, nandex
        def read(path):
            with nandex.open(path, mode="r") as db:
                return db.map("m")["a"]
        with nandex.open(sys.argv[1], mode="r") as db, multiprocessing.get_context("fork").Pool(2) as pool:
            print(pool.map(read, [sys.argv[1]] * 4))
        """,
        path,
    )
    assert shown == "[b'1', b'1', b'1', b'1']\n"


def test_what_is_open_is_saved_when_the_interpreter_ends(path: Path) -> None:
    shown = run(
        """
        import sys, threading, nandex
        db = nandex.open(sys.argv[1], ram="32MiB", durability="never")
        pages, words, seen = db.map("m"), db.counter("c", keys=1000), db.filter("f", keys=1000)
        pages.put_many({str(n): "v" for n in range(1000)})
        words.update(["a"])
        seen.add("a")
        entries = iter(pages)
        next(entries)
        """,
        path,
    )
    assert shown == ""
    with nandex.open(path, ram="32MiB") as db:
        assert len(db.map("m")) == 1000 and db.counter("c")["a"] == 1 and "a" in db.filter("f")


def test_a_file_that_another_process_has_is_in_use(path: Path) -> None:
    with nandex.open(path, ram="16MiB"):
        shown = run(
            """
            import sys, nandex
            try:
                nandex.open(sys.argv[1])
            except nandex.InUseError as error:
                print(error)
            """,
            path,
        )
    assert f"in use by process {os.getpid()}" in shown


def test_an_interrupt_stops_a_long_call_and_leaves_a_whole_volume(path: Path) -> None:
    code = f"""
        {HEARS_INTERRUPTS}
        import sys, nandex, numpy as np
        db = nandex.open(sys.argv[1], ram="64MiB")
        table = db.table("t", entries=100_000, policy="grow", ram="48MiB")
        keys = np.arange(60_000_000, dtype=np.uint64)
        try:
            print("begun", flush=True)
            table.insert_many(keys, keys)
        except KeyboardInterrupt:
            print("stopped", flush=True)
        """
    arguments = [sys.executable, "-c", textwrap.dedent(code), str(path)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGINT)
        shown, errors = process.communicate(timeout=60)
    assert (shown, process.returncode) == ("stopped\n", 0), errors
    with nandex.open(path, ram="64MiB") as db:
        count = db.table("t", entries=100_000, policy="grow", ram="48MiB").stats()["entries"]
        assert count < 60_000_000


def test_an_interrupt_stops_iterations_and_watched_calls(path: Path, tmp_path: Path) -> None:
    for number in range(40):
        (tmp_path / f"{number}.bin").write_bytes(os.urandom(4 << 20))
    code = f"""
        {HEARS_INTERRUPTS}
        import os, sys, threading, nandex
        db = nandex.open(sys.argv[1], ram="64MiB")
        threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            while True:
                db.dedup(os.path.dirname(sys.argv[1]), average="256", workers=1)
        except KeyboardInterrupt:
            print("stopped")
        """
    assert run(code, path) == "stopped\n"
    with nandex.open(path, ram="64MiB") as db:
        assert db.structures()
