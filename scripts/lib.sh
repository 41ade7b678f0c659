# shellcheck shell=bash
# Functions for the scripts in this folder, which source this file. Compatible with bash 3.2, the version on macOS.

# Exit statuses, as in sysexits.h.
# shellcheck disable=SC2034 # used by the scripts that source this
readonly EX_USAGE=64 EX_UNAVAILABLE=69

# say MESSAGE prints a line to stderr. Stdout is for the script's result.
say() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
}

# die STATUS MESSAGE prints the message and exits.
die() {
	local status=$1
	shift
	say "$@"
	exit "$status"
}

# bounded SECONDS COMMAND... runs COMMAND in its own process group. After SECONDS it stops COMMAND and returns 124.
#
# It polls instead of using timeout(1), because macOS has no timeout(1), and because bash runs no trap while it waits for a
# command in the foreground: a TERM would have no effect until the command ends.
bounded_group=
bounded() {
	local deadline=$((SECONDS + $1)) status=0
	shift
	set -m # starts the job in its own process group, so that stop_bounded can signal the whole group
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

# stop_bounded stops the command of bounded if it still runs. Call it in an EXIT trap.
stop_bounded() {
	[ -n "$bounded_group" ] || return 0
	kill -TERM -- "-$bounded_group" 2>/dev/null || true
	wait "$bounded_group" 2>/dev/null || true
	kill -KILL -- "-$bounded_group" 2>/dev/null || true # the leader has ended; kill processes that ignored TERM
	bounded_group=
}

# why_no_docker prints one line with the reason if Docker doesn't answer, or nothing if it does.
why_no_docker() {
	local answer
	if ! command -v docker >/dev/null; then
		echo 'no docker command on PATH'
	elif ! answer=$(bounded 10 docker version --format '{{.Server.Version}}' 2>&1); then
		printf 'Docker does not answer: %s\n' "$(last_line "$answer")"
	fi
}

# last_line TEXT prints the last non-blank line of TEXT, where command-line tools put the reason for a failure.
last_line() {
	printf '%s\n' "$1" | awk 'NF { line = $0 } END { print line }'
}
