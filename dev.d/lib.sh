# lib.sh - what the verbs share: where things are, steps with a time and a log, help from comments.
# Sourced, never run. A verb's help is its comment lines that start with "#:".
set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
LOGS=$ROOT/build/logs
VENV=$ROOT/.venv
CORES=$(nproc)
# One name for the compiler in all builds: pip would take that of Python, and ccache tells g++ from c++.
export CC=${CC:-cc} CXX=${CXX:-c++}

NEWEST_TENSORFLOW=2.21.0
TENSORFLOW=${HVD_TENSORFLOW_VERSION:-$NEWEST_TENSORFLOW} # the release that is asked for
# Nothing for the newest release, "-2.16.2" for others: they have environments and suites of their own.
tensorflow_suffix() { if [[ $1 != "$NEWEST_TENSORFLOW" ]]; then echo "-$1"; fi; }
TENSORFLOW_VENV=$ROOT/.venv-tensorflow$(tensorflow_suffix "$TENSORFLOW")

# The oldest release that horovod supports, of those that there are for this Python.
oldest_tensorflow() {
  case $(python3 -c 'import sys; print(sys.version_info[1])') in
    10 | 11) echo 2.13.1 ;;
    12) echo 2.16.2 ;;
    *) echo 2.20.0 ;;
  esac
}

# What ./dev test chooses from.
tensorflow_releases() { echo "$NEWEST_TENSORFLOW $TENSORFLOW $(oldest_tensorflow)"; }

# Whether release $1 of TensorFlow is at least 2.$2.
tensorflow_is_at_least() { (($(cut -d. -f2 <<<"$1") >= $2)); }

NEWEST_TORCH=$(sed -n 's/^torch==//p' "$ROOT/constraints.txt")
TORCH=${HVD_TORCH_VERSION:-$NEWEST_TORCH} # the release that is asked for
# The newest is in .venv; others have environments of their own.
torch_venv() { if [[ $1 == "$NEWEST_TORCH" ]]; then echo .venv; else echo ".venv-torch-$1"; fi; }

# The oldest release that horovod supports and one in the middle, each with its environment, a line each; for the Pythons
# that have wheels of both.
older_torch() {
  local release
  if (($(python3 -c 'import sys; print(sys.version_info[1])') > 11)); then return; fi
  for release in 2.1.2 2.6.0; do echo "$release $(torch_venv "$release")"; done
}

# What ./dev test torch runs with: release and environment.
torch_release() { echo "$TORCH $(torch_venv "$TORCH")"; }

# The Python that the constraints of a framework ask for by a line "# python: 3.12": that of the PATH, or of pyenv. Without such
# a line it is python3, which may not be newer than a line "# newest python: 3.11" says. Fails where there is none.
python_of() {
  local wanted newest found
  wanted=$(sed -n 's/^# python: //p' "$ROOT/constraints/$1.txt")
  newest=$(sed -n 's/^# newest python: //p' "$ROOT/constraints/$1.txt")
  for found in "python${wanted:-3}" "${PYENV_ROOT:-$HOME/.pyenv}/versions/${wanted:-${newest:-3}}".*/bin/python3; do
    if "$found" -c "import sys; sys.exit('%d.%02d' % sys.version_info[:2] > '${newest:-9.99}')" 2>/dev/null; then
      echo "$found"
      return
    fi
  done
  echo "constraints/$1.txt asks for Python ${wanted:-${newest:-3}}, which is not here" >&2
  return 1
}

# The frameworks and engines with an environment of their own: each is a file constraints/NAME.txt, which says what is in
# .venv-NAME, and a folder tests/python/NAME. TensorFlow, in several releases, has rules of its own.
frameworks() {
  local file
  for file in "$ROOT"/constraints/*.txt; do
    file=${file##*/}
    if [[ ${file%.txt} != tensorflow ]]; then echo "${file%.txt}"; fi
  done
}

is_framework() { [[ -n $1 && $1 != tensorflow && -f $ROOT/constraints/$1.txt ]]; }

# Prints the caller's help and ends if it was asked for. Call it first: help_if_asked "$@"
help_if_asked() {
  local argument
  for argument in "$@"; do
    if [[ $argument == --help || $argument == -h ]]; then
      sed -n 's/^#: \{0,1\}//p' "$0"
      exit 0
    fi
  done
}

# A mistake in the command line.
usage_error() {
  echo "dev ${0##*/}: $1 (./dev ${0##*/} --help)" >&2
  exit 2
}

# The value of an option, or an error: value=$(option_value "$@")
option_value() {
  [[ $# -ge 2 ]] || usage_error "$1 needs a value"
  echo "$2"
}

now_ms() { echo $((${EPOCHREALTIME/[.,]/} / 1000)); }

duration() { # milliseconds -> text
  if (($1 < 60000)); then
    printf '%d.%d s' $(($1 / 1000)) $(($1 % 1000 / 100))
  else
    printf '%d min %02d s' $(($1 / 60000)) $(($1 / 1000 % 60))
  fi
}

# What a failing command had to say: of ninja the failures without their command lines, of others the end.
last_words() {
  if grep -q '^FAILED: ' "$1"; then
    awk '/^FAILED: / { print; skip = 1; show = 1; next }
         /^\[[0-9]+\/[0-9]+\]|^ninja: / { show = 0 }
         show && skip { skip = 0; next }
         show' "$1" | head -n 60
  else
    tail -n 40 "$1"
  fi
}

# step TITLE LOG_NAME COMMAND...: runs the command with its output in build/logs/LOG_NAME.log, says how long
# it took, and shows the last lines if it fails. Returns the command's exit code. DEV_VERBOSE=1 shows all, DEV_PLAIN=1
# the output alone.
step() {
  local title=$1 log=$LOGS/$2.log code=0 start
  shift 2
  if [[ -n ${DEV_PLAIN:-} ]]; then # a test run keeps the log and the time
    "$@"
    return
  fi
  mkdir -p "$LOGS"
  start=$(now_ms)
  printf '  %-46s ' "$title"
  if [[ -n ${DEV_VERBOSE:-} ]]; then
    echo
    "$@" 2>&1 | tee "$log" || code=$?
  else
    "$@" >"$log" 2>&1 </dev/null || code=$?
  fi
  if ((code == 0)); then
    echo "ok      $(duration $(($(now_ms) - start)))"
  else
    echo "FAILED  $(duration $(($(now_ms) - start)))"
    [[ -n ${DEV_VERBOSE:-} ]] || last_words "$log" | sed 's/^/    | /'
    echo "    whole log: ${log#"$ROOT"/}"
  fi
  return "$code"
}

# configure_and_build PRESET [TARGET...]: configures only if the folder is new or the presets changed; ninja
# itself sees every other change.
configure_and_build() {
  local preset=$1 folder=$ROOT/build/$1 stamp=$ROOT/build/$1/.configured targets=() python=$VENV/bin/python
  shift
  # Whatever python3 is first in the PATH, the module is for that of .venv, which is made from the first if it is not there.
  if [[ ! -f $VENV/.complete ]]; then python=$(python3 -c 'import sys; print(sys.executable)'); fi
  if [[ ! -f $folder/build.ninja || ! -f $stamp || $ROOT/CMakePresets.json -nt $stamp ]]; then
    (cd "$ROOT" && step "configure $preset" "configure-$preset" cmake --preset "$preset" -D "Python_EXECUTABLE=$python") ||
      return 1
    touch "$stamp"
  fi
  if (($#)); then targets=(--target "$@"); fi
  step "build $preset" "build-$preset" cmake --build "$folder" --parallel "$CORES" "${targets[@]}"
}

# install_package [FOLDER]: the package in .venv or another environment, editable: Python sources are used where they
# lie; what is compiled is copied, and so installed again when it, or how it is made, has changed. Objects come from the
# release build, by ccache; environments of frameworks share a build, as nothing in it depends on them.
install_package() {
  local venv=${1:-$VENV} changed
  local stamp=$venv/.installed name=${venv##*/.} build=editable
  if [[ $name != venv ]]; then build=editable-frameworks; fi
  if [[ -f $stamp ]]; then
    changed=$(cd "$ROOT" && find src include cmake CMakeLists.txt pyproject.toml -newer "$stamp" -print -quit)
    if [[ -z $changed ]]; then return; fi
  fi
  touch "$stamp.next" # what changes from now on is not part of this
  step "install into .$name" "install-$name" "$venv/bin/python" -m pip install --disable-pip-version-check \
    --no-build-isolation --no-deps --config-settings=build-dir="$ROOT/build/$build" \
    --editable "$ROOT" || return 1
  mv "$stamp.next" "$stamp"
}

# Our sources, tracked or new, that match the patterns; ignored files never count. Relative to ROOT.
source_files() {
  if git -C "$ROOT" rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    # A file that was deleted but is still in the index does not count.
    (cd "$ROOT" && git ls-files -co --exclude-standard -- "$@" | sort -u |
      while read -r file; do [[ -f $file ]] && echo "$file"; done) || true
  else
    local pattern matches=()
    for pattern in "$@"; do matches+=(-o -path "./$pattern"); done
    (cd "$ROOT" && find . -path ./build -prune -o -path ./.git -prune -o -type f \( "${matches[@]:1}" \) -print |
      sed 's|^\./||' | sort)
  fi
}
