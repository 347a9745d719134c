# Machines within this one, each with a systemd of its own: process 1 of namespaces, in a control group
# that no other process is in. Processes outside do not see it, and killing it ends everything that it has
# started. For scripts that source this: call `end_machines` in their EXIT trap.

declare -A machine_parents=() machine_groups=()

# True where machines can be made.
can_make_machines() {
  machine_hierarchy="$(findmnt --noheadings --types cgroup2 --output TARGET | head -n 1)"
  [[ -n $machine_hierarchy ]] || return 1
  local probe="$machine_hierarchy/causeway-probe-$$"
  mkdir "$probe" 2>/dev/null && rmdir "$probe" || return 1
  unshare --pid --mount --uts --ipc --net --cgroup --fork true 2>/dev/null
}

# make_machine NAME SCRIPT [OPTION…]: runs SCRIPT, which ends by becoming systemd, in new namespaces, and
# waits until systemd is up. OPTIONs are those of unshare(1).
make_machine() {
  local name="$1" script="$2"
  shift 2
  machine_groups[$name]="$machine_hierarchy/causeway-$name-$$"
  mkdir "${machine_groups[$name]}"
  (
    echo "$BASHPID" >"${machine_groups[$name]}/cgroup.procs"
    # However this script ends, its machines end with it.
    exec setpriv --pdeathsig KILL unshare --fork --pid --mount --mount-proc --uts --ipc --cgroup --kill-child "$@" \
      bash "$script" </dev/null
  ) &
  machine_parents[$name]=$!
  until_true on "$name" systemctl is-system-running
}

# machine_process NAME: prints the number of its systemd, as this machine counts.
machine_process() { pgrep --parent "${machine_parents[$1]}"; }

# on NAME COMMAND…: runs a command there, as root.
on() {
  local name="$1"
  shift
  nsenter --target "$(machine_process "$name")" --all -- "$@"
}

# until_true COMMAND…: waits until a command succeeds, for 30 s or somewhat more.
until_true() {
  local tries
  for ((tries = 0; tries < 300; tries++)); do
    if "$@" >/dev/null 2>&1; then return; fi
    sleep 0.1
  done
  echo "waited in vain for: $*"
  return 1
}

# Ends every machine and what runs there.
end_machines() {
  local name tries
  for name in "${!machine_parents[@]}"; do
    pkill -KILL --parent "${machine_parents[$name]}" || true
    wait "${machine_parents[$name]}" 2>/dev/null || true
    # A group can go when the last process is out of it.
    for ((tries = 0; tries < 50; tries++)); do
      find "${machine_groups[$name]}" -depth -type d -exec rmdir {} + 2>/dev/null || true
      [[ -e ${machine_groups[$name]} ]] || break
      sleep 0.1
    done
  done
}
