"""Settings of Spark about failed tasks, executors and nodes, as pairs of name and value.

Jobs of `horovod.spark.run` are barrier stages, which fail as a whole; programs set these for their own
stages, and for elastic jobs. The constants have the names of the original. Their settings are those of Spark
since 3.1, which passes over `spark.blacklist.*`.
"""

from __future__ import annotations

Setting = tuple[str, str]

SPARK_CONF_MAX_INT = "2147483647"
# For nodes: Spark does not start where a task may be tried as often on one node as it may fail at all.
SPARK_CONF_MAX_INT_MINUS_ONE = "2147483646"

SPARK_CONF_ALWAYS_RESTART_FAILED_TASK: Setting = ("spark.task.maxFailures", SPARK_CONF_MAX_INT)

SPARK_CONF_BLACKLIST_DISABLED: Setting = ("spark.excludeOnFailure.enabled", "false")
SPARK_CONF_BLACKLIST_ENABLED: Setting = ("spark.excludeOnFailure.enabled", "true")

# Within a stage: how many failed tasks make an executor, or executors a node, unusable.
SPARK_CONF_REUSE_FAILED_EXECUTOR: Setting = (
    "spark.excludeOnFailure.stage.maxFailedTasksPerExecutor",
    SPARK_CONF_MAX_INT,
)
SPARK_CONF_DONT_REUSE_FAILED_EXECUTOR: Setting = (
    "spark.excludeOnFailure.stage.maxFailedTasksPerExecutor",
    "1",
)
SPARK_CONF_REUSE_FAILING_NODE: Setting = (
    "spark.excludeOnFailure.stage.maxFailedExecutorsPerNode",
    SPARK_CONF_MAX_INT_MINUS_ONE,
)
SPARK_CONF_DONT_REUSE_FAILING_NODE: Setting = ("spark.excludeOnFailure.stage.maxFailedExecutorsPerNode", "1")

# How often one task may be tried on an executor, or on a node.
SPARK_CONF_REUSE_EXECUTOR_ALWAYS_FOR_SAME_TASK: Setting = (
    "spark.excludeOnFailure.task.maxTaskAttemptsPerExecutor",
    SPARK_CONF_MAX_INT,
)
SPARK_CONF_REUSE_EXECUTOR_ONCE_FOR_SAME_TASK: Setting = (
    "spark.excludeOnFailure.task.maxTaskAttemptsPerExecutor",
    "2",
)
SPARK_CONF_DONT_REUSE_EXECUTOR_FOR_SAME_TASK: Setting = (
    "spark.excludeOnFailure.task.maxTaskAttemptsPerExecutor",
    "1",
)
SPARK_CONF_REUSE_NODE_ALWAYS_FOR_SAME_TASK: Setting = (
    "spark.excludeOnFailure.task.maxTaskAttemptsPerNode",
    SPARK_CONF_MAX_INT_MINUS_ONE,
)
SPARK_CONF_REUSE_NODE_ONCE_FOR_SAME_TASK: Setting = (
    "spark.excludeOnFailure.task.maxTaskAttemptsPerNode",
    "2",
)
SPARK_CONF_DONT_REUSE_NODE_FOR_SAME_TASK: Setting = (
    "spark.excludeOnFailure.task.maxTaskAttemptsPerNode",
    "1",
)

# In the whole application.
SPARK_CONF_REUSE_FAILED_EXECUTOR_IN_APP: Setting = (
    "spark.excludeOnFailure.application.maxFailedTasksPerExecutor",
    SPARK_CONF_MAX_INT,
)
SPARK_CONF_DONT_REUSE_FAILED_EXECUTOR_IN_APP: Setting = (
    "spark.excludeOnFailure.application.maxFailedTasksPerExecutor",
    "1",
)
SPARK_CONF_REUSE_FAILING_NODE_IN_APP: Setting = (
    "spark.excludeOnFailure.application.maxFailedExecutorsPerNode",
    SPARK_CONF_MAX_INT,
)
SPARK_CONF_DONT_REUSE_FAILING_NODE_IN_APP: Setting = (
    "spark.excludeOnFailure.application.maxFailedExecutorsPerNode",
    "1",
)

SPARK_CONF_DEFAULT_VALUES: dict[str, str] = {
    "spark.task.maxFailures": "4",
    "spark.excludeOnFailure.enabled": "false",
    "spark.excludeOnFailure.stage.maxFailedTasksPerExecutor": "2",
    "spark.excludeOnFailure.stage.maxFailedExecutorsPerNode": "2",
    "spark.excludeOnFailure.task.maxTaskAttemptsPerExecutor": "1",
    "spark.excludeOnFailure.task.maxTaskAttemptsPerNode": "2",
    "spark.excludeOnFailure.application.maxFailedTasksPerExecutor": "2",
    "spark.excludeOnFailure.application.maxFailedExecutorsPerNode": "2",
}
