/** `parseYaml` and `loadYaml`: an agent's text, or its file, as what `WorkflowExecutor` takes. */
import { messageOf, MillraceError } from '../part/error.ts'
import { callsOf, checkCalls } from '../pipeline/calls.ts'
import { faultsOf } from '../pipeline/fault.ts'
import { formatFaults, parsePipeline, PipelineError } from '../pipeline/parse.ts'
import type { Pipeline } from '../pipeline/pipeline.ts'
import { isInside } from './is-inside.ts'
import { createPromptReader } from './prompt-reader.ts'

/** A checked agent. `workflow` holds its steps, `metadata` what it says of itself, `text` the YAML it was read from. */
export interface ParsedYaml extends Pipeline {
  /** The agents that its `call-agent` steps may name, by id. `loadYaml` fills it with the files that the steps name. */
  agents?: Record<string, ParsedYaml>
}

/** What {@link parseYaml} may need beside the text. */
export interface ParseOptions {
  /**
   * Gives the text of a file that the agent names (`system: { file: prompts/poet.md }`). What it throws is a fault: the
   * message goes on "the file x …". Without it such an agent is refused.
   */
  readText?: (path: string) => string
}

/**
 * Pure: YAML text → agent. Throws {@link PipelineError} with every fault of the text. Names of tools, callbacks and step
 * types are looked at by whoever runs it, since only there they are known.
 */
export function parseYaml(text: string, { readText }: ParseOptions = {}): ParsedYaml {
  return parsePipeline(text, undefined, readText)
}

/**
 * Reads an agent's file (`.yaml`, `.yml`), and those beside it that its steps call, on Node, Bun or Deno. Throws
 * {@link PipelineError} with `file:line:col` of every fault, and `bad-path` for a path that is no such file. A relative
 * path must not climb in its middle (`agents/../x.yaml`): an agent's id out of a request must not lead elsewhere.
 */
export async function loadYaml(path: string | URL): Promise<ParsedYaml> {
  const file = typeof path === 'string' ? path : decodeURIComponent(path.pathname)
  checkPath(file)
  const [, dir, name, extension] = /^(.*[/\\])?([^/\\]+?)(\.ya?ml)$/u.exec(file)!
  const loaded = new Map<string, ParsedYaml>()
  const files = new Map<string, string>()
  await load(name!, [extension!])

  async function load(id: string, extensions: string[]): Promise<void> {
    const candidates = extensions.map((each) => `${dir ?? ''}${id}${each}`)
    // The file itself may be anything that the program names; those that its text names are beside it.
    const found = await firstFile(candidates, id === name ? undefined : dir || '.')
    if (found === undefined) return
    files.set(id, found.file)
    const pipeline = parseFile(found.file, found.text, createPromptReader(fileSystem(), dir || '.'))
    loaded.set(id, pipeline)
    for (const called of callsOf(pipeline)) if (!loaded.has(called)) await load(called, ['.yaml', '.yml'])
  }

  const agent = loaded.get(name!)
  if (agent === undefined) throw new MillraceError('bad-path', `There is no file ${file}.`)
  const faults = checkCalls(loaded)
  if (faults.length > 0) {
    const lines = faults.map(({ agent: id, fault }) => formatFaults(files.get(id)!, [fault]))
    throw new PipelineError(
      faults.map(({ fault }) => fault),
      lines.join('\n'),
    )
  }
  return { ...agent, agents: Object.fromEntries(loaded) }
}

function parseFile(file: string, text: string, readText: ParseOptions['readText']): ParsedYaml {
  try {
    return parseYaml(text, { readText })
  } catch (error) {
    const faults = faultsOf(error)
    throw new PipelineError(faults, formatFaults(file, faults))
  }
}

function checkPath(path: string): void {
  const bad = (what: string) => new MillraceError('bad-path', `${JSON.stringify(path)} ${what}.`)
  if (!/[^/\\]\.ya?ml$/u.test(path) || path.includes('\0')) throw bad('is no agent file: its name must end in .yaml')
  const isAbsolute = /^([/\\]|[A-Za-z]:)/u.test(path)
  const climbs = path.replace(/^(\.{1,2}[/\\])+/u, '').split(/[/\\]/u)
  if (!isAbsolute && climbs.includes('..'))
    throw bad('climbs out of a folder that it names; resolve it first if it shall')
}

/** `within`: the folder that links must not lead out of. */
async function firstFile(
  candidates: string[],
  within: string | undefined,
): Promise<{ file: string; text: string } | undefined> {
  const fs = fileSystem()
  for (const file of candidates) {
    try {
      if (within !== undefined) {
        const [real, folder] = await Promise.all([fs.promises.realpath(file), fs.promises.realpath(within)])
        if (!isInside(folder, real)) {
          throw new MillraceError('bad-path', `${file} leads out of the folder; put the file itself there.`)
        }
      }
      return { file, text: await fs.promises.readFile(file, 'utf8') }
    } catch (error) {
      if (error instanceof MillraceError) throw error
      if ((error as { code?: unknown }).code === 'ENOENT') continue
      throw new MillraceError('bad-path', `${file} cannot be read: ${messageOf(error)}`, { cause: error })
    }
  }
  return undefined
}

/** Not an import: bundles for browsers and the edge must not hold one, and only callers of this need it. */
function fileSystem(): typeof import('node:fs') {
  const fs = globalThis.process?.getBuiltinModule?.('node:fs')
  if (fs !== undefined) return fs
  throw new MillraceError('no-files', 'loadYaml reads files, and there are none here: use parseYaml(text).')
}
