#!/bin/bash
# The entry point of the images that scripts/postgres-image builds from Debian's packages.
#
# It keeps the contract of the official postgres image, as far as tests use it, so that either image can stand in for the
# other:
#
#   POSTGRES_USER              the superuser; default postgres
#   POSTGRES_PASSWORD          its password; may be left out only with POSTGRES_HOST_AUTH_METHOD=trust
#   POSTGRES_DB                a database to create; default: named as the user
#   POSTGRES_INITDB_ARGS       further arguments of initdb
#   POSTGRES_HOST_AUTH_METHOD  how connections over TCP authenticate; default scram-sha-256
#   /docker-entrypoint-initdb.d/*.sql, *.sql.gz, *.sh: run once, in order, when the data directory is new
#
# While a new data directory is filled, the server listens on its unix socket only. So a client over TCP meets the
# finished database or nothing, and "database system is ready to accept connections" is logged twice.
set -euo pipefail

readonly socket_directory=/var/run/postgresql
readonly port=${PGPORT:-5432}

server=       # process ID of the server, while there is one
initialising= # set while the data directory is ours and unfinished

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

# step_down runs this script again as the system's user postgres: the server refuses to run as root.
step_down() {
	mkdir -p "$PGDATA" "$socket_directory"
	find "$PGDATA" "$socket_directory" ! -user postgres -exec chown postgres:postgres {} +
	chmod 0700 "$PGDATA"
	chmod 2775 "$socket_directory"
	exec setpriv --reuid=postgres --regid=postgres --init-groups \
		env HOME=/var/lib/postgresql "${BASH_SOURCE[0]}" "$@"
}

# initialise makes the cluster, the user and the database, and runs the scripts of /docker-entrypoint-initdb.d.
initialise() {
	export POSTGRES_USER=${POSTGRES_USER:-postgres}
	export POSTGRES_PASSWORD=${POSTGRES_PASSWORD:-}
	export POSTGRES_DB=${POSTGRES_DB:-$POSTGRES_USER}
	export POSTGRES_HOST_AUTH_METHOD=${POSTGRES_HOST_AUTH_METHOD:-scram-sha-256}

	if [ -z "$POSTGRES_PASSWORD" ] && [ "$POSTGRES_HOST_AUTH_METHOD" != trust ]; then
		die "expected POSTGRES_PASSWORD, got none;" \
			"set it, or set POSTGRES_HOST_AUTH_METHOD=trust to let everybody in without one"
	fi
	if [ -n "$(ls -A "$PGDATA")" ]; then
		die "expected $PGDATA empty or a database cluster, got files that are neither;" \
			"mount another directory, or set PGDATA to one below it"
	fi
	initialising=yes

	# As a shell would read them, because arguments such as --locale-provider='icu' may be quoted.
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
		kill -0 "$server" 2>/dev/null || finish # it has said why in its log
		sleep 0.05
	done
	# A subshell: what init scripts that are sourced do to the environment is not for the server.
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

	set +u # init scripts may not be written for it
	local script
	for script in /docker-entrypoint-initdb.d/*; do
		[ -e "$script" ] || continue # the pattern itself: the folder is empty
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

# serve runs the server until it ends, and ends with its status.
#
# The server could take this process's place but for SIGTERM, which "docker stop" sends: to the server it means to wait
# until the last client has gone, and the container would be killed before. SIGINT is its fast shutdown.
serve() {
	start "$@"
	trap 'shut_down' INT TERM
	trap 'kill -QUIT "$server"' QUIT
	trap 'kill -HUP "$server"' HUP # reload the configuration
	finish
}

# shut_down insists: a signal sent before the server has its handlers in place is lost, a repeated one does no harm.
# shellcheck disable=SC2317 # called by a trap
shut_down() {
	while kill -INT "$server" 2>/dev/null; do
		sleep 0.1
	done
}

# start starts the server in a session of its own: Ctrl-C in a terminal would reach it, too, and bash can lose the status of
# a child that ends while the same signal interrupts its wait.
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
	wait "$server" || status=$? # bash has kept it
	server=
	return "$status"
}

finish() {
	local status=0
	await_server || status=$?
	exit "$status"
}

# abandon clears a data directory that was not finished, so that a restart begins anew instead of serving half of it.
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
