/** The files that a run's answer has, numbered from 1 in their order: `run://<id>/files/<n>`. */
import type { Message } from '../../part/message.ts'
import { shownLine } from '../../part/shown-text.ts'

export interface RunFile {
  n: number
  mediaType: string
  /** Without hidden characters and folders; made up where the model gave none. */
  name: string
  /** Absent if only its address is known. */
  base64?: string
  /** Where it is, if its bytes are not in the log. */
  url?: string
}

export function filesOf(messages: readonly Message[]): RunFile[] {
  const files: RunFile[] = []
  for (const { role, content } of messages) {
    if (role !== 'assistant' || typeof content === 'string') continue
    for (const part of content) {
      if (part.type !== 'file') continue
      const n = files.length + 1
      files.push({ n, mediaType: part.mediaType, name: nameOf(part, n), ...dataOf(part.data) })
    }
  }
  return files
}

export function sizeOf({ base64 = '' }: RunFile): number {
  return Math.floor((base64.replace(/=+$/u, '').length * 3) / 4)
}

const textTypes = /^(text\/|application\/(json|xml|yaml|x-yaml|javascript|toml|sql)$|[^/]+\/[^/]+\+(json|xml|yaml)$)/iu

/** Undefined if it is no text, or not in UTF-8. */
export function textOfFile({ mediaType, base64 }: RunFile): string | undefined {
  if (base64 === undefined || !textTypes.test(mediaType.split(';')[0]!.trim())) return undefined
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytesOf(base64))
  } catch {
    return undefined
  }
}

/** In the alphabet that MCP demands. */
export function standardBase64(base64: string): string {
  const text = base64.replaceAll('-', '+').replaceAll('_', '/').replace(/=+$/u, '')
  return text.padEnd(Math.ceil(text.length / 4) * 4, '=')
}

function bytesOf(base64: string): Uint8Array {
  return Uint8Array.from(atob(standardBase64(base64)), (each) => each.charCodeAt(0))
}

function dataOf(data: string): Pick<RunFile, 'base64' | 'url'> {
  const inside = /^data:[^,]*;base64,/iu.exec(data)
  if (inside !== null) return { base64: data.slice(inside[0].length) }
  return /^[a-z][a-z0-9+.-]*:/iu.test(data) ? { url: data } : { base64: data }
}

function nameOf({ filename, mediaType }: { filename?: string; mediaType: string }, n: number): string {
  const given = shownLine(filename ?? '', 200)
    .split(/[/\\]/u)
    .at(-1)!
  if (given !== '' && given !== '.' && given !== '..') return given
  const ending = /\/([\w-]{1,20})/u.exec(mediaType)?.[1]
  return ending === undefined ? `file-${n}` : `file-${n}.${ending === 'plain' ? 'txt' : ending}`
}
