# test-python.sh - the Python suites. Sourced by dev.d/test, whose counters and lists it adds to.
PYTHON_RESULTS=$ROOT/build/python-results

# The environment that suites run in; test_tensorflow changes it.
SUITE_VENV=$VENV

# run_python_suite NAME SECONDS RANKS ARGUMENT...: pytest with the arguments, in a job of so many ranks; 0 ranks: as a
# plain process. Every rank writes its own report.
run_python_suite() {
  local name=$1 seconds=$2 ranks=$3 code=0 start
  local results=$PYTHON_RESULTS/$name log=$LOGS/test-$name.log launcher=() report=report.xml
  shift 3
  if [[ -n $pattern && ! $name =~ $pattern ]]; then return; fi
  rm -rf "$results"
  mkdir -p "$results"
  if ((ranks)); then
    launcher=("$SUITE_VENV/bin/horovodrun" -np "$ranks")
    # shellcheck disable=SC2016  # pytest puts in the rank
    report='rank-$HOROVOD_RANK.xml'
  fi
  start=$(now_ms)
  printf '  %-46s ' "test $name"
  # Ranks times threads must not exceed the cores.
  (cd "$ROOT" && OMP_NUM_THREADS=1 timeout --kill-after=30 "$seconds" "${launcher[@]}" "$SUITE_VENV/bin/python" -m pytest \
    --junitxml="$results/$report" "$@") >"$log" 2>&1 </dev/null || code=$?
  count_python_suite "$name" "$code" "$ranks" "$(($(now_ms) - start))"
}

count_python_suite() { # NAME EXIT_CODE RANKS MILLISECONDS
  local name=$1 log=$LOGS/test-$1.log counts suite_passed suite_failed suite_skipped
  counts=$("$VENV/bin/python" "$ROOT/dev.d/test_python_counts.py" "$PYTHON_RESULTS/$name" "$2" "$3" "$log" \
    "$PYTHON_RESULTS/$name/failures.txt")
  read -r suite_passed suite_failed suite_skipped <<<"$counts"
  passed=$((passed + suite_passed)) failed=$((failed + suite_failed)) skipped=$((skipped + suite_skipped))
  printf '%d passed, %d failed   %s\n' "$suite_passed" "$suite_failed" "$(duration "$4")"
  if ((suite_failed)); then
    failures+=("$name: $suite_failed, see ${log#"$ROOT"/}")
    cat "$PYTHON_RESULTS/$name/failures.txt" >>"$reports"
  fi
}

test_python() { # fast|default|full
  local np marks='not soak'
  if [[ $1 == full ]]; then marks=''; fi
  install_package || { add_failure "install into .venv"; return; }
  if [[ $1 == fast ]]; then
    run_python_suite python.unit 600 0 -m 'not soak and not slow' tests/python/unit
    run_python_suite python.parallel.np2 1200 2 -m 'not soak and not slow' tests/python/parallel
    return
  fi
  run_python_suite python.unit 1200 0 -m "$marks" tests/python/unit
  for np in 1 2 3 4; do
    run_python_suite "python.parallel.np$np" 3600 "$np" -m "$marks" tests/python/parallel
  done
  run_python_suite python.jobs 3600 0 -m "$marks" tests/python/jobs
}

# The suites of TensorFlow and Keras, in environments of their own: the newest release, and a part with the oldest.
test_tensorflow() { # fast|default|full
  # Do not make the environments for other suites.
  if [[ -n $pattern && ! $pattern =~ python|tensorflow|keras ]]; then return; fi
  if [[ $1 == fast ]]; then
    with_tensorflow "$TENSORFLOW" test_tensorflow_quickly
    return
  fi
  with_tensorflow "$TENSORFLOW" test_tensorflow_release "$1"
  if [[ -z ${HVD_TENSORFLOW_VERSION:-} ]]; then
    with_tensorflow "$(oldest_tensorflow)" test_oldest_tensorflow
  fi
}

with_tensorflow() { # VERSION COMMAND...
  local version=$1 suffix SUITE_VENV folder=tests/python/tensorflow
  suffix=$(tensorflow_suffix "$version")
  SUITE_VENV=$ROOT/.venv-tensorflow$suffix
  shift
  HVD_TENSORFLOW_VERSION=$version "$ROOT/dev.d/setup" tensorflow || { add_failure "setup TensorFlow $version"; return; }
  install_package "$SUITE_VENV" || { add_failure "install into ${SUITE_VENV##*/}"; return; }
  "$@"
}

test_tensorflow_quickly() {
  run_python_suite "python.tensorflow$suffix.parallel.np2" 1200 2 -m 'not soak and not slow' $folder/parallel
}

test_oldest_tensorflow() {
  test_tensorflow_quickly
  run_python_suite "python.keras$suffix.legacy" 900 2 -m 'not soak' $folder/legacy_keras
  run_python_suite "python.tensorflow$suffix.jobs" 900 0 -k 'killed_peer and function' $folder/jobs
}

test_tensorflow_release() { # default|full
  local np backend backends=(tensorflow torch jax) marks='not soak'
  if [[ $1 == full ]]; then marks=''; fi
  for np in 1 2 3; do
    run_python_suite "python.tensorflow$suffix.parallel.np$np" 1800 "$np" -m "$marks" $folder/parallel
  done
  if [[ -n $suffix ]]; then backends=(tensorflow); fi
  if ! tensorflow_is_at_least "$version" 16; then backends=(); fi # Keras 2
  for backend in "${backends[@]}"; do
    KERAS_BACKEND=$backend run_python_suite "python.keras$suffix.$backend" 1800 2 -m "$marks" $folder/keras
  done
  run_python_suite "python.keras$suffix.legacy" 900 2 -m "$marks" $folder/legacy_keras
  run_python_suite "python.tensorflow$suffix.jobs" 1800 0 -m "$marks" $folder/jobs
}
