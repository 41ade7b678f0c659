# shellcheck shell=bash
# Builds of the images of scripts/image, which sources this file. They are for machines that reach a Debian mirror but no
# registry, and need root and a Debian system.
# shellcheck disable=SC2317 # run_step calls functions by name
# shellcheck disable=SC2154 # scripts/image sets no_pull, recipe_label and experimental_pin, and image_debian sets image, suite, packages and recipe

work=        # temporary directory of a build
step=        # current step of a build
mirror=      # URL of the Debian mirror
debootstrap= # path of the program

# build_debian builds the image of image_debian from scratch, with the variables of that function.
build_debian() {
	local old
	check_debian
	prepare_build "$image" "$recipe" || return 0

	say "building $image from the packages of Debian $suite, which takes about a minute, because the pull of debian:$suite-slim failed: $no_pull"
	find_mirror
	find_debootstrap
	run_step 1800 make_tree "$work/tree"
	run_step 60 trim_tree "$work/tree"
	old=$(image_id "$image")
	run_step 600 import_tree "$work/tree"
	remove_image "$old"
}

# make_tree DIRECTORY
make_tree() {
	# shellcheck disable=SC2086 # one argument per package
	bootstrap "$suite" "$mirror" "$1" $packages
}

# trim_tree DIRECTORY removes files that no program needs at run time, and private keys, which must differ between machines.
# It keeps the folders, because programs may expect them.
trim_tree() {
	rm -rf "$1"/var/lib/apt/lists/* "$1"/debootstrap "$1"/etc/ssl/private/*
	find "$1"/var/{cache,log} "$1"/usr/share/{doc,info,lintian,locale,man} ! -type d -delete
}

# import_tree DIRECTORY
import_tree() {
	tar -C "$1" --numeric-owner --one-file-system --exclude='./dev/*' -c . |
		docker import --change "LABEL $recipe_label=$recipe" - "$image"
}

# build_postgres VERSION IMAGE RECIPE makes a server of the image postgres-extras.
build_postgres() {
	local base
	base=$("$0" postgres-extras "$1")
	prepare_build "$2" "$3" || return 0
	say "building $2 on $base"
	mkdir "$work/image"
	install -m 0755 "$here/postgres-entrypoint.sh" "$work/image"
	postgres_dockerfile "$base" "$1" >"$work/image/Dockerfile"
	run_step 300 build_image "$2" "$3" "$work/image"
}

# postgres_dockerfile BASE VERSION. The volume keeps the data off the layered file system, which can be several times slower. It
# inherits the owner of the directory, so that "docker run --user postgres" can write to it.
postgres_dockerfile() {
	cat <<-END
		FROM $1
		COPY postgres-entrypoint.sh /usr/local/bin/docker-entrypoint.sh
		RUN install -d -o postgres -g postgres -m 0700 /var/lib/postgresql/data
		ENV PATH=/usr/lib/postgresql/$2/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 PGDATA=/var/lib/postgresql/data
		VOLUME /var/lib/postgresql/data
		EXPOSE 5432
		STOPSIGNAL SIGINT
		ENTRYPOINT ["docker-entrypoint.sh"]
		CMD ["postgres"]
	END
}

# build_citus VERSION SOURCE IMAGE RECIPE compiles Citus in one Debian image and adds the result to another, without the compiler.
build_citus() {
	local started=$SECONDS base compiler
	base=$("$0" postgres-extras "$1")
	compiler=$("$0" debian citus-compiler "$(debian_suite "$1")" "postgresql-server-dev-$1" make gcc libc6-dev flex xz-utils \
		libssl-dev liblz4-dev libzstd-dev libxml2-dev libxslt1-dev libkrb5-dev libpam0g-dev libselinux1-dev zlib1g-dev \
		libreadline-dev libicu-dev)
	prepare_build "$3" "$4" || return 0

	say "compiling Citus for Postgres $1; this takes about three minutes"
	mkdir "$work/image"
	run_step 1800 compile_citus "$1" "$2" "$compiler" "$work/image/citus.tar"
	printf 'FROM %s\nADD citus.tar /\n' "$base" >"$work/image/Dockerfile"
	run_step 300 build_image "$3" "$4" "$work/image"
	remove_image "$compiler" # more than a gigabyte
	say "built $3 in $((SECONDS - started)) s"
}

# compile_citus VERSION SOURCE IMAGE ARCHIVE
compile_citus() {
	docker run --rm --interactive "$3" bash -euc '
	mkdir /citus && cd /citus
	tar --extract --xz --strip-components=1
	{
		./configure --without-libcurl PG_CONFIG="/usr/lib/postgresql/$1/bin/pg_config"
		make --jobs="$(nproc)" with_llvm=no
		make install with_llvm=no DESTDIR=/installed
	} >&2
	tar --directory=/installed --create usr' bash "$1" <"$2" >"$4"
}

# check_debian ends the script if this machine cannot build an image from scratch.
check_debian() {
	local need="cannot pull ($no_pull), and building an image needs" else_do='or give Docker access to a registry' tool
	for tool in apt-get dpkg-deb flock; do
		command -v "$tool" >/dev/null ||
			die "$EX_UNAVAILABLE" "$need a Debian system, but this one has no $tool; run this on Debian, $else_do"
	done
	[ "$(id -u)" -eq 0 ] ||
		die "$EX_UNAVAILABLE" "$need root for debootstrap, not user $(id -un); run this as root, $else_do"
	command -v wget >/dev/null ||
		die "$EX_UNAVAILABLE" "$need wget for debootstrap, but it isn't installed; run 'apt-get install wget', $else_do"
}

# prepare_build IMAGE RECIPE waits until no other build of IMAGE runs, and sets work. It fails if that build made the image. A fixed
# path is safe because only root can write to /run. The kernel releases the lock when the last process that holds the file open
# ends, including children of a killed build.
prepare_build() {
	# Not /tmp: as a tmpfs it is often too small, and it may be mounted nodev, which debootstrap rejects.
	local name=${1//[\/:]/-} left_over
	exec 9>"/run/$name.lock"
	if ! flock --nonblock 9; then
		say "waiting for another build of $1"
		bounded 1800 flock 9 || die 1 "another build of $1 still runs after 30 minutes; check whether it hangs"
	fi
	! is_built "$1" "$2" || return 1
	for left_over in "${TMPDIR:-/var/tmp}/$name".*; do # from killed builds: no other build runs while we hold the lock
		remove_tree "$left_over"
	done
	work=$(mktemp -d "${TMPDIR:-/var/tmp}/$name.XXXXXX") || exit 1
}

# run_step SECONDS FUNCTION... runs a step of the build. If the step fails, clean_up_build shows its output.
#
# Don't call it in a condition or an || list: there the shell ignores set -e, also inside the function.
run_step() {
	step=$2
	bounded "$1" "${@:2}" >"$work/log" 2>&1
	step=
}

# clean_up_build STATUS
clean_up_build() {
	[ -n "$work" ] || return 0
	if [ -n "$step" ] && [ "$1" -lt 128 ]; then
		tail -n 30 "$work/log" >&2 || true
		say "building the image failed in $step, see above"
	fi
	remove_tree "$work"
}

remove_tree() {
	# A killed debootstrap leaves proc and sys mounted in the tree.
	awk -v tree="$1/" 'index($5, tree) == 1 { print $5 }' /proc/self/mountinfo | sort -r |
		while read -r mounted; do
			umount --lazy "$mounted"
		done
	rm -rf --one-file-system "$1"
}

# find_mirror sets mirror to apt's Debian mirror, and exports apt's proxy for wget, which debootstrap downloads packages with.
find_mirror() {
	local proxy='' try
	for try in first second; do
		# apt has no mirror before the first apt-get update.
		[ "$try" = first ] || update_package_lists
		# shellcheck disable=SC2016 # apt-get expands these, not the shell
		mirror=$(apt-get indextargets --format '$(ORIGIN) $(LABEL) $(REPO_URI)' 'Created-By: Packages' |
			awk '$1 == "Debian" && $2 == "Debian" && $3 ~ /^https?:/ { print $3; exit }')
		[ -z "$mirror" ] || break
	done
	[ -n "$mirror" ] ||
		die "$EX_UNAVAILABLE" "apt has no Debian mirror among its sources; add one, or give Docker access to a registry"
	eval "$(apt-config shell proxy Acquire::http::Proxy)"
	if [ -n "$proxy" ] && [ "$proxy" != DIRECT ]; then
		export http_proxy=${http_proxy:-$proxy}
	fi
}

# find_debootstrap sets debootstrap to the installed program. If there is none, it unpacks one into the work directory.
find_debootstrap() {
	debootstrap=$(command -v debootstrap) && return
	local package
	# As root, because apt's own user may not enter the work directory.
	local -a download=(apt-get --quiet -o APT::Sandbox::User=root download debootstrap)
	if ! (cd "$work" && "${download[@]}") >/dev/null 2>&1; then
		update_package_lists # outdated lists may name a version that the mirror no longer has
		(cd "$work" && "${download[@]}") >&2
	fi
	for package in "$work"/debootstrap_*.deb; do
		dpkg-deb --extract "$package" "$work/debootstrap"
	done
	debootstrap=$work/debootstrap/usr/sbin/debootstrap
	export DEBOOTSTRAP_DIR=$work/debootstrap/usr/share/debootstrap
}

update_package_lists() {
	say 'updating the package lists of apt'
	run_step 300 apt-get --quiet update
}

# bootstrap SUITE MIRROR DIRECTORY PACKAGE... installs the packages in a new tree. The release experimental is an addition to sid,
# from which apt takes what sid lacks, and libpq5 for the servers that need a new one.
bootstrap() {
	local suite=$1 mirror=$2 tree=$3
	# Without --force-check-gpg, debootstrap only warns if it has no keys to verify the packages with.
	local -a make=("$debootstrap" --variant=minbase --force-check-gpg)
	if [ "$suite" != experimental ]; then
		"${make[@]}" --include="$(IFS=,; echo "${*:4}")" "$suite" "$tree" "$mirror"
		return
	fi
	"${make[@]}" sid "$tree" "$mirror"
	echo "deb $mirror experimental main" >"$tree/etc/apt/sources.list.d/experimental.list"
	printf '%b' "$experimental_pin" >"$tree/etc/apt/preferences.d/experimental"
	printf '#!/bin/sh\nexit 101\n' >"$tree/usr/sbin/policy-rc.d" # installing a package starts no server
	chmod +x "$tree/usr/sbin/policy-rc.d"
	mount -t proc proc "$tree/proc" # scripts of packages need it; remove_tree unmounts it if a step fails
	chroot "$tree" apt-get --quiet -o Acquire::Check-Valid-Until=false update # debootstrap checks signatures, but no dates, either
	DEBIAN_FRONTEND=noninteractive chroot "$tree" apt-get --quiet --yes --no-install-recommends install "${@:4}"
	umount "$tree/proc"
	rm "$tree"/etc/apt/{sources.list.d/experimental.list,preferences.d/experimental} "$tree/usr/sbin/policy-rc.d"
}
