import { open } from 'node:fs/promises'

/**
 * Appends whole lines in one write: who reads the file meanwhile sees whole lines, and rarely the beginning of the next one. Creates the file
 * for its owner only. Rejects when not all was written: the rest of the last line is then missing.
 */
export async function appendLines(file: string, lines: string): Promise<void> {
  const handle = await open(file, 'a', 0o600)
  try {
    const bytes = Buffer.from(lines)
    const { bytesWritten } = await handle.write(bytes)
    if (bytesWritten < bytes.length) throw new Error(`only ${bytesWritten} of ${bytes.length} bytes could be written`)
  } finally {
    await handle.close()
  }
}
