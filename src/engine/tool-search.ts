/**
 * Tools that a model finds. With hundreds of tools a prompt is too long, and a model chooses badly: so it gets `find_tools`, and what it has found is offered
 * from its next call on. What is offered is a fold of the loop's replies: the same after a restart, a fork and a replay. Tools are only ever appended, so
 * what a provider has cached of the prompt stays valid.
 */
import { MillraceError } from '../part/error.ts'
import type { ToolSpec } from '../part/message.ts'
import { cutText } from '../part/shown-text.ts'
import type { ModelReply } from '../fold/reply-messages.ts'
import { findTool, mostFound } from '../tools/search/find-tool.ts'
import type { ToolIndex } from '../tools/search/tool-index.ts'
import type { OfferedTool } from './tool-call.ts'

/** By name of tool: whether the model must find it. `many`: if there are too many. */
export type SearchWishes = Map<string, boolean | 'many'>

/** Tools of servers that stand in a prompt by themselves, and the characters of their definitions. */
const mostTools = 64
const mostCharacters = 60_000
/** Characters of a description in a result: the whole one comes with the tool. */
const mostDescription = 200
/** Servers, or other beginnings of names, that the description tells. */
const mostNamed = 20

const inputSchema = {
  type: 'object',
  properties: {
    query: {
      type: 'string',
      description: 'What the tool should do, in a few words, with the names of the things it is about.',
    },
  },
  required: ['query'],
  additionalProperties: false,
}

/** Marks the tools that must be found, and adds the tool that finds them. `before`: what the loop has offered first, if it has begun. */
export function addSearch(
  tools: Map<string, OfferedTool>,
  wishes: SearchWishes,
  before: readonly ToolSpec[] | undefined,
): void {
  const deferred = deferredOf(tools, wishes, before)
  if (deferred.length === 0) return
  if (tools.has(findTool)) {
    throw new MillraceError(
      'bad-tools',
      `A tool has the name "${findTool}", which is needed to find others. Rename it, or set "defer: false".`,
    )
  }
  for (const name of deferred) tools.set(name, { ...tools.get(name)!, deferred: true })
  tools.set(findTool, finder(deferred.map((name) => tools.get(name)!.spec)))
}

function deferredOf(
  tools: ReadonlyMap<string, OfferedTool>,
  wishes: SearchWishes,
  before: readonly ToolSpec[] | undefined,
): string[] {
  const may = [...wishes].filter(([name]) => tools.get(name)?.spec.client !== true)
  if (before !== undefined) {
    // As the loop has begun, so it goes on, whatever its servers list now.
    const offered = new Set(before.map(({ name }) => name))
    if (!offered.has(findTool)) return []
    return may.flatMap(([name]) => (offered.has(name) ? [] : [name]))
  }
  const many = may.filter(([, wish]) => wish === 'many')
  let characters = 0
  for (const [name] of many) characters += JSON.stringify(tools.get(name)!.spec).length
  const isTooMuch = many.length > mostTools || characters > mostCharacters
  return may.flatMap(([name, wish]) => (wish === true || (wish === 'many' && isTooMuch) ? [name] : []))
}

function finder(specs: readonly ToolSpec[]): OfferedTool {
  let index: Promise<ToolIndex> | undefined
  const kinds = new Map<string, number>()
  for (const { name } of specs) {
    const kind = name.slice(0, name.indexOf('_') + 1 || undefined)
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1)
  }
  const named = [...kinds]
    .slice(0, mostNamed)
    .map(([kind, count]) => (kind.endsWith('_') ? `${kind}… (${count})` : kind))
  const description = `Finds tools by what they do. ${specs.length} more tools exist that you do not see: ${named.join(', ')}. What this finds, at most ${mostFound} tools, you can call from your next message on. Search before you say that you cannot do something.`
  const byName = new Map(specs.map((spec) => [spec.name, spec]))
  return {
    spec: { name: findTool, description, inputSchema },
    implementation: {
      parameters: inputSchema,
      idempotent: true,
      async execute({ query }: { query: string }) {
        index ??= import('../tools/search/tool-index.ts').then(({ createToolIndex }) => createToolIndex(specs))
        const found = (await index).find(query, mostFound)
        if (found.length === 0)
          return { tools: [], note: 'Nothing fits. Try other words: what it does, and to which thing.' }
        return {
          tools: found.map((name) => ({
            name,
            description: cutText(byName.get(name)?.description ?? '', mostDescription),
          })),
          note: 'You can call these from now on.',
        }
      },
    },
  }
}

/** What a call of the model is offered, by the replies before it. */
export function createOffer(tools: ReadonlyMap<string, OfferedTool>): (replies: readonly ModelReply[]) => ToolSpec[] {
  const seen = [...tools.values()].flatMap(({ spec, deferred }) => (deferred === true ? [] : [spec]))
  if (seen.length === tools.size) return () => seen
  return (replies) => {
    const more = new Set<string>()
    for (const { calls } of replies) for (const call of calls) for (const name of foundBy(call)) more.add(name)
    const found = [...more].flatMap((name) => {
      const tool = tools.get(name)
      return tool?.deferred === true ? [tool.spec] : []
    })
    return [...seen, ...found]
  }
}

function foundBy({ toolName, result }: ModelReply['calls'][number]): string[] {
  if (toolName !== findTool || result === undefined || result.isError === true) return []
  const { tools } = (result.result ?? {}) as { tools?: unknown }
  return Array.isArray(tools)
    ? tools.flatMap((each: { name?: unknown } | null) => (typeof each?.name === 'string' ? [each.name] : []))
    : []
}
