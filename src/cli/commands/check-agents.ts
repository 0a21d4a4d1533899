/** Checks agent files together with their folder, its config and its MCP servers. */
import { existsSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { CommandContext } from '../context.ts'
import { messageOf, MillraceError } from '../../part/error.ts'
import { formatFaults } from '../../pipeline/parse.ts'
import type { ModelResolver } from '../../models/language-model.ts'
import { stepsInside } from '../../pipeline/calls.ts'
import type { Fault, Pipeline } from '../../pipeline/pipeline.ts'
import type { Endpoint } from '../../models/resolver.ts'
import type { AgentError } from '../../project/agents-folder.ts'
import { parseEndpoint, readAgents, readMcpFaults } from '../../project/project.ts'
import { agentFiles, initCure } from '../paths.ts'
import { forStream, printable, paint } from '../terminal/output.ts'
import type { CheckFlags } from './check.ts'

export async function checkFiles(
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
  const warnings: Warning[] = []
  const failures: unknown[] = []
  const servers: { folder: string; message: string }[] = []
  // Files are checked together with their folder: an agent may call the others in it.
  for (const [dir, inside] of Map.groupBy(files, (file) => dirname(file))) {
    const { errors, warnings: noted } = await checkFolder(context, dir, endpoints, failures)
    servers.push(...(await serverFaults(context, dir, json)))
    const names = new Set(inside.map((file) => basename(file)))
    warnings.push(
      ...noted.filter(({ file }) => names.has(file)).map((each) => ({ ...each, file: join(dir, each.file) })),
    )
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
      `${forStream(JSON.stringify({ files: files.length, faults: found, ...(servers.length > 0 && { servers }), ...(warnings.length > 0 && { warnings }) }, null, 2), context.stdout)}\n`,
    )
  else
    for (const { file, line, message } of warnings)
      context.stderr.write(`${printable(`${file}:${line} warning: ${message}`)}\n`)
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

/** MCP servers that do not start. Faults in the tools of the others are only warnings. */
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

/** The check of the agents reports a config that cannot be loaded. */
const noFaults = { faults: [], warnings: [] }

interface Warning {
  file: string
  line: number
  message: string
}

interface FolderFaults {
  errors: AgentError[]
  /** What is no error: notes about skills, and models whose key is not set here, but may be where the agent runs. */
  warnings: Warning[]
}

/** The faults of a folder's agents. A folder that cannot be loaded is added to `failures`. */
async function checkFolder(
  context: CommandContext,
  dir: string,
  endpoints: Endpoint[],
  failures: unknown[],
): Promise<FolderFaults> {
  try {
    const { agents, models } = await readAgents(context.path(dir), context.env, endpoints)
    const files = agentFiles(context, dir).map((name) => basename(name))
    const warnings = agents.list().flatMap(({ id, pipeline }) => {
      const file = files.find((name) => name.replace(/\.ya?ml$/u, '') === id)
      return file === undefined
        ? []
        : [...(pipeline.warnings ?? []), ...missingKeys(pipeline, models)].map(({ line, message }) => ({
            file,
            line,
            message,
          }))
    })
    return { errors: agents.errors, warnings }
  } catch (error) {
    failures.push(error)
    return { errors: [], warnings: [] }
  }
}

/** One for each model that an agent names itself. */
function missingKeys({ workflow, after }: Pipeline, models: ModelResolver): { line: number; message: string }[] {
  const found = new Map<string, { line: number; message: string }>()
  const steps = [...workflow, ...after].toReversed()
  for (let step = steps.pop(); step !== undefined; step = steps.pop()) {
    steps.push(...stepsInside(step))
    if (step.type !== 'llm' && step.type !== 'router') continue
    const { model = models.defaultModel, fallbacks = [] } = step.config
    for (const name of [model, ...fallbacks]) {
      if (name === undefined || name.includes('$') || found.has(name)) continue
      try {
        models.resolve(name)
      } catch (error) {
        if (error instanceof MillraceError && error.code === 'missing-key')
          found.set(name, { line: step.line, message: error.message })
      }
    }
  }
  return [...found.values()]
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
