#!/bin/bash
# The entry point of the images that scripts/image builds from Debian packages. It supports the options of the official image
# that the tests use, so that the images are interchangeable:
#
#   POSTGRES_USER              the superuser; default postgres
#   POSTGRES_PASSWORD          its password; optional only with POSTGRES_HOST_AUTH_METHOD=trust
#   POSTGRES_INITDB_ARGS       further arguments of initdb, separated by spaces
#   POSTGRES_HOST_AUTH_METHOD  how connections over TCP authenticate; default scram-sha-256
#   PGDATA                     the data directory
#
# Unlike the official image, it creates no other database and runs no init scripts. The container needs the stop signal SIGINT.
set -euo pipefail

case ${1--} in
-*) set -- postgres "$@" ;; # "docker run IMAGE -c fsync=off"
postgres) ;;
*) exec "$@" ;;
esac
export PGDATA=${PGDATA:-/var/lib/postgresql/data}

# The server refuses to run as root.
if [ "$(id -u)" -eq 0 ]; then
	for directory in "$PGDATA" /var/run/postgresql; do
		mkdir -p "$directory"
		find "$directory" ! -user postgres -exec chown postgres:postgres {} +
	done
	chmod 0700 "$PGDATA"
	exec setpriv --reuid=postgres --regid=postgres --init-groups env HOME=/var/lib/postgresql "$0" "$@"
fi

if [ ! -s "$PGDATA/PG_VERSION" ]; then
	method=${POSTGRES_HOST_AUTH_METHOD:-scram-sha-256} arguments=()
	if [ -n "${POSTGRES_PASSWORD:-}" ]; then
		arguments=(--pwfile=/dev/fd/3)
	elif [ "$method" != trust ]; then
		echo 'postgres-entrypoint: POSTGRES_PASSWORD is unset; set it, or set POSTGRES_HOST_AUTH_METHOD=trust' >&2
		exit 1
	fi
	# shellcheck disable=SC2086 # several arguments
	initdb --username="${POSTGRES_USER:-postgres}" --encoding=UTF8 --auth=trust ${POSTGRES_INITDB_ARGS:-} \
		"${arguments[@]}" 3<<<"${POSTGRES_PASSWORD:-}"
	echo "host all all all $method" >>"$PGDATA/pg_hba.conf"
	echo "listen_addresses = '*'" >>"$PGDATA/postgresql.conf"
fi
exec "$@"
