#!/usr/bin/env bash
# Searches OM(1) among five processes with SPIN, of the model beside this file, and with
# parley explore, of the machines, and prints a table. Needs spin, gcc and GNU time, which
# apt-get install spin gcc time brings, beside Go, and about 1 GiB of memory. Each search
# is made TIMES times, 3 unless given, on one core; the one with the least CPU time counts.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."

for tool in spin gcc /usr/bin/time go; do
	command -v "$tool" >/dev/null || { echo "docs/explanation/spin/run.sh: $tool is not installed" >&2; exit 1; }
done
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
go build -o "$made/parley" ./cmd/parley
(cd "$made" && spin -a -DN=5 "$OLDPWD/docs/explanation/spin/om1.pml" >/dev/null)

# least makes a command several times, and leaves what it printed when it took the least
# CPU time in $made/out, and in $seconds and $mebibytes what it took.
least() {
	seconds=
	for _ in $(seq "${TIMES:-3}"); do
		GOMAXPROCS=1 /usr/bin/time -o "$made/took" -f '%U %S %M' "$@" >"$made/now"
		read -r user system kibibytes <"$made/took"
		if awk -v least="${seconds:-1e9}" "BEGIN { exit !($user + $system < least) }"; then
			seconds=$(awk "BEGIN { print $user + $system }") mebibytes=$((kibibytes / 1024))
			mv "$made/now" "$made/out"
		fi
	done
}

# row prints a row: what, states, moves, errors, bytes of all states.
row() {
	awk -v what="$1" -v states="$2" -v moves="$3" -v verdict="$4" -v bytes="$5" -v s="$seconds" -v rss="$mebibytes" '
		function great(x, s) {
			for (x = sprintf("%.0f", x); length(x) > 3; x = substr(x, 1, length(x) - 3)) s = "," substr(x, length(x) - 2) s
			return x s
		}
		BEGIN {
			printf "| %s | %s | %s | %s | %.1f s | %s | %.0f | %d MiB |\n",
				what, verdict, great(states), great(moves), s, great(states / s), bytes / states, rss
		}'
}

# pan searches with a verifier that gcc makes with some options.
pan() {
	what=$1
	shift
	gcc -O2 -DSAFETY -DMEMLIM=16000 "$@" -o "$made/pan" "$made/pan.c"
	least "$made/pan" -m100000 -w22
	row "$what" "$(awk '/states, stored/ { print $1 }' "$made/out")" "$(awk '/ transitions / { print $1 }' "$made/out")" \
		"$(awk '/errors:/ { print ($NF == 0) ? "holds" : "broken" }' "$made/out")" \
		"$(awk '/actual memory usage for states|memory used for hash table/ { sum += $1 } END { print sum * 1048576 }' "$made/out")"
}

# parley searches with some flags.
parley() {
	what=$1
	shift
	least "$made/parley" explore om -n 5 -m 1 --workers 1 --json "$@"
	field() { sed -n "s/^  \"$1\": \"\{0,1\}\([a-z0-9]*\).*/\1/p" "$made/out"; }
	row "$what" "$(field states)" "$(field moves)" "$([ "$(field outcome)" = exhausted ] && echo holds || echo broken)" "$(field bytes)"
}

echo '| search | verdict | states | moves | CPU time | states a CPU second | bytes a state | most memory |'
echo '| --- | --- | --- | --- | --- | --- | --- | --- |'
pan 'SPIN, all orders' -DNOREDUCE
pan 'SPIN, partial-order reduction'
pan 'SPIN, all orders, collapse compression' -DNOREDUCE -DCOLLAPSE
pan 'SPIN, all orders, hash-compact' -DNOREDUCE -DHC4
parley '`parley explore --unreduced`' --unreduced
parley '`parley explore`'
