import type { Entry } from '../../part/entry.ts'
import { MillraceError } from '../../part/error.ts'
import { openAccess } from '../access.ts'

export interface LogsFlags {
  follow?: boolean
  since: string
  type?: string[]
  json?: boolean
  data: string
}

export async function logsCommand(run: string, { follow = false, since, type, json, data }: LogsFlags): Promise<void> {
  if (!/^\d+$/u.test(since)) throw new MillraceError('usage', `--since must be a whole number, not "${since}".`)
  const types = type === undefined ? undefined : new Set(type.flatMap((each) => each.split(',')))
  const access = await openAccess(data)
  for await (const entry of access.read(run, Number(since), follow)) {
    if (types !== undefined && !types.has(entry.type)) continue
    const line = json ? JSON.stringify(entry) : toLine(entry)
    if (!process.stdout.write(`${line}\n`)) await new Promise((resolve) => process.stdout.once('drain', resolve))
  }
  await access.close()
}

function toLine({ seq, timestamp, step, type, ...rest }: Entry): string {
  const time = new Date(timestamp).toISOString().slice(11, 23)
  const head = `${String(seq).padStart(5)}  ${time}  ${type.padEnd(17)}  ${step.padEnd(16)}  `
  const text = JSON.stringify(rest)
  // On a terminal an entry is one line to the eye as well.
  const room = Math.max(20, (process.stdout.columns || head.length + 160) - head.length)
  const detail = text === '{}' ? '' : text.length > room ? `${text.slice(0, room - 1)}…` : text
  return `${head}${detail}`.trimEnd()
}
