/** The steps of a run as a tree, with the blocks and marks of each. */
import type { OutlineBlock, OutlineItem, OutlineMark, OutlineStep } from './outline-item.ts'
import { parentPath } from '../part/path.ts'

/** One attempt of a step, with everything below it. */
export interface StepNode {
  step: OutlineStep
  parent: StepNode | undefined
  depth: number
  children: StepNode[]
  blocks: OutlineBlock[]
  marks: OutlineMark[]
}

export interface StepTree {
  roots: readonly StepNode[]
  /** In the order in which they started. */
  all: readonly StepNode[]
  /** Marks of the run itself. */
  marks: readonly OutlineMark[]
  /** The last attempt of a path. */
  at(path: string): StepNode | undefined
  /** The attempt that an entry belongs to. */
  of(path: string, seq: number): StepNode | undefined
}

/** `items`: merged and in order. */
export function buildTree(items: readonly OutlineItem[]): StepTree {
  const roots: StepNode[] = []
  const all: StepNode[] = []
  const marks: OutlineMark[] = []
  const attempts = new Map<string, StepNode[]>()
  const latest = (path: string) => attempts.get(path)?.at(-1)

  function above(path: string): StepNode | undefined {
    for (let up = parentPath(path); up !== ''; up = parentPath(up)) {
      const node = latest(up)
      if (node !== undefined) return node
    }
    return undefined
  }

  for (const item of items) {
    if (item.k === 'step') {
      const parent = above(item.path)
      const depth = parent === undefined ? 0 : parent.depth + 1
      const node: StepNode = { step: item, parent, depth, children: [], blocks: [], marks: [] }
      ;(parent?.children ?? roots).push(node)
      all.push(node)
      const others = attempts.get(item.path)
      if (others === undefined) attempts.set(item.path, [node])
      else others.push(node)
      continue
    }
    const node = latest(item.step) ?? above(item.step)
    if (item.k === 'mark') (node?.marks ?? marks).push(item)
    else node?.blocks.push(item)
  }
  return {
    roots,
    all,
    marks,
    at: latest,
    of: (path, seq) => attempts.get(path)?.findLast(({ step }) => step.from <= seq),
  }
}

/** Rows from top to bottom. `isFolded`: whether the children of a step are hidden. */
export function flattenTree(tree: StepTree, isFolded: (node: StepNode) => boolean): StepNode[] {
  const rows: StepNode[] = []
  const walk = (nodes: readonly StepNode[]) => {
    for (const node of nodes) {
      rows.push(node)
      if (node.children.length > 0 && !isFolded(node)) walk(node.children)
    }
  }
  walk(tree.roots)
  return rows
}

export type StepState = 'running' | 'waiting' | 'done' | 'failed' | 'superseded'

/** A step waits if it asks somebody, or if all that goes on in it does. */
export function stateOf(node: StepNode): StepState {
  const { step } = node
  if (step.superseded !== undefined) return 'superseded'
  if (step.error !== undefined || hasFailed(node)) return 'failed'
  if (step.end !== undefined) return 'done'
  return isWaiting(node) ? 'waiting' : 'running'
}

/** A call of a tool, or of an agent as one, fails with its result: its step has no error. */
function hasFailed(node: StepNode): boolean {
  return (
    (isToolCall(node) || isAgentCall(node)) &&
    node.marks.some(({ type, failed }) => type === 'tool-result' && failed === true)
  )
}

function isWaiting({ step, children, marks }: StepNode): boolean {
  if (asks(step)) return true
  const open = children.filter((child) => child.step.end === undefined && child.step.superseded === undefined)
  if (open.length > 0) return open.every(isWaiting)
  // A custom step that asks for an input.
  const answered = new Set(marks.flatMap(({ type, id }) => (type === 'response' && id !== undefined ? [id] : [])))
  return marks.some(({ type, id }) => type === 'request' && id !== undefined && !answered.has(id))
}

/** Whether a step waits for a person or a client, not for the server. */
export function asks({ kind }: OutlineStep): boolean {
  return kind === 'approval' || kind === 'client-tool'
}

const groups: ReadonlySet<string> = new Set(['tool-loop', 'router', 'summary', 'parallel', 'container'])

/** Whether a step only contains others, which take the time. */
export function isGroup({ step, children }: StepNode): boolean {
  return children.length > 0 || groups.has(step.kind)
}

function isToolCall({ step: { kind } }: StepNode): boolean {
  return kind === 'tool-call' || kind === 'client-tool'
}

/** Whether a step is a call of an agent as a tool: what is in it belongs to that agent. */
export function isAgentCall({ step }: StepNode): boolean {
  return step.agent !== undefined && step.toolCallId !== undefined && step.handoff !== true
}

/** The agents that lead to a step, outermost first: those that the steps around it have called. */
export function agentsAround(node: StepNode | undefined): string[] {
  const agents: string[] = []
  for (let at = node; at !== undefined; at = at.parent) if (at.step.agent !== undefined) agents.unshift(at.step.agent)
  return agents
}

/** The name of a step in a list, and as detail what the step says of itself while it goes on, or its type or place. */
export function labelOf(node: StepNode): { name: string; detail: string } {
  const { name, detail } = nameOf(node)
  return { name, detail: progressOf(node) ?? detail }
}

export function progressOf({ step, marks }: StepNode): string | undefined {
  return step.end === undefined ? marks.findLast(({ progress }) => progress !== undefined)?.progress : undefined
}

function nameOf({ step, parent }: StepNode): { name: string; detail: string } {
  const own = parent === undefined ? step.path.replace(/^main\//u, '') : step.path.slice(parent.step.path.length + 1)
  const { kind, toolName, agent, model } = step
  if (kind === 'model-call') return { name: 'Model call', detail: model ?? '' }
  if (kind === 'summary') return { name: 'Summary', detail: '' }
  if (kind === 'approval') return { name: `Approval of ${toolName ?? 'a call'}`, detail: '' }
  if (toolName !== undefined) {
    return { name: toolName, detail: agent === undefined || agent === toolName ? '' : `agent ${agent}` }
  }
  if (agent !== undefined) return { name: own, detail: `agent ${agent}` }
  // Of a loop: its steps are counted from 0 in paths, and from 1 by people.
  if (step.stepType === 'round') return { name: `Round ${Number(own) + 1}`, detail: '' }
  return { name: own, detail: step.stepType }
}
