/** `run://<id>`, `run://<id>/files/<n>` and `thread://<id>`: runs that the caller may see, as resources of MCP. */
import { readView } from '../../fold/read-view.ts'
import { MillraceError } from '../../part/error.ts'
import type { RunRow } from '../../part/log.ts'
import { runsOf } from '../../part/principal.ts'
import { conversation } from '../../runtime/conversation.ts'
import type { RequestContext } from '../handler-context.ts'
import { shownThread, threadNamed, withShownThread } from '../routes/existing-thread.ts'
import { runUri } from './content.ts'
import { filesOf, standardBase64, textOfFile } from './run-files.ts'
import { runMarkdown, threadMarkdown } from './run-markdown.ts'
import { shownLine } from '../../part/shown-text.ts'

export interface Resource {
  uri: string
  name: string
  title?: string
  description?: string
  mimeType: string
}

export type ResourceContents = { uri: string; mimeType: string } & ({ text: string } | { blob: string })

type Caller = Pick<RequestContext, 'runtime' | 'principal'>

const pageSize = 50
const markdown = 'text/markdown'

/** The newest 50 runs that are the caller's own, and from `cursor` on the next 50. Undefined: no such cursor (-32602). */
export async function listResources(
  { runtime, principal }: Caller,
  cursor?: unknown,
): Promise<{ resources: Resource[]; nextCursor?: string } | undefined> {
  if (cursor !== undefined && typeof cursor !== 'string') return undefined
  const page = { ...runsOf(principal), limit: pageSize + 1, ...(cursor !== undefined && { before: cursor }) }
  try {
    const rows = await runtime.store.runs.list(page)
    const shown = rows.slice(0, pageSize)
    return {
      resources: shown.map(toResource),
      ...(rows.length > pageSize && { nextCursor: shown.at(-1)!.id }),
    }
  } catch (error) {
    if (error instanceof MillraceError && error.code === 'unknown-run') return undefined
    throw error
  }
}

function toResource({ id, agent, title, status, startedAt }: RunRow): Resource {
  return {
    uri: runUri(id),
    name: `${agent} ${id}`,
    ...(title !== undefined && { title: shownLine(title, 120) }),
    description: `A run of ${agent}: ${status}, started ${new Date(startedAt).toISOString()}`,
    mimeType: markdown,
  }
}

export function resourceTemplates(): { uriTemplate: string; name: string; description: string; mimeType?: string }[] {
  return [
    {
      uriTemplate: 'run://{run}',
      name: 'run',
      description: 'A run of an agent: its answer, steps, usage and open requests.',
      mimeType: markdown,
    },
    {
      uriTemplate: 'run://{run}/files/{n}',
      name: 'run-file',
      description: 'A file of a run’s answer, counted from 1.',
    },
    {
      uriTemplate: 'thread://{thread}',
      name: 'thread',
      description: 'A conversation with an agent, oldest message first.',
      mimeType: markdown,
    },
  ]
}

/** Undefined: unknown or not the caller's to see (-32602, one text for all). */
export async function readResource(caller: Caller, uri: unknown): Promise<ResourceContents[] | undefined> {
  const [, kind, name, n] =
    /^(run|thread):\/\/([^/?#]{1,2000})(?:\/files\/([1-9]\d{0,5}))?\/?$/u.exec(String(uri)) ?? []
  const id = decoded(name)
  if (typeof uri !== 'string' || id === undefined) return undefined
  if (kind === 'run') return n === undefined ? readRun(caller, uri, id) : readFile(caller, uri, id, Number(n))
  return n === undefined ? readThread(caller, uri, id) : undefined
}

async function readRun(caller: Caller, uri: string, id: string): Promise<ResourceContents[] | undefined> {
  const view = await readView(caller.runtime.store, id)
  return view && [{ uri, mimeType: markdown, text: runMarkdown(withShownThread(caller, view)) }]
}

async function readFile(
  { runtime }: Caller,
  uri: string,
  id: string,
  n: number,
): Promise<ResourceContents[] | undefined> {
  const view = await readView(runtime.store, id)
  const file = filesOf(view?.messages ?? [])[n - 1]
  // A link of a provider: the list has its address, and we do not fetch it.
  if (file?.base64 === undefined) return undefined
  const text = textOfFile(file)
  const mimeType = file.mediaType
  return [text === undefined ? { uri, mimeType, blob: standardBase64(file.base64) } : { uri, mimeType, text }]
}

async function readThread(caller: Caller, uri: string, name: string): Promise<ResourceContents[] | undefined> {
  const { store } = caller.runtime
  const threadId = await threadNamed(caller, name)
  const [last] = await store.runs.list({ threadId, limit: 1 })
  if (last === undefined) return undefined
  const { messages } = await conversation(store, threadId, last.id)
  return [{ uri, mimeType: markdown, text: threadMarkdown(shownThread(caller, threadId), messages) }]
}

function decoded(text: string | undefined): string | undefined {
  try {
    return text === undefined ? undefined : decodeURIComponent(text)
  } catch {
    return undefined
  }
}
