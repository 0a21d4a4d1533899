/**
 * A folder of YAML agents, watched: a changed file is checked and taken, a broken one is reported and the last good
 * version stays. A run that is under way keeps the text it started with, because its log holds it.
 */
import { readFileSync, readdirSync, watch } from 'node:fs'
import { join } from 'node:path'
import { messageOf, MillraceError } from '../part/error.ts'
import { formatFaults, parsePipeline, PipelineError } from '../pipeline/parse.ts'
import type { Known } from '../pipeline/pipeline.ts'
import type { Agent, AgentSource } from '../run/runtime.ts'

export interface AgentError {
  file: string
  /** `file:line:col message`, one fault a line. */
  message: string
}

export interface AgentFolder extends AgentSource {
  readonly errors: AgentError[]
  /** Reads what has changed; resolves names again. Gives the ids that changed. */
  reload(): string[]
  /** Calls back after each reload that a change in the folder caused. */
  watch(onReload: (changed: string[], errors: AgentError[]) => void): void
  close(): void
}

const extension = /\.ya?ml$/u

export function openAgentFolder(dir: string, known: Known): AgentFolder {
  let byFile = new Map<string, { text: string | undefined; agent: Agent | undefined; error: AgentError | undefined }>()
  let byName = new Map<string, Agent>()
  let clashes: AgentError[] = []
  let watcher: ReturnType<typeof watch> | undefined
  let timer: ReturnType<typeof setTimeout> | undefined

  function reload(): string[] {
    const changed = new Set<string>()
    const next: typeof byFile = new Map()
    for (const file of filesOf(dir)) {
      const before = byFile.get(file)
      const id = file.replace(extension, '')
      let text: string
      try {
        text = readFileSync(join(dir, file), 'utf8')
      } catch (error) {
        // Editors replace files: one that is gone for a moment keeps its last version.
        const fault = { file, message: `${file}: ${messageOf(error)}` }
        if (before?.error?.message !== fault.message) changed.add(id)
        next.set(file, { text: undefined, agent: before?.agent, error: fault })
        continue
      }
      if (before?.text === text) {
        next.set(file, before)
        continue
      }
      changed.add(id)
      try {
        next.set(file, { text, agent: { id, pipeline: parsePipeline(text, known) }, error: undefined })
      } catch (error) {
        const message =
          error instanceof PipelineError ? formatFaults(file, error.faults) : `${file}: ${messageOf(error)}`
        next.set(file, { text, agent: before?.agent, error: { file, message } })
      }
    }
    for (const file of byFile.keys()) if (!next.has(file)) changed.add(file.replace(extension, ''))
    byFile = next
    name()
    return [...changed]
  }

  /** Ids before aliases: an alias never takes another agent's own name. */
  function name(): void {
    byName = new Map()
    clashes = []
    const found = [...byFile].flatMap(([file, { agent }]) => (agent === undefined ? [] : [{ file, agent }]))
    const claim = (file: string, agent: Agent, each: string) => {
      const other = byName.get(each)
      if (other === undefined) byName.set(each, agent)
      else if (other !== agent) {
        clashes.push({ file, message: `${file}: the name "${each}" belongs to agent ${other.id} already` })
      }
    }
    for (const { file, agent } of found) claim(file, agent, agent.id)
    for (const { file, agent } of found) {
      for (const alias of agent.pipeline.metadata.aliases ?? []) claim(file, agent, alias)
    }
  }

  reload()
  return {
    get: (id) => byName.get(id),
    list: () =>
      [...byFile.values()].flatMap(({ agent }) =>
        agent === undefined || byName.get(agent.id) !== agent ? [] : [agent],
      ),
    get errors() {
      return [...byFile.values()].flatMap(({ error }) => (error === undefined ? [] : [error])).concat(clashes)
    },
    reload,
    watch(onReload) {
      watcher ??= watch(dir, (_, file) => {
        if (file !== null && !extension.test(file)) return
        // One save is several events.
        clearTimeout(timer)
        timer = setTimeout(() => {
          let changed: string[]
          try {
            changed = reload()
          } catch (error) {
            onReload([], [{ file: dir, message: messageOf(error) }])
            return
          }
          if (changed.length > 0) onReload(changed, this.errors)
        }, 50)
      })
      watcher.on('error', () => watcher?.close())
    },
    close() {
      clearTimeout(timer)
      watcher?.close()
    },
  }
}

function filesOf(dir: string): string[] {
  let names: string[]
  try {
    names = readdirSync(dir)
  } catch (error) {
    throw new MillraceError('bad-folder', `The folder of agents cannot be read: ${messageOf(error)}`, { cause: error })
  }
  return names.filter((name) => extension.test(name)).toSorted()
}
