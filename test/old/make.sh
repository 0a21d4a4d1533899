#!/bin/sh
# Makes the data of an older build that stands beside this file: test/old/make.sh <folder of its sources, built>
#   git worktree add --detach /tmp/older "$(git log --before=2026-11-26T00:00:00 -1 --format=%H)"
#   cp -al node_modules /tmp/older/ && (cd /tmp/older && npm run build)
set -eu
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir agents
cp "$build/agents/assistant.yaml" "$build/agents/approve-first.yaml" agents/
millrace() { MILLRACE_DEMO_DELAY_MS=0 "$build/node_modules/.bin/node" "$build/bin/millrace.js" "$@"; }
run() { millrace run "$@" --format parts </dev/null | sed -n 's/.*"runId":"\([^"]*\)".*/\1/p' | head -1; }
told=$(run assistant -m 'What is 12*7? Say a word about blue whales.')
thread=$(millrace show "$told" --json | sed -n 's/.*"threadId": *"\([^"]*\)".*/\1/p' | head -1)
more=$(run assistant -m 'And in words?' --thread "$thread")
# The approval must be open on the day of the test.
echo 'export default { requestDeadlineMs: 3e11 }' >agents/millrace.config.mjs
MILLRACE_DEMO_DELAY_MS=0 "$build/node_modules/.bin/node" "$build/bin/millrace.js" serve agents --port 39417 >served 2>&1 &
server=$!
for _ in 1 2 3 4 5 6 7 8 9 10; do grep -q 'is ready' served && break; sleep 1; done
curl -s -o /dev/null http://127.0.0.1:39417/api/chat -H 'Content-Type: application/json' \
  -d '{"agentId": "approve-first", "id": "asked", "messages": [{"id": "m", "role": "user", "content": "What is 12*7?"}]}'
kill "$server" && wait "$server" || true
waits=$(millrace ps --status suspended --json | sed -n 's/.*"id": *"\([^"]*\)".*/\1/p' | head -1)
rm -rf "$here/data" && mkdir "$here/data"
for id in "$told" "$more" "$waits"; do millrace export "$id" -o "$here/data/$id.ndjson"; done
printf '{"told":"%s","more":"%s","waits":"%s","thread":"%s"}\n' "$told" "$more" "$waits" "$thread" > "$here/data/ids.json"
# What is in the WAL belongs to it.
millrace query 'SELECT 1' >/dev/null
test ! -s .millrace/millrace.db-wal
gzip -9 -c .millrace/millrace.db > "$here/data/millrace.db.gz"
cp agents/*.yaml "$here/data/"
