/** The files of runs beside the database (file logs, summaries, raw logs): they count, and they go with their run. */
import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Upkeep } from '../part/upkeep.ts'

/** The files of a run in this folder begin with this. */
export function fileNameOf(run: string): string {
  return encodeURIComponent(run)
}

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

  /**
   * Whether a raw log, `<run>.<step>.raw`, is that of another run. Ids and steps may have full stops: it belongs to the longest id that is a
   * run, if what is left is the path of a step.
   */
  async function isOfAnother(run: string, name: string): Promise<boolean> {
    const longer: string[] = []
    for (let at = name.indexOf('.', fileNameOf(run).length + 1); at >= 0; at = name.indexOf('.', at + 1)) {
      if (!/^\..*%2F.*\.raw$/u.test(name.slice(at))) break
      try {
        longer.push(decodeURIComponent(name.slice(0, at)))
      } catch {
        // No id.
      }
    }
    return (await upkeep.marks(longer)).some((mark) => mark !== undefined)
  }

  async function removeFiles(run: string): Promise<void> {
    const logs = new Set(logNamesOf(run))
    const names: string[] = []
    for (const name of await readdir(dir).catch((): string[] => [])) {
      const isRaw = name.startsWith(`${fileNameOf(run)}.`) && name.endsWith('.raw')
      if (logs.has(name) || (isRaw && !(await isOfAnother(run, name)))) names.push(name)
    }
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
