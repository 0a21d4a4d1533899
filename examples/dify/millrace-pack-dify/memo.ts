/** A file for what the next call of a step must know, because the engine keeps nothing for a step that waits. */
import { createHash } from 'node:crypto'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'

export function createMemo<T>(folder: string, ...key: unknown[]) {
  const file = `${folder}/${createHash('sha256').update(JSON.stringify(key)).digest('hex')}.json`
  return {
    read: async () => JSON.parse(await readFile(file, 'utf8').catch(() => 'null')) as T | null,
    async write(value: T): Promise<void> {
      await mkdir(folder, { recursive: true })
      await writeFile(`${file}.new`, JSON.stringify(value), { mode: 0o600 })
      await rename(`${file}.new`, file)
    },
    clear: () => rm(file, { force: true }),
  }
}
