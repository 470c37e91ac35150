"""The Keras callback that says on the driver how training goes."""

import os

os.environ.setdefault("KERAS_BACKEND", "torch")

import numpy as np
import pytest
from packages import need

keras = need("keras", "spark")


@pytest.mark.parametrize("per_batch_log", [False, True])
def test_epochs_and_batches_are_logged(capsys, per_batch_log):
    from horovod.spark.tensorflow.keras import LogCallback

    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile(loss="mse", optimizer="sgd")
    x, y = np.zeros([4, 2]), np.zeros([4, 1])

    model.fit(x, y, batch_size=2, epochs=2, verbose=0, callbacks=[LogCallback(per_batch_log=per_batch_log)])

    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.endswith("begins")] == ["Epoch 0 begins", "Epoch 1 begins"]
    ends = [line for line in lines if " ended after " in line]
    assert [line.split(" ")[1] for line in ends] == ["0", "1"]
    assert all("loss: " in line for line in ends)
    assert len([line for line in lines if line.startswith("Batch ")]) == (4 if per_batch_log else 0)
