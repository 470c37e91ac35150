#!/bin/bash
# Entry point of a SageMaker training container: the same on every host. Hosts and their order come from
# /opt/ml/input/config/resourceconfig.json; the key is a file of the input channel "key", which the caller of the job makes:
#
#   head -c 32 /dev/urandom > horovod.key && aws s3 cp horovod.key s3://bucket/job/key/horovod.key
set -euo pipefail

# Channels are readable for everybody in the container; the key must not be.
install -m 600 /opt/ml/input/data/key/horovod.key /tmp/horovod.key
export HOROVOD_KEY_FILE=/tmp/horovod.key
export HOROVOD_GLOO_TIMEOUT_SECONDS=600 # the other hosts may start later

# One rank for each GPU of the host, or one.
ranks=${SM_NUM_GPUS:-0}
((ranks > 0)) || ranks=1
export HOROVOD_LOCAL_SIZE=$ranks
pids=()
for ((rank = 0; rank < ranks; rank++)); do
  HOROVOD_LOCAL_RANK=$rank python /opt/ml/code/train.py "$@" &
  pids+=($!)
done
code=0
for pid in "${pids[@]}"; do
  wait "$pid" || code=$?
done
exit "$code"
