"""What horovodrun reads from a configuration file is what PyYAML, the original's reader, reads from it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import yaml

from horovod.runner.launch import parse_args

PIECES = [
    "a", "x y", "it's", "1", "0.5", "~", '"q"', "#", "a#b", ": ", "a:b", "- x", "é", "\n", "  lead", "tab\tx",
    "{", "[", ",", "}", "]", "&a", "*a", "!t", "|", ">", "%", "@", "a\nb", "a\n\nb\n", "http://h:1/p", "null",
    "true", "''", "\\", "\\n", "?", "? x", "...", "---", "\x07",
]  # fmt: skip


def _text(numbers: random.Random) -> str:
    pieces = (numbers.choice(PIECES) + numbers.choice(["", " "]) for _ in range(numbers.randint(1, 6)))
    return "f" + "".join(pieces)


@pytest.mark.parametrize("seed", range(40))
def test_generated_files_are_read_as_pyyaml_reads_them(seed: int, tmp_path: Path):
    numbers = random.Random(seed)
    timeline = {"filename": _text(numbers), "mark_cycles": numbers.choice([True, False])}
    sections = {
        "params": {"cache_capacity": numbers.randint(0, 1000), "cycle_time_ms": numbers.random()},
        "spare": [timeline, {"k": [_text(numbers), None]}],
        "timeline": timeline,
        "autotune": {"enabled": True, "log_file": _text(numbers)},
    }
    text = yaml.dump(
        sections,
        default_flow_style=numbers.choice([True, False, None]),
        default_style=numbers.choice([None, '"', "'", "|", ">"]),
        width=numbers.choice([10, 20, 80, 1000]),
        indent=numbers.choice([2, 3, 4]),
        allow_unicode=numbers.random() < 0.5,
        sort_keys=False,
    )
    file = tmp_path / "c.yaml"
    file.write_text(text)

    options = parse_args(["-np", "1", "--config-file", str(file), "true"])

    read = yaml.safe_load(text)
    assert options.timeline_filename == read["timeline"]["filename"]
    assert options.timeline_mark_cycles == timeline["mark_cycles"]
    assert options.autotune_log_file == read["autotune"]["log_file"]
    assert options.cache_capacity == sections["params"]["cache_capacity"]
    assert options.cycle_time_ms == pytest.approx(sections["params"]["cycle_time_ms"])


@pytest.mark.parametrize("text", ["010", "0_17", "+0x1F", "0b101", "1_000", "1:30", "0", "00", "7"])
def test_integers_are_those_of_pyyaml(text: str, tmp_path: Path):
    file = tmp_path / "c.yaml"
    file.write_text(f"params: {{cache_capacity: {text}, cycle_time_ms: {text}}}")

    options = parse_args(["-np", "1", "--config-file", str(file), "true"])

    assert options.cache_capacity == options.cycle_time_ms == yaml.safe_load(text)


@pytest.mark.parametrize("text", ["08", "0o10", "1:60"])
def test_what_pyyaml_reads_as_text_is_no_number(text: str, tmp_path: Path):
    assert yaml.safe_load(text) == text
    file = tmp_path / "c.yaml"
    file.write_text(f"params: {{cache_capacity: {text}}}")

    with pytest.raises(ValueError, match="cache_capacity: expected"):
        parse_args(["-np", "1", "--config-file", str(file), "true"])
