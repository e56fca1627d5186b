"""A user's own points: what is read, what is refused and in which words, and that files stay."""

import io
import os
import zipfile

import numpy as np
import pytest

import theory.data
from theory.data import read_points, short_name

X = np.random.default_rng(0).standard_normal((7, 3))
LABELS = ["b", "b", "a", "b", "a", "a", "b"]


def saved(folder, x=X, client=LABELS, **more):
    path = folder / "points.npz"
    np.savez(path, x=x, client=client, **more)
    return path


def csv_folder(folder, **files):
    folder = folder / "sites"
    folder.mkdir()
    for name, text in files.items():
        content = text if isinstance(text, bytes) else text.encode()
        (folder / f"{name}.csv").write_bytes(content)
    return folder


def refused(path):
    """The one sentence that refuses; the file is as it was."""
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(ValueError) as caught:
        read_points(path)
    sentence = str(caught.value)
    assert sentence.startswith(str(path)) and "\n" not in sentence
    assert (path.read_bytes() if path.is_file() else None) == before
    return sentence


def test_an_archive_is_read_as_it_is_and_other_arrays_are_left_alone(tmp_path):
    points = read_points(saved(tmp_path, y=np.array([object()] * 7)))
    np.testing.assert_array_equal(points.x, X)
    assert points.x.dtype == np.float64 and points.client.tolist() == LABELS
    assert points.name == "points" and points.source == "own-points"
    assert points.place(3) == "row 3"


@pytest.mark.parametrize("dtype", ["f2", "f4", ">f8", "i8", "u1", "?"])
def test_numbers_are_converted_exactly(tmp_path, dtype):
    x = (np.arange(7)[:, None] >> np.arange(3) & 1).astype(dtype)
    np.testing.assert_array_equal(read_points(saved(tmp_path, x)).x, x.astype(float))


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (np.array([3, 3, -1, 3, -1, -1, 3]), ["3", "3", "-1", "3", "-1", "-1", "3"]),
        (np.array([True, True, False] * 2 + [True]), ["True", "True", "False"] * 2 + ["True"]),
        (np.array(["é/", "é/", "'\"", "é/", "'\"", "'\"", "é/"]), None),
        (np.char.encode(["é/", "é/", "b", "é/", "b", "b", "é/"], "utf-8"), None),
    ],
)
def test_labels_become_text(tmp_path, labels, names):
    if names is None:
        names = [s.decode() if isinstance(s, bytes) else s for s in labels.tolist()]
    assert read_points(saved(tmp_path, client=labels)).client.tolist() == names


def test_the_fingerprint_is_that_of_the_arrays(tmp_path):
    one = read_points(saved(tmp_path)).fingerprint
    assert len(one) == 64 and one == read_points(saved(tmp_path, y=np.ones(2))).fingerprint
    moved = X.copy()
    moved[0, 0] = np.nextafter(moved[0, 0], 9)
    others = [
        read_points(saved(tmp_path, moved)).fingerprint,
        read_points(saved(tmp_path, X[::-1], LABELS[::-1])).fingerprint,
        read_points(saved(tmp_path, client=[f"{name}1" for name in LABELS])).fingerprint,
    ]
    assert len({one, *others}) == 4


@pytest.mark.parametrize(
    ("x", "client", "words"),
    [
        (X[:, 0], LABELS, ("two dimensions",)),
        (X.reshape(7, 3, 1), LABELS, ("(7, 3, 1)", "x.reshape(len(x), -1)")),
        (X[:, :0], LABELS, ("x is empty",)),
        (X[:0], [], ("x is empty",)),
        (X + 1j, LABELS, ("real numbers", "complex128")),
        (X.astype(str), LABELS, ("real numbers",)),
        (np.where(np.arange(21).reshape(7, 3) == 10, np.nan, X), LABELS, ("NaN", "row 3")),
        (np.where(np.arange(21).reshape(7, 3) == 20, np.inf, X), LABELS, ("infinite", "row 6")),
        (X * 1e160, LABELS, ("multiply x by a power of ten",)),
        (X * 1e-160, LABELS, ("multiply x by a power of ten",)),
        (X.astype(object), LABELS, ("x holds Python objects", "x.astype(float)")),
        (X, np.array(LABELS, dtype=object), ("client holds Python", "client.astype(str)")),
        (X, LABELS[1:], ("6 labels", "7 rows")),
        (X, np.array(LABELS)[:, None], ("(7, 1)", "client.ravel()")),
        (X, np.array("a"), ("one label a point",)),
        (X, np.arange(7) % 2.0, ("float64", "client.astype(int)")),
        (X, np.arange(7).astype("M8[s]"), ("client.astype(str)",)),
        (X, [*LABELS[:-1], " "], ("row 6", "empty text")),
        (X, np.array([b"\xff", b"a"] * 3 + [b"a"]), ("row 0", "UTF-8")),
        (X, np.array([2**21, 97] * 3 + [97], np.uint32).view("<U1"), ("no valid Unicode",)),
        (X, np.array([0xD800, 97] * 3 + [97], np.uint32).view("<U1"), ("row 0", "UTF-8")),
        (X, [*LABELS[:-1], "alone"], ("'alone' has one point (row 6)", "leave this client out")),
        (np.where(np.array(LABELS)[:, None] == "a", 1.0, X), LABELS, ("all 3", "'a' are equal")),
        (np.array([-1.0, 0, 1, 5, 6, 7, 9])[:, None], [0, 0, 0, 1, 1, 1, 1], ("row 1 equals",)),
    ],
)
def test_arrays_that_cannot_be_used_are_refused_with_advice(tmp_path, x, client, words):
    sentence = refused(saved(tmp_path, x, client))
    for word in words:
        assert word in sentence


def test_missing_arrays_are_refused_with_the_names_of_those_there(tmp_path):
    path = tmp_path / "points.npz"
    np.savez(path, data=X, client=LABELS)
    assert "it has no x (it holds client, data)" in refused(path)
    np.savez(path, X)
    assert "no x and no client (it holds arr_0)" in refused(path)


@pytest.mark.parametrize(
    ("name", "content", "word"),
    [
        ("points.npz", b"", "no .npz file"),
        ("points.npz", b"PK\x03\x04 and so on", "no .npz file"),
        ("points.csv", b"1,2\n3,4\n", "the folder that holds it"),
        ("points.npy", b"\x93NUMPY\x01\x00", "np.savez"),
    ],
)
def test_what_is_no_archive_is_refused(tmp_path, name, content, word):
    path = tmp_path / name
    path.write_bytes(content)
    assert word in refused(path)


def test_every_way_of_damage_is_refused(tmp_path):
    whole = saved(tmp_path).read_bytes()
    path = tmp_path / "hurt.npz"
    seen = 0
    for place in range(0, len(whole), 7):
        hurt = bytearray(whole)
        hurt[place] ^= 0xFF
        path.write_bytes(hurt)
        try:
            points = read_points(path)
        except ValueError as error:
            seen += 1
            assert str(error).startswith(str(path))
        else:  # a byte that nothing reads, such as a date
            np.testing.assert_array_equal(points.x, X)
    assert seen > 20
    for cut in (1, 30, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        refused(path)


def member(header, data=b""):
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, header)
    return stream.getvalue() + data


def test_an_array_larger_than_its_file_or_than_the_memory_is_not_loaded(tmp_path, monkeypatch):
    path = tmp_path / "points.npz"
    header = {"descr": "<f8", "fortran_order": False, "shape": (10**9, 10**6)}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", member(header))
        archive.writestr("client.npy", member(header))
    assert "x is cut off" in refused(path)
    monkeypatch.setattr(os, "sysconf", lambda name: {"SC_PAGE_SIZE": 1}.get(name, 100))
    assert "memory" in refused(saved(tmp_path))
    monkeypatch.undo()
    monkeypatch.setattr(theory.data, "read_archive", lambda *_: (_ for _ in ()).throw(MemoryError))
    assert "does not fit into memory" in refused(path)


def npy(text, version=b"\x01\x00"):
    """An array's file with this text as its header, which need not be one."""
    content = text.encode("latin-1") + b"\n"
    return (
        b"\x93NUMPY"
        + version
        + len(content).to_bytes(2 if version[0] == 1 else 4, "little")
        + content
    )


HEADERS = [
    "{'descr': (",
    "'''",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 100000000000000000000000)}",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (7, True)}",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (-7, -3)}",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 1000000000000000000)}",
    "{'descr': '<f8', 'fortran_order': False, 'shape': " + repr((1,) * 70) + "}",
    "{'descr': '|V0', 'fortran_order': False, 'shape': (7, 3)}",
    "{'descr': '<f8', 'fortran_order': False, 'shape': None}",
    "{'descr': {}, 'fortran_order': False, 'shape': (7, 3)}",
    "{'descr': ('<f8', -1), 'fortran_order': False, 'shape': (7, 3)}",
    "{'descr': [('a', '<f8'), ('a', '<f8')], 'fortran_order': False, 'shape': (7, 3)}",
    "{[]: 1}",
    "{**1}",
    "(" * 3000,
    "[" * 150 + "]" * 150,
    "-" * 9000 + "1",
    "9" * 5000,
    "x" * 20000,
    "\0",
    "",
]


@pytest.mark.filterwarnings("ignore")  # of headers as Python 2 wrote them
@pytest.mark.parametrize("version", [b"\x01\x00", b"\x02\x00", b"\x09\x09"], ids=["1", "2", "9"])
@pytest.mark.parametrize("name", ["x", "client"])
@pytest.mark.parametrize("header", HEADERS, ids=range(len(HEADERS)))
def test_a_crafted_header_is_refused_in_one_sentence(tmp_path, header, name, version):
    content = npy(header, version)
    path = tmp_path / "points.npz"
    other = {"x": "client", "client": "x"}[name]
    stream = io.BytesIO()
    np.save(stream, {"x": X, "client": np.array(LABELS)}[other])
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}.npy", content + bytes(200))
        archive.writestr(f"{other}.npy", stream.getvalue())
    refused(path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("twin", ["x", "x.npy", "client"])
def test_two_arrays_of_one_name_are_refused(tmp_path, twin):
    path = saved(tmp_path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(twin, b"anything")
    assert f"two arrays {twin.removesuffix('.npy')}" in refused(path)


def test_no_code_of_a_file_runs(tmp_path):
    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "sprung"),)

    trap = np.empty(7, dtype=object)
    trap[:] = Trap()
    path = saved(tmp_path, client=trap)
    assert "Python objects" in refused(path) and not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("path", [None, 3, "", b""])
def test_what_is_no_path_is_refused(path):
    with pytest.raises(ValueError, match="must be a path"):
        read_points(path)


def test_places_without_points_are_refused(tmp_path):
    assert "no such file or folder" in refused(tmp_path / "absent.npz")
    assert "no CSV file" in refused(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    assert "neither a file nor a folder" in refused(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    assert "loop" in refused(tmp_path / "loop")


A = "1.5,2\n-3e1,4\n5,6.25\n"


@pytest.mark.parametrize("separator", [",", ";", "\t", " ", " , ", "   "])
@pytest.mark.parametrize("header", ["", "u{}v\n", '"u 1"{}"Größe"\n', "# u{}v\n", "\n\n"])
def test_separators_and_headers(tmp_path, separator, header):
    if not separator.strip(" ") and "u 1" in header:
        header = "u{}v\n"
    text = header.format(separator) + A.replace(",", separator)
    folder = csv_folder(tmp_path, b=text.encode("latin-1"), a="\ufeff" + text.replace("\n", "\r\n"))
    points = read_points(folder)
    np.testing.assert_array_equal(points.x, [[1.5, 2], [-30, 4], [5, 6.25]] * 2)
    assert points.client.tolist() == ["a"] * 3 + ["b"] * 3 and points.name == "sites"
    first = 1 + header.count("\n")
    assert points.place(0) == f"a.csv line {first}"
    assert points.place(5) == f"b.csv line {first + 2}"


def test_quoted_cells_one_column_and_utf_16(tmp_path):
    quoted = "".join('"{}","{}"\n'.format(*line.split(",")) for line in A.split())
    points = read_points(csv_folder(tmp_path, a=quoted, b=A.encode("utf-16")))
    np.testing.assert_array_equal(points.x[:3], points.x[3:])
    (tmp_path / "more").mkdir()
    points = read_points(csv_folder(tmp_path / "more", a="my value\n1\n\n2\n4\n"))
    assert points.x.tolist() == [[1], [2], [4]] and points.place(1) == "a.csv line 4"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ("holds no points",)),
        ("u,v\n", ("holds no points",)),
        ("\n \n", ("holds no points",)),
        ("1,2\n3\n", ("line 2 has 1 cell and line 1 has 2",)),
        ("u,v,w\n1,2,3\n3,4\n", ("line 3 has 2 cells and line 1 has 3",)),
        ("1,2\n3,x\n", ("line 2, column 2: 'x' is no number",)),
        ("1,2\n3,\n", ("line 2, column 2: the cell is empty",)),
        ("1,x\n3,4\n", ("line 1, column 2: 'x' is no number",)),
        ("NA,NA\n3,4\n", ("line 1, column 1: 'NA' is no number",)),
        (",0,1\n0,3.5,4\n", ("line 1, column 1: the cell is empty",)),
        ("0,1\n3.5,4\n5,6\n", ("line 1 reads 0, 1, …",)),
        ("0,1,2\n3,4,6\n5,6,8\n", ("line 1 reads 0, 1, …", "words")),
        ("0\t1\t2\t3\n3\t4\t6\t1\n", ("line 1 reads 0, 1, …",)),
        ('u,v\n1,"2\n3,4\n5,6\n', ("line 2 cannot be read", "never closed")),
        ('u,v\n1,2\n3,4\n5,"6\n', ("line 4 cannot be read", "never closed")),
        ('# n\n\n"u,v\n1,2\n3,4\n', ("line 3 cannot be read", "never closed")),
        ('u,v\n1,"2\n3"\n4,5\n', ("line 3, column 2: '2\\n3' is no number",)),
        ("1,2\n3,1e-400\n", ("line 2, column 2: '1e-400' is too small", "power of ten")),
        ("1,2\n-0.001e-330,4\n", ("line 2, column 1", "too small")),
        ("1,2\n3,12345678901234567890\n", ("line 2, column 2", "more digits than float64")),
        ("1,2\n3,-9007199254740993\n", ("line 2, column 2", "more digits than float64")),
        ("1,2\nnan,4\n", ("line 2, column 1: 'nan' is not finite",)),
        ("1,2\n3,1e999\n", ("line 2, column 2: '1e999' is not finite",)),
        ("1,2\n3,1_000\n", ("'1_000' is no number",)),
        ("1,5;2\n2;3\n", ("line 1, column 1: '1,5'", "decimals with a point")),
        ("u,v\n1,2\n" + '"' + "9" * 140_000 + '",3\n', ("cannot be read",)),
        ("1,2\n", ("client 'a' has one point (a.csv line 1)",)),
        ("1,2\n1,2\n", ("all 2 points of client 'a' are equal (from a.csv line 1 on)",)),
        ("1,2\n2,2\n3,2\n", ("a.csv line 2 equals the mean",)),
        ("1,2,3\n2,2,4\n", ("2 columns", "3")),
        ("v,u\n1,2\n2,4\n", ("names its columns otherwise",)),
    ],
)
def test_cells_that_cannot_be_used_are_named_by_file_line_and_column(tmp_path, text, words):
    sentence = refused(csv_folder(tmp_path, a=text, b="u,v\n1,2\n3,5\n"))
    for word in words:
        assert word in sentence and ("a.csv" in sentence)


@pytest.mark.parametrize("rows", [(0, 1, 2), (1, 2, 3), (7, 3, 12), (0, 1, 0), ("1", "2", "3")])
@pytest.mark.parametrize("name", ["", '""', "Unnamed: 0", "Unnamed: 0.1"])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_numbers_of_rows_are_no_feature(tmp_path, rows, name, separator):
    lines = [f"{name},u,v", *(f"{row},{k}.5,{k * k}" for k, row in enumerate(rows))]
    sentence = refused(csv_folder(tmp_path, a="\n".join(lines).replace(",", separator)))
    assert "a.csv" in sentence and "index=False" in sentence


def test_a_column_that_only_looks_like_numbers_of_rows_is_read(tmp_path):
    named = "k,u\n0,2.5\n1,3\n2,7\n"
    assert read_points(csv_folder(tmp_path, a=named)).x[:, 0].tolist() == [0, 1, 2]
    (tmp_path / "more").mkdir()
    unnamed = csv_folder(tmp_path / "more", a=",u\n0.5,2.5\n1,3\n2,7\n")
    assert read_points(unnamed).x[:, 0].tolist() == [0.5, 1, 2]


def test_numbers_that_float64_holds_are_read(tmp_path):
    cells = [["0e-400", "-0.0"], ["100000000000000000000", "1e-300"], ["+9007199254740992", "007"]]
    text = "u,v\n0,1\n" + "".join(f"{left},{right}\n" for left, right in cells)
    points = read_points(csv_folder(tmp_path, a=text))
    assert points.x[:4].tolist() == [[0, 1], [0, 0], [1e20, 1e-300], [2.0**53, 7]]


def test_a_header_may_span_lines_and_a_line_of_words_saves_the_point_0_1_2(tmp_path):
    folder = csv_folder(tmp_path, a='"speed\n(m/s)",v,w\n0,1,2\n3,4,6\n')
    points = read_points(folder)
    assert points.x.tolist() == [[0, 1, 2], [3, 4, 6]] and points.place(0) == "a.csv line 3"


def test_two_files_of_one_client_are_refused(tmp_path):
    folder = csv_folder(tmp_path, a=A)
    (folder / "a.CSV").write_text(A)
    assert "a.CSV and a.csv are the same client" in refused(folder)


def test_folders_hidden_files_and_dead_links_are_passed_over(tmp_path):
    folder = csv_folder(tmp_path, a=A, b=A)
    (folder / "c.csv").mkdir()
    (folder / "._a.csv").write_bytes(b"\x00\x05")
    (folder / "notes.txt").write_text("no points")
    (folder / "dead.csv").symlink_to("nowhere")
    (tmp_path / "elsewhere.csv").write_text(A)
    (folder / "linked.csv").symlink_to(tmp_path / "elsewhere.csv")
    assert sorted(set(read_points(folder).client.tolist())) == ["a", "b", "linked"]


def test_a_folder_and_an_archive_of_the_same_arrays_have_one_fingerprint(tmp_path):
    folder = read_points(csv_folder(tmp_path, a=A, b=A))
    archive = read_points(saved(tmp_path, folder.x, folder.client))
    assert folder.fingerprint == archive.fingerprint


@pytest.mark.parametrize(
    ("stem", "name"),
    [
        ("Hospitals 2024", "hospitals-2024"),
        ("données_v1.2", "donnees-v1-2"),
        ("日本", "points"),
        ("..", "points"),
        ("x" * 90, "x" * 24),
        ("a" * 23 + " b", "a" * 23),
        ("$\\foo$<b>", "foo-b"),
    ],
)
def test_names_serve_in_ids_and_file_names(stem, name):
    assert short_name(stem) == name
