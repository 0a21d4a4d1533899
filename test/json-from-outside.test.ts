/** JSON text from outside is parsed by `parseJson` of `src/part/json.ts`, which bounds its depth. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

/** Where `JSON.parse`, or `parseFinite`, which bounds no depth, stands, and why that does no harm. */
const allowed: Record<string, string> = {
  'part/json.ts': 'parseJson itself',
  'models/decode/answer-reader.ts': 'an event of a model: what is recorded of it is bounded there',
  'models/decode/fields.ts': 'a text of such an event',
  'models/direct-model.ts': 'the body of a request that the package has made',
  'script/guest.ts': 'code that runs inside the sandbox',
  'server/http/body.ts': 'its bound is a little higher, for what stands around the values',
  'store/encode.ts': 'what the store wrote, bounded right after',
  'store/ndjson.ts': 'a line of a log, bounded right after',
  'store/redis/texts.ts': 'lists of hashes that the store wrote',
  'store/redis/stored-row.ts': 'the rows that the store has made',
  'store/sqlite/batch-index.ts': 'lists of ids that the store wrote',
  'store/sqlite/runs.ts': 'columns that the store wrote: counts, an error, open requests',
  'store/shared-texts.ts': 'what the store wrote, bounded right after; lists by their size and depth',
  'store/sqlite/texts.ts': 'lists of hashes that the store wrote',
  'store/tables/facts.ts': 'names that the store wrote',
  'store/tables/records.ts': 'a line that the store wrote, sent on as it is',
  'tools/mcp/message-lines.ts':
    'messages of MCP servers, as the SDK reads them: schemas, questions and results are bounded where they are used',
  'record/log-tail.ts': 'a line of our own of which one number is read',
  'server/serve.ts': 'an answer of our own',
  'server/server-file.ts': 'a file of our own, read field by field',
  'cli/commands/init.ts': "the user's package.json, of which one field is read",
  'client/chat-transport.ts': 'frames of a Millrace server, for useChat, which reads them as they are',
  'client/follow.ts': "a Millrace server's own frames, bounded there",
  'client/socket-link.ts': 'what this client asks, which it has just written',
}

test('no other file parses JSON without the bound', () => {
  const root = new URL('../src', import.meta.url).pathname
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(
    (name) => name.endsWith('.ts') && !/\.(?:test|contract)\.ts$|(?:^|\/)testing\//u.test(name),
  )
  expect(files.length).toBeGreaterThan(100)
  const found = files.flatMap((given) => {
    const name = given.replaceAll('\\', '/')
    const source = readFileSync(join(root, name), 'utf8').replaceAll(/\/\*[^]*?\*\/|\/\/.*/gu, '')
    // Commands and the client read a Millrace server's own answers, which are bounded there.
    const readsOwn = /^(?:cli|client)\//u.test(name)
    const parses = /\bJSON\.parse\b|\bparseFinite\(/u.test(source) || (!readsOwn && /(?<!\bz)\.json\(\)/u.test(source))
    return parses ? [name] : []
  })
  expect(found.toSorted()).toEqual(Object.keys(allowed).toSorted())
})
