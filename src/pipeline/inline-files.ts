/**
 * Replaces `{ file: prompts/poet.md }` prompts with the text of the file: in the tree, which is checked as if the text were in
 * the agent's file, and in the agent's text, which every run records, so that a resumed run needs no files.
 */
import { child } from './check.ts'
import { createFaultCollector } from './fault.ts'
import { pathFault, quote, refuseSecrets, type InlineOptions } from './inlined.ts'
import type { Fault } from './pipeline.ts'
import { itemsOf, textOf } from './reader.ts'
import { inlineSkills, type SkillEdit } from './skills.ts'
import { walkSteps } from './step-types.ts'
import { parseTree, type Node } from './tree.ts'

interface FileSlot {
  value: Extract<Node, { kind: 'map' }>
  replace(node: Node): void
}

/** Replaces the files in the tree and returns the text with their contents inserted. Warnings are about skills. */
export function inlineFiles(text: string, root: Node, options: InlineOptions, warnings: Fault[]): string {
  const { faults } = options
  const edits = new Map<number, SkillEdit>()
  for (const { value, replace } of slotsOf(root)) {
    const file = child(value, 'file')
    const content = read(value, options)
    const { at } = value
    const path = textOf(file) ?? ''
    replace({ kind: 'scalar', text: content ?? '', plain: false, at, end: at, size: 1, height: 1, file: path })
    if (content !== undefined) edits.set(at, { ...spanOf(text, value, file!), text: quote(content) })
  }
  const skills = inlineSkills(root, options, text, warnings)
  if (skills !== undefined) edits.set(skills.start, skills)
  if (edits.size === 0) return text
  let inlined = ''
  let from = 0
  for (const { start, end, text: inserted } of [...edits.values()].toSorted((a, b) => a.start - b.start)) {
    inlined += text.slice(from, start) + inserted
    from = end
  }
  inlined += text.slice(from)
  // The recorded text must be parsable when the run is resumed.
  const trial = createFaultCollector(inlined)
  parseTree(inlined, trial)
  const [fault] = trial.list()
  const [first] = edits.keys()
  if (fault !== undefined) faults.add(first!, `with its prompt files inserted, ${fault.message}`)
  return inlined
}

/** All prompts that are written as a map. */
function* slotsOf(root: Node): Generator<FileSlot> {
  for (const prompt of itemsOf(child(child(root, 'metadata'), 'prompts'))) yield* slotAt(prompt, 'text')
  const lists = ['workflow', 'after'].flatMap((key) => child(root, key) ?? [])
  for (const list of lists) {
    for (const { step } of walkSteps([{ list, owner: '' }])) {
      const type = textOf(child(step, 'type'))
      const config = child(step, 'config')
      if (type === 'cli-agent') yield* slotAt(config, 'prompt')
      if (type === 'script') yield* slotAt(config, 'code')
      if (type !== 'llm' && type !== 'router' && type !== 'script') continue
      const contents = itemsOf(child(config, 'messages'))
      const parts = contents.flatMap((message) => itemsOf(child(message, 'content')))
      yield* slotAt(config, 'system')
      yield* slotAt(child(child(config, 'context'), 'summary'), 'system')
      const system = child(config, 'system')
      if (system?.kind === 'list') yield* slotsIn(system.items)
      for (const message of contents) yield* slotAt(message, 'content')
      for (const part of parts) yield* slotAt(part, 'text')
      for (const tool of itemsOf(child(config, 'tools'))) {
        yield* slotAt(tool, 'description')
        for (const inner of itemsOf(child(tool, 'code'))) yield* slotAt(inner, 'description')
      }
    }
  }
}

function* slotAt(owner: Node | undefined, key: string): Generator<FileSlot> {
  const value = child(owner, key)
  if (owner?.kind !== 'map' || value?.kind !== 'map') return
  const { at } = owner.entries.get(key)!
  yield { value, replace: (node) => owner.entries.set(key, { at, value: node }) }
}

function* slotsIn(items: Node[]): Generator<FileSlot> {
  for (const [i, value] of items.entries()) {
    if (value.kind === 'map') yield { value, replace: (node) => (items[i] = node) }
  }
}

function read(value: FileSlot['value'], { faults, readText, secrets = [] }: InlineOptions): string | undefined {
  const file = child(value, 'file')
  const others = [...value.entries].filter(([key]) => key !== 'file')
  for (const [key, { at }] of others) {
    faults.add(at, (hint) => `unknown key "${key}"${hint(key, ['file'])}; a prompt is a string or { file: path }`)
  }
  if (others.length > 0) return undefined
  const path = textOf(file)
  const wrong = path === undefined ? 'must be a file path' : pathFault(path)
  if (path === undefined || wrong !== undefined) {
    faults.add(file?.at ?? value.at, `"file" ${wrong}`)
    return undefined
  }
  if (readText === undefined) {
    faults.add(
      value.at,
      `cannot read the file ${path} here: only loadYaml and agents folders read prompt files; ${cure}`,
    )
    return undefined
  }
  try {
    const content = readText(path)
    const found = createFaultCollector(content)
    refuseSecrets(content, secrets, found)
    for (const { line, column, message } of found.list()) faults.add(value.at, `${path}:${line}:${column} ${message}`)
    return found.list().length > 0 ? undefined : content
  } catch (error) {
    faults.add(value.at, `the file ${path} ${error instanceof Error ? error.message : 'cannot be read'}`)
    return undefined
  }
}

const cure = 'write the prompt here, or pass a reader: parseYaml(text, { readText })'

function spanOf(text: string, value: Node, file: Node): { start: number; end: number } {
  // Keep an anchor, so that its aliases refer to the inserted text.
  const anchor = /&\S+\s*/y
  anchor.lastIndex = value.at
  const start = anchor.test(text) ? anchor.lastIndex : value.at
  const end = file.kind === 'scalar' ? file.end : start
  if (text[start] !== '{') return { start, end }
  const close = /(?:[\s,]|#[^\n\r]*)*\}/y
  close.lastIndex = end
  return { start, end: close.test(text) ? close.lastIndex : end }
}
