# shellcheck shell=bash
# What the scripts beside this file share. They source it; it does nothing by itself.
#
# Everything here keeps to bash 3.2, the one that macOS has.

# Exit statuses, as in sysexits.h.
# shellcheck disable=SC2034 # used by the scripts that source this
readonly EX_USAGE=64 EX_UNAVAILABLE=69

# say MESSAGE: one line on stderr. Stdout belongs to the caller of the script.
say() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
}

# die STATUS MESSAGE
die() {
	local status=$1
	shift
	say "$@"
	exit "$status"
}

# bounded SECONDS COMMAND...: runs COMMAND in a process group of its own and gives up after SECONDS with status 124.
#
# It polls, where timeout(1) would sleep, for two reasons: macOS has no timeout(1), and bash runs no trap while it waits for
# a command in the foreground, so that a TERM would go unheard for as long as a build lasts.
bounded_group=
bounded() {
	local deadline=$((SECONDS + $1)) status=0
	shift
	set -m # gives the job its own process group, so that stop_bounded reaches all of it
	"$@" &
	bounded_group=$!
	set +m
	while kill -0 "$bounded_group" 2>/dev/null; do
		if [ "$SECONDS" -ge "$deadline" ]; then
			stop_bounded
			return 124
		fi
		sleep 0.1
	done
	wait "$bounded_group" || status=$?
	bounded_group=
	return "$status"
}

# stop_bounded ends what bounded has started, if it still runs. Call it in an EXIT trap.
stop_bounded() {
	[ -n "$bounded_group" ] || return 0
	kill -TERM -- "-$bounded_group" 2>/dev/null || true
	wait "$bounded_group" 2>/dev/null || true
	kill -KILL -- "-$bounded_group" 2>/dev/null || true # the leader is gone; whoever ignored TERM goes now
	bounded_group=
}

# why_no_docker prints nothing if Docker answers, else one line that says why it doesn't.
why_no_docker() {
	local answer
	if ! command -v docker >/dev/null; then
		echo 'no docker command on PATH'
	elif ! answer=$(bounded 10 docker version --format '{{.Server.Version}}' 2>&1); then
		printf 'Docker does not answer: %s\n' "$(last_line "$answer")"
	fi
}

# last_line TEXT prints the last line of TEXT that isn't blank: where command-line tools put the reason.
last_line() {
	printf '%s\n' "$1" | awk 'NF { line = $0 } END { print line }'
}
