"""Values and helpers of the runner that existing programs import."""
