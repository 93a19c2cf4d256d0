# Makes the one commit of a mount's repository, of what was mounted: the agent may have edited since.
# Two at once do no harm: each has an index of its own, equal bytes make equal objects, and the branch comes last.
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

# Above the threshold of zero bytes all contents go into one pack: a tree of 60,000 files takes two inodes of the guest's scratch.
baseline() {
	cd "$base" &&
		run -c core.bigFileThreshold=0 -c core.compression=1 -c advice.addEmbeddedRepo=false add -A &&
		tree=$(run write-tree) &&
		commit=$(run commit-tree -m 'What was mounted' "$tree") &&
		mv "$index" "$repository/index" &&
		run update-ref HEAD "$commit"
}

if ! said=$(baseline 2>&1); then
	rm -rf "$index" "$index.lock" "$repository/index" "$repository/objects/"* 2>/dev/null
	echo "git: what was mounted could not be committed, so this repository has no commits: $(echo "$said" | tail -n 1)" >&2
fi
rm -f "$pending"
