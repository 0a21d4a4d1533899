/**
 * Replaces `{ file: prompts/poet.md }` prompts with the text of the file: in the tree, which is checked as if the text were in
 * the agent's file, and in the agent's text, which every run records, so that a resumed run needs no files.
 */
import { child } from './check.ts'
import { createFaultCollector, type FaultCollector } from './fault.ts'
import type { Secret } from './pipeline.ts'
import { itemsOf, textOf } from './reader.ts'
import { references } from './reference.ts'
import { walkSteps } from './step-types.ts'
import { parseTree, type Node } from './tree.ts'
import { formsOf } from '../fold/secret-forms.ts'

/**
 * Returns the text of a file by its path relative to the agent's file. Throws an error whose message continues "the file x …",
 * such as `is missing`.
 */
export type ReadText = (path: string) => string

export interface InlineOptions {
  faults: FaultCollector
  /** Without it, every file is a fault. */
  readText: ReadText | undefined
  secrets: readonly Secret[] | undefined
}

interface FileSlot {
  owner: Extract<Node, { kind: 'map' }>
  key: string
  value: Extract<Node, { kind: 'map' }>
}

/** Replaces the files in the tree and returns the text with their contents inserted. */
export function inlineFiles(text: string, root: Node, options: InlineOptions): string {
  const { faults } = options
  const edits = new Map<number, { start: number; end: number; content: string }>()
  for (const { owner, key, value } of slotsOf(root)) {
    const file = child(value, 'file')
    const content = read(value, options)
    const { at } = value
    const path = textOf(file) ?? ''
    owner.entries.set(key, {
      at: owner.entries.get(key)!.at,
      value: { kind: 'scalar', text: content ?? '', plain: false, at, end: at, size: 1, height: 1, file: path },
    })
    if (content !== undefined) edits.set(at, { ...spanOf(text, value, file!), content })
  }
  if (edits.size === 0) return text
  let inlined = ''
  let from = 0
  for (const { start, end, content } of [...edits.values()].toSorted((a, b) => a.start - b.start)) {
    inlined += text.slice(from, start) + quote(content)
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
  if (owner?.kind === 'map' && value?.kind === 'map') yield { owner, key, value }
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

/** Checks that a path stays below the folder of the agent's file. Resolving links is up to `readText`. */
function pathFault(path: string): string | undefined {
  if (path === '') return 'is empty; name a file, such as prompts/poet.md'
  if (path.length > 300) return 'is longer than 300 characters'
  // oxlint-disable-next-line no-control-regex -- a NUL ends a file name for the system, whatever follows it
  if (/[\u0000-\u001F\u007F\\]/.test(path)) return 'must not contain "\\" or control characters; write folder/file'
  if (/^(?:\/|[A-Za-z]:)/.test(path)) return 'must be relative to the folder of this file, such as prompts/poet.md'
  if (path.split('/').includes('..')) return 'must not leave the folder of this file: remove ".."'
  if (references(path).length > 0) return 'cannot hold variables: files are read when the agent is loaded'
  return undefined
}

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

/** Writes a double-quoted scalar: YAML accepts JSON's escapes; characters that YAML does not allow are escaped too. */
function quote(content: string): string {
  return JSON.stringify(content).replaceAll(
    /[\u007F-\u009F\u2028\u2029\uFEFF\uFFFE\uFFFF]/g,
    (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/* Rejects secrets in an agent's text, because the text is recorded, shown and passed on. */

/** Adds a fault at every occurrence of a known secret, also encoded for JSON, URLs, base64 or hex. The message names the source, not the value. */
export function refuseSecrets(text: string, secrets: readonly Secret[], faults: FaultCollector): void {
  const forms = secrets.flatMap(({ value, ...secret }) => formsOf([value]).map((form) => ({ ...secret, form })))
  const taken: [number, number][] = []
  // If two overlap (a header and its token), report the longer one.
  for (const { form, from, cure } of forms.toSorted((a, b) => b.form.length - a.form.length)) {
    for (let at = text.indexOf(form); at >= 0; at = text.indexOf(form, at + form.length)) {
      if (taken.some(([begin, end]) => at < end && at + form.length > begin)) continue
      taken.push([at, at + form.length])
      faults.add(at, `this is a secret, the value of ${from}, and an agent's text is recorded and shown; ${cure}`)
    }
  }
}
