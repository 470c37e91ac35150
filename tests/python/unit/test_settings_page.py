"""docs/settings.md, made from the table of the core, knows every variable that sources read."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
# Told on the page in the text about places, or names of other things than variables.
ELSEWHERE = re.compile(r"HOROVOD_PROCESS_SET_ERROR_\w+|HOROVOD_WITH_\w+|HOROVOD_SECRET_KEY")


def test_the_page_lists_every_variable_that_sources_name():
    page = set(re.findall(r"HOROVOD_\w+", (ROOT / "docs/settings.md").read_text()))
    missing: dict[str, str] = {}
    for path in [*ROOT.glob("python/horovod/**/*.py"), *ROOT.glob("src/**/*.cc"), *ROOT.glob("src/**/*.h")]:
        # A whole name: messages also speak of HOROVOD_CROSS_* and build names from parts.
        for name in re.findall(r"(?<![\w])HOROVOD_[A-Z0-9_]*[A-Z0-9](?![\w*])", path.read_text()):
            if name not in page and not ELSEWHERE.fullmatch(name):
                missing[name] = str(path.relative_to(ROOT))

    assert not missing, "add a row to src/base/settings.cc"
