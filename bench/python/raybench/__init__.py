"""What Ray costs: the start of a job on warm actors, and training inside HorovodTrainer."""
