/** The end of a file with one entry per line, which a crash may have cut off. */
import { open } from 'node:fs/promises'

/** The `seq` of the last complete line. Removes an incomplete line after it, and empties a file without a valid last line. */
export async function readTail(file: string): Promise<{ seq: number; torn: boolean }> {
  const handle = await open(file, 'r+').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (handle === undefined) return { seq: 0, torn: false }
  try {
    const { size } = await handle.stat()
    for (let length = Math.min(size, 65_536); ; length = Math.min(size, length * 8)) {
      const { buffer } = await handle.read(Buffer.alloc(length), 0, length, size - length)
      const end = buffer.lastIndexOf(10) + 1
      const start = end < 2 ? 0 : buffer.lastIndexOf(10, end - 2) + 1
      // The line may start before this buffer.
      if (start === 0 && length < size) continue
      const seq = seqOf(buffer.toString('utf8', start, end))
      const whole = seq === 0 ? 0 : size - length + end
      if (whole < size) await handle.truncate(whole)
      return { seq, torn: whole < size }
    }
  } finally {
    await handle.close()
  }
}

function seqOf(line: string): number {
  try {
    return Number((JSON.parse(line) as { seq?: unknown }).seq) || 0
  } catch {
    return 0
  }
}

/**
 * Appends whole lines in one write: a reader of the file sees whole lines, and rarely the beginning of the next one. Only the
 * owner may read the file, also one that was there before. Rejects when not all was written: the rest of the last line is then missing.
 */
export async function appendLines(file: string, lines: string): Promise<void> {
  const handle = await open(file, 'a', 0o600)
  try {
    if (((await handle.stat()).mode & 0o077) !== 0) await handle.chmod(0o600).catch(() => undefined)
    const bytes = Buffer.from(lines)
    const { bytesWritten } = await handle.write(bytes)
    if (bytesWritten < bytes.length) throw new Error(`only ${bytesWritten} of ${bytes.length} bytes could be written`)
  } finally {
    await handle.close()
  }
}
