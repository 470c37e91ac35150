"""`from ray.train.horovod import HorovodTrainer` gives our class, whatever is imported first."""

import importlib
import os
import sys

import pytest

HOOKED = ("horovod.ray", "ray.train.horovod", "ray.train.v2.horovod")


def forget():
    """As if none of this was imported yet."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if "horovod" not in type(finder).__module__]
    for name in list(sys.modules):
        if name.startswith(HOOKED):
            del sys.modules[name]


@pytest.fixture(autouse=True)
def fresh():
    importlib.import_module("horovod.ray")
    finders = list(sys.meta_path)
    modules = {name: module for name, module in sys.modules.items() if name.startswith(HOOKED)}
    forget()
    yield
    forget()
    # Other tests hold classes of these modules, which pickle by name only while they are found there.
    sys.meta_path[:] = finders
    sys.modules.update(modules)
    sys.modules["horovod"].ray = modules["horovod.ray"]


def trainer_after(*imports):
    for name in imports:
        importlib.import_module(name)
    from ray.train.horovod import HorovodTrainer

    return HorovodTrainer


@pytest.mark.parametrize(
    "imports",
    [
        (),
        ("horovod.ray",),
        ("ray.train.horovod.config",),
        ("horovod.ray.runner", "ray.train.horovod"),
        ("ray.train.v2.horovod.horovod_trainer",),
    ],
)
def test_the_old_import_gives_our_class(imports):
    trainer = trainer_after(*imports)

    assert trainer.__module__ == "horovod.ray.trainer"
    assert trainer is sys.modules["horovod.ray"].HorovodTrainer


def test_the_stub_that_was_imported_before_us_is_replaced(monkeypatch):
    monkeypatch.setenv("HOROVOD_RAY_TRAIN_HOOK", "0")
    theirs = trainer_after()
    assert theirs.__module__ == "ray.train.v2.horovod.horovod_trainer"

    monkeypatch.delenv("HOROVOD_RAY_TRAIN_HOOK")
    for name in [name for name in sys.modules if name.startswith("horovod.ray")]:
        del sys.modules[name]
    import horovod.ray

    assert sys.modules["ray.train.horovod"].HorovodTrainer is horovod.ray.HorovodTrainer


def test_the_switch_leaves_rays_own_refusal(monkeypatch):
    monkeypatch.setenv("HOROVOD_RAY_TRAIN_HOOK", "0")

    with pytest.raises(DeprecationWarning):
        trainer_after()(lambda: None)


def test_with_train_v1_rays_class_is_untouched(monkeypatch):
    monkeypatch.setenv("RAY_TRAIN_V2_ENABLED", "0")

    assert trainer_after().__module__ == "ray.train.horovod.horovod_trainer"


def test_without_rays_file_nothing_is_resurrected():
    hook = importlib.import_module("horovod.ray._train_hook")
    finder = next(finder for finder in sys.meta_path if type(finder).__module__ == hook.__name__)

    assert finder.find_spec(hook.STUB, ["/nonexistent"]) is None
    assert finder.find_spec("ray.train.v2.horovod.other", None) is None


def test_the_package_itself_imports_no_ray():
    program = "import sys, horovod.ray; assert 'ray' not in sys.modules, 'ray was imported'"

    assert os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-c", program]) == 0


def test_configurations_of_both_origins_are_accepted():
    from ray.train.horovod import HorovodConfig as Theirs

    from horovod.ray.train_config import HorovodConfig, as_horovod_config

    ours = HorovodConfig(timeout_s=7)
    copied = as_horovod_config(Theirs(timeout_s=9, nics={"eth0"}))

    assert as_horovod_config(ours) is ours
    assert isinstance(copied, HorovodConfig)
    assert (copied.timeout_s, copied.nics) == (9, {"eth0"})
    assert as_horovod_config(None).timeout_s == 300
    with pytest.raises(TypeError, match=r"horovod_config must be a HorovodConfig, got builtins\.dict"):
        as_horovod_config({})


def test_keys_are_not_shown():
    from horovod.ray.train_config import HorovodConfig

    config = HorovodConfig(key=b"secret")

    assert "secret" not in repr(config)
    assert "key" not in config.to_dict()


def test_deprecated_parameters_are_refused_as_by_ray():
    from horovod.ray import HorovodTrainer

    with pytest.raises(DeprecationWarning):
        HorovodTrainer(lambda: None, metadata={"a": 1})


def test_what_a_trainer_needs():
    from ray.train import ScalingConfig

    from horovod.ray.trainer import resources_of

    assert resources_of(ScalingConfig(num_workers=2)) == (2, {"CPU": 1})
    assert resources_of(ScalingConfig(num_workers=2, resources_per_worker={"CPU": 3})) == (2, {"CPU": 3})
    assert resources_of(ScalingConfig(num_workers=(1, 4))) == (1, {"CPU": 1})
    assert resources_of(ScalingConfig(num_workers=2, use_gpu=True))[1]["GPU"] == 1
