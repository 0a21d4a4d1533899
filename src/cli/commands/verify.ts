import { createReadStream, existsSync } from 'node:fs'
import type { Entry } from '../../part/entry.ts'
import { createGrammar } from '../../part/grammar.ts'
import type { RunRow } from '../../part/log.ts'
import { createNdjsonReader, type NdjsonReader } from '../../record/ndjson.ts'
import { openAccess } from '../access.ts'

export async function verifyCommand(what: string, { data }: { data: string }): Promise<void> {
  let faults = 0
  let checked = 0
  const verify = async (name: string, entries: AsyncIterable<Entry>, mayBeOpen: boolean) => {
    const grammar = createGrammar()
    let count = 0
    const tell = (fault: string | undefined) => {
      if (fault === undefined) return
      faults++
      process.stdout.write(`${name}: ${fault}\n`)
    }
    for await (const entry of entries) {
      count++
      tell(grammar.check(entry))
    }
    tell(grammar.end({ open: mayBeOpen }))
    checked++
    process.stderr.write(`${name}: ${count} entries\n`)
  }

  if (existsSync(what)) {
    const reader = createNdjsonReader()
    await verify(what, entriesOf(what, reader), false)
    for (const { line, message } of reader.faults) {
      faults++
      process.stdout.write(`${what}:${line}: ${message}\n`)
    }
  } else {
    const access = await openAccess(data)
    for await (const { id, status } of what === 'all'
      ? everyRun(access)
      : [{ id: what, status: await access.status(what) }]) {
      await verify(id, access.read(id, 0, false), status === 'running' || status === 'suspended')
    }
    await access.close()
  }
  process.stderr.write(`${checked} checked, ${faults} ${faults === 1 ? 'fault' : 'faults'}\n`)
  process.exitCode = faults > 0 ? 1 : 0
}

async function* entriesOf(file: string, reader: NdjsonReader): AsyncGenerator<Entry> {
  for await (const chunk of createReadStream(file, 'utf8')) yield* reader.feed(String(chunk))
  yield* reader.end()
}

async function* everyRun(access: { list(query: { limit: number; before?: string }): Promise<RunRow[]> }) {
  let before: string | undefined
  for (;;) {
    const rows = await access.list({ limit: 200, ...(before === undefined ? undefined : { before }) })
    yield* rows
    if (rows.length < 200) return
    before = rows.at(-1)!.id
  }
}
