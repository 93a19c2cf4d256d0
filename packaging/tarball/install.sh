#!/bin/sh
# Installs WP Codebox from its unpacked tarball, or removes it.
#
#   ./install.sh [--prefix DIR]              into DIR/lib/wp-codebox, with links in DIR/bin
#   ./install.sh --uninstall [--prefix DIR]  removes both; state, bundles and caches stay
#
# DIR is /usr/local for root and ~/.local for other users. Nothing is written before every file has its
# checksum from SHA256SUMS and the programs run on this system.
set -eu
umask 022

die() { printf 'install.sh: error: %s\n' "$*" >&2; exit 1; }

here=$(cd "$(dirname "$0")" && pwd)
if [ "$(id -u)" = 0 ]; then prefix=/usr/local; else prefix=${HOME:?set HOME, or name a directory with --prefix}/.local; fi
work=install
while [ $# -gt 0 ]; do
	case $1 in
		--prefix)
			case ${2:-} in /*) prefix=${2%/} ;; *) die "--prefix needs an absolute directory, such as /opt/wp-codebox" ;; esac
			shift 2
			;;
		--uninstall) work=uninstall; shift ;;
		*) die "unknown argument '$1'; use --prefix DIR or --uninstall" ;;
	esac
done
lib=$prefix/lib/wp-codebox

if [ "$work" = uninstall ]; then
	[ -d "$lib" ] || die "$lib does not exist; name the directory of the installation with --prefix"
	[ -f "$lib/wp-codebox-launch" ] || die "$lib has no wp-codebox-launch, so it is not an installation of WP Codebox; remove it by hand"
	for name in wp-codebox codebox; do
		if [ "$(readlink "$prefix/bin/$name" || true)" = ../lib/wp-codebox/wp-codebox ]; then rm -f "$prefix/bin/$name"; fi
	done
	rm -rf "$lib"
	echo "removed $lib; state and bundles stay (~/.local/state/wp-codebox, for root and users of sites /var/lib/wp-codebox)"
	exit 0
fi

[ "$(uname -s)-$(uname -m)" = Linux-x86_64 ] || die "these programs are for Linux on x86_64, this is $(uname -s) on $(uname -m); build from the sources"
( cd "$here" && sha256sum --check --quiet --strict SHA256SUMS ) >&2 || die 'a file does not have its checksum; download and unpack the tarball again'
said=$("$here/files/wp-codebox" --version 2>&1) || die "wp-codebox does not run on this system ($(printf %s "$said" | head -n 1)); it needs the GNU C library 2.31 or newer"
for name in wp-codebox codebox; do
	link=$prefix/bin/$name
	if [ -e "$link" ] || [ -L "$link" ]; then
		[ "$(readlink "$link" || true)" = ../lib/wp-codebox/wp-codebox ] || die "$link is another program; remove it, or choose another --prefix"
	fi
done

mkdir -p "$prefix/lib" "$prefix/bin"
rm -rf "$lib.new"
cp -R "$here/files" "$lib.new"
rm -rf "$lib"
mv "$lib.new" "$lib"
for name in wp-codebox codebox; do ln -sfn ../lib/wp-codebox/wp-codebox "$prefix/bin/$name"; done

echo "installed $said in $lib"
case :$PATH: in *:"$prefix/bin":*) ;; *) echo "add $prefix/bin to your PATH" ;; esac
echo "next: wp-codebox doctor"
for extension in "$lib"/extensions/*; do
	[ -d "$extension" ] || continue
	echo "for a site with a PHP of API version ${extension##*/}, in php.ini: extension = $extension/wp_codebox.so"
done
