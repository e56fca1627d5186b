"""What of a plan is still to be computed: waves, what starts from what, damage."""

import json

import pytest

from figures.pending import CHECKPOINT, from_elsewhere, needed, pending
from figures.records import RunStore, config_hash

VERSION = {"version": "1"}
TRAINING = {"study": "training", "seed": 0}


def outside(training=TRAINING, **more):
    return {"study": "external", "training": training, **more, **VERSION}


def plan(*configs):
    return {config_hash(config): config for config in configs}


PLAN = plan(outside(), {**TRAINING, **VERSION}, {"study": "training", "seed": 1, **VERSION})
SERVED, TRAINED, OTHER = PLAN


def write(store, *runs, checkpoint=True):
    for name in runs:
        with store.writing(PLAN[name]) as run:
            if checkpoint and name != SERVED:
                (run.folder / CHECKPOINT).write_bytes(b"weights of " + name.encode())


@pytest.fixture
def store(tmp_path):
    return RunStore(tmp_path / "runs")


def test_a_run_names_the_training_that_it_starts_from():
    assert needed(PLAN[SERVED]) == TRAINED
    assert needed(PLAN[TRAINED]) is None
    assert needed({**outside(), "version": "2"}) != TRAINED


def test_trainings_come_first_in_the_order_of_the_plan(store):
    assert pending(store, PLAN).waves == ((TRAINED, OTHER), (SERVED,))
    write(store, TRAINED)
    left = pending(store, PLAN)
    assert left.waves == ((OTHER,), (SERVED,)) and not left.again and not left.sentences


def test_what_is_there_stays_unless_fresh(store):
    write(store, *PLAN)
    assert pending(store, PLAN).waves == ((), ())
    fresh = pending(store, PLAN, fresh=True)
    assert fresh.waves == ((TRAINED, OTHER), (SERVED,)) and fresh.again == set(PLAN)


def test_without_its_training_a_run_is_computed_again(store):
    write(store, SERVED, OTHER)
    left = pending(store, PLAN)
    assert left.waves == ((TRAINED,), (SERVED,)) and SERVED in left.again


def test_a_training_without_a_checkpoint_is_computed_again_only_where_it_is_needed(store):
    write(store, TRAINED, OTHER, checkpoint=False)
    left = pending(store, PLAN)
    assert left.waves == ((TRAINED,), (SERVED,)) and TRAINED in left.again
    (sentence,) = left.sentences
    assert CHECKPOINT in sentence and "computed again" in sentence
    write(store, SERVED)
    assert pending(store, PLAN).waves == ((), ())


def test_a_damaged_checkpoint_is_set_aside_and_said(store):
    write(store, TRAINED, OTHER)
    path = store.folder(TRAINED) / CHECKPOINT
    path.write_bytes(path.read_bytes()[::-1])
    left = pending(store, PLAN)
    assert left.waves == ((TRAINED,), (SERVED,)) and not store.has(TRAINED)
    (sentence,) = left.sentences
    assert "set aside" in sentence and "run the command again" not in sentence
    assert (store.root / "damaged" / f"{TRAINED}-1").is_dir()


def test_runs_from_elsewhere_are_counted(store):
    write(store, TRAINED, OTHER)
    found = {name: store.manifest(name) for name in (TRAINED, OTHER)}
    assert from_elsewhere(found) == 0
    found[OTHER] = json.loads(json.dumps(found[OTHER]))
    found[OTHER]["versions"]["python"] = "2.7"
    assert from_elsewhere(found) == 1
