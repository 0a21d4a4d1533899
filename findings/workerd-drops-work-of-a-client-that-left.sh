#!/usr/bin/env bash
# Work that one request has begun and another waits for, in Cloudflare's runtime. One would guess that `setImmediate` runs its function, as in Node,
# or at least that only the request that called it is concerned.
#
# workerd 1.20261117.1 drops it, without an error, when the client of that request leaves before the function has run. State of the isolate that waits for the function
# ("a flush is scheduled, so I need not schedule another") waits for good, and so does every later request. A microtask runs.
#
# Why it matters here: a store in memory wakes its readers once for all that is appended in a turn. One client that left made all later runs of
# the isolate silent. src/store/memory-store.ts wakes them with a microtask where src/async/bound-to-request.ts says that work ends with its request.
#
# Exits with 1 when this changes.
set -eu
version=1.20261117.1
folder=$(mktemp -d)
trap 'kill $! 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"
echo '{}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts "workerd@$version"
cat >worker.js <<'END'
const seen = { begun: 0, microtasks: 0, immediates: 0 }
async function talk(writer) {
  for (;;) {
    seen.begun++
    queueMicrotask(() => seen.microtasks++)
    setImmediate(() => seen.immediates++)
    await writer.write(new TextEncoder().encode('hello'))
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

export default {
  async fetch(request) {
    if (new URL(request.url).pathname === '/seen') return Response.json(seen)
    const { readable, writable } = new TransformStream()
    void talk(writable.getWriter())
    return new Response(readable)
  },
}
END
cat >worker.capnp <<'END'
using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = .main)],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")],
);
const main :Workerd.Worker = (modules = [(name = "worker.js", esModule = embed "worker.js")], compatibilityDate = "2026-11-01");
END
mkfifo told
node_modules/@cloudflare/workerd-*/bin/workerd serve worker.capnp --control-fd=3 3>told 2>err.log &
read -r line <told
port=$(sed -n 's/.*"port":\([0-9]*\).*/\1/p' <<<"$line")
# Which write finds that the client has left, and whether the function has run by then, is chance.
for _ in $(seq 30); do curl -sN -m 0.2 "http://127.0.0.1:$port/" >/dev/null || true; done
sleep 1
seen=$(curl -s "http://127.0.0.1:$port/seen")
read -r begun microtasks immediates <<<"$(tr -dc '0-9,' <<<"$seen" | tr , ' ')"
echo "workerd $version, after 30 clients have left: of $begun times $microtasks microtasks and $immediates immediates have run"
[ "$begun" -gt 1 ] && [ "$microtasks" = "$begun" ] && [ "$immediates" -lt "$begun" ] || { cat err.log && echo 'This has changed.' && exit 1; }
