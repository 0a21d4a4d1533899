#!/bin/sh
# Guess: a token is about four characters, JSON somewhat less; so a prompt can be estimated by its length, with one number for all of it.
# What happens: in logs full of times, addresses and numbers a token is about two characters, half of what one would take. And the two
# tokenizers of OpenAI differ where the other rates do not: Chinese takes almost half as many tokens again in cl100k as in o200k, English prose the same.
# Why it matters here: what estimates whether a window is full must not be too low, or the provider refuses the prompt. Logs are what tools return most,
# so they have a rate of their own (src/models/estimate-tokens.ts).
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund gpt-tokenizer@3.4.0 >/dev/null
cat > count.mjs <<'JS'
import { countTokens as o200k } from 'gpt-tokenizer/encoding/o200k_base'
import { countTokens as cl100k } from 'gpt-tokenizer/encoding/cl100k_base'
const two = (n) => String(n % 60).padStart(2, '0')
const log = Array.from(
  { length: 200 },
  (_, i) =>
    `2026-03-${two((i % 27) + 1)}T${two(i % 24)}:${two(i * 7)}:${two(i * 13)}.${100 + ((i * 37) % 900)}Z 10.${i % 256}.${(i * 31) % 256}.${(i * 17) % 256} GET /v2/items/${100000 + i * 7919} ${i % 9 ? 200 : 404} ${(i * 193) % 5000} ${(i * 7) % 900}ms`,
).join('\n')
const prose =
  'The harbour was quiet when the first boats came back, and nobody on the pier asked how the night had been. They tied the ropes, carried the nets up the stairs, and went home to sleep while the town woke around them. '.repeat(
    20,
  )
const chinese = '清晨的港口很安静，第一批渔船回来了，码头上没有人问昨夜过得怎么样。他们系好缆绳，把渔网搬上台阶，然后回家睡觉。'.repeat(20)
const rate = (text, count) => text.length / count(text)
const show = (name, text) => console.log(`${name}: ${rate(text, o200k).toFixed(2)} characters a token in o200k, ${rate(text, cl100k).toFixed(2)} in cl100k`)
show('logs', log)
show('prose', prose)
show('Chinese', chinese)
const more = cl100k(chinese) / o200k(chinese)
console.log(`Chinese in cl100k: ${more.toFixed(2)} times the tokens`)
if (!(rate(log, o200k) < 2.4 && rate(prose, o200k) > 4 && more > 1.15)) process.exit(1)
JS
echo "gpt-tokenizer $(node -p "require('gpt-tokenizer/package.json').version"), Node $(node -v)"
node count.mjs || { echo 'changed: the rates are others'; exit 1; }
