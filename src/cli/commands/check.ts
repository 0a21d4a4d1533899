import { existsSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { CommandContext } from '../context.ts'
import { messageOf, MillraceError } from '../../part/error.ts'
import { formatFaults } from '../../pipeline/parse.ts'
import type { Fault } from '../../pipeline/pipeline.ts'
import type { Endpoint } from '../../models/resolver.ts'
import type { AgentError } from '../../project/agents-folder.ts'
import { parseEndpoint, readAgents, readMcpFaults } from '../../project/project.ts'
import { agentFiles, initCure } from '../folders.ts'
import { forStream, printable } from '../printable.ts'
import { paint } from '../style.ts'

export interface CheckFlags {
  json?: boolean
  endpoint: string[]
}

export async function checkCommand(
  context: CommandContext,
  paths: string[],
  { json = false, endpoint }: CheckFlags,
): Promise<void> {
  const endpoints = endpoint.map(parseEndpoint)
  const files = [...new Set(paths.flatMap((path) => filesIn(context, path)))]
  if (files.length === 0) {
    throw new MillraceError('usage', `There is no YAML file in ${paths.join(', ')}. ${initCure(context, paths[0]!)}.`)
  }
  const found: ({ file: string } & Fault)[] = []
  const failures: unknown[] = []
  const servers: { folder: string; message: string }[] = []
  // Files are checked together with their folder: an agent may call the others in it.
  for (const [dir, inside] of Map.groupBy(files, (file) => dirname(file))) {
    const errors = await errorsIn(context, dir, endpoints, failures)
    servers.push(...(await serverFaults(context, dir, json)))
    const names = new Set(inside.map((file) => basename(file)))
    for (const { file, faults } of errors) {
      const fromPack = file.startsWith('pack:')
      if (!fromPack && !names.has(file)) continue
      const path = fromPack ? file : join(dir, file)
      found.push(...faults.map((fault) => ({ file: path, ...fault })))
      if (!json) context.stdout.write(`${printable(formatFaults(path, faults))}\n`)
    }
  }
  if (json)
    context.stdout.write(
      `${forStream(JSON.stringify({ files: files.length, faults: found, ...(servers.length > 0 && { servers }) }, null, 2), context.stdout)}\n`,
    )
  const plural = (n: number, what: string) => `${n} ${what}${n === 1 ? '' : 's'}`
  const { stderr } = context
  const count = found.reduce((sum, { more = 1 }) => sum + more, servers.length)
  const verdict =
    count === 0 ? paint(context, 'green', 'no errors', stderr) : paint(context, 'red', plural(count, 'error'), stderr)
  // A folder whose config cannot be loaded must not hide the errors in other folders.
  if (failures.length > 0) throw asOne(failures)
  stderr.write(`${plural(files.length, 'file')} checked, ${verdict}\n`)
  context.exitCode = count > 0 ? 1 : 0
}

/** MCP servers that do not start. What is wrong with tools of the others is only told. */
async function serverFaults(
  context: CommandContext,
  dir: string,
  json: boolean,
): Promise<{ folder: string; message: string }[]> {
  const { faults, warnings } = await readMcpFaults(context.path(dir), context.env).catch(() => noFaults)
  for (const warning of warnings) context.stderr.write(`${printable(`warning: ${warning}`)}\n`)
  if (!json) for (const message of faults) context.stdout.write(`${printable(`${dir}: ${message}`)}\n`)
  return faults.map((message) => ({ folder: dir, message }))
}

/** A config that cannot be loaded is told with the agents. */
const noFaults = { faults: [], warnings: [] }

/** The errors of a folder's agents. A folder that cannot be loaded is added to `failures`. */
async function errorsIn(
  context: CommandContext,
  dir: string,
  endpoints: Endpoint[],
  failures: unknown[],
): Promise<AgentError[]> {
  try {
    return (await readAgents(context.path(dir), context.env, endpoints)).errors
  } catch (error) {
    failures.push(error)
    return []
  }
}

function asOne(failures: readonly unknown[]): unknown {
  const [first] = failures
  if (failures.length === 1 || !(first instanceof MillraceError)) return first
  return new MillraceError(first.code, failures.map(messageOf).join('\n'))
}

function filesIn(context: CommandContext, path: string): string[] {
  if (!existsSync(context.path(path))) {
    const cure = /\.ya?ml$/u.test(path) ? '' : ` ${initCure(context, path)}.`
    throw new MillraceError('usage', `There is no file or folder ${path}.${cure}`)
  }
  if (!statSync(context.path(path)).isDirectory()) {
    if (/\.ya?ml$/u.test(path)) return [path]
    throw new MillraceError('usage', `${path} is not an agent file: its name must end in .yaml or .yml.`)
  }
  return agentFiles(context, path).map((name) => join(path, name))
}
