# Creates the single commit of a mount's repository from the files as they were mounted, because the agent may
# have edited them since. Two concurrent calls do no harm: each has its own index, equal bytes give equal
# objects, and the branch is written last.
repository=$1 git=$2
base=/run/codebox/git-base/${repository##*/}
pending=$repository/codebox-pending
index=$repository/codebox-index.$$

if command -v flock >/dev/null 2>&1; then
	exec 9>"$repository/codebox-lock"
	flock 9
fi
[ -e "$pending" ] || exit 0
read -r date <"$pending"

run() {
	env -i PATH=/usr/bin:/bin HOME=/nonexistent LC_ALL=C GIT_CONFIG_SYSTEM=/etc/gitconfig GIT_CONFIG_GLOBAL=/dev/null \
		GIT_DIR="$repository" GIT_WORK_TREE="$base" GIT_INDEX_FILE="$index" \
		GIT_AUTHOR_NAME=codebox GIT_AUTHOR_EMAIL=codebox@localhost GIT_AUTHOR_DATE="@$date +0000" \
		GIT_COMMITTER_NAME=codebox GIT_COMMITTER_EMAIL=codebox@localhost GIT_COMMITTER_DATE="@$date +0000" "$git" "$@"
}

# git compares the content of a file only if its modification time is not older than the index. The index gets a
# time before the guest could write, so that git also finds an edit that changes neither the size nor the second of
# the modification time.
# With a threshold of zero bytes git writes all contents into one pack: a tree of 60,000 files takes two
# inodes of the guest's scratch storage.
baseline() {
	cd "$base" &&
		run -c core.bigFileThreshold=0 -c core.compression=1 -c advice.addEmbeddedRepo=false add -A &&
		tree=$(run write-tree) &&
		commit=$(run commit-tree -m 'What was mounted' "$tree") &&
		touch -d "@$((date - 1))" "$index" &&
		mv "$index" "$repository/index" &&
		run update-ref HEAD "$commit"
}

if ! said=$(baseline 2>&1); then
	rm -rf "$index" "$index.lock" "$repository/index" "$repository/objects/"* 2>/dev/null
	echo "git: the mounted files could not be committed, so this repository has no commits: $(echo "$said" | tail -n 1)" >&2
fi
rm -f "$pending"
