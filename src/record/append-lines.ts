import { open } from 'node:fs/promises'

/**
 * Appends whole lines in one write: who reads the file meanwhile sees whole lines, and rarely the beginning of the next one. Only the
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
