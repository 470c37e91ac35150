# The part 'gloo' of the suite 'engines': sourced by bench/run, which calls run_engines_gloo. Our Gloo engine against
# calling Gloo directly, allreduce of 64 KiB to 64 MiB between two hosts with one rank each.
run_engines_gloo() {
  local plugin=$build/libhorovod_gloo.so
  [[ -f $plugin ]] || fail "engines: there is no '$plugin'; install libgloo-dev"
  use_hosts
  run_between_hosts 1 veth --engine gloo
  remove_hosts
}
