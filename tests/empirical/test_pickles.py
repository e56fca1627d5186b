"""Pickles from anyone: arrays of integers are read, everything else refused and nothing run."""

import codecs
import io
import os
import pickle
import struct

import numpy as np
import pytest

from empirical.data.pickles import read_pair

IMAGES = np.arange(2 * 3 * 4, dtype=np.uint8).reshape(2, 3, 4)
LABELS = np.array([7, -1], dtype=np.int64)
PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


def read(tmp_path, content):
    file = tmp_path / "pair.pkl"
    file.write_bytes(content if isinstance(content, bytes) else pickle.dumps(content))
    return read_pair(file)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("core", [b"numpy.core", b"numpy._core"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_of_numpy_1_and_2_are_read_in_every_protocol(tmp_path, protocol, core, order):
    content = pickle.dumps((np.array(IMAGES, order=order), LABELS), protocol)
    other = b"numpy._core" if core == b"numpy.core" else b"numpy.core"
    content = renamed(content, other, core)
    assert other not in content and core in content
    images, labels = read(tmp_path, content)
    assert images.tolist() == IMAGES.tolist() and labels.tolist() == LABELS.tolist()
    assert (images.dtype, labels.dtype) == (np.uint8, np.int64)


def renamed(content, old, new):
    """Module names of another NumPy: a short string carries its length, a GLOBAL line does not."""
    for part in (b"multiarray", b"numeric"):
        before, after = b"%s.%s" % (old, part), b"%s.%s" % (new, part)
        content = content.replace(
            b"\x8c" + bytes([len(before)]) + before, b"\x8c" + bytes([len(after)]) + after
        )
        content = content.replace(b"c" + before + b"\n", b"c" + after + b"\n")
    # Frames carry their length too; without its frame a pickle reads the same.
    return content[:2] + content[11:] if content[2:3] == b"\x95" else content


def test_a_pickle_of_python_2_is_read(tmp_path):
    # What cPickle of Python 2 wrote at protocol 2 for (uint8 [1, 255], int64 [3]).
    content = (
        b"\x80\x02cnumpy.core.multiarray\n_reconstruct\nq\x01cnumpy\nndarray\nq\x02K\x00\x85"
        b"U\x01b\x87Rq\x03(K\x01K\x02\x85cnumpy\ndtype\nq\x04U\x02u1K\x00K\x01\x87R(K\x03U\x01|NNN"
        b"J\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89U\x02\x01\xfftb"
        b"h\x01h\x02K\x00\x85U\x01b\x87R(K\x01K\x01\x85h\x04U\x02i8K\x00K\x01\x87R(K\x03U\x01<NNN"
        b"J\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89U\x08\x03\x00\x00\x00\x00\x00\x00\x00tb\x86."
    )
    images, labels = read(tmp_path, content)
    assert (images.tolist(), labels.tolist()) == ([1, 255], [3])


@pytest.mark.parametrize("dtype", ["<i2", ">i4", "u1", ">u8", "i1"])
def test_every_integer_dtype_and_byte_order_keeps_its_values(tmp_path, dtype):
    labels = read(tmp_path, (IMAGES, np.array([1, 100], dtype=dtype)))[1]
    assert labels.tolist() == [1, 100] and labels.dtype == np.dtype(dtype)


def test_what_is_read_cannot_be_written_to(tmp_path):
    for protocol in PROTOCOLS:
        for array in read(tmp_path, pickle.dumps((IMAGES, LABELS), protocol)):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0


# nothing is run


class Evil:
    def __init__(self, function, *arguments):
        self.how = function, arguments

    def __reduce__(self):
        return self.how


@pytest.mark.parametrize("place", ["whole", "member", "after", "list"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_malicious_pickle_is_refused_and_does_not_run(tmp_path, place, protocol):
    mark = tmp_path / "it_ran"
    evil = Evil(os.system, f"touch {mark}")
    value = {"whole": evil, "member": (evil, LABELS), "list": [[evil], IMAGES]}
    value["after"] = (IMAGES, LABELS, evil)
    content = pickle.dumps(value[place], protocol)
    with pytest.raises(ValueError, match=r"pair\.pkl.*wants \w+\.system; nothing of it was run"):
        read(tmp_path, content)
    assert not mark.exists()
    pickle.loads(content)  # the pickle was a working one
    assert mark.exists()


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (eval, ("1",)),
        (getattr, (1, "real")),
        (np.load, ("x.npy",)),
        (np.int64, (3,)),
        (io.open, ("x",)),
        (list, ((1, 2),)),
        (bytearray, (b"x",)),
    ],
)
def test_no_other_name_is_ever_looked_up(tmp_path, function, arguments):
    with pytest.raises(ValueError, match="nothing of it was run"):
        read(tmp_path, pickle.dumps(Evil(function, *arguments), 4))


def test_a_dotted_name_does_not_climb_out_of_a_known_module(tmp_path):
    for module, name in ((b"numpy", b"ndarray.__reduce__"), (b"numpy", b"f2py.os.system")):
        text = b"".join(b"\x8c" + bytes([len(part)]) + part for part in (module, name))
        with pytest.raises(ValueError, match="wants numpy"):
            read(tmp_path, b"\x80\x04" + text + b"\x93.")


RECONSTRUCT, NDARRAY = b"cnumpy.core.multiarray\n_reconstruct\n", b"cnumpy\nndarray\n"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"\x80\x02" + RECONSTRUCT + b"}U\x01a K\x01sb.", "damaged"),
        (b"\x80\x02" + NDARRAY + b"}U\x01aK\x01sb.", "changes a function"),
        (b"\x80\x02" + NDARRAY + b"N}U\x05_callK\x01s\x86b.", "changes a function"),
        (b"\x80\x02" + RECONSTRUCT + b"K\x01K\x02K\x03\x87R.", "subclass"),
        (b"\x80\x02c_codecs\nencode\nX\x01\x00\x00\x00aX\x03\x00\x00\x00zip\x86R.", "encodes"),
        (b"\x80\x02U\x01xQ.", "outside the file"),
        (b"\x80\x02" + NDARRAY + b")\x81.", "damaged"),
    ],
    ids=["broken", "attributes", "slots", "subclass", "codec", "persistent", "newobj"],
)
def test_known_names_are_stand_ins_that_no_pickle_can_bend(tmp_path, content, why):
    with pytest.raises(ValueError, match=why):
        read(tmp_path, content)
    assert read(tmp_path, (IMAGES, LABELS))[0].tolist() == IMAGES.tolist()


def test_small_files_that_would_fill_the_memory_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"damaged .*place 2147483647 of the memo"):
        read(tmp_path, b"\x80\x02]r\xff\xff\xff\x7f.")
    value = "x"
    for _ in range(64):  # 2^64 characters, once written out
        value = [value, value]
    bombs = [
        Evil(np.dtype, value),
        Evil(codecs.encode, "a", value),
    ]
    for bomb in bombs:
        with pytest.raises(ValueError, match=r"pair\.pkl"):
            read(tmp_path, pickle.dumps(bomb, 2))


# what it holds


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ([IMAGES, LABELS], r"holds list, not a tuple \(images, labels\)"),
        ((IMAGES,), "holds a tuple of 1, not"),
        ((IMAGES, LABELS, LABELS), "holds a tuple of 3, not"),
        ({"images": IMAGES}, "holds dict, not"),
        (IMAGES, "holds one array, not"),
        ((IMAGES, [1, 2]), r"not of two NumPy arrays.*np\.asarray"),
        ((IMAGES / 255.0, LABELS), "dtype 'f8'"),
        ((IMAGES, np.array(["1", "2"])), "dtype 'U1'"),
        ((IMAGES, np.array([1, None])), "dtype 'O8'"),
        ((IMAGES > 3, LABELS), "dtype 'b1'"),
        ((IMAGES, LABELS.view("m8[s]")), "dtype 'm8'"),
        ((np.ma.array(IMAGES), LABELS), r"wants numpy\.ma"),
    ],
)
def test_anything_but_a_pair_of_integer_arrays_is_refused(tmp_path, value, why):
    with pytest.raises(ValueError, match=rf"pair\.pkl.*{why}"):
        read(tmp_path, value)


def test_a_file_cut_short_anywhere_is_refused(tmp_path):
    for protocol in PROTOCOLS:
        whole = pickle.dumps((IMAGES, LABELS), protocol)
        for length in range(len(whole)):
            with pytest.raises(ValueError, match=r"pair\.pkl"):
                read(tmp_path, whole[:length])


def test_bytes_that_do_not_fill_the_array_are_refused(tmp_path):
    content = pickle.dumps((IMAGES, LABELS), 2)
    shape = b"K\x02K\x03K\x04\x87"
    assert content.count(shape) == 1
    for other in (b"K\x02K\x03K\x05\x87", b"K\x02K\x03J\xff\xff\xff\x7f\x87"):
        with pytest.raises(ValueError, match=r"damaged or cut short.*bytes for an array"):
            read(tmp_path, content.replace(shape, other))
    minus = b"K\x02J" + struct.pack("<i", -3) + b"J" + struct.pack("<i", -4) + b"\x87"
    with pytest.raises(ValueError, match="unknown way"):
        read(tmp_path, content.replace(shape, minus))


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\x93NUMPY", b"<html>", b"\x80\x63."])
def test_what_is_no_pickle_is_refused(tmp_path, content):
    with pytest.raises(ValueError, match=r"damaged or cut short.*copy or download it again"):
        read(tmp_path, content)


def test_a_missing_file_and_a_folder_are_refused_by_name(tmp_path):
    for place in (tmp_path / "none.pkl", tmp_path):
        with pytest.raises(ValueError, match=rf"{place.name} cannot be read .*archive again"):
            read_pair(place)
