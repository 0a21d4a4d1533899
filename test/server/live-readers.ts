/** A server, and readers of its GET /api/live that see frames. */
import { expect, onTestFinished } from 'vitest'
import type { Entry } from '../../src/part/entry.ts'
import type { RunRow } from '../../src/part/log.ts'
import { agent, type EngineOptions } from '../support/engine.ts'
import { startServer } from '../support/server.ts'

export type Frame =
  | { event: 'entry'; id: string; data: { run: string; entry: Entry } }
  | { event: 'row'; data: RunRow }
  | { event: 'gone'; data: { run: string; reason: string } }
  | { event: 'agents'; data: object }

export type EntryFrame = Extract<Frame, { event: 'entry' }>

export async function start(options: Partial<EngineOptions>, handler = {}) {
  const server = await startServer({ agents: { a: agent() }, ...options }, handler)
  onTestFinished(() => server.close())

  async function watch(search: string, headers: Record<string, string> = {}) {
    const leave = new AbortController()
    const response = await fetch(`${server.url}/api/live?${search}`, { headers, signal: leave.signal })
    expect(response.status, search).toBe(200)
    expect(response.headers.get('content-type')).toBe('text/event-stream')
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
    onTestFinished(() => leave.abort())
    const frames: Frame[] = []
    let rest = ''
    const more = async (): Promise<boolean> => {
      const { done, value = '' } = await reader.read()
      const parts = (rest + value).split('\n\n')
      rest = parts.pop()!
      frames.push(...parts.flatMap(toFrame))
      return !done
    }
    return {
      frames,
      leave: () => leave.abort(),
      get entries() {
        return frames.filter((each): each is EntryFrame => each.event === 'entry').map(({ data }) => data.entry)
      },
      async until(fits: (frame: Frame) => boolean): Promise<Frame> {
        for (;;) {
          const found = frames.find(fits)
          if (found !== undefined) return found
          if (!(await more())) throw new Error(`it ended: ${JSON.stringify(frames)}`)
        }
      },
      async ended() {
        while (await more());
      },
      async silent(): Promise<string> {
        while (!rest.includes(': keep-alive') && (await more()));
        return rest
      },
    }
  }
  return { ...server, watch }
}

export function toFrame(part: string): Frame[] {
  const fields = Object.fromEntries(part.split('\n').map((line) => line.split(/: (.*)/su))) as Record<string, string>
  return fields['data'] === undefined ? [] : [{ ...fields, data: JSON.parse(fields['data']) as object } as Frame]
}
