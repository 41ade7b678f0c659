# shellcheck shell=bash
# What the scripts share that see to images: where Debian has which Postgres, and how an image is built from Debian's
# packages where Docker reaches no registry. They source it, after lib.sh; it does nothing by itself.
#
# Keeps to bash 3.2, the one that macOS has, as far as the build: that needs Debian.

readonly recipe_label=io.github.sortkey.recipe

work=        # temporary directory of a build
step=        # what a build is at
mirror=      # of Debian, that packages come from
debootstrap= # the program

# debian_suite VERSION prints the Debian release that has that version of Postgres, or nothing.
debian_suite() {
	case $1 in
	15) echo bookworm ;;
	17) echo trixie ;;
	18) echo sid ;;
	esac
}

# begin sees that Docker answers, and that whatever ends the script, clean_up is called.
begin() {
	local trouble
	trap 'clean_up' EXIT
	trap 'exit 129' HUP
	trap 'exit 130' INT
	trap 'exit 143' TERM

	trouble=$(why_no_docker)
	[ -z "$trouble" ] || die "$EX_UNAVAILABLE" "expected Docker, got: $trouble; start or install it"
}

# has_image IMAGE
has_image() {
	docker image inspect "$1" >/dev/null 2>&1
}

# is_built IMAGE RECIPE: whether Docker has an image of ours, and of that recipe.
is_built() {
	local recipe
	recipe=$(docker image inspect --format "{{index .Config.Labels \"$recipe_label\"}}" "$1" 2>/dev/null) || return 1
	[ "$recipe" = "$2" ]
}

# image_id IMAGE prints nothing if there is no such image.
image_id() {
	docker image inspect --format '{{.Id}}' "$1" 2>/dev/null || true
}

# remove_image ID removes the image that another one has taken the name of, if there was any.
remove_image() {
	[ -n "$1" ] || return 0
	docker image rm "$1" >/dev/null 2>&1 || true # a container may still use it
}

# pull IMAGE
pull() {
	local status=0
	say "pulling $1"
	# Generous, because a slow line is no reason to give up. A daemon that reaches no registry says so much sooner.
	bounded 600 docker pull --quiet "$1" >/dev/null || status=$?
	case $status in
	0) return 0 ;;
	124) say "cannot pull $1: no end after 10 minutes" ;;
	*) say "cannot pull $1, see above" ;;
	esac
	return 1
}

# check_debian NEED ELSE_DO ends the script if this machine cannot build an image. The two are parts of the reason it
# gives: what would do instead of a build, and what to do about it.
check_debian() {
	local need=$1 else_do=$2 tool
	for tool in apt-get dpkg-deb flock; do
		command -v "$tool" >/dev/null ||
			die "$EX_UNAVAILABLE" "$need a Debian system to build the image on; got one without $tool;" \
				"run this on Debian, $else_do"
	done
	[ "$(id -u)" -eq 0 ] ||
		die "$EX_UNAVAILABLE" "$need root, which debootstrap needs to build the image; got $(id -un);" \
			"run this as root, $else_do"
	command -v wget >/dev/null ||
		die "$EX_UNAVAILABLE" "$need wget, which debootstrap needs to build the image; got none;" \
			"run 'apt-get install wget', $else_do"
}

# lock NAME WHAT: one build of a name at a time; whoever had to wait finds the image of the other. Only root writes to
# /run, so the name can be a fixed one. The lock is gone with the last process that has it open, a killed build's children
# included.
lock() {
	exec 9>"/run/sortkey-$1.lock"
	if ! flock --nonblock 9; then
		say "waiting for another build of $2"
		bounded 1800 flock 9 || die 1 'expected an end of it within half an hour, got none; see what holds it up'
	fi
}

# prepare_build NAME sets work, mirror and debootstrap. It wants to be called with the lock.
prepare_build() {
	# Not /tmp: where that is a tmpfs it is often too small, and mounted nodev, which debootstrap refuses.
	local prefix=${TMPDIR:-/var/tmp}/sortkey-$1 left_over
	for left_over in "$prefix".*; do # by a build that was killed; it has the lock no more, as we have it
		remove_tree "$left_over"
	done
	work=$(mktemp -d "$prefix.XXXXXX")
	mirror=$(debian_mirror)
	if [ -z "$mirror" ]; then
		update_package_lists
		mirror=$(debian_mirror)
	fi
	[ -n "$mirror" ] ||
		die "$EX_UNAVAILABLE" "expected a Debian mirror among apt's sources, got none;" \
			"add one, or let Docker reach a registry"
	export_proxy
	find_debootstrap
}

# run_step SECONDS FUNCTION...: a step of the build, whose output clean_up shows if it fails.
#
# A plain call, not one in a list with || or in a condition: there the shell would ignore set -e in the function, too.
run_step() {
	step=$2
	bounded "$1" "${@:2}" >"$work/log" 2>&1
	step=
}

# debian_mirror prints the mirror that apt is set up with, or nothing, as it does before the first apt-get update.
debian_mirror() {
	# shellcheck disable=SC2016 # apt-get fills these in, not the shell
	apt-get indextargets --format '$(ORIGIN) $(LABEL) $(REPO_URI)' 'Created-By: Packages' |
		awk '$1 == "Debian" && $2 == "Debian" && $3 ~ /^https?:/ { print $3; exit }'
}

# export_proxy tells wget, which debootstrap loads packages with, of the proxy that apt is set up with.
export_proxy() {
	local proxy=
	eval "$(apt-config shell proxy Acquire::http::Proxy)"
	if [ -n "$proxy" ] && [ "$proxy" != DIRECT ]; then
		export http_proxy=${http_proxy:-$proxy}
	fi
}

# find_debootstrap sets debootstrap to the program, unpacked into the work directory if the system has none installed.
find_debootstrap() {
	debootstrap=$(command -v debootstrap) && return
	local package
	# As root, because apt's own user may not enter the work directory.
	local -a download=(apt-get --quiet -o APT::Sandbox::User=root download debootstrap)
	if ! (cd "$work" && "${download[@]}") >/dev/null 2>&1; then
		update_package_lists # they may be too old to name a package that is still there
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
	# debootstrap mounts proc and sys in the tree and leaves them there when it is killed.
	awk -v tree="$1/" 'index($5, tree) == 1 { print $5 }' /proc/self/mountinfo | sort -r |
		while read -r mounted; do
			umount --lazy "$mounted"
		done
	rm -rf --one-file-system "$1"
}
