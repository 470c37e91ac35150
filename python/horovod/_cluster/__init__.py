"""Jobs whose processes a cluster engine starts: what Ray and Spark share. Private; see README.md."""
