"""What the cluster manager of an LSF job (CSM) says about its nodes, for callers that lay out ranks."""

from __future__ import annotations

import os
import re
import shlex

from ._program import plan
from ._ssh_check import way_to
from .common.util import tiny_shell_exec

_ALLOCATION_QUERY = "/opt/ibm/csm/bin/csm_allocation_query"
_NODE_QUERY = "/opt/ibm/csm/bin/csm_node_attributes_query"


def _answer(command: str) -> str:
    answer = tiny_shell_exec.execute(command)
    if answer is None or answer[1] != 0:
        said = "it did not end" if answer is None else f"code {answer[1]}: {answer[0].strip()}"
        message = f"{command}: {said}"
        raise RuntimeError(message)
    return answer[0]


def _number(key: str, text: str, source: str) -> int:
    found = re.search(rf"^\s*{re.escape(key)}:\s*(\d+)\s*$", text, re.MULTILINE)
    if found is None:
        message = f"{source} says no {key}"
        raise RuntimeError(message)
    return int(found[1])


def get_allocation_info() -> dict[str, str | list[str]]:
    """The allocation of the job: texts by name, and lists such as compute_nodes."""
    text = _answer(f"{_ALLOCATION_QUERY} -a {shlex.quote(os.environ['CSM_ALLOCATION_ID'])}")
    found: dict[str, str | list[str]] = {}
    items: list[str] = []
    for line in text.splitlines():
        word = line.strip()
        if word.startswith("- "):
            items.append(word.removeprefix("- ").strip())
        elif ":" in word:
            name, value = (part.strip() for part in word.split(":", 1))
            items = []
            # A name without a value heads a list.
            found[name] = value or items
    return found


def _first_node() -> str:
    # All nodes of a job are alike. Without MPI, for which the launcher would ask the node too.
    name: str = plan(["--gloo", "true"])["hosts"][0]["name"]
    return name


def get_num_cores() -> int:
    """The cores of one node."""
    node = _first_node()
    return _number("discovered_cores", _answer(f"{_NODE_QUERY} -n {shlex.quote(node)}"), _NODE_QUERY)


def get_num_threads() -> int:
    """The hardware threads of one core of a node."""
    node = _first_node()
    command = shlex.join([*way_to(None, None), node, "LANG=C lscpu"])
    return _number("Thread(s) per core", _answer(command), f"lscpu on {node}")
