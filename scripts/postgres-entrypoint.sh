#!/bin/bash
# The entry point of the images that scripts/image builds from Debian packages.
#
# It supports the options of the official postgres image that the tests use, so that the images are interchangeable:
#
#   POSTGRES_USER              the superuser; default postgres
#   POSTGRES_PASSWORD          its password; optional only with POSTGRES_HOST_AUTH_METHOD=trust
#   POSTGRES_DB                a database to create; default $POSTGRES_USER
#   POSTGRES_INITDB_ARGS       further arguments of initdb
#   POSTGRES_HOST_AUTH_METHOD  how connections over TCP authenticate; default scram-sha-256
#   /docker-entrypoint-initdb.d/*.sql, *.sql.gz, *.sh: run once, in order, when the data directory is new
#
# During the initialization of a data directory, the server listens only on its Unix socket. So a TCP client can connect
# only to a complete database, and the server logs "database system is ready to accept connections" twice.
set -euo pipefail

readonly socket_directory=/var/run/postgresql
readonly port=${PGPORT:-5432}

server=       # process ID of the server while it runs
initialising= # set while we initialize the data directory

main() {
	# "docker run IMAGE -c fsync=off" means the same as "docker run IMAGE postgres -c fsync=off".
	if [ $# -eq 0 ] || [ "${1#-}" != "$1" ]; then
		set -- postgres "$@"
	fi
	if [ "$1" != postgres ]; then
		exec "$@"
	fi
	case ${2-} in
	-\? | --help | -V | --version | --describe-config) exec "$@" ;;
	esac

	if [ "$(id -u)" -eq 0 ]; then
		step_down "$@"
	fi

	trap 'abandon' EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	if [ ! -s "$PGDATA/PG_VERSION" ]; then
		initialise "$@"
	fi
	serve "$@"
}

# step_down runs this script again as user postgres, because the server refuses to run as root.
step_down() {
	mkdir -p "$PGDATA" "$socket_directory"
	find "$PGDATA" "$socket_directory" ! -user postgres -exec chown postgres:postgres {} +
	chmod 0700 "$PGDATA"
	chmod 2775 "$socket_directory"
	exec setpriv --reuid=postgres --regid=postgres --init-groups \
		env HOME=/var/lib/postgresql "${BASH_SOURCE[0]}" "$@"
}

# initialise creates the cluster, the user and the database, and runs the scripts in /docker-entrypoint-initdb.d.
initialise() {
	export POSTGRES_USER=${POSTGRES_USER:-postgres}
	export POSTGRES_PASSWORD=${POSTGRES_PASSWORD:-}
	export POSTGRES_DB=${POSTGRES_DB:-$POSTGRES_USER}
	export POSTGRES_HOST_AUTH_METHOD=${POSTGRES_HOST_AUTH_METHOD:-scram-sha-256}

	if [ -z "$POSTGRES_PASSWORD" ] && [ "$POSTGRES_HOST_AUTH_METHOD" != trust ]; then
		die "POSTGRES_PASSWORD is unset;" \
			"set it, or set POSTGRES_HOST_AUTH_METHOD=trust to allow all connections without a password"
	fi
	if [ -n "$(ls -A "$PGDATA")" ]; then
		die "$PGDATA is neither empty nor a database cluster;" \
			"mount another directory, or set PGDATA to a subdirectory"
	fi
	initialising=yes

	# Parse the arguments like a shell, because some may be quoted, such as --locale-provider='icu'.
	local -a initdb_arguments=()
	eval "initdb_arguments=(${POSTGRES_INITDB_ARGS:-})"
	if [ -n "$POSTGRES_PASSWORD" ]; then
		initdb_arguments+=(--pwfile=/dev/fd/3)
	fi
	initdb --pgdata="$PGDATA" --username="$POSTGRES_USER" --encoding=UTF8 --auth-local=trust --auth-host=trust \
		"${initdb_arguments[@]}" 3<<<"$POSTGRES_PASSWORD"
	printf '\nhost all all all %s\n' "$POSTGRES_HOST_AUTH_METHOD" >>"$PGDATA/pg_hba.conf"
	printf "\nlisten_addresses = '*'\n" >>"$PGDATA/postgresql.conf"

	start "$@" -c listen_addresses= -c unix_socket_directories="$socket_directory" -p "$port"
	until pg_isready --quiet --host="$socket_directory" --port="$port" --username="$POSTGRES_USER" --dbname=postgres; do
		kill -0 "$server" 2>/dev/null || finish # the reason is in the server's log
		sleep 0.05
	done
	# A subshell, so that sourced init scripts can't change the server's environment.
	(run_init_scripts)
	kill -INT "$server"
	await_server
	initialising=
}

run_init_scripts() {
	export PGHOST=$socket_directory PGPORT=$port PGUSER=$POSTGRES_USER PGPASSWORD=$POSTGRES_PASSWORD
	if [ "$POSTGRES_DB" != postgres ]; then
		createdb --maintenance-db=postgres -- "$POSTGRES_DB"
	fi
	export PGDATABASE=$POSTGRES_DB

	set +u # init scripts may use unset variables
	local script
	for script in /docker-entrypoint-initdb.d/*; do
		[ -e "$script" ] || continue # in an empty folder, the pattern remains as it is
		say "running $script"
		case $script in
		*.sh)
			if [ -x "$script" ]; then
				"$script"
			else
				# shellcheck source=/dev/null
				source "$script"
			fi
			;;
		*.sql) run_sql <"$script" ;;
		*.sql.gz) gunzip --stdout "$script" | run_sql ;;
		*) say "skipping $script: neither .sql, .sql.gz nor .sh" ;;
		esac
	done
}

run_sql() {
	psql --set=ON_ERROR_STOP=1 --no-psqlrc --quiet --no-password
}

# serve runs the server and exits with its status.
#
# This script doesn't exec the server because of SIGTERM, which "docker stop" sends. The server would wait until the last
# client disconnects, and Docker would kill the container before. SIGINT makes the server shut down fast.
serve() {
	start "$@"
	trap 'shut_down' INT TERM
	trap 'kill -QUIT "$server"' QUIT
	trap 'kill -HUP "$server"' HUP # reload the configuration
	finish
}

# shut_down repeats the signal, because the server may miss one that arrives before it has installed its handlers.
# shellcheck disable=SC2317 # called by a trap
shut_down() {
	while kill -INT "$server" 2>/dev/null; do
		sleep 0.1
	done
}

# start starts the server in its own session, so that Ctrl-C in a terminal doesn't reach it: bash can lose the status of a
# child that ends while the same signal interrupts wait.
start() {
	setsid "$@" &
	server=$!
}

# await_server waits for the server to end and returns its status.
await_server() {
	local status=0
	wait "$server" || true # until the server ends or a trapped signal comes
	while kill -0 "$server" 2>/dev/null; do
		sleep 0.2
	done
	wait "$server" || status=$? # bash still has the status
	server=
	return "$status"
}

finish() {
	local status=0
	await_server || status=$?
	exit "$status"
}

# abandon clears an incomplete data directory, so that a restart initializes it again.
# shellcheck disable=SC2317 # called by a trap
abandon() {
	if [ -z "$initialising" ]; then
		return
	fi
	if [ -n "$server" ]; then
		kill -QUIT "$server" 2>/dev/null || true
		await_server || true
	fi
	find "$PGDATA" -mindepth 1 -delete
}

say() {
	printf 'postgres-entrypoint: %s\n' "$*" >&2
}

die() {
	say "$@"
	exit 1
}

main "$@"
