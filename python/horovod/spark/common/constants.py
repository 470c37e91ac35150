"""Words in the description of columns, under the names that programs import."""

from __future__ import annotations

# How a column is stored in the intermediate Parquet.
ARRAY = "array"
CUSTOM_SPARSE = "custom_sparse_format"
NOCHANGE = "nochange"

MIXED_SPARSE_DENSE_VECTOR = "mixed_sparse_dense_vector"

TOTAL_BUFFER_MEMORY_CAP_GIB = 4
BYTES_PER_GIB = 1073741824
METRIC_PRINT_FREQUENCY = 10
