/** Bytes that are read several times: in memory if they are few, else in a file that nobody else sees. */
import { messageOf, MillraceError } from '../../part/error.ts'

/** More than this goes into a file. */
const mostInMemory = 1024 * 1024
const pieceSize = 256 * 1024

export interface Spool {
  /** Resolves when more may be added. */
  add(bytes: Uint8Array): Promise<void>
  /** The added data, in pieces. Each is valid until the next one is requested. */
  read(): AsyncGenerator<Uint8Array, void, void>
  /** Gives the file up. */
  close(): Promise<void>
}

type Handle = Awaited<ReturnType<(typeof import('node:fs/promises'))['open']>>

export function createSpool(): Spool {
  let held: Uint8Array[] = []
  let length = 0
  let file: { handle: Handle; path: string } | undefined

  async function write(bytes: Uint8Array): Promise<void> {
    for (let done = 0; done < bytes.length;) done += (await file!.handle.write(bytes, done)).bytesWritten
  }

  /** Without files everything stays in memory. */
  async function spill(): Promise<void> {
    file = await openFile()
    if (file === undefined) return
    const pieces = held
    held = []
    for (const piece of pieces) await write(piece)
  }

  return {
    async add(bytes) {
      length += bytes.length
      try {
        if (file !== undefined) return await write(bytes)
        held.push(bytes)
        if (length > mostInMemory) await spill()
      } catch (error) {
        const cure = 'Make room in its temporary folder, or set TMPDIR.'
        const message = `The server cannot keep the recording while it is checked. ${cure}`
        throw new MillraceError('store-failed', message, { status: 503, detail: messageOf(error), cause: error })
      }
    },
    async *read() {
      if (file === undefined) return yield* held
      const buffer = new Uint8Array(pieceSize)
      for (let at = 0; at < length;) {
        const { bytesRead } = await file.handle.read(buffer, 0, pieceSize, at)
        if (bytesRead === 0) return
        yield buffer.subarray(0, bytesRead)
        at += bytesRead
      }
    },
    async close() {
      held = []
      const open = file
      file = undefined
      if (open === undefined) return
      await open.handle.close().catch(() => undefined)
      await remove(open.path)
    },
  }
}

async function openFile(): Promise<{ handle: Handle; path: string } | undefined> {
  const builtin = globalThis.process?.getBuiltinModule
  if (builtin === undefined) return undefined
  const [{ open }, { tmpdir }, { join }] = [builtin('node:fs/promises'), builtin('node:os'), builtin('node:path')]
  const path = join(tmpdir(), `millrace-import-${crypto.randomUUID()}`)
  const handle = await open(path, 'wx+', 0o600)
  // Where a system can, the file has no name from here on: a crash leaves nothing.
  if (process.platform !== 'win32') await remove(path)
  return { handle, path }
}

async function remove(path: string): Promise<void> {
  await process
    .getBuiltinModule('node:fs/promises')
    .rm(path, { force: true })
    .catch(() => undefined)
}
