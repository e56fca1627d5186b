"""The study of the causal graphs: what is drawn of Fig. 2, and the steps beside it."""

import json

from figures.records import RunStore
from theory.studies import STUDIES

CONFIG = {"study": "graphs", "data": "gaussian", "seed": 0}
DRAWN = ["train aggregated", "train client_specific", "test", "test do(S)", "test do(F)"]


def rows_of():
    told = []
    rows = list(STUDIES["graphs"](CONFIG, None, lambda *_: None, told.append))
    assert told == sorted(told) and told[-1] == 1.0
    return rows


def found(rows, metric, graph):
    return [r for r in rows if r["metric"] == metric and r["variant"] == graph]


def edges(rows, graph, kind):
    own = found(rows, "edge", graph)
    return {r["client"] + r["split"] for r in own if r["note"] == kind}


def test_the_five_graphs_are_drawn():
    rows = rows_of()
    drawn = [r["variant"] for r in rows if r["metric"] == "node"]
    assert list(dict.fromkeys(drawn)) == DRAWN
    common = {"DX", "DR", "XR", "RF", "FY"}
    solid = {name: edges(rows, name, "solid") for name in DRAWN}
    assert solid["train aggregated"] == solid["train client_specific"] == common
    assert solid["test"] == common | {"RS", "SF"}
    assert solid["test do(S)"] == common | {"SF"}
    assert solid["test do(F)"] == common - {"RF"} | {"RS"}
    assert edges(rows, "train aggregated", "dashed") == {"DF"}
    assert not any(edges(rows, name, "dashed") for name in DRAWN[1:])
    assert edges(rows, "test do(S)", "removed") == {"RS"}
    assert edges(rows, "test do(F)", "removed") == {"RF", "SF"}


def test_nodes_have_one_place_each_and_say_what_they_are():
    rows = rows_of()
    places = {(r["client"], r["value"]) for r in rows if r["metric"] == "node"}
    assert len(places) == 6 == len({place for _, place in places})
    for name in DRAWN:
        kinds = {r["client"]: r["note"] for r in found(rows, "node", name)}
        assert kinds.pop("D") == "latent" and ("S" in kinds) == name.startswith("test")
        done = [node for node, kind in kinds.items() if kind == "intervened"]
        assert done == [name[-2]] * ("do" in name)
        assert {kinds[node] for node in kinds if node not in done} == {"observed"}


def test_steps_of_each_graph_with_the_path_that_breaks_them():
    rows = rows_of()
    paper = {r["client"]: r for r in found(rows, "step", "test")}
    assert paper["rule2.S"]["value"] == 0.0 and paper["rule2.S"]["note"] == "S ← R → F"
    assert paper["rule2.S"]["split"] == "P(F | do(S)) = P(F | S)"
    assert paper["rule2.S|R"]["value"] == 1.0 and paper["rule2.S|R"]["note"] == ""
    first = next(r for r in found(rows, "step", "test") if not r["value"])
    assert first is paper["rule2.S"]  # the figure draws the path of the first that fails
    for name, note in (("train aggregated", "D → F"), ("train client_specific", "D → R → F")):
        steps = found(rows, "step", name)
        assert next(r["note"] for r in steps if not r["value"]) == note
    (own,), (both,) = found(rows, "step", "test do(S)"), found(rows, "step", "test do(F)")
    assert (own["value"], own["note"]) == (0.0, "D → R → F → Y")
    assert (both["value"], both["note"]) == (1.0, "")
    assert own["split"] == "P(Y | do(S), D) = P(Y | do(S))"
    variants = {r["variant"] for r in rows} - set(DRAWN)
    assert len(variants) == 6
    alone, both = (
        {r["client"]: r["note"] for r in found(rows, "step", f"test, {name}rest of the batch")}
        for name in ("", "aggregated BN, ")
    )
    assert {n for n in alone if bool(alone[n]) != bool(paper[n]["note"])} == set()
    broken = {n: both[n] for n in both if both[n] and not paper[n]["note"]}
    assert broken == {
        "rule2.S|R": "S ← B ← D → F",
        "rule2.S.Y|R": "S ← B ← D → F → Y",
        "backdoor.S": "S ← B ← D → F → Y",
    }
    for name in variants:
        assert [r["client"] for r in found(rows, "step", name)] == list(paper)
    shifted = {r["client"]: r for r in found(rows, "step", "test, label shift")}
    assert shifted["rule2.F"]["note"] == "F ← R ← D → Y" and shifted["backdoor.X"]["value"] == 1
    keys = [(r["metric"], r["variant"], r["client"], r.get("split")) for r in rows]
    assert len(set(keys)) == len(keys)


def test_the_rows_fit_the_schema_and_come_back(tmp_path):
    rows = rows_of()
    store = RunStore(tmp_path)
    with store.writing(CONFIG) as run:
        run.add(rows)
    assert store.read(run.hash).height == len(rows)
    assert json.loads(json.dumps(rows)) == rows == rows_of()
