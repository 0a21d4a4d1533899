/** `parseYaml` and `loadYaml`: turn an agent's text or file into the input of `WorkflowExecutor`. */
import { messageOf, MillraceError } from '../part/error.ts'
import { callsOf, checkCalls } from '../pipeline/calls.ts'
import { faultsOf } from '../pipeline/fault.ts'
import { formatFaults, parsePipeline, PipelineError } from '../pipeline/parse.ts'
import type { Pipeline } from '../pipeline/pipeline.ts'
import { isInside, createPromptReader } from './prompt-reader.ts'

/** A validated agent: `workflow` has its steps, `metadata` its description, `text` the YAML source. */
export interface ParsedYaml extends Pipeline {
  /** The agents that its `call-agent` steps may name, by id. `loadYaml` adds those that the steps do name. */
  agents?: Record<string, ParsedYaml>
  /** The folder of its file, from which its skills are read. Set by `loadYaml`. */
  folder?: string
}

/** Options of {@link parseYaml}. */
export interface ParseOptions {
  /**
   * Returns the text of a prompt file (`system: { file: prompts/poet.md }`). If it throws, the mistake is reported as "the
   * file x" followed by the error's message. Without this option, agents with prompt files are rejected.
   */
  readText?: (path: string) => string
}

/**
 * Parses YAML into an agent. Throws {@link PipelineError} with every mistake in the text. The names of tools, callbacks and
 * step types are checked when the agent is run, because only then are they known.
 */
export function parseYaml(text: string, { readText }: ParseOptions = {}): ParsedYaml {
  return parsePipeline(text, undefined, readText)
}

/**
 * Reads an agent's file (`.yaml`, `.yml`) and the agents in the same folder that its steps call, on Node, Bun or Deno. Throws
 * {@link PipelineError} with `file:line:col` of every mistake, and `bad-path` for a path that is not such a file. A relative
 * path must not have `..` after a folder (`agents/../x.yaml`): an agent id from a request must not leave the folder.
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
    // The program may pass any file; the agents that the file calls must be in its folder.
    const found = await firstFile(candidates, id === name ? undefined : dir || '.')
    if (found === undefined) return
    files.set(id, found.file)
    const pipeline = parseFile(found.file, found.text, createPromptReader(fileSystem(), dir || '.'))
    loaded.set(id, pipeline)
    const { sideCalls } = pipeline
    for (const called of [...callsOf(pipeline), ...(sideCalls === undefined ? [] : [sideCalls])])
      if (!loaded.has(called)) await load(called, ['.yaml', '.yml'])
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
  return { ...agent, agents: Object.fromEntries(loaded), folder: dir || '.' }
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
  if (!/[^/\\]\.ya?ml$/u.test(path) || path.includes('\0'))
    throw bad('is not an agent file: its name must end in .yaml or .yml')
  const isAbsolute = /^([/\\]|[A-Za-z]:)/u.test(path)
  const climbs = path.replace(/^(\.{1,2}[/\\])+/u, '').split(/[/\\]/u)
  if (!isAbsolute && climbs.includes('..'))
    throw bad('has ".." after a folder name; resolve the path first if that is intended')
}

/** `within`: the folder in which the file must be, also after symlinks are resolved. */
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
          throw new MillraceError(
            'bad-path',
            `${file} resolves to a path outside the folder; put the file itself there.`,
          )
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

/** Not an import: bundles for browsers and the edge must not import `node:fs`, and only `loadYaml` needs it. */
export function fileSystem(): typeof import('node:fs') {
  const fs = globalThis.process?.getBuiltinModule?.('node:fs')
  if (fs !== undefined) return fs
  throw new MillraceError(
    'no-files',
    'loadYaml needs a file system, which this environment does not have: use parseYaml(text).',
  )
}
