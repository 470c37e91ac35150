"""Training that goes on while workers come and go."""

from .sampler import ElasticSampler

__all__ = ["ElasticSampler"]
