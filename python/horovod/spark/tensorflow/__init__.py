"""TensorFlow on Spark: a tf.data service in Spark tasks, and a callback that logs to the driver."""
