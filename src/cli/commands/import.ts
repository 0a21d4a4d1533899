/** `millrace import`: the output of a CLI agent, or a log of Millrace, becomes a run in the data folder. */
import { MillraceError } from '../../part/error.ts'
import type { RunRow, Store } from '../../part/log.ts'
import type { CliName } from '../../ingest/cli-names.ts'
import { openStore } from '../../project/project.ts'
import { lockData } from '../../server/data-lock.ts'
import { checkData } from '../folders.ts'
import { importCli, type ImportedRun } from '../import/import-cli.ts'
import { importNdjson } from '../import/import-ndjson.ts'
import { findServer } from '../live-server.ts'
import { printable } from '../printable.ts'
import { openSource, readSource } from '../transcript-source.ts'

export interface ImportFlags {
  from?: CliName | 'ndjson'
  message?: string
  data: string
}

const usage = 'Pass a file with the output of a CLI agent, or with a log of Millrace.'

export async function importCommand(file: string, { from, message, data }: ImportFlags): Promise<void> {
  checkData(data)
  if (data === 'none') throw new MillraceError('usage', 'Runs with --data none are not kept. Name a folder.')
  const source = openSource(file, usage)
  const chunks: Uint8Array[] = []
  let format = from
  for await (const { format: told, chunk } of readSource(source, from)) {
    format = told
    chunks.push(chunk)
  }
  const bytes = Buffer.concat(chunks)
  if (format === undefined || bytes.length === 0) throw new MillraceError('unknown-format', `${source.name} is empty.`)
  const read = format === 'ndjson' ? importNdjson(bytes, source.name) : await importCli({ cli: format, bytes, message })
  const release = lockData(data, 'shared')
  if (release === undefined) throw await inUse(data)
  const store = openStore(data)
  try {
    await keep(store, read)
  } finally {
    await store.close()
    release()
  }
}

/** All entries in one write: a run is imported whole, or not at all. */
async function keep(store: Store, { id, entries, view }: ImportedRun): Promise<void> {
  const known = await store.runs.get(id)
  if (known === undefined) await store.log.append(id, 1, entries, () => view)
  else if (known.lastSeq !== entries.length) throw different(known)
  const row = (await store.runs.get(id))!
  const told = `${row.agent}, ${row.lastSeq} entries, ${row.status}`
  process.stderr.write(printable(`${known === undefined ? 'imported' : 'imported before'}: ${told}\n`))
  process.stdout.write(`${printable(id)}\n`)
}

function different({ id, lastSeq }: RunRow): MillraceError {
  const cure = 'Import it into another folder with --data.'
  return new MillraceError('run-exists', `There is another run ${id}, with ${lastSeq} entries. ${cure}`)
}

async function inUse(data: string): Promise<MillraceError> {
  const server = await findServer(data)
  const who = server === undefined ? 'A server' : `The server at ${server.url}`
  const cure = 'Stop it, or import into another folder with --data.'
  return new MillraceError('data-in-use', `${who} uses the data folder ${data}. ${cure}`)
}
