/** `millrace import`: the output of a CLI agent, or a log of Millrace, becomes a run in the data folder, or on a server. */
import type { CommandContext } from '../context.ts'
import { MillraceError } from '../../part/error.ts'
import type { Store } from '../../part/log.ts'
import type { CliName } from '../../ingest/cli-names.ts'
import { createRedactor } from '../../fold/redact.ts'
import { openStore } from '../../project/open-store.ts'
import { secretValues } from '../../project/secrets.ts'
import { createImport, type Import } from '../../record/transfer/import.ts'
import { lockData } from '../../server/data-lock.ts'
import { encodeEntries } from '../../store/encode.ts'
import { placeOf, type Place, type Where } from '../where.ts'
import { importCli } from '../import/import-cli.ts'
import { findServer, type LiveServer } from '../live-server.ts'
import { printable } from '../printable.ts'
import { createRequest } from '../remote-request.ts'
import { openShared } from '../shared-store.ts'
import { openSource, readSource } from '../transcript-source.ts'

export interface ImportFlags extends Where {
  from?: CliName | 'ndjson'
  message?: string
}

const usage = 'Pass a file with the output of a CLI agent, or with a log of Millrace.'

interface Told {
  id: string
  agent: string
  status: string
  lastSeq: number
  isNew: boolean
}

export async function importCommand(
  context: CommandContext,
  file: string,
  { from, message, ...where }: ImportFlags,
): Promise<void> {
  const { data } = where
  const place = await placeOf(context, where)
  if (place.type === 'folder' && data === 'none')
    throw new MillraceError('usage', 'Runs with --data none are not kept. Name a folder.')
  const source = openSource(context, file, usage)
  const chunks: Uint8Array[] = []
  let format = from
  for await (const { format: told, chunk } of readSource(source, from)) {
    format = told
    chunks.push(chunk)
  }
  if (format === undefined || chunks.every(({ length }) => length === 0))
    throw new MillraceError('unknown-format', `${source.name} is empty.`)
  const lines = format === 'ndjson' ? chunks : [await transcript(context, Buffer.concat(chunks), format, message)]
  const told =
    place.type === 'server' ? await send(place.server, lines) : await keep(context, place, lines, source.name)
  const entries = `${told.agent}, ${told.lastSeq} entries, ${told.status}`
  context.stderr.write(printable(`${told.isNew ? 'imported' : 'imported before'}: ${entries}\n`))
  context.stdout.write(`${printable(told.id)}\n`)
}

/** The run of a transcript, as NDJSON. */
async function transcript(
  context: CommandContext,
  bytes: Buffer,
  cli: CliName,
  message: string | undefined,
): Promise<Uint8Array> {
  const { id, entries } = await importCli(context, { cli, bytes, message })
  return Buffer.from(`${encodeEntries(id, entries)}\n`)
}

/** Writes into the shared store, or into the data folder, or asks the server that has locked the folder meanwhile. */
async function keep(
  context: CommandContext,
  place: Exclude<Place, { type: 'server' }>,
  lines: Uint8Array[],
  name: string,
): Promise<Told> {
  const secrets = secretValues({}, context.env)
  const importing = createImport({ name, redactor: () => createRedactor(secrets) })
  try {
    for (const piece of lines) await importing.feed(piece)
    // What is refused must not create a data folder.
    importing.end()
    if (place.type === 'store') return await finish(importing, await openShared(context, place.url))
    const { data } = place
    const release = lockData(context.path(data), 'shared')
    if (release === undefined) {
      const server = await findServer(context, data)
      if (server !== undefined) return await send(server, lines)
      const cure = 'Stop it, or import into another folder with --data.'
      throw new MillraceError('data-in-use', `A server uses the data folder ${data} but does not answer. ${cure}`)
    }
    try {
      return await finish(importing, await openStore({ data: context.path(data) }))
    } finally {
      release()
    }
  } finally {
    await importing.close()
  }
}

async function finish(importing: Import, store: Store): Promise<Told> {
  try {
    const { isNew, row } = await importing.finish(store)
    return { ...row, isNew }
  } finally {
    await store.close()
  }
}

async function send(server: LiveServer, lines: Uint8Array[]): Promise<Told> {
  const request = createRequest(server.url, server)
  const response = await request('/api/runs/import', {
    method: 'POST',
    type: 'application/x-ndjson',
    body: Buffer.concat(lines),
  })
  return { ...((await response.json()) as Omit<Told, 'isNew'>), isNew: response.status === 201 }
}
