/** The files of runs beside the database (file logs, summaries, raw logs): they count, and they go with their run. */
import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { fileNameOf } from '../part/file-name.ts'
import type { Upkeep } from '../part/upkeep.ts'

/** Those of the log file of a run. */
export function logNamesOf(run: string): string[] {
  return ['ndjson', 'summary.json', 'summary.json.tmp'].map((end) => `${fileNameOf(run)}.${end}`)
}

/** `dir` need not exist. */
export function withRunFiles(upkeep: Upkeep, dir: string): Upkeep {
  /** Size of all files, looked up now and then. */
  let size = { bytes: 0, until: 0 }

  async function fileBytes(): Promise<number> {
    if (performance.now() < size.until) return size.bytes
    let bytes = 0
    for (const name of await readdir(dir).catch(() => [])) {
      bytes += await stat(join(dir, name)).then(
        (file) => file.size,
        () => 0,
      )
    }
    size = { bytes, until: performance.now() + 60_000 }
    return bytes
  }

  async function removeFiles(run: string): Promise<void> {
    // `<run>.ndjson`, `<run>.summary.json`, `<run>.<step>.raw`.
    const names = (await readdir(dir).catch((): string[] => [])).filter((name) =>
      name.startsWith(`${fileNameOf(run)}.`),
    )
    for (const name of names) {
      const file = join(dir, name)
      size.bytes -= await stat(file).then(
        (found) => found.size,
        () => 0,
      )
      await rm(file, { force: true })
    }
  }

  return {
    ...upkeep,
    async size() {
      const { used, free } = await upkeep.size()
      return { used: used + (await fileBytes()), free }
    },
    async drop(run, options) {
      const dropped = await upkeep.drop(run, options)
      if (dropped) await removeFiles(run)
      return dropped
    },
  }
}
