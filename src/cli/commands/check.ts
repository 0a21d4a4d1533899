import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { MillraceError } from '../../part/error.ts'
import { createRegistry, knownNames } from '../../library/registry.ts'
import { formatFaults, parsePipeline, PipelineError } from '../../pipeline/parse.ts'
import type { Fault, Known } from '../../pipeline/pipeline.ts'
import { loadConfig } from '../../server/load-config.ts'

export async function checkCommand(paths: string[], { json = false }: { json?: boolean }): Promise<void> {
  const files = paths.flatMap(filesIn)
  if (files.length === 0) throw new MillraceError('usage', `There is no YAML file in ${paths.join(', ')}.`)
  const known = new Map<string, Known>()
  const found: ({ file: string } & Fault)[] = []
  for (const file of files) {
    const dir = dirname(file)
    const names = known.get(dir) ?? knownNames(createRegistry(await loadConfig(dir), process.env))
    known.set(dir, names)
    try {
      parsePipeline(readFileSync(file, 'utf8'), names)
    } catch (error) {
      if (!(error instanceof PipelineError)) throw error
      found.push(...error.faults.map((fault) => ({ file, ...fault })))
      if (!json) process.stdout.write(`${formatFaults(file, error.faults)}\n`)
    }
  }
  if (json) process.stdout.write(`${JSON.stringify({ files: files.length, faults: found }, null, 2)}\n`)
  const plural = (n: number, what: string) => `${n} ${what}${n === 1 ? '' : 's'}`
  process.stderr.write(`${plural(files.length, 'file')} checked, ${plural(found.length, 'fault')}\n`)
  process.exitCode = found.length > 0 ? 1 : 0
}

function filesIn(path: string): string[] {
  if (!existsSync(path)) throw new MillraceError('usage', `There is no file or folder ${path}.`)
  if (!statSync(path).isDirectory()) return [path]
  return readdirSync(path)
    .filter((name) => /\.ya?ml$/u.test(name))
    .toSorted()
    .map((name) => join(path, name))
}
