"""The circuit breaker, by an injected clock."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from search.circuit import Circuit


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def circuit(clock: Clock) -> Circuit:
    return Circuit(clock=clock)


def test_it_lets_calls_through_while_closed(circuit: Circuit) -> None:
    assert circuit.refusal(cooldown_s=30) is None
    circuit.succeeded()
    assert circuit.refusal(cooldown_s=30) is None


def test_it_opens_at_a_failure_and_says_why_and_for_how_long(
    circuit: Circuit, clock: Clock
) -> None:
    circuit.failed("it fell over", cooldown_s=30)
    clock.now += 18
    assert (
        circuit.refusal(cooldown_s=30) == "skipped for another 12 s after a failure: it fell over"
    )


def test_one_probe_passes_after_the_cooldown_and_its_success_closes(
    circuit: Circuit, clock: Clock
) -> None:
    circuit.failed("it fell over", cooldown_s=30)
    clock.now += 30
    assert circuit.refusal(cooldown_s=30) is None
    assert circuit.refusal(cooldown_s=30) is not None
    circuit.succeeded()
    assert circuit.refusal(cooldown_s=30) is None


def test_a_probe_that_fails_opens_it_anew(circuit: Circuit, clock: Clock) -> None:
    circuit.failed("first", cooldown_s=30)
    clock.now += 31
    assert circuit.refusal(cooldown_s=30) is None
    circuit.failed("second", cooldown_s=30)
    clock.now += 29
    assert "second" in (circuit.refusal(cooldown_s=30) or "")


def test_a_probe_that_never_reports_loses_its_turn(circuit: Circuit, clock: Clock) -> None:
    circuit.failed("it fell over", cooldown_s=30)
    clock.now += 30
    assert circuit.refusal(cooldown_s=30) is None
    clock.now += 30
    assert circuit.refusal(cooldown_s=30) is None


def test_of_many_threads_one_is_the_probe(circuit: Circuit, clock: Clock) -> None:
    circuit.failed("it fell over", cooldown_s=30)
    clock.now += 30
    with ThreadPoolExecutor(16) as pool:
        refusals = list(pool.map(lambda _: circuit.refusal(cooldown_s=30), range(200)))
    assert refusals.count(None) == 1
