import { messageOf } from '../part/error.ts'
import { fileNameOf } from '../part/file-name.ts'

/** The stdout of a process as a file, byte for byte: `<data>/runs/<run>.<step>.raw`. A second attempt of a step is appended. */
export interface RawLog {
  /** The promise settles when more may be written. */
  write(bytes: Uint8Array): Promise<void> | undefined
  close(): Promise<void>
}

/** `onLost` is called once, when it cannot be written any more. */
export async function openRawLog(
  data: string,
  { run, step, onLost }: { run: string; step: string; onLost(why: string): void },
): Promise<RawLog> {
  const { mkdir, open } = process.getBuiltinModule('node:fs/promises')
  const { join } = process.getBuiltinModule('node:path')
  const folder = join(data, 'runs')
  await mkdir(folder, { recursive: true, mode: 0o700 })
  // Ids may come from a program or another machine.
  const file = await open(join(folder, `${fileNameOf(run)}.${fileNameOf(step)}.raw`), 'a', 0o600)
  let last = Promise.resolve()
  let waiting = 0
  let isLost = false

  async function append(bytes: Uint8Array): Promise<void> {
    try {
      if (!isLost) await file.appendFile(bytes)
    } catch (error) {
      isLost = true
      onLost(messageOf(error))
    }
    waiting -= bytes.length
  }

  return {
    write(bytes) {
      waiting += bytes.length
      last = last.then(() => append(bytes))
      return waiting > mostWaiting ? last : undefined
    },
    async close() {
      await last
      await file.close()
    },
  }
}

/** Bytes that may wait to be written before the process is no longer read. */
const mostWaiting = 1_000_000
