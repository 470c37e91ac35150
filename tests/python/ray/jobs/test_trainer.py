"""HorovodTrainer on Ray Train V2. A run takes long, so each looks at several things."""

import os
import signal
import tempfile
import threading
from pathlib import Path

import pytest
import ray
import ray.train
from cluster_state import wait_until
from packages import need
from ray.train import (
    Checkpoint,
    FailureConfig,
    RunConfig,
    ScalingConfig,
    TrainingFailedError,
    WorkerGroupError,
)
from ray.train.horovod import HorovodConfig as RaysHorovodConfig
from ray.train.horovod import HorovodTrainer

import horovod.ray
from horovod.ray._slots import NotEnoughSlotsError

TWO = ScalingConfig(num_workers=2, use_gpu=False)


def train_torch(config):
    """Two epochs on the shard of a data set, with a checkpoint after each; breaks once, if asked to."""
    import torch

    import horovod.torch as hvd

    hvd.init()
    context = ray.train.get_context()
    assert (context.get_world_rank(), context.get_world_size()) == (hvd.rank(), hvd.size())
    assert context.get_local_rank() == hvd.local_rank()
    model = torch.nn.Linear(1, 1)
    first_epoch = 0
    checkpoint = ray.train.get_checkpoint()
    if checkpoint is not None:
        with checkpoint.as_directory() as folder:
            state = torch.load(Path(folder, "state.pt"))
        model.load_state_dict(state["model"])
        first_epoch = state["epoch"] + 1
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    for epoch in range(first_epoch, 2):
        rows = 0
        for batch in ray.train.get_dataset_shard("train").iter_torch_batches(batch_size=8):
            optimizer.zero_grad()
            x = batch["x"].float().unsqueeze(1)
            loss = torch.nn.functional.mse_loss(model(x), 2 * x)
            loss.backward()
            optimizer.step()
            rows += len(x)
        weight = model.weight.item()
        metrics = {"epoch": epoch, "rows": hvd.allreduce(torch.tensor(rows), op=hvd.Sum).item()}
        metrics["same_weights"] = len(set(hvd.allgather_object(weight))) == 1
        metrics["restored"] = first_epoch
        with tempfile.TemporaryDirectory() as folder:
            torch.save({"model": model.state_dict(), "epoch": epoch}, Path(folder, "state.pt"))
            kept = Checkpoint.from_directory(folder) if hvd.rank() == 0 else None
            ray.train.report(metrics, checkpoint=kept)
        if epoch == 0 and hvd.rank() == 1 and not Path(config["marker"]).exists():
            Path(config["marker"]).touch()
            # Ray forgets a report that its controller has not looked at when a worker dies.
            wait_until(
                lambda: list(Path(config["marker"]).parent.rglob("checkpoint_manager_snapshot.json")),
                "Ray does not keep the checkpoint",
            )
            os.kill(os.getpid(), signal.SIGKILL)
        hvd.allreduce(torch.ones(1), name=f"after.{epoch}")
    return hvd.size()


def test_a_killed_worker_is_replaced_and_training_goes_on_from_its_checkpoint(cluster, tmp_path):
    data = ray.data.from_items([{"x": x / 32} for x in range(64)])
    trainer = HorovodTrainer(
        train_torch,
        train_loop_config={"marker": str(tmp_path / "was_killed")},
        horovod_config=RaysHorovodConfig(timeout_s=120),
        scaling_config=TWO,
        run_config=RunConfig(storage_path=str(tmp_path), failure_config=FailureConfig(max_failures=2)),
        datasets={"train": data},
    )

    result = trainer.fit()

    assert HorovodTrainer is horovod.ray.HorovodTrainer
    assert (tmp_path / "was_killed").exists()
    assert result.metrics == {"epoch": 1, "rows": 64, "same_weights": True, "restored": 1}
    assert result.checkpoint is not None
    assert result.return_value == 2


def test_workers_of_two_nodes_are_grouped_by_node(cluster, second_node, tmp_path):
    def train_on_places():
        import torch

        import horovod.torch as hvd

        hvd.init()
        place = (ray.get_runtime_context().get_node_id(), hvd.local_rank())
        summed = hvd.allreduce(torch.full((1000,), float(hvd.rank())), op=hvd.Sum)
        assert torch.equal(summed, torch.full((1000,), 6.0))
        return hvd.allgather_object(place), hvd.local_size(), hvd.cross_size()

    trainer = HorovodTrainer(
        train_on_places,
        scaling_config=ScalingConfig(num_workers=4, use_gpu=False, placement_strategy="SPREAD"),
        run_config=RunConfig(storage_path=str(tmp_path)),
    )

    places, local_size, cross_size = trainer.fit().return_value

    nodes = [node for node, _ in places]
    assert [nodes.count(node) for node in nodes] == [2, 2, 2, 2]
    assert (local_size, cross_size) == (2, 2)
    assert [rank for _, rank in places] == [nodes[:rank].count(nodes[rank]) for rank in range(4)]


def _alive_boxes():
    actors = ray._private.state.actors().values()
    return [one for one in actors if one["ActorClassName"] == "_Box" and one["State"] != "DEAD"]


def test_an_exception_carries_the_workers_traceback(cluster, tmp_path):
    def fail_on_rank_1():
        import torch

        import horovod.torch as hvd

        hvd.init()
        if hvd.rank() == 1:
            raise KeyError(hvd.rank())
        hvd.allreduce(torch.ones(3), name="never")

    trainer = HorovodTrainer(
        fail_on_rank_1, scaling_config=TWO, run_config=RunConfig(storage_path=str(tmp_path))
    )

    with pytest.raises(WorkerGroupError, match=r"(?s)Rank 1.*in fail_on_rank_1.*KeyError: 1") as raised:
        trainer.fit()

    assert list(raised.value.worker_failures) == [1]
    wait_until(lambda: not _alive_boxes(), "the actor for the metrics is still there")


def test_a_killed_worker_without_retries_ends_the_run(cluster, tmp_path):
    def die_on_rank_1():
        import torch

        import horovod.torch as hvd

        hvd.init()
        if hvd.rank() == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        hvd.allreduce(torch.ones(3), name="never")

    trainer = HorovodTrainer(
        die_on_rank_1, scaling_config=TWO, run_config=RunConfig(storage_path=str(tmp_path))
    )

    with pytest.raises(TrainingFailedError):
        trainer.fit()


def test_workers_with_another_horovod_are_refused_and_nothing_is_left(cluster, tmp_path):
    # Run by every interpreter that has the folder in its path: the workers, not the controller of the run.
    Path(tmp_path, "sitecustomize.py").write_text('import horovod\n\nhorovod.__version__ = "0.0.7"\n')
    trainer = HorovodTrainer(
        train_torch,
        scaling_config=TWO,
        run_config=RunConfig(
            storage_path=str(tmp_path), worker_runtime_env={"env_vars": {"PYTHONPATH": str(tmp_path)}}
        ),
    )

    with pytest.raises(TrainingFailedError, match=r"has horovod 0\.0\.7, the driver has horovod") as raised:
        trainer.fit()

    # While the error is held: a notebook holds the last one.
    wait_until(
        lambda: ray.available_resources().get("CPU") == ray.cluster_resources().get("CPU"),
        f"the workers that were refused are still there: {raised.value}",
    )


def train_jax(config):
    """A step of JAX under jit; metrics with a checkpoint, then others without."""
    import jax
    import jax.numpy as jnp

    import horovod.jax as hvd

    hvd.init()
    x = jnp.linspace(0, 1, 64)[hvd.rank() :: hvd.size()]

    @jax.jit
    def step(weight):
        loss, gradient = hvd.value_and_grad(lambda w: jnp.mean((w * x - 2 * x) ** 2))(weight)
        return weight - config["lr"] * gradient, hvd.allreduce(loss)

    weight = hvd.broadcast_parameters(jnp.float32(hvd.rank()), root_rank=0)
    losses = []
    for _ in range(20):
        weight, loss = step(weight)
        losses.append(float(loss))
    with tempfile.TemporaryDirectory() as folder:
        kept = Checkpoint.from_directory(folder) if hvd.rank() == 0 else None
        ray.train.report({"loss": losses[0]}, checkpoint=kept)
    weights = hvd.allgather_object(float(weight))
    ray.train.report(
        {
            "size": hvd.size(),
            "rank": hvd.rank(),
            "learns": losses[-1] < losses[0],
            "same": len(set(weights)) == 1,
        }
    )


def test_jax_on_elastic_workers(cluster, tmp_path):
    need("jax", "ray")
    trainer = horovod.ray.HorovodTrainer(
        train_jax,
        train_loop_config={"lr": 0.5},
        scaling_config=ScalingConfig(num_workers=(1, 3)),
        horovod_config=horovod.ray.HorovodConfig(timeout_s=120),
        run_config=RunConfig(storage_path=str(tmp_path)),
    )

    assert trainer.fit().metrics == {"size": 3, "rank": 0, "learns": True, "same": True}


def train_keras(config):
    """Keras on TensorFlow, and TensorFlow itself, in one function."""
    import numpy as np
    import tensorflow as tf

    import horovod.keras as hvd_keras
    import horovod.tensorflow as hvd

    hvd.init()
    tf.keras.utils.set_random_seed(hvd.rank())
    model = tf.keras.Sequential([tf.keras.layers.Input((1,)), tf.keras.layers.Dense(1)])
    model.compile(hvd_keras.DistributedOptimizer(tf.keras.optimizers.SGD(0.05)), loss="mse")
    x = np.linspace(0, 1, 64, dtype=np.float32)[hvd.rank() :: hvd.size(), None]
    callbacks = [hvd_keras.callbacks.BroadcastGlobalVariablesCallback(0)]
    losses = model.fit(x, 2 * x, batch_size=8, epochs=3, verbose=0, callbacks=callbacks).history["loss"]
    total = hvd.allreduce(tf.constant([1.0]), op=hvd.Sum).numpy()[0]
    weights = hvd.allgather(tf.reshape(model.get_weights()[0], [1])).numpy()
    ray.train.report(
        {"learns": losses[-1] < losses[0], "total": float(total), "spread": float(np.ptp(weights))}
    )


def test_tensorflow_and_keras(cluster, tmp_path):
    need("tensorflow", "ray")
    trainer = HorovodTrainer(
        train_keras,
        train_loop_config={},
        scaling_config=TWO,
        run_config=RunConfig(storage_path=str(tmp_path)),
    )

    assert trainer.fit().metrics == {"learns": True, "total": 2.0, "spread": 0.0}


def test_more_workers_than_slots_are_refused_at_once(cluster):
    trainer = HorovodTrainer(train_torch, scaling_config=ScalingConfig(num_workers=50))

    with pytest.raises(NotEnoughSlotsError, match="HorovodTrainer: expected room for 50 workers"):
        trainer.fit()

    spread = ScalingConfig(num_workers=2, placement_strategy="STRICT_SPREAD")
    with pytest.raises(NotEnoughSlotsError, match=r"expected room for 2 nodes with 1 CPU each, .* for 1"):
        HorovodTrainer(train_torch, scaling_config=spread).fit()


def test_a_function_that_cannot_be_pickled_is_named(cluster):
    lock = threading.Lock()

    def uses_lock():
        return lock

    with pytest.raises(TypeError, match="uses_lock"):
        HorovodTrainer(uses_lock, scaling_config=TWO).fit()
