"""What a reset costs: horovodrun with workers that die and come, torchrun with restarts beside it."""
