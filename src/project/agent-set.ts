/**
 * Chooses which version of each agent in a folder is served, and collects the errors of the others. A new version is served
 * if it is valid, the agents it calls exist and no call leads back to it. Otherwise the last good version stays.
 */
import { checkCalls, placeOfAlias } from '../pipeline/calls.ts'
import { formatFaults } from '../pipeline/parse.ts'
import type { Fault, Pipeline } from '../pipeline/pipeline.ts'
import type { Agent } from '../runtime/runtime.ts'

export interface AgentError {
  file: string
  /** `file:line:col message`, one fault per line. */
  message: string
  /** The same faults as data. */
  faults: Fault[]
}

export function faultyFile(file: string, faults: Fault[]): AgentError {
  return { file, message: formatFaults(file, faults), faults }
}

export interface AgentFile {
  id: string
  /** Undefined when it could not be read. */
  text: string | undefined
  /** The prompt files that it names, by path: the text of each, or the error. */
  prompts: ReadonlyMap<string, string>
  /** The parsed text; undefined when it has faults. */
  next: Agent | undefined
  /** The version that is served. */
  good: Agent | undefined
  fault: AgentError | undefined
}

export interface AgentSet {
  /** By id and by alias. */
  names: Map<string, Agent>
  errors: AgentError[]
}

/** Sets `good` of each file. */
export function settle(files: ReadonlyMap<string, AgentFile>): AgentSet {
  const wanted = callFaults(files, ({ next, good }) => next ?? good)
  for (const [file, each] of files) if (each.next !== undefined && !wanted.has(file)) each.good = each.next
  // Checked again with the served versions: a call whose target was removed is an error, even if its file is unchanged.
  const served = callFaults(files, ({ good }) => good)
  const errors: AgentError[] = []
  for (const [file, each] of files) {
    if (each.fault !== undefined) errors.push(each.fault)
    else {
      const faults = (each.next === each.good ? served : wanted).get(file)
      if (faults !== undefined) errors.push(faultyFile(file, faults))
    }
  }
  const { names, clashes } = claimNames(files, ({ good }) => good)
  return { names, errors: [...errors, ...clashes] }
}

type Choice = (file: AgentFile) => Agent | undefined

function callFaults(files: ReadonlyMap<string, AgentFile>, choose: Choice): Map<string, Fault[]> {
  const { names } = claimNames(files, choose)
  const pipelines = new Map<string, Pipeline>()
  for (const [name, { pipeline }] of names) pipelines.set(name, pipeline)
  const fileOf = new Map<string, string>()
  for (const [file, { id }] of files) {
    if (!fileOf.has(id)) fileOf.set(id, file)
    // An agent with faults of its own still counts as existing, so that its callers do not report it too.
    if (!pipelines.has(id)) pipelines.set(id, { text: '', metadata: {}, workflow: [], after: [], recover: false })
  }
  const found = new Map<string, Fault[]>()
  for (const { agent, fault } of checkCalls(pipelines)) {
    const file = fileOf.get(agent)
    if (file !== undefined) found.set(file, [...(found.get(file) ?? []), fault])
  }
  return found
}

export function nameTaken(name: string, agent: string): string {
  return `the name "${name}" already belongs to agent ${agent}; choose another`
}

/** Ids come before aliases, so an alias never hides another agent's id. */
function claimNames(files: ReadonlyMap<string, AgentFile>, choose: Choice) {
  const names = new Map<string, Agent>()
  const clashes: AgentError[] = []
  const found = [...files].flatMap(([file, each]) => {
    const agent = choose(each)
    return agent === undefined ? [] : [{ file, agent }]
  })
  const claim = (file: string, agent: Agent, name: string) => {
    const other = names.get(name)
    if (other === undefined) names.set(name, agent)
    else if (other !== agent) {
      const message = nameTaken(name, other.id)
      clashes.push(faultyFile(file, [{ ...placeOfAlias(agent.pipeline, name), message }]))
    }
  }
  for (const { file, agent } of found) claim(file, agent, agent.id)
  for (const { file, agent } of found) {
    for (const alias of agent.pipeline.metadata.aliases ?? []) claim(file, agent, alias)
  }
  return { names, clashes }
}
