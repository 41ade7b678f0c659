# shellcheck shell=bash
# Functions for the *-image scripts, which source this file after lib.sh: which Debian release has which Postgres version,
# and how to build an image from Debian packages without a registry.
#
# Compatible with bash 3.2, the version on macOS, except for the build, which runs on Debian only.

readonly recipe_label=io.github.sortkey.recipe

work=        # temporary directory of a build
step=        # current step of a build
mirror=      # URL of the Debian mirror
debootstrap= # path of the program

# debian_suite VERSION prints the Debian release that packages that version of Postgres, or nothing if none does.
debian_suite() {
	case $1 in
	15) echo bookworm ;;
	17) echo trixie ;;
	18) echo sid ;;
	esac
}

# begin ends the script if Docker doesn't answer. It makes every exit of the script call clean_up.
begin() {
	local trouble
	trap 'clean_up' EXIT
	trap 'exit 129' HUP
	trap 'exit 130' INT
	trap 'exit 143' TERM

	trouble=$(why_no_docker)
	[ -z "$trouble" ] || die "$EX_UNAVAILABLE" "Docker is required: $trouble; start or install it"
}

# has_image IMAGE
has_image() {
	docker image inspect "$1" >/dev/null 2>&1
}

# is_built IMAGE RECIPE succeeds if Docker has our image IMAGE, built from RECIPE.
is_built() {
	local recipe
	recipe=$(docker image inspect --format "{{index .Config.Labels \"$recipe_label\"}}" "$1" 2>/dev/null) || return 1
	[ "$recipe" = "$2" ]
}

# image_id IMAGE prints the image's ID, or nothing if Docker doesn't have it.
image_id() {
	docker image inspect --format '{{.Id}}' "$1" 2>/dev/null || true
}

# remove_image ID removes an image whose name a newer image has taken. ID may be empty.
remove_image() {
	[ -n "$1" ] || return 0
	docker image rm "$1" >/dev/null 2>&1 || true # a container may still use it
}

# pull IMAGE
pull() {
	local status=0
	say "pulling $1"
	# The limit allows for slow connections. A daemon without access to a registry fails much sooner.
	bounded 600 docker pull --quiet "$1" >/dev/null || status=$?
	case $status in
	0) return 0 ;;
	124) say "cannot pull $1 within 10 minutes" ;;
	*) say "cannot pull $1, see above" ;;
	esac
	return 1
}

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
	# shellcheck disable=SC2034 # used by the scripts that source this
	debootstrap=$work/debootstrap/usr/sbin/debootstrap
	export DEBOOTSTRAP_DIR=$work/debootstrap/usr/share/debootstrap
}

update_package_lists() {
	say 'updating the package lists of apt'
	run_step 300 apt-get --quiet update
}

clean_up() {
	local status=$?
	trap '' HUP INT TERM
	stop_bounded
	[ -n "$work" ] || return 0
	if [ -n "$step" ] && [ "$status" -lt 128 ]; then
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
