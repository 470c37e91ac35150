"""From Parquet to batches, without Spark."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from horovod.spark.common import _sparse
from horovod.spark.common._blocks import batches
from horovod.spark.common._columns import as_numbers, to_array
from horovod.spark.common._parquet import check_no_nulls, summarize
from horovod.spark.common._shuffle import shuffled
from horovod.spark.common.datamodule import ParquetDataModule


@pytest.fixture
def table(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    for part, (first, last) in enumerate([(0, 700), (700, 700), (700, 1000)]):
        ids = np.arange(first, last)
        vectors = pa.array([[float(i), float(-i)] for i in ids], pa.list_(pa.float64()))
        written = pa.table({"id": ids, "v": vectors})
        pq.write_table(written, folder / f"part-{part}.parquet", row_group_size=300)
    (folder / "_SUCCESS").touch()
    (folder / ".part-0.parquet.crc").touch()
    return str(folder)


def _module(table, **options):
    given = {"has_val": False, "train_batch_size": 64, "shuffle": False, **options}
    return ParquetDataModule(table, None, **given)


def _ids(table, count, **options):
    with _module(table, **options) as data:
        stream = data.train_data()
        return [next(stream)["id"] for _ in range(count)]


def test_ranks_read_all_rows_once_in_a_pass(table):
    found = [
        np.concatenate(_ids(table, 5, train_batch_size=100, cur_shard=r, shard_count=2)) for r in range(2)
    ]

    assert [len(ids) for ids in found] == [500, 500]
    assert sorted(np.concatenate(found).tolist()) == list(range(1000))


def test_batches_cross_passes_so_that_each_has_all_its_rows(table):
    sizes = [len(ids) for ids in _ids(table, 40)]

    assert sizes == [64] * 40


def test_shuffling_changes_the_order_between_passes_and_repeats_with_the_seed(table):
    first, second = _ids(table, 2, train_batch_size=1000, shuffle=True, random_seed=3)
    again = _ids(table, 1, train_batch_size=1000, shuffle=True, random_seed=3)[0]

    assert sorted(first) == sorted(second) == list(range(1000))
    assert first.tolist() != second.tolist()
    assert first.tolist() == again.tolist()
    assert first.tolist() != list(range(1000))


@pytest.mark.parametrize("options", [{"inmemory_cache_all": True}, {"reader_pool_type": "dummy"}])
def test_ways_to_read_give_the_same_rows(table, options):
    expected = np.concatenate(_ids(table, 10, train_batch_size=100))

    assert np.concatenate(_ids(table, 10, train_batch_size=100, **options)).tolist() == expected.tolist()


def test_training_and_validation_have_decoders_of_their_own(table):
    with ParquetDataModule(table, table, train_reader_num_workers=1, val_reader_num_workers=3) as data:
        assert not data._train._shard.use_threads
        assert data._val._shard.use_threads


def test_validation_is_one_pass_with_its_last_rows(table):
    with ParquetDataModule(table, table, val_batch_size=300) as data:
        for _ in range(2):
            assert [len(batch["id"]) for batch in data.val_data()] == [300, 300, 300, 100]
        assert data.val_batch_count() == 4


def test_a_transformation_gets_and_returns_a_frame(table):
    def double(frame):
        frame["id"] = frame["id"] * 2
        frame["sum"] = frame["v"].map(sum)
        return frame

    edits = [("v", np.float32, (2, 1), False)]
    with _module(table, transform_fn=double, transformation_edit_fields=edits) as data:
        batch = next(iter(data.train_data()))

    assert batch["id"][:3].tolist() == [0, 2, 4]
    assert batch["sum"].tolist() == [0.0] * 64
    assert batch["v"].shape == (64, 2, 1)
    assert batch["v"].dtype == np.float32


def test_what_a_transformation_raises_is_raised_where_batches_are_taken(table):
    def fail(frame):
        message = "broken on purpose"
        raise KeyError(message)

    with _module(table, transform_fn=fail) as data, pytest.raises(KeyError, match="broken on purpose"):
        next(iter(data.train_data()))


def test_a_column_that_is_missing_is_named(table):
    with pytest.raises(ValueError, match=r"no column \['w'\]"), _module(table, schema_fields=["id", "w"]):
        pass


def test_nulls_are_found_in_the_footers(tmp_path):
    pq.write_table(pa.table({"x": [1.0, None], "y": [1, 2]}), tmp_path / "a.parquet")

    with pytest.raises(ValueError, match=r"training data has nulls.*'x' \(1 of 2 rows\)"):
        check_no_nulls(summarize(str(tmp_path)), ["x", "y"], "training")


def test_nested_lists_become_dimensions():
    column = pa.array([[[1, 2], [3, 4], [5, 6]]] * 4)

    assert to_array("m", column).shape == (4, 3, 2)
    assert to_array("m", column.slice(1, 2)).tolist() == [[[1, 2], [3, 4], [5, 6]]] * 2


@pytest.mark.parametrize(
    ("column", "text"),
    [
        (pa.array([1.0, None]), "column 'c' has nulls"),
        (pa.array([[1.0], [1.0, 2.0]]), "column 'c' has arrays of 1 to 2 elements"),
        (pa.array([0, 1], pa.timestamp("us")), "column 'c' has the type timestamp"),
        (pa.array([[1.0, None]]), "column 'c' has nulls"),
    ],
)
def test_columns_that_cannot_be_trained_on_are_named(column, text):
    with pytest.raises(ValueError, match=text):
        to_array("c", column)


def test_text_is_not_a_number():
    with pytest.raises(ValueError, match="column 'c' holds str"):
        as_numbers("c", to_array("c", pa.array(["a", "b"])), np.float32)


def test_sparse_vectors_survive_their_compact_form():
    rows = [([1, 4], [2.0, 3.0]), ([], []), ([0], [7.0])]

    encoded = np.array([_sparse.encode(indices, values, 3) for indices, values in rows])

    assert encoded.shape == (3, 7)
    assert _sparse.decode(encoded, 5).tolist() == [[0, 2, 0, 0, 3], [0] * 5, [7, 0, 0, 0, 0]]


def test_batches_are_cut_across_blocks():
    blocks = [{"x": np.arange(start, stop)} for start, stop in [(0, 5), (5, 6), (6, 7), (7, 20)]]

    assert [len(batch["x"]) for batch in batches(blocks, 4)] == [4] * 5
    assert np.concatenate([batch["x"] for batch in batches(blocks, 3)]).tolist() == list(range(20))


def _shuffled(blocks, buffer_rows):
    return list(shuffled(iter(blocks), buffer_rows, np.random.default_rng(1)))


@pytest.mark.parametrize("lengths", [[100], [7] * 14 + [2], [0, 64, 36], [33, 0, 67]])
def test_shuffling_permutes_rows_inside_of_buffers(lengths):
    ends = np.cumsum([0, *lengths])
    rows = [np.arange(start, stop) for start, stop in itertools.pairwise(ends)]

    found = _shuffled([{"x": each, "v": np.stack([each, -each], axis=1)} for each in rows], 32)

    # All of them at the end: a buffer is filled again, which must not touch what was taken from it.
    assert [len(block["x"]) for block in found] == [32, 32, 32, 4]
    for place, block in enumerate(found):
        expected = list(range(100))[place * 32 : (place + 1) * 32]
        assert sorted(block["x"].tolist()) == expected != block["x"].tolist()
        assert (block["v"] == np.stack([block["x"], -block["x"]], axis=1)).all()


def test_shuffling_keeps_blocks_of_other_types_apart():
    found = _shuffled([{"x": np.arange(5)}, {"x": np.arange(5.0)}, {"x": np.ones((3, 2))}], 32)

    assert [(block["x"].dtype.kind, block["x"].shape) for block in found] == [
        ("i", (5,)),
        ("f", (5,)),
        ("f", (3, 2)),
    ]


def test_shuffling_without_rows_gives_no_block():
    assert _shuffled([{"x": np.arange(0)}], 32) == []
