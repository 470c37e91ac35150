# The part 'autotune' of the suite 'engines': sourced by bench/run, which calls run_engines_autotune. Four bad starts
# against the best of a grid, and the good default: in one host, and between two at 1 Gbit/s. Sets `table` rows and
# appends lines of JSON to $parts/autotune.jsonl. What was measured of each grid stands beside the JSON, as
# engines_autotune_PLACE.csv.

autotune_bad_starts_here=('small_bytes=104' 'chunk_bytes=16384' 'spin_count=0 yield_count=0'
  'small_bytes=104 chunk_bytes=16384 spin_count=0')
autotune_bad_starts_hosts=('small_bytes=104' 'part_bytes=16384 pace=lockstep' 'spin_count=0 yield_count=0'
  'small_bytes=104 part_bytes=16384 pace=lockstep spin_count=0')

# Words of a tuning -> a profile.
autotune_profile() { printf '%s\n' $1 >"$parts/profile.txt"; }

# Runs the worker under the launcher of this place, with the profile; prints its line.
autotune_run() { # SECONDS [OPTION... of horovodrun] -- [WORDS of the worker]
  local seconds=$1 options=()
  shift
  while [[ $1 != -- ]]; do options+=("$1"); shift; done
  shift
  "${autotune_place[@]}" --autotune-profile "$parts/profile.txt" "${options[@]}" "$bin/hvd_bench_autotune_worker" \
    "$seconds" "$@" 2>/dev/null | sed -n 's/^\[0\]<stdout>://p'
}

autotune_number() { grep -oE "$1 [0-9.]+" | tail -n 1 | cut -d ' ' -f 2; } # NAME < line

# The best of a grid: prints "RATE TUNING". A row of the file for each: TUNING,RATE.
autotune_exhaustive() { # SECONDS FILE PLACE SIZES... (each a tuning)
  local seconds=$1 file=$2 tuning rate best=0 winner=
  {
    echo "# ./dev bench engines${quick:+ --quick}: steps per second of 2 ranks, $3, $(nproc) cores; $seconds s for each tuning."
    echo "# Gradients as in bench/autotune_worker.cc. The last row is the automatic tuning."
  } >"$file"
  shift 3
  for tuning in "$@"; do
    autotune_profile "$tuning"
    rate=$(autotune_run "$seconds" -- | autotune_number final_rate)
    echo "$tuning,${rate:-0}" >>"$file"
    if awk "BEGIN { exit !(${rate:-0} > $best) }"; then best=$rate winner=$tuning; fi
  done
  echo "$best $winner"
}

# The rate of the automatic tuning, without the autotuner.
autotune_default_rate() { # SECONDS
  autotune_profile ''
  autotune_run "$1" -- | autotune_number final_rate
}

autotune_compare() { # PLACE SECONDS BEST START [DEFAULT_RATE]
  local line until rate
  autotune_profile "$4"
  line=$(autotune_run "$2" --autotune -- --until-tuned "$parts/profile.txt")
  rate=$(autotune_number final_rate <<<"$line")
  until=$(autotune_number seconds_until_tuned <<<"$line")
  awk -v place="$1" -v start="${4:-automatic}" -v rate="${rate:-0}" -v best="$3" -v until="${until:-0}" -v own="${5:-0}" \
    -v during="$(autotune_number rate_until_tuned <<<"$line")" 'BEGIN {
      printf "{\"place\":\"%s\",\"start\":\"%s\",\"rate\":%s,\"share_of_best\":%.3f,\"seconds\":%s,\"rate_while_searching\":%s",
        place, start, rate, rate / best, until, during + 0
      if (own > 0) printf ",\"default_rate\":%s,\"share_of_default\":%.3f", own, rate / own
      print "}" }' | tee -a "$parts/autotune.jsonl"
}

autotune_place_figures() { # PLACE FILE_NAME GRID_NAME STARTS_NAME
  local -n grid=$3 starts=$4
  local seconds=2 best start default
  [[ -z $quick ]] || seconds=0.5
  best=$(autotune_exhaustive "$seconds" "$(dirname "$json")/engines_autotune_$2.csv" "$1" "${grid[@]}")
  echo "bench: autotune, $1: best of ${#grid[@]} by trying all: $best" >&2
  # Right before: rates of the grid were taken minutes ago.
  default=$(autotune_default_rate "$seconds")
  autotune_compare "$1" "$seconds" "${best%% *}" '' "$default"
  for start in "${starts[@]}"; do autotune_compare "$1" "$seconds" "${best%% *}" "$start"; done
}

run_engines_autotune() {
  local small chunk spin part pace here_grid=() hosts_grid=() chunks='16384 65536 131072 262144' smalls='104 2048 8192 32768'
  [[ -z $quick ]] || chunks='16384 131072' smalls='104 8192'
  for small in $smalls; do
    for spin in 0 250 4000; do
      for chunk in $chunks; do here_grid+=("small_bytes=$small chunk_bytes=$chunk spin_count=$spin"); done
      for pace in lockstep deep; do
        for part in 16384 131072 524288; do
          hosts_grid+=("small_bytes=$small part_bytes=$part pace=$pace spin_count=$spin")
        done
      done
    done
  done
  here_grid+=('') hosts_grid+=('')
  : >"$parts/autotune.jsonl"
  autotune_place=("$build/horovodrun" -np 2)
  autotune_place_figures 'one host' one_host here_grid autotune_bad_starts_here
  if ((EUID != 0)) || [[ ! -x /usr/sbin/sshd ]]; then
    echo "bench: autotune between two hosts is left out: needs root and sshd" >&2
  else
    use_hosts
    start_ssh_servers
    limit_link 1000
    # The profile lies in a folder that both hosts see; only rank 0 reads it.
    autotune_place=("$hosts_folder/enter" "${hosts_names[0]}" "$build/horovodrun" -np 2
      -H "${hosts_addresses[0]}:1,${hosts_addresses[1]}:1" -p 2222 -i "$hosts_folder/user" --ssh-no-host-key-check)
    autotune_place_figures 'two hosts, 1 Gbit/s' two_hosts hosts_grid autotune_bad_starts_hosts
  fi
  (echo '['; sed '$!s/$/,/' "$parts/autotune.jsonl"; echo ']') >"$(dirname "$json")/engines_autotune.json"
  echo "bench: figures in $(dirname "$json")/engines_autotune.json" >&2
}
