# shellcheck shell=bash
# Builds of the images of scripts/image, which sources this file. They are for machines that reach a Debian mirror but no
# registry, and need root and a Debian system.
#
# Each function define_…_build defines functions for one kind of image, among them build. The recipe of an image is a checksum
# of everything that determines it, with the definitions of these functions.
# shellcheck disable=SC2317 # run_step calls functions by name
# shellcheck disable=SC2154 # scripts/image sets no_pull and experimental_pin

work=        # temporary directory of a build
step=        # current step of a build
mirror=      # URL of the Debian mirror
debootstrap= # path of the program

# check_debian NEED ELSE_DO ends the script if this machine cannot build an image. The error message consists of NEED, the
# missing requirement, a remedy and ELSE_DO, an alternative to building.
check_debian() {
	local need=$1 else_do=$2 tool
	for tool in apt-get dpkg-deb flock; do
		command -v "$tool" >/dev/null ||
			die "$EX_UNAVAILABLE" "$need a Debian system, but this one has no $tool;" \
				"run this on Debian, $else_do"
	done
	[ "$(id -u)" -eq 0 ] ||
		die "$EX_UNAVAILABLE" "$need root for debootstrap, not user $(id -un);" \
			"run this as root, $else_do"
	command -v wget >/dev/null ||
		die "$EX_UNAVAILABLE" "$need wget for debootstrap, but it isn't installed;" \
			"run 'apt-get install wget', $else_do"
}

# lock NAME IMAGE waits until no other build of NAME runs; afterwards, check whether that build made the image. A fixed path
# is safe because only root can write to /run. The kernel releases the lock when the last process that holds the file open
# ends, including children of a killed build.
lock() {
	exec 9>"/run/sortkey-$1.lock"
	if ! flock --nonblock 9; then
		say "waiting for another build of $2"
		bounded 1800 flock 9 || die 1 "another build of $2 still runs after 30 minutes; check whether it hangs"
	fi
}

# prepare_build NAME sets work, mirror and debootstrap. The caller must hold the lock.
prepare_build() {
	# Not /tmp: as a tmpfs it is often too small, and it may be mounted nodev, which debootstrap rejects.
	local prefix=${TMPDIR:-/var/tmp}/sortkey-$1 left_over
	for left_over in "$prefix".*; do # from killed builds: no other build runs while we hold the lock
		remove_tree "$left_over"
	done
	work=$(mktemp -d "$prefix.XXXXXX")
	mirror=$(debian_mirror)
	if [ -z "$mirror" ]; then
		update_package_lists
		mirror=$(debian_mirror)
	fi
	[ -n "$mirror" ] ||
		die "$EX_UNAVAILABLE" "apt has no Debian mirror among its sources;" \
			"add one, or give Docker access to a registry"
	export_proxy
	find_debootstrap
}

# run_step SECONDS FUNCTION... runs a step of the build. If the step fails, clean_up shows its output.
#
# Don't call it in a condition or an || list: there the shell ignores set -e, also inside the function.
run_step() {
	step=$2
	bounded "$1" "${@:2}" >"$work/log" 2>&1
	step=
}

# debian_mirror prints apt's Debian mirror. It prints nothing if apt has none or before the first apt-get update.
debian_mirror() {
	# shellcheck disable=SC2016 # apt-get expands these, not the shell
	apt-get indextargets --format '$(ORIGIN) $(LABEL) $(REPO_URI)' 'Created-By: Packages' |
		awk '$1 == "Debian" && $2 == "Debian" && $3 ~ /^https?:/ { print $3; exit }'
}

# export_proxy exports apt's proxy for wget, which debootstrap downloads packages with.
export_proxy() {
	local proxy=
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

define_postgres_build() {
	# recipe_of VERSION prints a checksum of everything that determines the image. It covers the functions that build, without
	# their comments, and scripts/postgres-entrypoint.sh.
	recipe_of() {
		{
			echo "$1 $(debian_suite "$1") $experimental_pin"
			declare -f bootstrap make_tree trim_tree import_tree
			cat "$here/postgres-entrypoint.sh"
		} | cksum | tr ' ' -
	}

	# check_buildable VERSION ends the script if this machine cannot build the image.
	check_buildable() {
		local version=$1
		local need="cannot pull postgres:$version-alpine ($no_pull), and building the image needs"
		local else_do='or give Docker access to a registry, or set DATABASE_URL if one server is enough'
		[ -n "$(debian_suite "$version")" ] ||
			die "$EX_UNAVAILABLE" "$need a version that Debian packages, but Debian has no Postgres $version;" \
				"choose 15, 17, 18 or 19, $else_do"
		check_debian "$need" "$else_do"
	}

	build() {
		local version=$1 suite old
		suite=$(debian_suite "$version")
		prepare_build "postgres-image-$version"

		say "building Postgres $version from the packages of Debian $suite, which takes about a minute, because the pull failed: $no_pull"
		run_step 1800 make_tree "$version" "$suite" "$mirror" "$work/tree"
		run_step 60 trim_tree "$version" "$work/tree"
		old=$(image_id "sortkey/postgres:$version")
		run_step 600 import_tree "$version" "$work/tree" "$(recipe_of "$version")"
		remove_image "$old"
	}

	# make_tree VERSION SUITE MIRROR DIRECTORY
	make_tree() {
		bootstrap "$2" "$3" "$4" "postgresql-$1"
	}

	# trim_tree VERSION DIRECTORY removes files that a server in a container doesn't need.
	trim_tree() {
		local tree=$2 lib=$2/usr/lib/postgresql/$1

		# The cluster that the package creates, and a private key, which must differ between machines.
		rm -rf "$tree"/etc/postgresql/* "$tree"/var/lib/postgresql/* "$tree"/etc/ssl/private/*

		rm -rf "$tree"/var/cache/* "$tree"/var/log/* "$tree"/var/lib/apt/lists/* "$tree"/debootstrap
		rm -rf "$tree"/usr/share/{doc,doc-base,info,lintian,locale,man} "$tree/usr/share/postgresql/$1/man"
		rm -rf "$tree"/usr/share/i18n "$tree"/usr/lib/locale/locale-archive # C.UTF-8 is built into libc; other locales come from ICU

		# LLVM, half of the image. The server runs without just-in-time compilation if the provider is missing.
		rm -rf "$lib"/lib/llvmjit* "$lib"/lib/bitcode "$tree"/usr/lib/*/libLLVM* "$tree"/usr/lib/*/libz3* "$tree"/usr/lib/llvm*

		# Perl modules. Only Debian's wrappers need them, and PATH finds the programs themselves first.
		rm -rf "$tree"/usr/lib/*/perl "$tree"/usr/share/perl

		# Check that the programs still run.
		chroot "$tree" "/usr/lib/postgresql/$1/bin/postgres" --version
		chroot "$tree" "/usr/lib/postgresql/$1/bin/psql" --version
		chroot "$tree" setpriv --version
	}

	# import_tree VERSION DIRECTORY RECIPE
	import_tree() {
		install -m 0755 "$here/postgres-entrypoint.sh" "$2/usr/local/bin/docker-entrypoint.sh"
		install -d "$2/docker-entrypoint-initdb.d"
		# A volume inherits the owner of this directory, so "docker run --user postgres" can write to it.
		chroot "$2" install -d -o postgres -g postgres -m 0700 /var/lib/postgresql/data
		# The volume keeps the data off the layered file system, which can be several times slower.
		tar -C "$2" --numeric-owner --one-file-system --exclude='./dev/*' -c . |
			docker import \
				--change "ENV PATH=/usr/lib/postgresql/$1/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" \
				--change 'ENV LANG=C.UTF-8' \
				--change 'ENV PGDATA=/var/lib/postgresql/data' \
				--change 'VOLUME /var/lib/postgresql/data' \
				--change 'EXPOSE 5432' \
				--change 'ENTRYPOINT ["docker-entrypoint.sh"]' \
				--change 'CMD ["postgres"]' \
				--change "LABEL $recipe_label=$3" \
				- "sortkey/postgres:$1"
	}
}

define_citus_build() {
	# recipe_of VERSION SOURCE prints a checksum of everything that determines the image.
	recipe_of() {
		{
			echo "$1"
			declare -f compile dockerfile
			cat "$2"
		} | cksum | tr ' ' -
	}

	# build VERSION SOURCE IMAGE compiles Citus in one Debian image and adds the result to another, without the compiler.
	build() {
		local started=$SECONDS suite base compiler old
		suite=$(debian_suite "$1")
		base=$("$0" postgres-extras "$1")
		compiler=$("$0" debian citus-compiler "$suite" "postgresql-server-dev-$1" make gcc libc6-dev flex xz-utils \
			libssl-dev liblz4-dev libzstd-dev libxml2-dev libxslt1-dev libkrb5-dev libpam0g-dev libselinux1-dev zlib1g-dev \
			libreadline-dev libicu-dev)

		say "compiling Citus for Postgres $1; this takes about three minutes"
		prepare_build "citus-image-$1"
		mkdir "$work/image"
		run_step 1800 compile "$1" "$2" "$compiler" "$work/image/citus.tar"
		dockerfile "$base" >"$work/image/Dockerfile"
		old=$(image_id "$3")
		run_step 300 docker build --quiet --force-rm --tag "$3" --label "$recipe_label=$(recipe_of "$1" "$2")" "$work/image"
		remove_image "$old"
		remove_image "$(image_id "$compiler")" # more than a gigabyte
		say "built $3 in $((SECONDS - started)) s"
	}

	# compile VERSION SOURCE IMAGE ARCHIVE
	compile() {
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

	# dockerfile BASE
	dockerfile() {
		printf 'FROM %s\nADD citus.tar /\n' "$1"
	}
}

# define_debian_build defines functions that use the variables of image_debian.
define_debian_build() {
	build() {
		local old
		prepare_build "debian-image-$name-$suite"

		say "building $image from the packages of Debian $suite, which takes about a minute, because the pull of debian:$suite-slim failed: $no_pull"
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
}
