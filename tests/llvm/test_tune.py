"""Tuning by measurement: which choices are made, what they cost, and which are stored. Times are simulated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest
from attrs import evolve
from branchy_models import PACKAGES

import onert
from onert.backend.cache import Cache
from onert.backend.writers import WRITERS
from onert.ir import Array, DType, OptionError, Package, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.contraction.conv import Conv2D
from onert.tools import bench, run
from onert_llvm import tune
from onert_llvm.schedule.choices import Choices
from onert_llvm.tune import Outcome, choices_to_store, format_choices, parse_choices, search

Found = Mapping[str, str]


class Clock:
    """A clock that only measurements advance."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


class Fake:
    """A measurable program with certain choices: a run takes `takes(choices)`, and the clock advances by a second."""

    def __init__(
        self, clock: Clock, places: Mapping[str, tuple[str, ...]], takes: Callable[[Found], float], found: Found
    ) -> None:
        self.clock, self.takes, self.found = clock, takes, dict(found)
        self.offered = places
        self.measured = 0

    def measure(self) -> float:
        self.clock.now += 1
        self.measured += 1
        return self.takes(self.found)


def site(
    clock: Clock, places: Mapping[str, tuple[str, ...]], takes: Callable[[Found], float], log: list[Found] | None = None
) -> tune.Site:
    def made(found: Found) -> Fake:
        if log is not None:
            log.append(dict(found))
        return Fake(clock, places, takes, found)

    return made


def by_texts(**times: float) -> Callable[[Found], float]:
    """The run time depends on the text chosen at place 'a', or on 'model' if there is none."""
    return lambda found: times[found.get("a", "model")]


A = {"a": ("model", "other", "third")}
OUTCOMES = {
    "another is faster": (by_texts(model=10, other=5, third=20), "other"),
    "the fastest of several": (by_texts(model=10, other=5, third=4), "third"),
    "a little faster": (by_texts(model=10, other=9.9, third=9.8), "model"),
    "none is faster": (by_texts(model=10, other=10, third=11), "model"),
}


@pytest.mark.parametrize("name", OUTCOMES)
def test_an_alternative_is_chosen_if_it_is_faster_beyond_noise(name: str) -> None:
    takes, expected = OUTCOMES[name]
    outcome = search([site(clock := Clock(), A, takes)], {}, 1000, clock)
    assert outcome.found == {"a": expected}
    assert outcome.replaced == ({} if expected == "model" else {"a": "model"})


@pytest.mark.parametrize(("wins", "taken"), [(6, False), (7, True)])
def test_an_alternative_must_win_most_rounds(wins: int, taken: bool) -> None:
    clock = Clock()
    rounds = iter([5.0] * wins + [20.0] * (tune.ROUNDS - wins))
    trial, model = (Fake(clock, A, takes, {}) for takes in (lambda found: next(rounds), lambda found: 10.0))
    assert tune.is_faster(trial, model, 1000, clock) is taken


def test_a_clearly_slower_alternative_is_abandoned_early() -> None:
    clock = Clock()
    trial, model = (Fake(clock, A, takes, {}) for takes in (lambda found: 20.0, lambda found: 10.0))
    assert tune.is_faster(trial, model, 1000, clock) is False
    assert trial.measured == model.measured == tune.FEWEST


@pytest.mark.parametrize("seconds", range(0, 60, 7))
def test_the_time_limit_is_kept_and_unfinished_choices_are_not_recorded(seconds: int) -> None:
    clock = Clock()
    places = {"a": ("model", "other"), "b": ("model", "other"), "c": ("model", "other")}
    outcome = search([site(clock, places, lambda found: 10.0 - len(found))], {}, seconds, clock)
    assert clock.now <= seconds + 2
    assert set(outcome.found) == set("abc"[: len(outcome.found)])
    assert len(outcome.found) == min(3, max(0, seconds - 2) // (2 * tune.ROUNDS))


def test_the_slowest_site_is_measured_first() -> None:
    clock = Clock()
    times = {"a": 2.0, "b": 9.0, "c": 4.0}
    sites = [site(clock, {name: ("model", "other")}, lambda found, time=time: time) for name, time in times.items()]  # type: ignore[misc]
    assert list(search(sites, {}, 1000, clock).found) == ["b", "c", "a"]


def test_known_choices_are_not_measured_again() -> None:
    clock = Clock()
    known = {"a": "other"}
    outcome = search([site(clock, A, by_texts(model=1, other=10, third=1))], known, 1000, clock)
    assert (outcome.found, outcome.replaced, clock.now) == (known, {}, 0)


def test_choices_that_only_an_alternative_offers_are_measured_too() -> None:
    clock = Clock()

    def made(found: Found) -> Fake:
        places = {"a": ("model", "other")} | ({"b": ("model", "other")} if found.get("a") == "other" else {})
        return Fake(clock, places, lambda found: 10.0 - 4 * (found.get("a") == "other"), found)

    assert search([made], {}, 1000, clock).found == {"a": "other", "b": "model"}


WHOLE = {
    # the time with all choices (10 without), whether the time limit has passed, the choices that are cache_folder
    "faster": (9.0, False, {"a": "other", "b": "model"}),
    "as fast": (10.0, False, {"a": "model", "b": "model"}),
    "slower": (11.0, False, {"a": "model", "b": "model"}),
    "time is over": (9.0, True, {"b": "model"}),
}


@pytest.mark.parametrize("name", WHOLE)
def test_choices_are_dropped_unless_they_make_the_whole_program_faster(name: str) -> None:
    time, over, expected = WHOLE[name]
    clock = Clock()
    whole = site(clock, {}, lambda found: time if found else 10.0)
    outcome = Outcome({"a": "other", "b": "model"}, {"a": "model"})
    assert choices_to_store(outcome, whole, {}, 0 if over else 1000, clock) == expected


def test_choices_survive_being_written_and_parsed() -> None:
    found = {"place": "Tile(mr=6)", "another": "None"}
    assert parse_choices(format_choices(found)) == found
    assert parse_choices(None) == parse_choices(b"") == parse_choices(b"no line\n\xff\xfe\na\tb\tc") == {}


def test_an_alternative_that_is_not_offered_is_not_chosen() -> None:
    first = Choices({})
    assert first.choose(("tile", 1), 5, [6, 7]) == 5
    ((place, offered),) = first.offered.items()
    assert offered == ("5", "6", "7")
    assert Choices({place: "7"}).choose(("tile", 1), 5, [6, 7]) == 7
    assert Choices({place: "8"}).choose(("tile", 1), 5, [6, 7]) == 5


# ---- compiled models


def _network(size: int = 3) -> Package:
    rng = np.random.default_rng(0)
    b = Builder("network")
    x = b.input(TensorType(DType.FLOAT32, (1, 12, 12, 4)), "x")
    for inputs, outputs in ((4, 32), (32, 48)):
        x = b.add(Conv2D(), x, b.constant(rng.uniform(-1, 1, (outputs, size, size, inputs)).astype(np.float32)), None)
    return Package((b.model([x]),), "network")


MODEL = Path(__file__).parents[2] / "nnpackage" / "examples" / "digits_int8" / "digits_int8.tflite"
INPUT = np.random.default_rng(1).uniform(-1, 1, (1, 12, 12, 4)).astype(np.float32)


def _result(package: Package, **options: object) -> Array:
    (found,) = onert.Execution(onert.compile(package, **options)).run([INPUT]).values()  # type: ignore[arg-type]
    WRITERS.finish()
    return found


class Count(tune.MeasuredKernel):
    """A kernel that is faster the more of its choices differ from the cost model's."""

    made = 0
    texts: set[str]

    def __init__(self, operations: object, make: object, tensors: object, taken: Found) -> None:
        super().__init__(operations, make, tensors, taken)  # type: ignore[arg-type]
        type(self).made += 1
        self.texts.update(text for texts in self.offered.values() for text in texts)
        self.others = sum(taken.get(place, texts[0]) != texts[0] for place, texts in self.offered.items())

    def measure(self) -> float:
        self.run()
        return 10.0 / (1 + self.others)


@pytest.fixture
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A separate cache, in which every alternative is faster than the cost model's choice."""
    monkeypatch.setenv("ONERT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(tune, "MeasuredKernel", Count)
    monkeypatch.setattr(Count, "made", 0)
    monkeypatch.setattr(Count, "texts", set(), raising=False)
    yield tmp_path
    WRITERS.finish()


def _entries(folder: Path) -> dict[str, Found]:
    store = Cache(folder)
    keys = [entry.key for entry in store.entries() if store.label(entry.key).startswith("choices")]
    return {key: parse_choices(store.load(key)) for key in keys}


@pytest.mark.parametrize("threads", [1, 2])
def test_recorded_choices_are_reused_without_measuring_again(cache_folder: Path, threads: int) -> None:
    package = _network()
    usual = _result(package, num_threads=threads)
    tuned = _result(package, num_threads=threads, tune=100.0)
    ((name, found),) = _entries(cache_folder).items()
    made = Count.made
    assert made > 4
    assert {text.partition("(")[0] for text in found.values()} >= {"False", "Tile", "Work"}
    np.testing.assert_allclose(tuned, usual, rtol=0, atol=3e-6 * float(np.ptp(usual)))
    again = _result(evolve(package, name="another"), num_threads=threads, tune=0.0)
    assert (again.tobytes(), Count.made) == (tuned.tobytes(), made)
    assert _entries(cache_folder) == {name: found}
    assert _result(package, num_threads=threads).tobytes() == usual.tobytes()


@pytest.mark.parametrize("damage", [b"", b"\0" * 100, b"place\tno alternative\nno line", None])
def test_damaged_choices_are_ignored(cache_folder: Path, damage: bytes | None) -> None:
    package = _network()
    usual = _result(package, tune=0.0)
    _result(package, tune=100.0)
    ((name, _),) = _entries(cache_folder).items()
    if damage is None:
        (cache_folder / f"{name}.onert").write_bytes(b"no entry")
    else:
        Cache(cache_folder).store(name, damage, label="choices")
    assert _result(evolve(package, name="another"), tune=0.0).tobytes() == usual.tobytes()


@pytest.mark.parametrize("size", [1, 3])
def test_tile_choices_are_bitwise_equal_and_algorithms_differ_in_rounding(cache_folder: Path, size: int) -> None:
    """Applies the recorded alternative of each choice separately."""
    package = _network(size)
    usual = _result(package, num_threads=2)
    _result(package, num_threads=2, tune=100.0)
    ((name, found),) = _entries(cache_folder).items()
    exact = 0
    for place, text in found.items():
        Cache(cache_folder).store(name, format_choices({place: text}), label="choices")
        result = _result(evolve(package, name=place), num_threads=2, tune=0.0)
        if text.startswith(("Tile(", "Work(")):
            assert result.tobytes() == usual.tobytes()
            exact += 1
        np.testing.assert_allclose(result, usual, rtol=0, atol=3e-6 * float(np.ptp(usual)))
    assert exact


def test_int8_products_are_tuned_and_exact(cache_folder: Path) -> None:
    package = onert.load(MODEL)
    results = []
    for seconds in (None, 100.0):
        execution = onert.Execution(onert.compile(package, num_threads=1, tune=seconds))
        (info,) = execution.program.inputs
        elements = np.random.default_rng(0).integers(-128, 128, [d or 1 for d in info.shape]).astype(info.dtype.numpy)
        results.append([array.tobytes() for array in execution.run([elements]).values()])
    assert results[0] == results[1]
    ((_, found),) = _entries(cache_folder).items()
    assert found


def test_each_precision_has_its_own_choices_among_the_algorithms_it_allows(cache_folder: Path) -> None:
    package = _network()
    for count, precision in enumerate(("exact", "fast"), 1):
        usual = _result(package, precision=precision, num_threads=1)
        tuned = _result(package, precision=precision, num_threads=1, tune=100.0)
        assert len(_entries(cache_folder)) == count
        np.testing.assert_allclose(tuned, usual, rtol=0, atol=6e-6 * float(np.ptp(usual)))
        assert any(text.startswith("Form(outputs=2") for text in Count.texts)
        assert any(text.startswith("Form(outputs=4") for text in Count.texts) == (precision == "fast")


def test_parallel_programs_are_tuned_too(cache_folder: Path) -> None:
    package = PACKAGES["inception"]()
    answers = []
    for seconds in (None, 100.0):
        execution = onert.Execution(onert.compile(package, executor="Parallel", num_threads=2, tune=seconds))
        rng = np.random.default_rng(0)
        given = [rng.uniform(-1, 1, [d or 1 for d in i.shape]).astype(np.float32) for i in execution.program.inputs]
        answers.append(list(execution.run(given).values()))
    assert Count.made > 0
    for usual, tuned in zip(*answers, strict=True):
        np.testing.assert_allclose(tuned, usual, rtol=0, atol=6e-6 * float(np.ptp(usual)))


def test_new_input_shapes_do_not_trigger_measurements(cache_folder: Path) -> None:
    b = Builder("open")
    x = b.input(TensorType(DType.FLOAT32, (None, 12, 12, 4)), "x")
    y = b.add(Conv2D(), x, b.constant(np.ones((32, 3, 3, 4), np.float32)), None)
    package = Package((b.model([y]),), "open")
    execution = onert.Execution(onert.compile(package, input_shapes={0: (1, 12, 12, 4)}, tune=100.0))
    execution.run([INPUT])
    made = Count.made
    assert made > 0
    for count in (2, 3, 4, 5):
        execution.set_input_shape(0, (count, 12, 12, 4))
        execution.run([np.repeat(INPUT, count, 0)])
    assert Count.made == made


WRONG = {
    "negative": (-1.0, "tune is -1.0, expected 0 to 86400 seconds"),
    "no number": (float("nan"), "tune is nan, expected 0 to 86400 seconds"),
    "endless": (float("inf"), "tune is inf, expected 0 to 86400 seconds"),
    "a word": ("long", "tune is 'long', expected a number of seconds, or None"),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_invalid_number_of_seconds_is_rejected(name: str) -> None:
    value, sentence = WRONG[name]
    with pytest.raises(OptionError, match=sentence):
        onert.Options(tune=value)  # type: ignore[arg-type]


@pytest.mark.parametrize("main", [run.main, bench.main], ids=["onert_run", "onert_bench"])
def test_commands_report_an_invalid_number_of_seconds(
    main: Callable[[list[str]], int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(MODEL), "--tune", "-2"]) == 2
    assert "--tune is -2.0, expected 0 to 86400 seconds" in capsys.readouterr().err
